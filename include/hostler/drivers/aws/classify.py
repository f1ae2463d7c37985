"""Draws Amazon's errors: by the table of codes first, then by rules of shape, so that a new spelling of a known error is met.

Unknown codes get the safe default for what the call does, and are logged as unknown: they are worth a row in the table.
"""

import logging
import math
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final, Literal

from hostler.catalog.aws_quota import Quota
from hostler.cloud.errors import (
    AnswerLostError,
    CloudAuthError,
    CloudConfigError,
    CloudError,
    CloudThrottledError,
    CloudUnavailableError,
    InsufficientCapacityError,
    QuotaExceededError,
    TeardownRefusedError,
)
from hostler.drivers.aws.error_table import CODES, SDK_ERRORS, UNSENT, Meaning

_log = logging.getLogger(__name__)

Effect = Literal["read", "create", "delete"]
"""What a call does to the cloud: decides what a lost answer means."""

_FAMILIES: Final = (
    # Order counts: a quota's text speaks of capacity ("more vCPU capacity than your current limit").
    (re.compile(r"(?i)throttl|ratelimit|requestlimit|requestrate|toomanyrequests"), Meaning(CloudThrottledError, "family")),
    (
        re.compile(r"(?i)^(un)?auth|accessdenied|notauthorized|expiredtoken|credential|signature"),
        Meaning(CloudAuthError, "family"),
    ),
    (re.compile(r"(?i)(limit|quota|count)exceeded"), Meaning(QuotaExceededError, "family")),
    (re.compile(r"(?i)capacity|outofresource"), Meaning(InsufficientCapacityError, "family")),
    (re.compile(r"^(Invalid|Malformed|Missing|Unknown|Unsupported)"), Meaning(CloudConfigError, "family")),
)
"""How codes of one kind are spelled; met in order."""

_HINTS: Final = (
    (re.compile(r"(?i)request limit exceeded|rate exceeded|throttl"), Meaning(CloudThrottledError, "text")),
    (re.compile(r"(?i)not authorized to perform"), Meaning(CloudAuthError, "text")),
    (
        re.compile(r"(?i)(limit|quota).{0,80}(exceed|reached|allows)|(exceed|reached).{0,40}(limit|quota)"),
        Meaning(QuotaExceededError, "text"),
    ),
    (re.compile(r"(?i)(do not have|no|insufficient|not enough).{0,40}capacity"), Meaning(InsufficientCapacityError, "text")),
)
"""What the text says when the code is unknown; met in order."""

_ZONE: Final = r"[a-z]{2}(?:-[a-z]+)+-\d+(?:-[a-z]+-\d+)?[a-z]"
_SUGGESTED: Final = re.compile(rf"choosing ((?:{_ZONE}(?:, )?)+)")
_WRONG_ZONE: Final = re.compile(r"(?i)not supported in your requested availability zone")
_NOT_TOLD: Final = re.compile(r"(?s)\s*Encoded authorization failure message:.*|\bA(?:KIA|SIA|ROA)[A-Z0-9]{12,}\b")
"""The encoded message is long and of use to nobody here; access key ids stay out of logs."""

_TEXT_LIMIT: Final = 600
_BAD_REQUEST: Final = 400
_SERVER_ERROR: Final = 500
_TOO_MANY_REQUESTS: Final = 429
_REFUSED: Final = (401, 403)


@contextmanager
def drawn(call: str, effect: Effect, quota: Quota | None = None) -> Iterator[None]:
    """Lets only drawn errors out of its body; the original is the cause.

    Args:
        call: the API call or step, for the text. quota: what a machine of the order counts against, when it is known.
    """
    try:
        yield
    except CloudError:
        raise
    except Exception as error:
        raise classify(error, call=call, effect=effect, quota=quota) from error


def classify(error: Exception, *, call: str, effect: Effect, quota: Quota | None = None) -> CloudError:
    """Returns the drawn error for anything that the SDK raised."""
    response = getattr(error, "response", None)
    if isinstance(response, Mapping) and isinstance(response.get("Error"), Mapping):
        return _of_answer(response, call=call, effect=effect, quota=quota)
    return _of_sdk(error, call=call, effect=effect)


def _of_answer(response: Mapping[str, Any], *, call: str, effect: Effect, quota: Quota | None) -> CloudError:
    """Draws an error that the cloud answered with."""
    code = str(response["Error"].get("Code", ""))
    text = str(response["Error"].get("Message", ""))
    metadata = response.get("ResponseMetadata", {})
    status = int(metadata.get("HTTPStatusCode", 0) or 0)
    meaning = _meaning(code, text, status, effect)
    message = f"{call}: {code}: {_clean(text)}"
    if meaning.error is CloudThrottledError:
        return CloudThrottledError(message, code=code, retry_after_s=_retry_after_s(metadata.get("HTTPHeaders", {})))
    if meaning.error is InsufficientCapacityError:
        return InsufficientCapacityError(message, code=code, scope=meaning.scope, suggested_zones=suggested_zones(text))
    if meaning.error is QuotaExceededError:
        name = f"{quota.name} ({quota.code})" if quota and meaning.unit == quota.unit else ""
        return QuotaExceededError(f"{message} {name}".rstrip(), code=code, quota=name, unit=meaning.unit)
    return meaning.error(message, code=code)


def _meaning(code: str, text: str, status: int, effect: Effect) -> Meaning:
    """Returns what an answer means: the table, the family of the code, the text, the HTTP status, the safe default."""
    if code == "Unsupported" and _WRONG_ZONE.search(text):
        return Meaning(InsufficientCapacityError, "skypilot-org/skypilot#22")
    if known := CODES.get(code):
        return _for_effect(known, effect)
    for pattern, meaning in _FAMILIES:
        if pattern.search(code):
            return meaning
    _log.warning("unknown error code %r (HTTP %s): %s", code, status, _clean(text))
    for pattern, meaning in _HINTS:
        if pattern.search(text):
            return meaning
    return _by_status(status, effect)


def _for_effect(known: Meaning, effect: Effect) -> Meaning:
    """A lost answer is a matter of creates only: reads and deletes are made again."""
    if known.error is AnswerLostError and effect != "create":
        return Meaning(CloudUnavailableError, known.source)
    if known.error is TeardownRefusedError and effect != "delete":
        return Meaning(CloudConfigError, known.source)
    return known


def _by_status(status: int, effect: Effect) -> Meaning:
    """Returns the safe default for a code that nothing is known of.

    A create may have worked unless the cloud clearly refused it. A refused one goes on like a stock-out: the next zone now,
    this one again later and ever more seldom; neither stuck on one zone nor given up for good. A delete is tried without end.
    """
    if status == _TOO_MANY_REQUESTS:
        return Meaning(CloudThrottledError, "status")
    if status in _REFUSED:
        return Meaning(CloudAuthError, "status")
    is_refusal = _BAD_REQUEST <= status < _SERVER_ERROR
    if effect == "create":
        return Meaning(InsufficientCapacityError if is_refusal else AnswerLostError, "status")
    if effect == "delete" and is_refusal:
        return Meaning(TeardownRefusedError, "status")
    return Meaning(CloudUnavailableError, "status")


def _of_sdk(error: Exception, *, call: str, effect: Effect) -> CloudError:
    """Draws an error that the SDK raised by itself: nothing sent, or no answer, or an answer that cannot be read."""
    names = {cls.__name__ for cls in type(error).__mro__}
    message = f"{call}: {type(error).__name__}: {_clean(str(error))}"
    for name, drawn_error in SDK_ERRORS.items():
        if name in names:
            return drawn_error(message, code=type(error).__name__)
    if "CERTIFICATE_VERIFY_FAILED" in str(error):
        return CloudConfigError(message, code=type(error).__name__)
    if effect == "create" and names.isdisjoint(UNSENT):
        return AnswerLostError(message, code=type(error).__name__)
    return CloudUnavailableError(message, code=type(error).__name__)


def suggested_zones(text: str) -> tuple[str, ...]:
    """Returns the zones that a capacity error's text advises, in its order; empty when it names none."""
    found = _SUGGESTED.search(text)
    return tuple(re.findall(_ZONE, found.group(1))) if found else ()


def _retry_after_s(headers: Mapping[str, str]) -> float | None:
    """Returns the Retry-After header in seconds; None when there is none or it is a date."""
    try:
        seconds = float(headers.get("retry-after", ""))
    except ValueError:
        return None
    return seconds if math.isfinite(seconds) and seconds >= 0 else None


def _clean(text: str) -> str:
    """Returns the text without what must not be told, cut to a bearable length."""
    return _NOT_TOLD.sub("", " ".join(text.split()))[:_TEXT_LIMIT]

"""Draws Amazon's errors by the table and the rules of ``catalog.error_rules``, so that a new spelling of a known error is met.

Unknown codes get the safe default for what the call does, and are logged as unknown: they are worth a row in the table.
"""

import logging
import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Literal

from hostler.catalog.aws_quota import Quota
from hostler.catalog.error_rules.answers import answered, avoided
from hostler.catalog.error_rules.places import suggested_zones as zones_in
from hostler.catalog.error_rules.reading import told
from hostler.cloud.errors import (
    AnswerLostError,
    CloudConfigError,
    CloudError,
    CloudThrottledError,
    CloudUnavailableError,
    InsufficientCapacityError,
    QuotaExceededError,
)
from hostler.drivers.aws.sdk_errors import SDK_ERRORS, UNSENT

_log = logging.getLogger(__name__)

DRY_RUN = "DryRunOperation"
"""What EC2 answers to a dry run of a call that is allowed: no error, and nothing was done.
Source: EC2 API reference, common query parameters, DryRun.
"""

Effect = Literal["read", "create", "delete"]
"""What a call does to the cloud: decides what a lost answer means."""


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
    meaning, basis = answered("aws", code=code, text=text, status=status, effect=effect)
    if basis not in {"code", "family"} and code != DRY_RUN:
        _log.warning("unknown error code %r (HTTP %s): %s", code, status, told(text))
    message = f"{call}: {code}: {told(text)}"
    if meaning.error is CloudThrottledError:
        return CloudThrottledError(message, code=code, retry_after_s=_retry_after_s(metadata.get("HTTPHeaders", {})))
    if meaning.error is InsufficientCapacityError:
        return InsufficientCapacityError(message, code=code, scope=avoided(meaning), suggested_zones=suggested_zones(text))
    if meaning.error is QuotaExceededError:
        name = f"{quota.name} ({quota.code})" if quota and meaning.unit == quota.unit else ""
        return QuotaExceededError(f"{message} {name}".rstrip(), code=code, quota=name, unit=meaning.unit)
    kind = meaning.error or CloudUnavailableError
    return kind(message, code=code)


def _of_sdk(error: Exception, *, call: str, effect: Effect) -> CloudError:
    """Draws an error that the SDK raised by itself: nothing sent, or no answer, or an answer that cannot be read."""
    names = {cls.__name__ for cls in type(error).__mro__}
    message = f"{call}: {type(error).__name__}: {told(str(error))}"
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
    return zones_in(text) or ()


def _retry_after_s(headers: Mapping[str, str]) -> float | None:
    """Returns the Retry-After header in seconds; None when there is none or it is a date."""
    try:
        seconds = float(headers.get("retry-after", ""))
    except ValueError:
        return None
    return seconds if math.isfinite(seconds) and seconds >= 0 else None

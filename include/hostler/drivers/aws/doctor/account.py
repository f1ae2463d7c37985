"""Who we are to Amazon, and whether our clock agrees with theirs."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Any, Final

from hostler.cloud.doctor import Check, fail, ok, unknown, warn
from hostler.cloud.errors import CloudAuthError, CloudError
from hostler.drivers.aws.doctor.asking import Patient, words

_TOLERATED: Final = timedelta(minutes=5)
"""Signatures older than this are refused. Source: AWS General Reference, "Signature Version 4", request expiry."""

_NOTICED: Final = timedelta(seconds=30)
_CREDENTIALS_FIX: Final = (
    "on the command line set AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or run on a machine with a role; in "
    "Airflow set clouds.aws.connection"
)
_CLOCK_FIX: Final = "keep this machine's clock with chrony or systemd-timesyncd"


def who(patient: Patient) -> tuple[str | None, list[Check]]:
    """Returns our ARN (None when Amazon does not tell it), and the checks of credentials and clock."""
    try:
        answer = patient.calls.call(patient.regions[0], "get_caller_identity", service="sts")
    except CloudAuthError as error:
        return None, [fail("credentials", words(error), _CREDENTIALS_FIX), clock(_headers_of(error), datetime.now(UTC))]
    except CloudError as error:
        text = f"could not be asked: {words(error)}"
        fix = "look at the network, a proxy, and AWS_ENDPOINT_URL; then run it again"
        return None, [unknown("credentials", text, fix), clock(_headers_of(error), datetime.now(UTC))]
    arn = str(answer.get("Arn", ""))
    checks = [_of_arn(arn), clock(answer.get("ResponseMetadata", {}).get("HTTPHeaders", {}), datetime.now(UTC))]
    return arn, checks


def _of_arn(arn: str) -> Check:
    if arn.endswith(":root"):
        fix = "make a role with the policy of `hostler doctor aws --policy` and use that"
        return warn("credentials", f"{arn}: the account's root, which may do everything", fix)
    return ok("credentials", arn)


def clock(headers: Mapping[str, Any], now: datetime) -> Check:
    """Compares ``now`` with the Date header of an answer; pure."""
    try:
        theirs = parsedate_to_datetime(str(headers.get("date", "")))
    except ValueError:
        return unknown("clock", "no answer with a Date header came", "mend the credentials first")
    theirs = theirs if theirs.tzinfo else theirs.replace(tzinfo=UTC)
    off = now - theirs
    text = f"{abs(off).total_seconds():.0f} s {'ahead of' if off > timedelta() else 'behind'} Amazon's"
    if abs(off) > _TOLERATED:
        return fail("clock", f"{text}; signatures are refused from 300 s on", _CLOCK_FIX)
    return warn("clock", text, _CLOCK_FIX) if abs(off) > _NOTICED else ok("clock", text)


def _headers_of(error: CloudError) -> Mapping[str, Any]:
    """Returns the headers of the answer that the SDK's error came from; empty when there was none."""
    response = getattr(error.__cause__, "response", None)
    metadata = response.get("ResponseMetadata", {}) if isinstance(response, Mapping) else {}
    headers: Mapping[str, Any] = metadata.get("HTTPHeaders", {})
    return headers


def identity_arn(arn: str) -> str | None:
    """Returns the ARN of the user or role behind a caller's ARN; None for one whose rights cannot be simulated.

    The path of an assumed role is not in its ARN: a role with a path is then not found, and that is unknown.
    """
    parts = arn.split(":", 5)
    if len(parts) < 6:  # noqa: PLR2004 - arn:partition:service:region:account:resource
        return None
    partition, service, account, resource = parts[1], parts[2], parts[4], parts[5]
    if service == "iam" and resource.startswith("user/"):
        return arn
    if service == "sts" and resource.startswith("assumed-role/"):
        return f"arn:{partition}:iam::{account}:role/{resource.split('/')[1]}"
    return None

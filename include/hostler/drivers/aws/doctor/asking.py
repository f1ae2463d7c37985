"""How the doctor asks: an error becomes a check, and what could not be asked is unknown."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Final, TypeVar

from hostler.cloud.doctor import Check, Examination, fail, unknown
from hostler.cloud.errors import CloudAuthError, CloudConfigError, CloudError
from hostler.drivers.aws.calls import Calls
from hostler.drivers.aws.lookups import Lookups
from hostler.drivers.aws.settings import AwsSettings

POLICY_FIX: Final = "give it the rights that `hostler doctor aws --policy` prints"

_NOT_THERE: Final = frozenset({"NotFoundException", "NoSuchEntity", "ParameterNotFound"})
"""Codes of KMS, IAM and Systems Manager for what does not exist. Source: their API references, common errors."""

_Answer = TypeVar("_Answer")


@dataclass(frozen=True, slots=True, kw_only=True)
class Patient:
    """What is examined, and the way to it."""

    deployment: str
    settings: AwsSettings
    examination: Examination
    calls: Calls
    lookups: Lookups

    @property
    def regions(self) -> tuple[str, ...]:
        """The regions of fleet.yaml."""
        return self.settings.regions


def asked(name: str, ask: Callable[[], _Answer], *, fix: str) -> _Answer | Check:
    """Returns the answer, or the check that an error amounts to.

    A refusal for want of rights leaves the question open (the rights have checks of their own); what fleet.yaml names and the
    cloud does not have is a failure; anything else could not be asked.

    Args:
        fix: for what fleet.yaml names wrongly.
    """
    try:
        return ask()
    except CloudAuthError as error:
        return unknown(name, f"may not be asked: {words(error)}", POLICY_FIX)
    except CloudConfigError as error:
        return fail(name, words(error), fix)
    except CloudError as error:
        if error.code in _NOT_THERE:
            return fail(name, words(error), fix)
        return unknown(name, f"could not be asked: {words(error)}", "run it again when the cloud answers")


def words(error: CloudError) -> str:
    """Returns an error's text, at most 300 characters of it: an encoded authorisation message is of no use to a reader."""
    return str(error).partition(" Encoded authorization failure message")[0][:300]


def guarded(name: str, checks: Callable[[], Iterable[Check]]) -> Iterator[Check]:
    """Yields the checks; a fault of the doctor's own becomes an unknown check, so that the others are still made."""
    try:
        yield from checks()
    except CloudError as error:
        yield unknown(name, f"could not be asked: {words(error)}", "run it again when the cloud answers")
    except Exception as error:  # noqa: BLE001 - an answer of another shape than Amazon documents must not hide the other checks
        text = f"the answer could not be read: {type(error).__name__}"
        yield unknown(name, text, "set HOSTLER_DEBUG=1, run it again, and report what it says")

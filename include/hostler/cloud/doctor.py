"""What a doctor says: one check after the other, each with its status and, when it is not well, the fix.

A check that could not be made is ``unknown`` and never ``ok``.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from typing import Any, Literal, Protocol, runtime_checkable


class CheckStatus(StrEnum):
    """``warn``: it works, but not for all that fleet.yaml asks. ``fail``: something would not work."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One check.

    Attributes:
        name: what was looked at, such as ``image us-east-1``. text: what was found; no secret is in it.
        fix: what to do about it; empty for ``ok``.
    """

    name: str
    status: CheckStatus
    text: str
    fix: str = ""


def ok(name: str, text: str) -> Check:
    """Returns a check that found nothing wrong."""
    return Check(name=name, status=CheckStatus.OK, text=text)


def warn(name: str, text: str, fix: str) -> Check:
    """Returns a check that found something to mend when there is time."""
    return Check(name=name, status=CheckStatus.WARN, text=text, fix=fix)


def fail(name: str, text: str, fix: str) -> Check:
    """Returns a check that found something that will not work."""
    return Check(name=name, status=CheckStatus.FAIL, text=text, fix=fix)


def unknown(name: str, text: str, fix: str) -> Check:
    """Returns a check that could not be made; ``fix`` says what would let it be made."""
    return Check(name=name, status=CheckStatus.UNKNOWN, text=text, fix=fix)


@dataclass(frozen=True, slots=True, kw_only=True)
class Examination:
    """What a doctor has to know beside the cloud's own part of fleet.yaml.

    Attributes:
        is_enforcing: False in mode ``observe``: no write permission is needed, and none is asked for by a dry run.
        asks_writes: dry runs of calls that buy or end are made; a dry run changes nothing, but its call has a write's name.
        nodes, usd_per_hour: of ``limits``. backup_uri: where nodes ship to. backup_region: its region; None: not named.
        uses_prices: this cloud is in ``prices.sources``.
    """

    is_enforcing: bool
    asks_writes: bool
    nodes: int
    usd_per_hour: Decimal
    backup_uri: str
    backup_region: str | None = None
    uses_prices: bool = False


@runtime_checkable
class SupportsDoctor(Protocol):
    """A driver that can say whether its account is fit for the deployment."""

    def examine(self, examination: Examination) -> tuple[Check, ...]:
        """Returns all checks, in the order in which they are best read. Makes no call that changes anything. Never raises."""
        ...


PolicyFor = Literal["controller", "nodes"]


@runtime_checkable
class SupportsPolicy(Protocol):
    """A driver that can write down the least rights that it needs."""

    def policy(self, examination: Examination, whose: PolicyFor, *, account: str | None = None) -> Mapping[str, Any]:
        """Returns the cloud's policy document: of who runs Hostler, or of its nodes. Read-only in mode ``observe``.

        Args:
            account: the account's id; None asks the cloud, and where it does not tell, the document holds in any account.
        """
        ...

"""Which backups of a tenant are kept: grandfather, father, son. Pure: no clock, no store."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Final


class Condition(StrEnum):
    """What the last look at a backup found. ``unknown``: it could not be read whole, and nothing was proved against it."""

    GOOD = "good"
    DAMAGED = "damaged"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Retention:
    """How much is kept. All counts 0 and ``all_days`` 0: only the newest good one.

    Attributes:
        all_days: everything younger than this is kept.
        daily, weekly, monthly, yearly: so many of the newest days (weeks from Monday, months, years; UTC) that have a good
            backup keep the newest of it.
    """

    all_days: int = 30
    daily: int = 14
    weekly: int = 8
    monthly: int = 12
    yearly: int = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class BackupAge:
    """One backup, as retention sees it.

    Attributes:
        backup_id: its lease's id; unique. locked: why it may not be deleted whatever the rules say (legal hold, object lock, a
            lease that is not over), None when nothing keeps it.
    """

    backup_id: str
    tenant: str
    sealed_at: datetime
    condition: Condition
    locked: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """A judgement. ``reasons``: why it is kept; empty: it may go."""

    backup: BackupAge
    reasons: tuple[str, ...]


_PERIODS: Final[tuple[tuple[str, Callable[[datetime], object]], ...]] = (
    ("daily", lambda at: at.date()),
    ("weekly", lambda at: at.isocalendar()[:2]),
    ("monthly", lambda at: (at.year, at.month)),
    ("yearly", lambda at: at.year),
)


def judge(backups: Iterable[BackupAge], rules: Callable[[str], Retention | None], now: datetime) -> tuple[Kept, ...]:
    """Judges backups, each tenant's for itself; oldest first.

    A backup that is not proved good stands for no day, week, month or year, and is never given up by a machine: it may be all
    that is left of something. A tenant's newest good one always stays.

    Args:
        rules: a tenant's retention; None keeps everything.
    """
    tenants: dict[str, list[BackupAge]] = {}
    for backup in backups:
        tenants.setdefault(backup.tenant, []).append(backup)
    judged = [one for tenant, mine in tenants.items() for one in _judge_tenant(mine, rules(tenant), now)]
    return tuple(sorted(judged, key=lambda one: _age(one.backup)))


def _judge_tenant(backups: Sequence[BackupAge], rule: Retention | None, now: datetime) -> list[Kept]:
    reasons: dict[str, list[str]] = {backup.backup_id: _own_reasons(backup, rule, now) for backup in backups}
    good = sorted((one for one in backups if one.condition is Condition.GOOD), key=_age, reverse=True)
    for newest in good[:1]:
        reasons[newest.backup_id].append("the newest good one")
    for name, period in _PERIODS if rule is not None else ():
        for backup in _newest_of_periods(good, period, getattr(rule, name)):
            reasons[backup.backup_id].append(name)
    return [Kept(backup=backup, reasons=tuple(reasons[backup.backup_id])) for backup in backups]


def _own_reasons(backup: BackupAge, rule: Retention | None, now: datetime) -> list[str]:
    """Why a backup is kept whatever other backups there are."""
    if rule is None:
        return ["no retention is set"]
    reasons = [backup.locked] if backup.locked else []
    if backup.condition is not Condition.GOOD:
        reasons.append(f"{backup.condition}: a person decides")
    if now - backup.sealed_at < timedelta(days=rule.all_days):
        reasons.append(f"younger than {rule.all_days} days")
    return reasons


def _newest_of_periods(newest_first: Sequence[BackupAge], period: Callable[[datetime], object], count: int) -> list[BackupAge]:
    chosen: dict[object, BackupAge] = {}
    for backup in newest_first:
        chosen.setdefault(period(backup.sealed_at.astimezone(UTC)), backup)
    return list(chosen.values())[:count]


def _age(backup: BackupAge) -> tuple[datetime, str]:
    return backup.sealed_at, backup.backup_id

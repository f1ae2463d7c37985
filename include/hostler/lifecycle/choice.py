"""Which offering the gang is bought from now: from the plan, this lease's refusals and the shared memory of stock-outs. Pure.

All slots of a gang sit in one zone, on one offering. While any live slot's offering is not barred, the choice stays there.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from hostler.ledger.port import StockOut
from hostler.lifecycle.slots import GIVEN_BACK, slots_of
from hostler.model.enums import CapacityType, IntentState, NodeState
from hostler.model.lease import Intent, LeaseView
from hostler.model.offering import Offering

DECAY_BASE_S = 60
DECAY_CAP_S = 1800
"""A stock-out is worth another try after one minute, doubled by each refusal in a row, at most half an hour."""

STOCK_ERRORS = frozenset({"InsufficientCapacityError", "SpotUnavailableError"})
QUOTA_ERROR = "QuotaExceededError"
NOTHING = "NothingCameOfItError"
"""Error of an intent of which a look-up proved that nothing came."""

SAME_AGAIN = 2
TAKEN = ("the cloud took it", "the cloud takes it", "interruption announced")
"""How the ending reasons of nodes begin that the cloud took."""

YOUNG_S = 900
AVOID_S = 600


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """Where to buy.

    Attributes:
        offering: None when every offering of the plan is barred now.
        reason: why there is none, in words. wait_s: seconds until the first bar is lifted; None when none ever is.
    """

    offering: Offering | None
    reason: str = ""
    wait_s: float | None = None


def covers(subject: str, offering: Offering) -> bool:
    """True when a remembered refusal's subject is this offering, its region, or its type in its region."""
    region = f"{offering.cloud}/{offering.region}"
    return subject in {offering.key, region, f"{region}//{offering.instance_type}"}


def choose(view: LeaseView, stock_outs: Sequence[StockOut], now: datetime) -> Choice:
    """Returns the offering for every slot of the gang, or why there is none now."""
    plan = view.lease.plan
    offerings = () if plan is None else plan.offerings
    quotas = _quota_refusals(view)
    bars = [*stock_outs, *_came_to_nothing(view)]
    open_offerings = [o for o in offerings if not _quota_of(o, quotas) and not _bar_of(o, bars, now)]
    for held in _held(view):
        if any(held.key == offering.key for offering in open_offerings):
            return Choice(offering=held)
    if open_offerings:
        taken = _taken_early(view, now)
        return Choice(offering=next((o for o in open_offerings if o.key not in taken), open_offerings[0]))
    return _none_open(offerings, quotas, bars, now)


def _came_to_nothing(view: LeaseView) -> list[StockOut]:
    """Returns bars on offerings whose launches ended again and again in errors that nobody knows, and in no machine.

    One is tried again at the same place; from the second in a row on, the next offering comes first, for a while.
    """
    rows: dict[str, list[Intent]] = {}
    for intent in sorted(view.intents, key=lambda intent: intent.written_at):
        rows.setdefault(intent.offering.key, []).append(intent)
    bars = []
    for key, intents in rows.items():
        last = next((i for i, intent in enumerate(reversed(intents)) if intent.error != NOTHING), len(intents))
        if last >= SAME_AGAIN:
            wait_s = min(DECAY_CAP_S, DECAY_BASE_S * 2 ** min(last - SAME_AGAIN, 8))
            until = intents[-1].settle_after + timedelta(seconds=wait_s)
            bars.append(StockOut(subject=key, until=until, count=last, reason=f"{last} launches came to nothing"))
    return bars


def _taken_early(view: LeaseView, now: datetime) -> frozenset[str]:
    """Returns offerings that lately lost a young node of this lease to the cloud: not barred, but others come first.

    A node that is taken soon after its launch is no failed launch; the same zone would just take the next one, too.
    """
    return frozenset(
        node.offering.key
        for node in view.nodes
        if node.ended_at is not None
        and (node.ending_reason or "").startswith(TAKEN)
        and (node.ended_at - node.launched_at).total_seconds() < YOUNG_S
        and (now - node.ended_at).total_seconds() < AVOID_S
    )


def decayed_until(view: LeaseView, offering: Offering, now: datetime) -> tuple[datetime, int]:
    """Returns until when a new stock-out of the offering bars it, and how many in a row this lease has met.

    Stock for a part of the gang, which was given back, is no stock: else a gang would go round zones with a part for ever.
    """
    given_back = {node.intent_id for node in view.nodes if (node.ending_reason or "").startswith(GIVEN_BACK)}
    refused_at: set[datetime] = set()
    for intent in sorted(view.intents, key=lambda intent: intent.written_at):
        if intent.offering.key != offering.key:
            continue
        if intent.error in STOCK_ERRORS:
            refused_at.add(intent.written_at)
        elif intent.state is IntentState.OWNED and intent.intent_id not in given_back and refused_at:
            is_later = intent.written_at > max(refused_at)
            refused_at = set() if is_later else refused_at
    count = len(refused_at) + 1
    wait_s = min(DECAY_CAP_S, DECAY_BASE_S * 2 ** min(count - 1, 8))
    return now + timedelta(seconds=wait_s), count


def spot_siblings(view: LeaseView, offering: Offering) -> tuple[Offering, ...]:
    """Returns the plan's spot offerings of the same type and region: where spot is refused, another zone's spot is too."""
    plan = view.lease.plan
    same = [
        other
        for other in (() if plan is None else plan.offerings)
        if other.capacity_type is CapacityType.SPOT
        and (other.cloud, other.region, other.instance_type) == (offering.cloud, offering.region, offering.instance_type)
    ]
    return tuple(same) or (offering,)


def _held(view: LeaseView) -> list[Offering]:
    """Returns offerings of live slots, by slot; machines on their way out do not count."""
    held = []
    for slot in slots_of(view):
        if slot.node is not None and slot.node.state is not NodeState.TERMINATING:
            held.append(slot.node.offering)
        elif slot.node is None and slot.intent is not None and slot.intent.state in {IntentState.OPEN, IntentState.UNKNOWN}:
            held.append(slot.intent.offering)
    return held


def _quota_refusals(view: LeaseView) -> dict[tuple[str, str, str, str], str]:
    """Returns what a quota has refused to this lease: (cloud, region, type, capacity type) -> the cloud's words."""
    return {
        _quota_scope(intent.offering): intent.error_text or QUOTA_ERROR
        for intent in view.intents
        if intent.state is IntentState.REFUSED and intent.error == QUOTA_ERROR
    }


def _quota_scope(offering: Offering) -> tuple[str, str, str, str]:
    return offering.cloud, offering.region, offering.instance_type, offering.capacity_type.value


def _quota_of(offering: Offering, quotas: dict[tuple[str, str, str, str], str]) -> str | None:
    return quotas.get(_quota_scope(offering))


def _bar_of(offering: Offering, stock_outs: Sequence[StockOut], now: datetime) -> StockOut | None:
    bars = [memory for memory in stock_outs if memory.until > now and covers(memory.subject, offering)]
    return max(bars, key=lambda memory: memory.until, default=None)


def _none_open(
    offerings: Sequence[Offering], quotas: dict[tuple[str, str, str, str], str], stock_outs: Sequence[StockOut], now: datetime
) -> Choice:
    barred = [bar for o in offerings if not _quota_of(o, quotas) and (bar := _bar_of(o, stock_outs, now)) is not None]
    quota_words = "; ".join(sorted(set(quotas.values())))
    if not barred:
        return Choice(offering=None, reason=quota_words or "the plan has no offering left")
    first = min(barred, key=lambda bar: bar.until)
    words = f"no stock in {len(barred)} of {len(offerings)} offerings, next try at {first.until:%H:%M:%S} UTC"
    reason = f"{words}; quota: {quota_words}" if quota_words else words
    return Choice(offering=None, reason=reason, wait_s=max(1.0, (first.until - now).total_seconds()))

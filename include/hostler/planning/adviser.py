"""Which accelerators a workload wants, with the arithmetic and the reasons; and why the others do not fit. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Final

from hostler.catalog.accelerator_facts import AcceleratorFacts
from hostler.model.offering import Refusal
from hostler.planning.adviser_fit import Fit, MisfitError, fit
from hostler.planning.adviser_memory import training_flops
from hostler.planning.adviser_rules import drawbacks, preferences, remarks, unfitness
from hostler.planning.adviser_work import WorkKind, Workload

LINKED_MFU: Final = Decimal("0.40")
"""Part of the peak that training reaches over fast links. Source: 6ND over the published GPU-hours of Llama 2 (arXiv 2307.09288,
table 2: 7B 0.39, 70B 0.42); Korthikanti et al., arXiv 2205.05198, table 5: 0.42 to 0.56.
"""

UNLINKED_MFU: Final = Decimal("0.25")
"""The same over PCIe or on one card: our cautious guess, no published figure."""

RECOMPUTE_RATIO: Final = Decimal(4) / 3
"""Full recomputation runs the forward pass twice: 4 passes' work for 3. Source: Korthikanti et al., section 5."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Suggestion:
    """One accelerator type that fits.

    Attributes:
        count: least number of them that one gang (training) or replica (inference) needs.
        fit: what the memory of each holds.
        hours: of the whole training on ``count`` of them; None when no tokens are told.
        tokens_per_s: highest speed of one sequence that the memory's bandwidth allows; None but for inference.
        usd_per_hour: of ``count`` of them, by the cheapest undoubted on-demand price; None when no price is known.
        reasons: for it. drawbacks: against it; one with drawbacks ranks after those without. remarks: to know before buying.
    """

    accelerator: str
    count: int
    fit: Fit
    hours: Decimal | None
    tokens_per_s: Decimal | None
    usd_per_hour: Decimal | None
    reasons: tuple[str, ...]
    drawbacks: tuple[str, ...]
    remarks: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Advice:
    """The answer.

    Attributes:
        arithmetic: what holds for every accelerator, line by line. suggestions: best first. refusals: by accelerator.
    """

    arithmetic: tuple[str, ...]
    suggestions: tuple[Suggestion, ...]
    refusals: tuple[Refusal, ...]


def advise(
    work: Workload, facts: Mapping[str, AcceleratorFacts], prices_usd_per_hour: Mapping[str, Decimal] | None = None
) -> Advice:
    """Judges every accelerator for the workload.

    The rule of rank: those that the kind of work prefers (TPU for large JAX trainings, FPGA for streams); then those without
    drawbacks; then the cheapest for the work, one without a known price after those with one, by its size; ties by name.

    Args:
        facts: name -> facts. prices_usd_per_hour: name -> price of one accelerator for an hour; what is not in it has none.
    """
    prices = prices_usd_per_hour or {}
    found: list[tuple[tuple[bool, int, bool, Decimal, str], Suggestion]] = []
    refusals: list[Refusal] = []
    lines: tuple[str, ...] = ()
    for name in sorted(facts):
        item = facts[name]
        if reason := unfitness(work, item):
            refusals.append(Refusal(subject=name, reason=reason))
            continue
        try:
            place = fit(work, item)
        except MisfitError as misfit:
            refusals.append(Refusal(subject=name, reason=str(misfit)))
            continue
        lines = place.arithmetic
        suggestion = _suggestion(work, item, place, prices.get(name))
        if work.tokens_per_s and suggestion.tokens_per_s is not None and suggestion.tokens_per_s < work.tokens_per_s:
            fastest = f"{suggestion.tokens_per_s} tokens a second at most on {place.count}, asked for {work.tokens_per_s}"
            refusals.append(Refusal(subject=name, reason=f"{fastest}: memory bandwidth {item.bandwidth_gb_per_s} GB/s"))
            continue
        found.append((_rank(work, item, suggestion), suggestion))
    found.sort(key=lambda pair: pair[0])
    return Advice(arithmetic=lines, suggestions=tuple(item for _, item in found), refusals=tuple(refusals))


def _suggestion(work: Workload, facts: AcceleratorFacts, place: Fit, price: Decimal | None) -> Suggestion:
    return Suggestion(
        accelerator=facts.name,
        count=place.count,
        fit=place,
        hours=training_hours(work, facts, place),
        tokens_per_s=_decode_rate(work, facts, place),
        usd_per_hour=None if price is None else (price * place.count).quantize(Decimal("0.0001")),
        reasons=(*place.reasons, *preferences(work, facts, place)),
        drawbacks=drawbacks(work, facts, place),
        remarks=remarks(work, facts, place),
    )


def training_hours(work: Workload, facts: AcceleratorFacts, place: Fit) -> Decimal | None:
    """Returns the hours of a training: 6ND over what the accelerators reach; None when no tokens are told."""
    if work.tokens is None or not work.is_trained or not work.parameter_count():
        return None
    speed = effective_tflops(work, facts, place)
    if speed == 0:
        return None
    flops = training_flops(work.parameter_count(), work.tokens)
    return (flops / (speed * Decimal(10) ** 12 * place.count) / 3600).quantize(Decimal("0.1"))


def effective_tflops(work: Workload, facts: AcceleratorFacts, place: Fit) -> Decimal:
    """Returns what one accelerator of the gang reaches in useful work; 0 when the precision has no speed in the table."""
    is_linked = facts.link_gb_per_s > 0
    share = LINKED_MFU if is_linked else UNLINKED_MFU
    peak = facts.tflops.get(work.precision, Decimal(0))
    return peak * share / (RECOMPUTE_RATIO if place.is_fully_recomputed else 1)


def _decode_rate(work: Workload, facts: AcceleratorFacts, place: Fit) -> Decimal | None:
    """Returns tokens a second of one sequence: each token reads all weights and the keys and values of its batch once.

    Source: the memory bound of decoding, as in Pope et al., "Efficiently Scaling Transformer Inference", arXiv 2211.05102.
    """
    if work.kind is not WorkKind.INFERENCE:
        return None
    read = sum(place.parts_bytes.values(), Decimal(0)) * place.count
    rate = facts.bandwidth_gb_per_s * Decimal(10) ** 9 * place.count / read
    return rate.quantize(Decimal("0.1"))


def _rank(work: Workload, facts: AcceleratorFacts, item: Suggestion) -> tuple[bool, int, bool, Decimal, str]:
    is_preferred = bool(preferences(work, facts, item.fit))
    cost = item.usd_per_hour
    if cost is None:
        # Without prices the smallest that does is taken for the cheapest: by bandwidth where that is what serves tokens.
        peak = max(facts.tflops.values(), default=Decimal(1))
        proxy = (facts.bandwidth_gb_per_s if work.kind is WorkKind.INFERENCE else peak) * item.count
        return (not is_preferred, len(item.drawbacks), True, proxy, item.accelerator)
    if work.is_trained and (speed := effective_tflops(work, facts, item.fit)) > 0:
        cost /= speed * item.count
    return (not is_preferred, len(item.drawbacks), False, cost, item.accelerator)

"""How many of an accelerator a workload needs so that each one's memory holds its part."""

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Final

from hostler.catalog.accelerator_facts import AcceleratorFacts
from hostler.planning.adviser_memory import (
    GIB,
    NF4_BYTES,
    USABLE_RATIO,
    Recompute,
    activation_bytes,
    key_value_bytes,
    lora_parameters,
    training_bytes,
    weight_bytes,
)
from hostler.planning.adviser_models import Shape
from hostler.planning.adviser_work import Method, WorkKind, Workload

_ACTIVATIONS: Final = "activations"
_MIB: Final = 2**20
_WORDS: Final = {
    Recompute.NONE: "nothing recomputed",
    Recompute.SELECTIVE: "attention recomputed",
    Recompute.FULL: "everything recomputed",
}


class MisfitError(Exception):
    """The workload does not fit on any allowed number of the accelerator; the text says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """What the memory of each of ``count`` accelerators holds.

    Attributes:
        parts_bytes: name of the part -> bytes on one accelerator. usable_bytes: what a program gets of one.
        arithmetic: how the whole comes about, line by line. reasons: what the choice rests on.
    """

    count: int
    parts_bytes: dict[str, Decimal]
    usable_bytes: Decimal
    recompute: Recompute | None
    arithmetic: tuple[str, ...]
    reasons: tuple[str, ...]

    @property
    def used_bytes(self) -> Decimal:
        """All parts on one accelerator."""
        return sum(self.parts_bytes.values(), Decimal(0))

    @property
    def is_fully_recomputed(self) -> bool:
        """True when every forward pass runs twice."""
        return self.recompute is Recompute.FULL


def fit(work: Workload, facts: AcceleratorFacts) -> Fit:
    """Returns the least number of accelerators that hold the workload.

    Raises:
        MisfitError: no allowed number does.
    """
    usable = facts.memory_mib * _MIB * USABLE_RATIO
    shape = work.shape()
    if shape is None or not work.parameter_count():
        return _by_memory(work, facts, usable)
    if work.kind is WorkKind.INFERENCE:
        return _inference(work, facts, usable, shape)
    return _training(work, facts, usable, shape)


def _by_memory(work: Workload, facts: AcceleratorFacts, usable: Decimal) -> Fit:
    need = (work.memory_gib or Decimal(0)) * GIB
    lines = (f"memory needed: {gib(need)}",) if need else ("memory needed: not told",)
    for count in counts(work, facts):
        if need / count <= usable:
            reasons = (f"{gib(need / count)} of {gib(usable)} usable on each",) if need else ()
            return Fit(
                count=count,
                parts_bytes={"asked for": need / count},
                usable_bytes=usable,
                recompute=None,
                arithmetic=lines,
                reasons=reasons,
            )
    raise MisfitError(f"{gib(need)} do not fit on {_most(work, facts)} x {gib(usable)} usable")


def _inference(work: Workload, facts: AcceleratorFacts, usable: Decimal, known: tuple[Shape, str]) -> Fit:
    shape, source = known
    parameters, tokens = work.parameter_count(), work.batch * work.sequence
    weights = weight_bytes(parameters, work.precision)
    # Weights of 4 or 8 bits are served with keys and values in 16.
    cache = key_value_bytes(shape, tokens=tokens, precision=work.precision if work.precision in {"fp32", "fp8"} else "fp16")
    lines = (
        source,
        f"weights: {parameters:,} x {weights / parameters:f} bytes ({work.precision}) = {gib(weights)}",
        (
            f"keys and values: 2 x {shape.layers} layers x {shape.key_value_heads} heads x {shape.head_width} wide x "
            f"{work.batch} sequences x {work.sequence} tokens = {gib(cache)}"
        ),
        f"together {gib(weights + cache)}; a program gets {USABLE_RATIO:%} of a memory",
    )
    for count in counts(work, facts):
        parts = {"weights": weights / count, "keys and values": cache / count}
        if sum(parts.values(), Decimal(0)) <= usable:
            reasons = (f"{gib(sum(parts.values(), Decimal(0)))} of {gib(usable)} usable on each of {count}",)
            return Fit(count=count, parts_bytes=parts, usable_bytes=usable, recompute=None, arithmetic=lines, reasons=reasons)
    raise MisfitError(f"{gib(weights + cache)} do not fit on {_most(work, facts)} x {gib(usable)} usable")


def _training(work: Workload, facts: AcceleratorFacts, usable: Decimal, known: tuple[Shape, str]) -> Fit:
    shape, source = known
    lines = (source, *_state_lines(work, shape), *_activation_lines(work, shape))
    least = Decimal(0)
    for count in counts(work, facts):
        for recompute in (work.recompute,) if work.recompute else tuple(Recompute):
            parts = states(work, shape, count)
            parts[_ACTIVATIONS] = _activations(work, shape, recompute)
            used = sum(parts.values(), Decimal(0))
            least = min(least or used, used)
            if used <= usable:
                reasons = [f"{gib(used)} of {gib(usable)} usable on each of {count}, {_WORDS[recompute]}"]
                if count > 1:
                    reasons.append(f"weights, gradients and optimizer states in {count} parts (ZeRO-3, FSDP)")
                return Fit(
                    count=count,
                    parts_bytes=parts,
                    usable_bytes=usable,
                    recompute=recompute,
                    arithmetic=lines,
                    reasons=tuple(reasons),
                )
    raise MisfitError(
        f"at least {gib(least)} on each even in {_most(work, facts)} parts, {gib(usable)} are usable: a shorter sequence, "
        f"a smaller batch or tensor parallelism would be needed"
    )


def states(work: Workload, shape: Shape, count: int) -> dict[str, Decimal]:
    """Returns what one of ``count`` accelerators holds of weights, gradients and optimizer states."""
    parameters = work.parameter_count()
    if work.is_full:
        parts = training_bytes(
            parameters,
            precision=work.precision,
            optimizer=work.optimizer,
            shards=count,
            has_fp32_gradients=work.has_fp32_gradients,
        )
    else:
        base = parameters * (NF4_BYTES if work.method is Method.QLORA else Decimal(4 if work.precision == "fp32" else 2))
        adapters = training_bytes(
            lora_parameters(shape, work.lora_rank), precision=work.precision, optimizer=work.optimizer, shards=count
        )
        parts = {"frozen weights": base / count, "adapters with their states": sum(adapters.values(), Decimal(0))}
    if count > 1:
        # A layer's weights are gathered whole while it runs, and the next one's beside it.
        parts["two gathered layers"] = Decimal(2 * shape.layer_parameters * 2)
    return parts


def counts(work: Workload, facts: AcceleratorFacts) -> Iterator[int]:
    """Yields the numbers of accelerators to try: 1, 2, 4, 8, then whole nodes of 8; inference stays within one linked node."""
    most = _most(work, facts)
    yield from (count for count in (1, 2, 4, 8) if count <= most)
    yield from range(16, most + 1, 8)


def _most(work: Workload, facts: AcceleratorFacts) -> int:
    if work.kind is WorkKind.INFERENCE:
        return min(work.most_accelerators, max(8, min(facts.linked_count, 16)))
    if work.is_trained:
        return work.most_accelerators
    return min(work.most_accelerators, 8 if work.kind is WorkKind.STREAMING else 1)


def _activations(work: Workload, shape: Shape, recompute: Recompute) -> Decimal:
    return activation_bytes(shape, batch=work.batch, sequence=work.sequence, recompute=recompute, precision=work.precision)


def _state_lines(work: Workload, shape: Shape) -> tuple[str, ...]:
    whole = states(work, shape, 1)
    total = sum(whole.values(), Decimal(0))
    listed = ", ".join(f"{name} {gib(size)}" for name, size in whole.items())
    each = f"{total / work.parameter_count():.2f} bytes for each of {work.parameter_count():,} parameters"
    extra = "" if work.is_full else f" ({lora_parameters(shape, work.lora_rank):,} trained, rank {work.lora_rank})"
    return (f"{listed}; together {gib(total)}: {each}{extra}",)


def _activation_lines(work: Workload, shape: Shape) -> tuple[str, ...]:
    sizes = ", ".join(f"{_WORDS[recompute]} {gib(_activations(work, shape, recompute))}" for recompute in Recompute)
    where = (
        f"{work.batch} sequences of {work.sequence} tokens, {shape.layers} layers, width {shape.hidden}, {shape.heads} heads"
    )
    return (f"activations on each accelerator ({where}): {sizes}",)


def gib(amount: Decimal) -> str:
    """Returns bytes as GiB in words."""
    return f"{amount / GIB:.2f} GiB"

"""What chips are good for, as rules with words: which cannot run a workload, what speaks for one, what against it.

These are judgements from the makers' own descriptions (see the facts' sources), not measurements.
"""

from decimal import Decimal
from typing import Final

from hostler.catalog.accelerator_facts import AcceleratorFacts
from hostler.planning.adviser_fit import Fit
from hostler.planning.adviser_work import Framework, Method, WorkKind, Workload

LARGE_PARAMETERS: Final = 10**9
"""From a billion parameters on, training from scratch is a matter of weeks on anything below an A100."""

TRAINING_TFLOPS: Final = Decimal(275)
"""Dense bf16 peak from which an accelerator counts as made for large training: TPU v4 275, A100 312."""

SLICE_PARAMETERS: Final = 10 * 10**9
"""From ten billion parameters on, a training in JAX is large enough for a slice of TPUs."""

_FRAMEWORKS: Final = {
    "gpu": (Framework.TORCH, Framework.JAX),
    "tpu": (Framework.JAX,),
    "neuron": (Framework.NEURON,),
}
_NEEDS: Final = {
    "tpu": "runs JAX (or PyTorch/XLA): framework jax considers it",
    "neuron": "runs AWS Neuron: framework neuron considers it",
    "gpu": "runs PyTorch and JAX, not Neuron",
    "fpga": "runs hardware designs, not frameworks: only for streaming",
    "other": "runs through its maker's own compiler: none of the frameworks asked for",
}
_COMPUTED_AS: Final = {"int4": ("bf16", "fp16")}


def unfitness(work: Workload, facts: AcceleratorFacts) -> str:
    """Returns why the accelerator cannot run the workload at all; empty when it can."""
    if work.kind is WorkKind.GRAPHICS:
        return "" if facts.has_graphics else "has no drawing units or no drivers for them"
    if work.kind is WorkKind.STREAMING:
        return (
            "" if facts.kind == "fpga" or facts.has_video else "has no video engine and is no FPGA: streams gain nothing on it"
        )
    if work.framework not in _FRAMEWORKS.get(facts.kind, ()):
        return _NEEDS[facts.kind]
    names = _COMPUTED_AS.get(work.precision, (work.precision,))
    if not any(name in facts.tflops for name in names):
        return f"has no {work.precision} units; it has {', '.join(facts.tflops)}"
    return ""


def preferences(work: Workload, facts: AcceleratorFacts, place: Fit) -> tuple[str, ...]:
    """Returns why this kind of chip comes before all others for the workload; empty when it does not."""
    if work.kind is WorkKind.STREAMING and facts.kind == "fpga":
        return ("an FPGA takes a stream word by word at line rate, with a delay that does not vary",)
    is_large = work.is_full and work.parameter_count() >= SLICE_PARAMETERS
    if work.framework is Framework.JAX and facts.kind == "tpu" and is_large and facts.linked_count >= place.count:
        if "bf16" not in facts.tflops or facts.tflops["bf16"] < TRAINING_TFLOPS:
            return ()
        return (f"a large JAX training: up to {facts.linked_count} chips of a slice lie on one interconnect",)
    return ()


def drawbacks(work: Workload, facts: AcceleratorFacts, place: Fit) -> tuple[str, ...]:
    """Returns what speaks against an accelerator that fits, in words."""
    found: list[str] = []
    if work.is_full:
        found += _training_drawbacks(work, facts, place)
    elif work.is_trained and place.count > 1 and not facts.link_gb_per_s:
        found.append("several cards without a fast link: each step waits for PCIe")
    if work.kind is WorkKind.INFERENCE and place.count > 1 and not facts.link_gb_per_s:
        found.append(f"{place.count} cards without a fast link: each token waits for PCIe twice a layer")
    if work.is_trained and work.method is Method.QLORA and facts.kind != "gpu":
        found.append("4-bit weights (NF4) have kernels for GPUs only")
    if facts.name.startswith("MI") and work.kind is not WorkKind.GRAPHICS:
        found.append("needs a ROCm build of the program")
    if facts.name == "T4G":
        found.append("its machines have Arm processors: the program must be built for them")
    if work.kind is WorkKind.STREAMING and facts.kind == "gpu":
        found.append("takes streams in batches: good for video, its delay varies")
    return tuple(found)


def _training_drawbacks(work: Workload, facts: AcceleratorFacts, place: Fit) -> list[str]:
    found = []
    peak = max((facts.tflops.get(name, Decimal(0)) for name in ("bf16", "fp16")), default=Decimal(0))
    if work.parameter_count() >= LARGE_PARAMETERS and peak < TRAINING_TFLOPS:
        found.append(f"{peak} TFLOPS in 16 bits: slow for training {work.parameter_count():,} parameters")
    if place.count > 1 and not facts.link_gb_per_s:
        # ZeRO-3 moves three times the weights each step (Rajbhandari et al., arXiv 1910.02054, section 7.2).
        found.append(f"{place.count} cards without a fast link: each step moves 3 x the weights over PCIe and the network")
    return found


def remarks(work: Workload, facts: AcceleratorFacts, place: Fit) -> tuple[str, ...]:
    """Returns what to know of an accelerator that fits; what costs time is in the estimated hours already."""
    found = []
    if place.is_fully_recomputed and work.recompute is None:
        found.append("fits only with everything recomputed: a third more work")
    if work.is_full and place.count > facts.linked_count > 1:
        found.append(f"{facts.linked_count} of {place.count} share a link network: take machines with a fast network")
    return tuple(found)

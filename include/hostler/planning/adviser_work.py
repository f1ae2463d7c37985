"""What the adviser is asked: the workload, checked."""

from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from typing import Final

from hostler.planning.adviser_memory import BYTES_PER_WEIGHT, Optimizer, Recompute
from hostler.planning.adviser_models import SHAPES, Shape, shape_for


class WorkKind(StrEnum):
    """What the accelerators are for."""

    TRAINING = "training"
    FINE_TUNING = "fine-tuning"
    INFERENCE = "inference"
    GRAPHICS = "graphics"
    STREAMING = "streaming"


class Method(StrEnum):
    """How a model is tuned: all parameters, adapters beside 16-bit weights, or adapters beside 4-bit weights."""

    FULL = "full"
    LORA = "lora"
    QLORA = "qlora"


class Framework(StrEnum):
    """What the program is written in; it decides which chips can run it at all."""

    TORCH = "torch"
    JAX = "jax"
    NEURON = "neuron"


_MODEL_KINDS: Final = frozenset({WorkKind.TRAINING, WorkKind.FINE_TUNING, WorkKind.INFERENCE})
_TRAINED_PRECISIONS: Final = ("fp32", "fp16", "bf16", "fp8")


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """One workload.

    Attributes:
        parameters: of the model; None when ``memory_gib`` is given instead, or ``model`` names a published one.
        memory_gib: what the work needs, when that is known already; for graphics and streaming the only size there is.
        batch: sequences at one time on each accelerator (training) or in all (inference). sequence: tokens of each.
        recompute: None lets the adviser take the mildest that fits.
        tokens: of the whole training; None means that no time is told.
        tokens_per_s: least speed that each sequence of an inference must have; None means any.
        most_accelerators: of one gang or replica; above it an accelerator is refused.
    """

    kind: WorkKind
    parameters: int | None = None
    model: str | None = None
    memory_gib: Decimal | None = None
    precision: str = "bf16"
    batch: int = 1
    sequence: int = 2048
    method: Method = Method.FULL
    framework: Framework = Framework.TORCH
    optimizer: Optimizer = Optimizer.ADAM
    recompute: Recompute | None = None
    has_fp32_gradients: bool = False
    lora_rank: int = 16
    tokens: int | None = None
    tokens_per_s: Decimal | None = None
    most_accelerators: int = 4096

    def __post_init__(self) -> None:
        """Refuses what is out of range or missing.

        Raises:
            ValueError: names the field and what is allowed.
        """
        if self.precision not in BYTES_PER_WEIGHT:
            raise ValueError(f"precision {self.precision!r} is not one of {', '.join(BYTES_PER_WEIGHT)}")
        if self.model is not None and self.model not in SHAPES:
            raise ValueError(f"model {self.model!r} is not one of {', '.join(sorted(SHAPES))}; give parameters instead")
        if self.is_trained and self.precision not in _TRAINED_PRECISIONS:
            words = ", ".join(_TRAINED_PRECISIONS)
            raise ValueError(f"precision {self.precision!r} cannot be trained in; allowed are {words} (4 bits: method qlora)")
        for name, value, most in (
            ("parameters", self.parameters, 10**14),
            ("batch", self.batch, 65536),
            ("sequence", self.sequence, 10**8),
            ("lora_rank", self.lora_rank, 4096),
            ("tokens", self.tokens, 10**16),
            ("most_accelerators", self.most_accelerators, 10**6),
        ):
            if value is not None and not 1 <= value <= most:
                raise ValueError(f"{name} {value} is not between 1 and {most}")
        for name, amount in (("memory_gib", self.memory_gib), ("tokens_per_s", self.tokens_per_s)):
            if amount is not None and not (amount.is_finite() and amount > 0):
                raise ValueError(f"{name} {amount} is not a number above 0")
        if self.kind in _MODEL_KINDS and self.parameters is None and self.model is None and self.memory_gib is None:
            raise ValueError(f"{self.kind} needs parameters, a model's name or memory_gib")

    @property
    def is_trained(self) -> bool:
        """True when parameters change."""
        return self.kind in {WorkKind.TRAINING, WorkKind.FINE_TUNING}

    @property
    def is_full(self) -> bool:
        """True when all parameters are trained."""
        return self.kind is WorkKind.TRAINING or (self.kind is WorkKind.FINE_TUNING and self.method is Method.FULL)

    def shape(self) -> tuple[Shape, str] | None:
        """Returns the model's shape, and in words where it comes from; None when only memory is told."""
        if self.model is not None:
            shape = SHAPES[self.model]
            return shape, f"{shape.name}: {shape.source}"
        return None if self.parameters is None else shape_for(self.parameters)

    def parameter_count(self) -> int:
        """Returns the parameters; 0 when only memory is told."""
        if self.parameters is not None:
            return self.parameters
        return SHAPES[self.model].parameters if self.model is not None else 0


def parse_count(name: str, text: str) -> int:
    """Returns a count such as ``7b``, ``1.5B``, ``300M`` or ``2t``. Raises ValueError: names the field and what is allowed."""
    scales = {"k": 10**3, "m": 10**6, "b": 10**9, "t": 10**12}
    word = text.strip().lower().replace("_", "")
    scale = scales.get(word[-1:], 1)
    digits = word[:-1] if scale > 1 else word
    if digits.replace(".", "", 1).isascii() and digits.replace(".", "", 1).isdigit():
        count = Decimal(digits) * scale
        if count == count.to_integral_value() and count > 0:
            return int(count)
    raise ValueError(f"{name} {text!r} is not a count above 0 such as 7b, 1.5B, 300M or 7000000000")

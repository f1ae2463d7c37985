"""Memory of training, fine-tuning and inference, in bytes. Each formula has its source beside it."""

from collections.abc import Mapping
from decimal import Decimal
from enum import StrEnum
from typing import Final

from hostler.planning.adviser_models import Shape

GIB: Final = 2**30

BYTES_PER_WEIGHT: Final[Mapping[str, Decimal]] = {
    "fp32": Decimal(4),
    "fp16": Decimal(2),
    "bf16": Decimal(2),
    "fp8": Decimal(1),
    "int8": Decimal(1),
    "int4": Decimal("0.5"),
}

NF4_BYTES: Final = Decimal("4.127") / 8
"""A weight of QLoRA: 4 bits and 0.127 bits of doubly quantised constants. Source: Dettmers et al., arXiv 2305.14314, section 3."""

USABLE_RATIO: Final = Decimal("0.9")
"""Part of the memory that a program gets beside the driver, the context and fragments. Source: vLLM's default of
``gpu_memory_utilization``.
"""


class Optimizer(StrEnum):
    """What is kept for each trained parameter beside 16-bit weights and gradients.

    ``adam``: fp32 weights, momentum and variance, 12 bytes (Rajbhandari et al., "ZeRO", arXiv 1910.02054, section 3.1).
    ``adam-8bit``: fp32 weights and two states of a byte, 6 bytes (Dettmers et al., arXiv 2110.02861).
    ``adam-16bit-weights``: the two states in fp32 and no fp32 weights, 8 bytes (as the 780 GB for 65B in arXiv 2305.14314).
    ``sgd``: fp32 weights and momentum, 8 bytes.
    """

    ADAM = "adam"
    ADAM_8BIT = "adam-8bit"
    ADAM_16BIT_WEIGHTS = "adam-16bit-weights"
    SGD = "sgd"


_STATE_BYTES: Final = {
    Optimizer.ADAM: Decimal(12),
    Optimizer.ADAM_8BIT: Decimal(6),
    Optimizer.ADAM_16BIT_WEIGHTS: Decimal(8),
    Optimizer.SGD: Decimal(8),
}


class Recompute(StrEnum):
    """Which activations are thrown away and computed again in the backward pass."""

    NONE = "none"
    SELECTIVE = "selective"
    FULL = "full"


def weight_bytes(parameters: int, precision: str) -> Decimal:
    """Returns the weights alone."""
    return parameters * BYTES_PER_WEIGHT[precision]


def training_bytes(
    parameters: int, *, precision: str, optimizer: Optimizer, shards: int, stage: int = 3, has_fp32_gradients: bool = False
) -> dict[str, Decimal]:
    """Returns weights, gradients and optimizer states on one of ``shards`` accelerators.

    Args:
        stage: of ZeRO: 0 shards nothing, 1 the optimizer states, 2 gradients too, 3 weights too (FSDP). Source: ZeRO, figure 1.
        has_fp32_gradients: gradients are summed in fp32: 18 bytes a parameter in all instead of 16, as Megatron-LM does.
    """
    weight = Decimal(4) if precision == "fp32" else Decimal(2)
    gradient = Decimal(4) if has_fp32_gradients or precision == "fp32" else Decimal(2)
    states = _STATE_BYTES[optimizer]
    if precision == "fp32":
        # The weights are the fp32 copy themselves.
        states -= 4 if optimizer is not Optimizer.ADAM_16BIT_WEIGHTS else 0
    parts = {"weights": weight, "gradients": gradient, "optimizer states": states}
    sharded_from = {"optimizer states": 1, "gradients": 2, "weights": 3}
    return {name: parameters * part / (shards if stage >= sharded_from[name] else 1) for name, part in parts.items()}


def lora_parameters(shape: Shape, rank: int, matrices: int = 4) -> int:
    """Returns the parameters of low-rank adapters on ``matrices`` of a layer's four attention matrices.

    Each adapter of an in x out matrix has rank x (in + out). Source: Hu et al., arXiv 2106.09685: GPT-3 with rank 8 on two
    matrices has 37.7 million. Matrices are counted as hidden x hidden, which is above the truth where keys are shared.
    """
    return shape.layers * matrices * 2 * shape.hidden * rank


def activation_bytes(shape: Shape, *, batch: int, sequence: int, recompute: Recompute, precision: str = "bf16") -> Decimal:
    """Returns the activations of one accelerator that holds all layers and no part of a sequence elsewhere.

    Source: Korthikanti et al., arXiv 2205.05198: equation 1 (a layer: sbh(34 + 5as/h)), equation 6 without the attention part
    (selective: 34sbh), section 5 (full: 2sbh a layer, and one layer's worth while it is computed again), section 4.3 (ends:
    4sbh(1 + v/h)). In 16 bits; fp32 doubles them. FlashAttention counts as selective: it keeps no attention matrix.
    """
    layer = sequence * batch * shape.hidden
    attention = Decimal(5 * shape.heads * sequence) / shape.hidden
    if recompute is Recompute.NONE:
        layers = shape.layers * layer * (34 + attention)
    elif recompute is Recompute.SELECTIVE:
        layers = shape.layers * layer * Decimal(34)
    else:
        layers = shape.layers * layer * Decimal(2) + layer * Decimal(34)
    ends = 4 * layer * (1 + Decimal(shape.vocabulary) / shape.hidden)
    return (layers + ends) * (2 if precision == "fp32" else 1)


def key_value_bytes(shape: Shape, *, tokens: int, precision: str = "fp16") -> Decimal:
    """Returns keys and values of ``tokens`` tokens: 2 x layers x heads of keys x width x bytes for each.

    Source: Kwon et al., "PagedAttention", arXiv 2309.06180, section 1: 800 KB a token for OPT-13B in fp16.
    """
    return 2 * shape.layers * shape.key_value_heads * shape.head_width * BYTES_PER_WEIGHT[precision] * tokens


def training_flops(parameters: int, tokens: int) -> Decimal:
    """Returns the operations of a training: 6 for each parameter and token. Source: Kaplan et al., arXiv 2001.08361, section 2.1."""
    return Decimal(6) * parameters * tokens

"""Shapes of published models, and the number of parameters that follows from a shape."""

from dataclasses import dataclass, replace
from typing import Final


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """A transformer.

    Attributes:
        key_value_heads: heads of keys and values; fewer than ``heads`` when groups of queries share them.
        feed_forward: width of the feed-forward layer. is_gated: it has three matrices instead of two.
        positions: learned position vectors; 0 when positions are computed.
        is_tied: input and output embedding are one.
        has_biases: the matrices have biases, and norms have two vectors (GPT, BERT); else neither (Llama).
        extra: parameters beside the layers and embeddings, such as BERT's pooler.
        source: of the shape.
    """

    name: str
    layers: int
    hidden: int
    heads: int
    key_value_heads: int
    feed_forward: int
    vocabulary: int
    is_gated: bool
    is_tied: bool
    has_biases: bool
    positions: int = 0
    extra: int = 0
    source: str = ""

    @property
    def head_width(self) -> int:
        """Width of one head."""
        return self.hidden // self.heads

    @property
    def layer_parameters(self) -> int:
        """Parameters of one layer."""
        hidden, narrow = self.hidden, self.key_value_heads * self.head_width
        matrices = 2 * hidden * hidden + 2 * hidden * narrow + (3 if self.is_gated else 2) * hidden * self.feed_forward
        if not self.has_biases:
            return matrices + 2 * hidden
        return matrices + 2 * hidden + 2 * narrow + self.feed_forward + hidden + 4 * hidden

    @property
    def parameters(self) -> int:
        """All parameters."""
        embeddings = (1 if self.is_tied else 2) * self.vocabulary * self.hidden + self.positions * self.hidden
        last_norm = self.hidden * (2 if self.has_biases else 1)
        return self.layers * self.layer_parameters + embeddings + last_norm + self.extra


def _llama(name: str, sizes: tuple[int, int, int, int, int, int], source: str) -> Shape:
    """``sizes``: layers, hidden, heads, heads of keys and values, feed-forward, vocabulary."""
    layers, hidden, heads, groups, feed_forward, vocabulary = sizes
    return Shape(
        name=name,
        layers=layers,
        hidden=hidden,
        heads=heads,
        key_value_heads=groups,
        feed_forward=feed_forward,
        vocabulary=vocabulary,
        is_gated=True,
        is_tied=False,
        has_biases=False,
        source=source,
    )


def _gpt(name: str, sizes: tuple[int, int, int, int, int], source: str, extra: int = 0) -> Shape:
    """``sizes``: layers, hidden, heads, vocabulary, positions."""
    layers, hidden, heads, vocabulary, positions = sizes
    return Shape(
        name=name,
        layers=layers,
        hidden=hidden,
        heads=heads,
        key_value_heads=heads,
        feed_forward=4 * hidden,
        vocabulary=vocabulary,
        is_gated=False,
        is_tied=True,
        has_biases=True,
        positions=positions,
        extra=extra,
        source=source,
    )


_BERT: Final = "Devlin et al., arXiv 1810.04805"
_LLAMA_2: Final = "Touvron et al., arXiv 2307.09288, and the config.json of the published weights"
_LLAMA_3: Final = "Llama 3 team, arXiv 2407.21783, table 3, and the config.json of the published weights"

_SHAPES: Final = (
    # BERT adds two segment vectors to the positions, and a pooler of hidden x hidden with a bias.
    _gpt("bert-base", (12, 768, 12, 30522, 514), _BERT, 768 * 768 + 768),
    _gpt("bert-large", (24, 1024, 16, 30522, 514), _BERT, 1024 * 1024 + 1024),
    _gpt("gpt2-xl", (48, 1600, 25, 50257, 1024), "Radford et al., Language Models are Unsupervised Multitask Learners, 2019"),
    _gpt("opt-13b", (40, 5120, 40, 50272, 2050), "Zhang et al., arXiv 2205.01068, table 1"),
    _gpt("gpt-3", (96, 12288, 96, 50257, 2048), "Brown et al., arXiv 2005.14165, table 2.1"),
    _gpt("mt-nlg-530b", (105, 20480, 128, 51200, 2048), "Smith et al., arXiv 2201.11990"),
    _llama("tinyllama-1.1b", (22, 2048, 32, 4, 5632, 32000), "Zhang et al., arXiv 2401.02385, table 1"),
    _llama("llama-2-7b", (32, 4096, 32, 32, 11008, 32000), _LLAMA_2),
    _llama("llama-2-13b", (40, 5120, 40, 40, 13824, 32000), _LLAMA_2),
    _llama("llama-2-70b", (80, 8192, 64, 8, 28672, 32000), _LLAMA_2),
    _llama("llama-3-8b", (32, 4096, 32, 8, 14336, 128256), _LLAMA_3),
    _llama("llama-3-70b", (80, 8192, 64, 8, 28672, 128256), _LLAMA_3),
    _llama("llama-3.1-405b", (126, 16384, 128, 8, 53248, 128256), _LLAMA_3),
    _llama("mistral-7b", (32, 4096, 32, 8, 14336, 32000), "Jiang et al., arXiv 2310.06825, table 1"),
)

SHAPES: Final = {shape.name: shape for shape in _SHAPES}
"""Model's name -> its shape."""


_NEAR: Final = 0.1
"""A model this near in size lends its shape as it is."""


def shape_for(parameters: int) -> tuple[Shape, str]:
    """Returns a shape with about so many parameters, and in words where it comes from.

    The nearest published one; its layers are scaled when it is more than a tenth off. What follows from it (activations, keys and
    values) is an estimate: name the model when it is known.
    """
    nearest = min(_SHAPES, key=lambda shape: (max(shape.parameters / parameters, parameters / shape.parameters), shape.name))
    if abs(parameters / nearest.parameters - 1) <= _NEAR:
        return nearest, f"shape of {nearest.name}, the nearest published model"
    embeddings = nearest.parameters - nearest.layers * nearest.layer_parameters
    layers = max(1, round((parameters - embeddings) / nearest.layer_parameters))
    return replace(nearest, layers=layers), f"shape of {nearest.name} with {layers} layers, to come near the size asked for"

"""Formulas against figures that others published."""

from decimal import Decimal

import pytest

from hostler.planning.adviser_memory import (
    GIB,
    NF4_BYTES,
    Optimizer,
    Recompute,
    activation_bytes,
    key_value_bytes,
    lora_parameters,
    training_bytes,
    training_flops,
    weight_bytes,
)
from hostler.planning.adviser_models import SHAPES, shape_for


@pytest.mark.parametrize(
    ("model", "parameters"),
    [
        # The published weights' own counts (safetensors index of each model).
        ("bert-base", 109_482_240),
        ("bert-large", 335_141_888),
        ("gpt2-xl", 1_557_611_200),
        ("llama-2-7b", 6_738_415_616),
        ("llama-2-13b", 13_015_864_320),
        ("llama-2-70b", 68_976_648_192),
        ("llama-3-8b", 8_030_261_248),
        ("llama-3-70b", 70_553_706_496),
        ("mistral-7b", 7_241_732_096),
        ("tinyllama-1.1b", 1_100_048_384),
        ("llama-3.1-405b", 405_853_388_800),
    ],
)
def test_shape_when_counted_then_the_published_number_exactly(model, parameters):
    assert SHAPES[model].parameters == parameters


@pytest.mark.parametrize(
    ("model", "billions"),
    [("gpt-3", 175), ("opt-13b", 13), ("mt-nlg-530b", 530)],
)
def test_shape_when_only_a_round_number_is_published_then_within_a_percent(model, billions):
    assert SHAPES[model].parameters == pytest.approx(billions * 10**9, rel=0.012)


@pytest.mark.parametrize(
    ("stage", "gigabytes"),
    [(0, 120), (1, 31.4), (2, 16.6), (3, 1.88)],
)
def test_training_when_7_5b_on_64_then_the_four_figures_of_zero(stage, gigabytes):
    # Rajbhandari et al., arXiv 1910.02054, figure 1: 7.5 billion parameters, 64 ways, Adam in mixed precision.
    parts = training_bytes(7_500_000_000, precision="fp16", optimizer=Optimizer.ADAM, shards=64, stage=stage)
    assert float(sum(parts.values())) / 1e9 == pytest.approx(gigabytes, rel=0.01)


def test_training_when_65b_in_16_bits_then_the_780_gb_of_qlora():
    # Dettmers et al., arXiv 2305.14314: "more than 780 GB" for 16-bit fine-tuning of 65B.
    parts = training_bytes(65_000_000_000, precision="bf16", optimizer=Optimizer.ADAM_16BIT_WEIGHTS, shards=1)
    assert sum(parts.values()) == 780 * 10**9


def test_training_when_gradients_are_fp32_then_18_bytes_a_parameter():
    parts = training_bytes(1000, precision="bf16", optimizer=Optimizer.ADAM, shards=1, has_fp32_gradients=True)
    assert sum(parts.values()) == 18_000


@pytest.mark.parametrize(
    ("optimizer", "each"),
    [(Optimizer.ADAM, 16), (Optimizer.SGD, 12), (Optimizer.ADAM_16BIT_WEIGHTS, 16), (Optimizer.ADAM_8BIT, 10)],
)
def test_training_when_in_fp32_then_no_second_copy_of_the_weights(optimizer, each):
    parts = training_bytes(1, precision="fp32", optimizer=optimizer, shards=1)
    assert sum(parts.values()) == each


def test_qlora_when_65b_then_weights_fit_the_papers_48_gb_card():
    assert 48 * 10**9 * Decimal("0.75") > 65_000_000_000 * NF4_BYTES


@pytest.mark.parametrize(("rank", "matrices", "millions"), [(1, 2, 4.7), (8, 2, 37.7), (2, 4, 18.9)])
def test_lora_when_on_gpt3_then_the_papers_counts(rank, matrices, millions):
    # Hu et al., arXiv 2106.09685, tables 4 and 5.
    assert lora_parameters(SHAPES["gpt-3"], rank, matrices) / 1e6 == pytest.approx(millions, abs=0.1)


@pytest.mark.parametrize(("model", "saved"), [("gpt-3", 0.70), ("mt-nlg-530b", 0.65)])
def test_activations_when_attention_is_recomputed_then_the_papers_saving(model, saved):
    # Korthikanti et al., arXiv 2205.05198, section 5: 70 % for GPT-3, 65 % for the 530B model, of the layers' activations.
    shape = SHAPES[model]
    sizes = [activation_bytes(shape, batch=1, sequence=2048, recompute=r) for r in (Recompute.NONE, Recompute.SELECTIVE)]
    ends = 4 * 2048 * shape.hidden * (1 + Decimal(shape.vocabulary) / shape.hidden)
    assert float(1 - (sizes[1] - ends) / (sizes[0] - ends)) == pytest.approx(saved, abs=0.006)


def test_activations_when_one_layer_of_gpt3_then_sbh_times_34_and_80():
    # The same section: 5as/h = 80 for GPT-3.
    shape = SHAPES["gpt-3"]
    ends = 4 * 2048 * shape.hidden * (1 + Decimal(shape.vocabulary) / shape.hidden)
    whole = activation_bytes(shape, batch=1, sequence=2048, recompute=Recompute.NONE) - ends
    assert whole == 96 * 2048 * 12288 * (34 + 80)


def test_activations_when_everything_is_recomputed_then_least_and_fp32_doubles():
    shape = SHAPES["llama-2-7b"]
    sizes = [activation_bytes(shape, batch=2, sequence=4096, recompute=recompute) for recompute in Recompute]
    assert sizes == sorted(sizes, reverse=True)
    assert activation_bytes(shape, batch=2, sequence=4096, recompute=Recompute.FULL, precision="fp32") == 2 * sizes[2]


@pytest.mark.parametrize(
    ("model", "bytes_per_token"),
    [
        ("opt-13b", 819_200),  # Kwon et al., arXiv 2309.06180: 800 KB a token
        ("llama-2-7b", 524_288),  # half a MiB: 2 x 32 x 4096 x 2
        ("mistral-7b", 131_072),  # 8 of 32 heads keep keys and values: a quarter
        ("llama-3-70b", 327_680),
    ],
)
def test_keys_and_values_when_of_a_token_then_the_published_size(model, bytes_per_token):
    assert key_value_bytes(SHAPES[model], tokens=1) == bytes_per_token


@pytest.mark.parametrize(("precision", "gibibytes"), [("fp16", 12.55), ("int8", 6.28), ("int4", 3.14), ("fp32", 25.1)])
def test_weights_when_of_llama_2_7b_then_size_by_precision(precision, gibibytes):
    assert float(weight_bytes(SHAPES["llama-2-7b"].parameters, precision) / GIB) == pytest.approx(gibibytes, rel=0.001)


def test_flops_when_of_gpt3_then_the_papers_3_14e23():
    # Brown et al., arXiv 2005.14165, appendix D: 3.14e23 for 300 billion tokens.
    assert float(training_flops(SHAPES["gpt-3"].parameters, 300 * 10**9)) == pytest.approx(3.14e23, rel=0.002)


def test_shape_when_near_a_published_one_then_that_one():
    shape, words = shape_for(8_000_000_000)
    assert shape.name == "llama-3-8b"
    assert "llama-3-8b" in words


@pytest.mark.parametrize("parameters", [1, 50_000_000, 3_000_000_000, 34_000_000_000, 10**13])
def test_shape_when_far_from_all_then_layers_are_scaled_and_it_says_so(parameters):
    shape, words = shape_for(parameters)
    assert shape.layers >= 1
    assert "layers" in words
    if parameters >= 3_000_000_000:
        assert shape.parameters == pytest.approx(parameters, rel=0.1)

"""Limits, throttle bits, what nodes must have, and performance floors."""

from decimal import Decimal

import pytest

from hostler.health.catalog import LIMITS, bad_throttles, expect, expect_offering, expectation, floor
from hostler.health.words import explain_error
from hostler.model.enums import CapacityType, HealthAction
from hostler.model.offering import Offering


@pytest.mark.parametrize(
    ("name", "good", "bad"),
    [
        ("temperature_c", 84, 85),
        ("ecc_volatile_uncorrectable_count", 0, 1),
        ("remapped_uncorrectable_count", 512, 513),
        ("pcie_replays_per_minute", 8, 9),
        ("nvlink_crc_per_s", 99.9, 100),
        ("temperature_slowdown_margin_c", -2, -3),
        ("disk_used_critical_ratio", 0.84, 0.85),
        ("clock_skew_s", 0.1, 0.11),
    ],
)
def test_limit_when_a_reading_is_at_it_then_its_good_side_decides(name, good, bad):
    assert not LIMITS[name].is_broken_by(good)
    assert LIMITS[name].is_broken_by(bad)


def test_bad_throttles_when_bits_are_mixed_then_each_is_tested_and_normal_ones_are_left_out():
    assert bad_throttles(0x1 | 0x2 | 0x4 | 0x10 | 0x100) == ()
    assert bad_throttles(0x4 | 0x40 | 0x80) == ("hardware thermal slowdown", "hardware power brake")


@pytest.mark.parametrize(
    ("instance_type", "accelerator", "count", "nics", "links"),
    [
        ("p5.48xlarge", "H100", 8, 32, 18),
        ("p4d.24xlarge", "A100", 8, 4, 12),
        ("p5.4xlarge", "H100", 1, 1, 0),
        ("g5.48xlarge", "A10G", 8, 1, 0),
        ("Standard_ND96isr_H100_v5", "H100", 8, 8, 18),
        ("Standard_NC48ads_A100_v4", "A100-80GB", 2, 0, None),
        ("a3-highgpu-8g", "H100", 8, 5, 18),
    ],
)
def test_expectation_when_the_type_is_known_then_counts_are_told(instance_type, accelerator, count, nics, links):
    found = expectation(instance_type)

    assert (found.accelerator, found.accelerator_count, found.nic_count, found.nvlink_count) == (
        accelerator,
        count,
        nics,
        links,
    )
    assert found.source


def test_expectation_when_nothing_is_known_then_nothing_is_judged():
    assert expectation("made.up") is None
    assert expect("FPGA", 4).nvlink_count is None
    assert expect("FPGA", 4).accelerator_memory_mib is None


def test_expect_offering_when_the_offering_tells_then_it_goes_first():
    offering = Offering(
        cloud="azure",
        region="eastus",
        zone="1",
        instance_type="Standard_ND96asr_v4",
        capacity_type=CapacityType.SPOT,
        accelerator="A100",
        accelerator_count=8,
        vcpu_count=96,
        memory_mib=1,
        price_usd_per_hour=Decimal(1),
        nic_count=9,
    )
    assert (expect_offering(offering).nic_count, expect_offering(offering).nvlink_count) == (9, 12)


@pytest.mark.parametrize(
    ("metric", "how", "value"),
    [
        ("all_reduce_gb_per_s", {"instance_type": "Standard_ND96isr_H100_v5"}, 460),
        ("all_reduce_gb_per_s", {"instance_type": "p5.48xlarge", "accelerator": "H100"}, 150),
        ("all_reduce_gb_per_s", {"instance_type": "g5.48xlarge", "accelerator": "A10G"}, 15),
        ("all_reduce_gb_per_s", {"instance_type": "a3-megagpu-8g", "scope": "two nodes"}, 150),
        ("all_reduce_gb_per_s", {"accelerator": "H100", "scope": "many nodes"}, 100),
        ("gemm_fp16_tflops", {"accelerator": "A100"}, 234),
        ("memory_copy_gb_per_s", {"accelerator": "H100"}, 2680),
    ],
)
def test_floor_when_known_then_the_most_special_row_counts(metric, how, value):
    assert floor(metric, **how).value == pytest.approx(value)


def test_floor_when_unknown_then_it_is_not_judged():
    assert floor("gemm_fp16_tflops", accelerator="FPGA") is None
    assert floor("made_up", accelerator="H100") is None


def test_explain_error_when_words_prove_something_then_it_has_a_code():
    assert explain_error("Failed to initialize NVML: Driver/library version mismatch").code == "driver.mismatch"
    assert explain_error("GPU is lost. Reboot the system").action is HealthAction.REBOOT_NODE
    assert explain_error("Segmentation fault") is None

"""docs/fleet-yaml.md names every field of the schema, with its default."""

from pathlib import Path

import pytest
from pydantic import BaseModel

from hostler.config.clouds import ReachSettings
from hostler.config.schema import (
    BackupSettings,
    CostSweepSettings,
    HealthSettings,
    KeySettings,
    LedgerSettings,
    Limits,
    LogRotationSettings,
    NotifySettings,
    PriceSettings,
    PriceSourceSettings,
    ScaleDownSettings,
    SilenceSettings,
    Timing,
)
from hostler.drivers.aws.settings import AwsSettings

TEXT = (Path(__file__).parents[2] / "docs" / "fleet-yaml.md").read_text()
BLOCKS: dict[str, type[BaseModel]] = {
    "limits": Limits,
    "ledger": LedgerSettings,
    "keys": KeySettings,
    "backup": BackupSettings,
    "notify": NotifySettings,
    "timing": Timing,
    "prices": PriceSettings,
    "prices.sources.<cloud>": PriceSourceSettings,
    "health": HealthSettings,
    "health.silences[]": SilenceSettings,
    "cost_sweep": CostSweepSettings,
    "log_rotation": LogRotationSettings,
    "tenants.<name>.scale_down": ScaleDownSettings,
    "reach": ReachSettings,
}


@pytest.mark.parametrize("block", BLOCKS)
def test_reference_when_a_block_has_a_field_then_it_is_named(block):
    for field in BLOCKS[block].model_fields:
        assert f"`{block}.{field}`" in TEXT


def test_reference_when_aws_has_a_field_then_it_is_named():
    for field in set(AwsSettings.model_fields) - {"reach"}:
        assert f"`{field}`" in TEXT


def test_reference_when_a_time_limit_has_a_default_then_it_is_the_one_in_the_text():
    for name, field in Timing.model_fields.items():
        assert f"| `timing.{name}` | `{field.default}` |" in TEXT

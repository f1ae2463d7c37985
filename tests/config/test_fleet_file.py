from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import pytest

from hostler.cloud.registry import settings_models
from hostler.config.fleet_file import FleetFileError, find_fleet_file, load_fleet, parse_fleet
from hostler.model.enums import CapacityType, FleetMode
from hostler.wiring.settings import silences_of

EXAMPLE = Path(__file__).parents[2] / "docs" / "fleet.example.yaml"

GOOD = """\
deployment: acme
limits:
  usd_per_hour: 100
  usd_per_run: 50
  nodes: 4
backup:
  uri: s3://bucket/prefix
clouds:
  aws:
    regions: [us-east-1]
    image: ami-1
"""


def problems_of(text):
    with pytest.raises(FleetFileError) as caught:
        parse_fleet(text, "fleet.yaml", settings_models())
    return caught.value.problems


def test_example_when_loaded_then_it_is_under_30_lines_and_gives_useful_defaults():
    fleet = load_fleet(EXAMPLE, settings_models())
    assert len(EXAMPLE.read_text().splitlines()) < 30
    assert fleet.mode is FleetMode.ENFORCE
    assert fleet.limits.usd_per_hour == Decimal(200)
    assert fleet.clouds["aws"].capacity_types == (CapacityType.SPOT, CapacityType.ON_DEMAND)
    assert fleet.clouds["aws"].instance_profile == "hostler-node"


def test_file_when_no_tenants_are_named_then_there_is_one_with_no_cap_of_its_own():
    fleet = parse_fleet(GOOD, "fleet.yaml", settings_models())
    assert fleet.tenants["default"].nodes is None


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("nodes: 4", "nodes: 0", "fleet.yaml:5: limits.nodes: Input should be greater than or equal to 1"),
        ("usd_per_run: 50", "usd_per_run: -1", "fleet.yaml:4: limits.usd_per_run: Input should be greater than 0"),
        ("  nodes: 4\n", "", "fleet.yaml:2: limits.nodes: is missing"),
        ("  nodes: 4", "  nodes: 4\n  node: 3", "fleet.yaml:6: limits.node: unknown field"),
        ("  nodes: 4", "  nodes: 4\n  nodes: 3", "fleet.yaml:6: limits.nodes: stands twice"),
        ("  aws:", "  awz:", "fleet.yaml:9: clouds.awz: unknown cloud; installed drivers: aws"),
        ("    image: ami-1\n", "", "fleet.yaml:9: clouds.aws.image: is missing"),
        ("regions: [us-east-1]", "regions: []", "fleet.yaml:10: clouds.aws.regions: Tuple should have at least 1 item"),
        ("image: ami-1", "image: {us-west-2: ami-2}", "fleet.yaml:9: clouds.aws: image: no entry for region us-east-1"),
        ("image: ami-1", "image: ami-1\n    subnets: {}", "fleet.yaml:12: clouds.aws.subnets: name either ids or tags"),
        ("s3://bucket", "ftp://bucket", "fleet.yaml:7: backup.uri: String should match pattern"),
        ("acme", "Acme!", "fleet.yaml:1: deployment: String should match pattern"),
        ("acme", "${HOSTLER_NO_SUCH}", "fleet.yaml:1: deployment: environment variable HOSTLER_NO_SUCH is not set"),
    ],
)
def test_file_when_a_field_is_wrong_then_the_error_names_line_field_and_what_is_allowed(old, new, problem):
    assert any(line.startswith(problem) for line in problems_of(GOOD.replace(old, new, 1)))


def test_file_when_several_fields_are_wrong_then_all_are_reported_at_once():
    assert len(problems_of(GOOD.replace("nodes: 4", "nodes: x").replace("ami-1", "[1]").replace("acme", "_"))) >= 3


@pytest.mark.parametrize("text", ["", "- a", "a: [", "deployment: x\n\tlimits: 3", "just words", "a: &x [*x]"])
def test_file_when_it_is_no_fleet_mapping_then_an_error_names_a_line_and_nothing_crashes(text):
    assert problems_of(text)[0].startswith("fleet.yaml:")


def test_ledger_when_its_url_holds_a_password_then_it_shows_in_no_representation(monkeypatch):
    monkeypatch.setenv("LEDGER_PASSWORD", "s3cr3t-word")
    text = GOOD + "ledger:\n  url: postgresql://hostler:${LEDGER_PASSWORD}@db/hostler\n"
    fleet = parse_fleet(text, "fleet.yaml", settings_models())
    assert fleet.ledger.url.get_secret_value().startswith("postgresql://hostler:s3cr3t-word@")
    assert "s3cr3t" not in repr(fleet) + str(fleet) + fleet.model_dump_json()


def test_finding_when_there_is_no_file_then_the_error_says_where_it_was_looked_for(monkeypatch, tmp_path):
    monkeypatch.setenv("HOSTLER_FLEET", str(tmp_path / "none.yaml"))
    with pytest.raises(FleetFileError, match=r"none\.yaml; set HOSTLER_FLEET"):
        find_fleet_file()


SILENCE = """health:
  silences:
    - {starts_at: 2026-12-05T22:00:00Z, ends_at: END, who: fabric team, why: new firmware, codes: [nvlink.]}
"""


def test_silence_when_announced_then_the_engine_gets_it():
    fleet = parse_fleet(GOOD + SILENCE.replace("END", "2026-12-06T02:00:00Z"), "fleet.yaml", settings_models())
    (silence,) = silences_of(fleet)
    assert silence.covers("nvlink.down", datetime(2026, 12, 5, 23, tzinfo=UTC))
    assert not silence.covers("device.lost", datetime(2026, 12, 5, 23, tzinfo=UTC))
    assert not silence.covers("nvlink.down", datetime(2026, 12, 6, 2, tzinfo=UTC))


@pytest.mark.parametrize("end", ["2026-12-05T22:00:00Z", "2026-12-06T02:00:00"])
def test_silence_when_it_ends_too_early_or_without_a_zone_then_it_is_refused(end):
    assert any("health.silences.0" in problem for problem in problems_of(GOOD + SILENCE.replace("END", end)))

"""The refresh, from a price API on loopback to the accepted file, the record and the report."""

import importlib.util
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal

import pytest
from tests.clouds.price_apis import AT, KEY, PriceApis, Refusal

from hostler.catalog.offerings import load_catalog
from hostler.catalog.prices import read_kept
from hostler.cloud.registry import settings_models
from hostler.config.fleet_file import FleetFileError, parse_fleet
from hostler.exporters.webhook import NEEDS_A_PERSON
from hostler.model.enums import CapacityType
from hostler.stores.memory import MemoryLedger
from hostler.wiring.prices import AcceptedPrices, accepted_paths, catalog_paths, refresh_prices, wanted_types

AWS = (
    "InstanceType,Region,OnDemandPerHour,vCPUs,MemoryMiB,GpuName,GpuManufacturer,"
    "GpuCount,GpuMemoryMiB,LocalNvmeGB,NetworkMbps,Efa"
)
T4 = "Standard_NC4as_T4_v3"
FLEET = """\
deployment: acme
limits: {usd_per_hour: 1, usd_per_run: 1, nodes: 1}
backup: {uri: s3://b/p}
clouds: {aws: {regions: [us-east-1], image: ami-1}}
"""

has_checks = pytest.mark.skipif(
    importlib.util.find_spec("great_expectations") is None, reason="the extra `checks` is not installed"
)


@pytest.fixture
def apis():
    made = PriceApis()
    made.page = 100
    yield made
    made.stop()


@pytest.fixture
def ledger():
    return MemoryLedger(lambda: AT)


@pytest.fixture
def fleet(apis, tmp_path):
    def make(sources="azure: {{regions: [eastus], endpoint_url: '{url}'}}", more=""):
        filled = sources.format(url=apis.url)
        text = f"{FLEET}{more}prices:\n  folder: {tmp_path}/prices\n  sources:\n    {filled}\n"
        return parse_fleet(text, "fleet.yaml", settings_models())

    return make


def refresh(fleet_file, ledger, **options):
    return refresh_prices(fleet_file, sessions=None, secret=lambda _name: KEY, ledger=ledger, who="test", **options)


def events(ledger):
    return [(event.what, dict(event.evidence)) for event in ledger.list_events(None)]


@has_checks
@pytest.mark.checks
def test_refresh_when_good_then_accepted_and_when_prices_jump_then_nothing_changes(apis, ledger, fleet, tmp_path):
    apis.sell_azure("eastus", T4, 0.526)
    apis.sell_azure("eastus", T4, 0.1, suffix=" Spot")
    (first,) = refresh(fleet(), ledger)
    assert (first.verdict, first.row_count, first.problems) == ("accepted", 2, ())
    assert first.report.is_file()
    path = tmp_path / "prices" / "accepted" / "azure.csv"
    assert {row.price_per_hour for row in read_kept(path)} == {Decimal("0.526"), Decimal("0.1")}
    before = path.read_bytes()

    apis.azure_items[0]["retailPrice"] = 0.7
    (second,) = refresh(fleet(), ledger)
    assert second.verdict == "refused"
    assert second.problems == (f"jump: on demand against the last accepted batch: 1 rows, such as eastus//{T4}/on-demand: 0.7",)
    assert path.read_bytes() == before
    assert {row.price_per_hour for row in read_kept(tmp_path / "prices" / "refused" / "azure.csv")} == {
        Decimal("0.7"),
        Decimal("0.1"),
    }
    (accepted, refused) = events(ledger)
    assert accepted[0] == "prices.accepted"
    assert refused[0] == "prices.refused"
    assert refused[0].startswith(NEEDS_A_PERSON)
    assert refused[1]["report"] == str(second.report)

    (third,) = refresh(fleet(), ledger, accepts_jumps=True)
    assert third.verdict == "accepted"
    found = [item for item in load_catalog(catalog_paths(fleet())).offerings if item.instance_type == T4]
    assert {(item.region, item.capacity_type, item.price_usd_per_hour) for item in found} == {
        ("eastus", CapacityType.ON_DEMAND, Decimal("0.7")),
        ("eastus", CapacityType.SPOT, Decimal("0.1")),
    }


@pytest.mark.parametrize(
    ("sources", "problem"),
    [
        ("azure: {{regions: [eastus], endpoint_url: '{url}'}}", "CloudUnavailableError"),
        ("gcp: {{regions: [us-central1], endpoint_url: '{url}'}}", "prices.sources.gcp.secret: is missing"),
        ("alibaba: {{regions: [cn-beijing], endpoint_url: '{url}', secret: key}}", "id:secret"),
    ],
)
def test_refresh_when_a_cloud_does_not_answer_then_nothing_is_judged_and_it_is_on_record(apis, ledger, fleet, sources, problem):
    apis.refusals += [Refusal(503)]
    (outcome,) = refresh(fleet(sources), ledger)
    assert (outcome.verdict, outcome.row_count, outcome.report) == ("unanswered", 0, None)
    assert problem in outcome.problems[0]
    assert [what for what, _ in events(ledger)] == ["prices.unanswered"]
    assert accepted_paths(fleet()) == ()


def test_refresh_when_secret_is_unknown_then_named(ledger, fleet):
    def unknown(name):
        raise KeyError(f"secret {name!r}: set HOSTLER_SECRET_KEY")

    sources = fleet("gcp: {{regions: [us-central1], endpoint_url: '{url}', secret: key}}")
    (outcome,) = refresh_prices(sources, sessions=None, secret=unknown, ledger=ledger, who="test")
    assert "HOSTLER_SECRET_KEY" in outcome.problems[0]


def test_refresh_when_no_source_is_named_then_nothing_is_done(ledger):
    assert refresh(parse_fleet(FLEET, "fleet.yaml", settings_models()), ledger) == ()
    assert events(ledger) == []


def test_refresh_when_only_some_clouds_are_asked_then_the_others_are_not(ledger, fleet, apis):
    assert refresh(fleet(), ledger, clouds=("aws",)) == ()
    assert apis.calls == []


@pytest.mark.parametrize("sources", ["ibm: {{regions: [x]}}", "azure: {{regions: []}}", "azure: {{regions: [x], key: y}}"])
def test_fleet_file_when_source_is_wrong_then_refused(fleet, sources):
    with pytest.raises(FleetFileError, match="prices"):
        fleet(sources)


def test_wanted_when_cloud_is_asked_by_region_then_only_types_that_are_there():
    known = load_catalog()
    assert "ecs.gn5-c4g1.xlarge" in wanted_types("alibaba", ["ap-northeast-1"], known)["ap-northeast-1"]
    assert "ecs.gn6v-c8g1.4xlarge" not in wanted_types("alibaba", ["ap-northeast-1"], known)["ap-northeast-1"]
    asked = wanted_types("aws", ["us-west-2"], known)["us-west-2"]
    assert {"p5.48xlarge", "f2.48xlarge"} <= set(asked)
    assert "a3-highgpu-8g" in wanted_types("gcp", ["us-central1"], known)["us-central1"]


def test_catalog_paths_when_lists_are_named_then_in_the_place_of_the_shipped_ones(fleet, tmp_path):
    assert [path.name for path in catalog_paths(fleet())] == ["aws_2026-07-20.csv", "alibaba_2024-10-16.csv"]
    assert catalog_paths(fleet(more=f"catalog: [{tmp_path}/lists]\n")) == (tmp_path / "lists",)


def test_accepted_prices_when_file_changes_then_read_again(fleet, tmp_path):
    from tests.catalog.test_price_batch import row

    from hostler.catalog.prices import keep

    offering = next(item for item in load_catalog().offerings if item.instance_type == "g5.xlarge")
    filled = AcceptedPrices(fleet())
    assert filled((offering,)) == (offering,)
    for price in ("1.5", "1.25"):
        at = datetime(2026, 12, 1, tzinfo=UTC)
        keep(tmp_path / "prices/accepted/aws.csv", [row(region=offering.region, price_per_hour=Decimal(price), priced_at=at)])
        assert filled((offering,))[0].price_usd_per_hour == Decimal(price)


def test_accepted_prices_when_nothing_is_accepted_then_the_lists_fill_what_a_driver_does_not_know(fleet, tmp_path):
    offering = next(item for item in load_catalog().offerings if item.instance_type == "g5.xlarge" and item.currency == "CNY")
    unpriced = replace(offering, zone="cn-north-1a", price_usd_per_hour=None, currency="USD", price_in_currency_per_hour=None)
    (found,) = AcceptedPrices(fleet())((unpriced,))
    assert (found.currency, found.price_in_currency_per_hour) == ("CNY", Decimal("9.51389"))
    elsewhere = replace(unpriced, region="us-west-2", zone="us-west-2a")
    assert AcceptedPrices(fleet())((elsewhere,)) == (elsewhere,)
    (tmp_path / "own.csv").write_text(f"{AWS}\ng5.xlarge,us-west-2,1.2,4,16384,a10g,nvidia,1,22888,250,2500,\n")
    (found,) = AcceptedPrices(fleet(more=f"catalog: [{tmp_path}/own.csv]\n"))((elsewhere,))
    assert (found.price_usd_per_hour, found.price_source) == (Decimal("1.2"), "own.csv:2")

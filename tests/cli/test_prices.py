"""``hostler prices``."""

import importlib.util
import json
from decimal import Decimal

import pytest
import yaml
from tests.catalog.test_price_batch import row
from tests.clouds.price_apis import PriceApis, Refusal

from hostler.catalog.prices import keep
from hostler.cli.main import main


@pytest.fixture
def folder(tmp_path, fleet_file):
    """The folder of prices of a fleet that may ask Azure."""
    document = yaml.safe_load(fleet_file.read_text())
    document["prices"] = {"folder": str(tmp_path / "prices")}
    fleet_file.write_text(yaml.safe_dump(document))
    return tmp_path / "prices"


@pytest.fixture
def apis(folder, fleet_file):
    made = PriceApis()
    document = yaml.safe_load(fleet_file.read_text())
    document["prices"]["sources"] = {"azure": {"regions": ["eastus"], "endpoint_url": made.url}}
    fleet_file.write_text(yaml.safe_dump(document))
    yield made
    made.stop()


def test_prices_when_some_are_accepted_then_shown_by_cloud(folder, capsys):
    keep(folder / "accepted" / "aws.csv", [row(), row(region="us-west-2", price_per_hour=Decimal(2), doubts=("odd",))])
    assert main(["prices"]) == 0
    heading, line = capsys.readouterr().out.splitlines()
    assert heading.split() == ["CLOUD", "PRICES", "DOUBTED", "ACCEPTED", "REGIONS"]
    assert line.split()[:3] == ["aws", "2", "1"]
    assert line.endswith("us-east-1 us-west-2")
    assert main(["prices", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["accepted"][0]["rows"] == 2


def test_prices_when_the_cloud_is_away_then_status_1_and_why(apis, capsys):
    apis.refusals.append(Refusal(503))
    assert main(["prices", "--refresh"]) == 1
    assert "azure: unanswered, 0 rows\n  CloudUnavailableError [503]" in capsys.readouterr().out


def test_prices_when_another_cloud_is_named_then_nothing_is_asked(apis, capsys):
    assert main(["prices", "--refresh", "--cloud", "gcp", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"accepted": [], "refreshed": []}
    assert apis.calls == []


@pytest.mark.checks
@pytest.mark.skipif(importlib.util.find_spec("great_expectations") is None, reason="the extra `checks` is not installed")
def test_prices_when_refreshed_then_accepted_and_shown(apis, folder, capsys):
    apis.sell_azure("eastus", "Standard_NC4as_T4_v3", 0.526)
    assert main(["prices", "--refresh"]) == 0
    out = capsys.readouterr().out
    assert f"azure: accepted, 1 rows, report {folder}/reports/azure/" in out
    assert out.splitlines()[-1].split()[:3] == ["azure", "1", "0"]

import json
import os
import subprocess
import sys
from datetime import UTC, datetime, timedelta

import pytest
import yaml

from hostler.cli.main import main
from hostler.ledger.port import StockOut

AZURE = "InstanceType,AcceleratorName,AcceleratorCount,vCPUs,MemoryGiB,Price,SpotPrice,Region,Generation,TotalGpuMemoryMiB\n"
A100 = "Standard_ND96asr_v4,A100,8,96,900,27.2,5.98,eastus,V2,\nStandard_ND96asr_v4,A100,8,96,900,30.0,6.5,westeurope,V2,\n"
H100 = "Standard_ND96isr_H100_v5,H100,8,96,1900,98.3,0.00,eastus,V2,\n"
T4 = "Standard_NC4as_T4_v3,T4,1,4,28,0.526,0.0684,eastus,V1,\n"


@pytest.fixture(autouse=True)
def cache_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("HOSTLER_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def price_list(tmp_path):
    path = tmp_path / "lists" / "skypilot_azure_2026-05-20.csv"
    path.parent.mkdir()
    path.write_text(AZURE + A100 + H100 + T4)
    return path


@pytest.fixture
def offers(price_list, capsys):
    """Runs ``hostler offers`` on the list and returns (exit status, standard output, standard error)."""

    def run(*arguments, catalog=True):
        status = main(["offers", *arguments, *(["--catalog", str(price_list)] if catalog else [])])
        said = capsys.readouterr()
        return status, said.out, said.err

    return run


def test_offers_when_asked_then_ranked_table_arithmetic_and_refusals(offers):
    status, out, err = offers("--accelerator", "A100", "--count", "8", "--nodes", "2", "--spot")
    assert (status, err) == (0, "")
    lines = out.splitlines()
    assert lines[0] == "2 x 8 x A100, spot, on-demand"
    assert lines[3].split()[:2] == ["1", "azure/eastus/Standard_ND96asr_v4"]
    assert "USD for a useful accelerator-hour" in out
    assert "skypilot_azure_2026-05-20.csv (2026-05-20)" in out


def test_offers_when_run_twice_then_the_same_bytes(offers):
    arguments = ("--accelerator", "A100,H100,T4", "--count", "8", "--nodes", "2", "--spot", "--json")
    assert offers(*arguments) == offers(*arguments)


def test_offers_when_hash_seed_locale_and_time_zone_differ_then_the_same_bytes(price_list):
    said = set()
    for seed, locale, zone in (("1", "C", "UTC"), ("2", "tr_TR.UTF-8", "Asia/Tokyo")):
        environment = {**os.environ, "PYTHONHASHSEED": seed, "LC_ALL": locale, "TZ": zone}
        command = [sys.executable, "-m", "hostler.cli.main", "offers", "--accelerator", "A100,H100,T4", "--spot", "--why-not"]
        done = subprocess.run([*command, "--catalog", str(price_list)], env=environment, capture_output=True, check=True)
        said.add(done.stdout)
    assert len(said) == 1
    assert b"A100" in said.pop()


def test_offers_when_json_then_every_offer_and_every_refusal_is_in(offers):
    status, out, _ = offers("--accelerator", "a100,h100,t4", "--spot", "--json")
    document = json.loads(out)
    assert status == 0
    assert document["request"]["accelerators"] == ["A100", "H100", "T4"]
    assert [item["rank"] for item in document["offers"]] == [1, 2, 3, 4, 5]
    assert document["offers"][0]["usd_per_hour"] == "5.98"
    refusals = {item["subject"]: item["reason"] for item in document["refusals"]}
    assert refusals["azure/eastus//Standard_ND96isr_H100_v5/spot"] == "no price is known"
    assert refusals["T4 x 1"] == "2 offerings have 1 x T4 in a node, asked for 8 x A100 or H100 or T4"


def test_offers_when_nothing_fits_then_says_why_and_exit_status_is_1(offers):
    status, out, _ = offers("--accelerator", "A100", "--count", "8", "--max-price", "1")
    assert status == 1
    assert "nothing fits" in out
    assert "above max_price_usd_per_hour 1" in out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--accelerator", "A10O"), "did you mean A10, A10G, A100"),
        (("--accelerator", "H1000"), "did you mean H100"),
        (("--accelerator", ","), "--accelerator is empty"),
        (("--accelerator", "A100", "--count", "0"), "--count 0 is not between 1 and 16"),
        (("--accelerator", "A100", "--nodes", "9999"), "--nodes 9999 is not between 1 and 1024"),
        (("--accelerator", "A100", "--cloud", "awz"), "--cloud 'awz' is not one of alibaba, aws, azure, gcp"),
        (("--accelerator", "A100", "--capacity", "free"), "--capacity 'free' is not one of on-demand, spot, reserved"),
        (("--accelerator", "A100", "--capacity", ","), "--capacity '' is not one of"),
        (("--accelerator", "A100", "--max-price", "0"), "--max-price '0' is not a number above 0"),
        (("--accelerator", "A100", "--max-price", "nan"), "--max-price 'nan' is not a number"),
        (("--accelerator", "A100", "--hours", "-3"), "--hours '-3' is not a number"),
        (("--accelerator", "A100", "--hours", "1e400"), "--hours '1e400' is above 1000000000000"),
        (("--accelerator", "A100", "--limit", "-1"), "--limit -1 is below 0"),
        (("--accelerator", "A100", "--disk-gib", "inf"), "--disk-gib 'inf' is not a number of 0 or more"),
        (("--accelerator", "A100", "--domain", "planet"), "--domain 'planet' is not one of zone, region, cloud, any"),
        (("--accelerator", "A100", "--spread-over", "any"), "--spread-over 'any' is not one of zone, region, cloud"),
        (("--accelerator", "A100", "--interruptions", "0.1"), "is not of the form WHERE=RATE"),
        (("--accelerator", "A100", "--interruptions", "aws=often"), "--interruptions aws 'often' is not a number"),
        (("--accelerator", "A100", "--max-total", "5"), "--max-total needs --hours"),
        (("--accelerator", "A100", "--steady", "3", "--nodes", "2"), "steady_count 3 is more than the gang's 2 nodes"),
        (("--accelerator", "A100", "--capacity-file", "/no/such"), "--capacity-file /no/such"),
    ],
)
def test_offers_when_an_option_is_wrong_then_it_is_named_with_what_is_allowed_and_status_is_2(offers, arguments, words):
    status, out, err = offers(*arguments)
    assert (status, out) == (2, "")
    assert words in err
    assert "Traceback" not in err


def test_offers_when_a_row_is_broken_then_file_and_line_and_the_rest_only_when_told(offers, price_list):
    price_list.write_text(price_list.read_text().replace("98.3", "ninety"))
    status, out, err = offers("--accelerator", "A100")
    assert (status, out) == (2, "")
    assert "skypilot_azure_2026-05-20.csv, line 4" in err
    status, out, err = offers("--accelerator", "A100", "--keep-going")
    assert status == 1
    assert "left out: skypilot_azure_2026-05-20.csv, line 4" in err
    assert "Standard_ND96asr_v4" in out


def test_offers_when_a_file_is_missing_then_named(offers):
    status, _, err = offers("--accelerator", "A100", "--catalog", "/no/list.csv")
    assert status == 2
    assert "list.csv" in err


def test_offers_when_no_catalog_is_given_then_the_shipped_one(offers):
    status, out, _ = offers("--accelerator", "H100", catalog=False)
    assert status == 0
    assert "aws/" in out


def test_offers_when_capacity_file_is_given_then_quota_and_reservations_count(offers, price_list, tmp_path):
    path = tmp_path / "capacity.json"
    state = {"cloud": "azure", "region": "eastus", "unit": "core", "limit": 100, "used": 50}
    _, out, _ = offers("--accelerator", "A100", "--json")
    codes = [use["code"] for use in json.loads(out)["offers"][0]["quotas"]]
    assert codes
    path.write_text(json.dumps({"quotas": [{**state, "code": code} for code in codes]}))
    status, out, _ = offers("--accelerator", "A100", "--json", "--capacity-file", str(path))
    document = json.loads(out)
    assert status == 0
    assert [item["region"] for item in document["offers"]] == ["westeurope"]
    refused = next(
        item["reason"] for item in document["refusals"] if item["subject"].startswith("azure/eastus//Standard_ND96asr")
    )
    assert "limit 100 vCPU, 50 in use; 1 node needs 96 vCPU more" in refused
    assert "quota not checked" in document["offers"][0]["notes"][0]


@pytest.mark.parametrize(
    ("document", "words"),
    [
        ([], "is not a JSON object"),
        ({"quota": []}, "has no field quota; the fields are quotas, reservations"),
        ({"quotas": {}}, "quotas is not a list"),
        ({"quotas": [1]}, "quotas[0] is not an object"),
        ({"quotas": [{"cloud": "aws", "code": "L-1"}]}, "quotas[0]: unit None is not a text"),
        ({"quotas": [{"cloud": "aws", "code": "L-1", "unit": "vCPU", "limit": -1}]}, "quotas[0]: limit -1 is not a number"),
        ({"reservations": [{"reservation_id": "cr-1"}]}, "reservations[0]: cloud None"),
        ({"max_usd_per_hour": "many"}, "max_usd_per_hour 'many' is not a number"),
        (
            {"open_spot_requests": [{"request_id": "s", "cloud": "aws", "region": "r", "node_count": -1}]},
            "open_spot_requests[0]: node_count -1 is not a whole number",
        ),
    ],
)
def test_offers_when_capacity_file_is_wrong_then_entry_and_field_are_named(offers, tmp_path, document, words):
    path = tmp_path / "capacity.json"
    path.write_text(json.dumps(document))
    status, _, err = offers("--accelerator", "A100", "--capacity-file", str(path))
    assert status == 2
    assert words in err


def test_offers_when_capacity_file_has_reservations_and_requests_then_they_count(offers, tmp_path):
    path = tmp_path / "capacity.json"
    held = {
        "reservation_id": "r1",
        "cloud": "azure",
        "region": "eastus",
        "zone": "eastus-1",
        "instance_type": "Standard_ND96asr_v4",
    }
    request = {
        "request_id": "s",
        "cloud": "azure",
        "region": "eastus",
        "node_count": 2,
        "price_usd_per_hour": 6.5,
        "quotas": [{"code": "x", "unit": "core", "amount": 96}],
    }
    path.write_text(
        json.dumps({"reservations": [{**held, "total_count": 1}], "open_spot_requests": [request], "max_usd_per_hour": 50})
    )
    status, out, _ = offers("--accelerator", "A100", "--capacity", "reserved,on-demand", "--capacity-file", str(path), "--json")
    document = json.loads(out)
    assert status == 0
    assert "azure/eastus/eastus-1/Standard_ND96asr_v4/reserved" in [item["key"] for item in document["offers"]]


def test_offers_when_mixed_then_whole_gangs_are_shown(offers):
    status, out, _ = offers("--accelerator", "A100", "--nodes", "3", "--spot", "--steady", "1")
    assert status == 0
    assert "1 x azure/eastus//Standard_ND96asr_v4/on-demand + 2 x azure/eastus//Standard_ND96asr_v4/spot" in out
    status, out, _ = offers(
        "--accelerator", "A100", "--nodes", "2", "--spread", "2", "--spread-over", "region", "--domain", "cloud"
    )
    assert "1 x azure/eastus//Standard_ND96asr_v4/on-demand + 1 x azure/westeurope" in out


def test_offers_when_ledger_is_asked_then_stock_outs_and_the_cap_count(hostler, ledger, price_list):
    until = datetime.now(UTC) + timedelta(minutes=30)
    ledger.remember_stock_out(StockOut(subject="azure/eastus", until=until, count=1, reason="AllocationFailed"))
    status, out, _ = hostler("offers", "--accelerator", "A100", "--ledger", "--json", "--catalog", str(price_list))
    document = json.loads(out)
    assert status == 0
    assert [item["region"] for item in document["offers"]] == ["westeurope", "eastus"]
    assert document["offers"][1]["stock_out_until"] is not None
    status, out, _ = hostler("offers", "--accelerator", "A100", "--nodes", "4", "--ledger", "--catalog", str(price_list))
    assert status == 1
    assert "above max_usd_per_hour 100" in out


def test_offers_when_ledger_is_asked_without_lists_then_the_deployments_own(hostler, fleet_file, price_list):
    document = yaml.safe_load(fleet_file.read_text())
    fleet_file.write_text(yaml.safe_dump({**document, "catalog": [str(price_list)]}))
    status, out, _ = hostler("offers", "--accelerator", "A100", "--ledger", "--json")
    assert status == 0
    assert list(json.loads(out)["sources"]) == [price_list.name]


def test_offers_when_the_cache_is_warm_then_little_is_imported(price_list):
    code = (
        "import sys; from hostler.cli.main import main; "
        f"[main(['offers', '--accelerator', 'A100', '--json', '--catalog', {str(price_list)!r}]) for _ in range(1)]; "
        "heavy = ('airflow', 'sqlalchemy', 'pydantic', 'yaml', 'hostler.ledger', 'hostler.catalog.offerings', 'csv', 'asyncio'); "
        "print([m for m in sys.modules if m.startswith(heavy)], file=sys.stderr)"
    )
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    for _ in range(2):
        done = subprocess.run([sys.executable, "-S", "-c", code], capture_output=True, text=True, check=True, env=env)
    assert done.stderr.strip() == "[]"

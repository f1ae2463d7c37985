"""The refresh of prices as a task."""

from pathlib import Path

import pytest
from airflow.sdk.exceptions import AirflowException, AirflowFailException
from tests.task_context import TaskContext

from hostler.wiring import prices
from hostler.wiring.prices import PriceOutcome
from hostler_operators.prices import RefreshPricesOperator

FLEET = """\
deployment: acme
limits: {usd_per_hour: 1, usd_per_run: 1, nodes: 1}
backup: {uri: s3://b/p}
clouds: {aws: {regions: [us-east-1], image: ami-1}}
"""
GOOD = PriceOutcome(cloud="aws", verdict="accepted", row_count=7, report=Path("/reports/aws/index.html"))
BAD = PriceOutcome(
    cloud="azure", verdict="refused", row_count=5, problems=("jump: 1 rows",), report=Path("/reports/azure/index.html")
)
SILENT = PriceOutcome(cloud="gcp", verdict="unanswered", row_count=0, problems=("CloudUnavailableError: away",))


@pytest.fixture
def asked(world, monkeypatch, tmp_path):
    """What the refresh was asked; ``outcomes`` is what it says."""
    (tmp_path / "fleet.yaml").write_text(FLEET)
    monkeypatch.setenv("HOSTLER_FLEET", str(tmp_path / "fleet.yaml"))
    calls = {"outcomes": (GOOD,)}

    def stand_in(_fleet, **options):
        calls.update(options)
        return calls["outcomes"]

    monkeypatch.setattr(prices, "refresh_prices", stand_in)
    return calls


def refresh(**params):
    context = TaskContext(task_id="refresh", dag_id="hostler_price_refresh", params=params)
    return RefreshPricesOperator(task_id="refresh"), context


def test_refresh_when_all_is_accepted_then_tells_rows_and_reports(asked, world):
    operator, context = refresh()
    told = operator.execute(context)
    assert told == {"aws": {"verdict": "accepted", "rows": 7, "report": "/reports/aws/index.html"}}
    assert asked["accepts_jumps"] is False
    assert asked["ledger"] is world.fleet.ledger
    assert "hostler_price_refresh" in asked["who"]


def test_refresh_when_a_person_accepts_jumps_then_passed_on(asked):
    operator, context = refresh(accept_jumps=True)
    operator.execute(context)
    assert asked["accepts_jumps"] is True


def test_refresh_when_refused_then_fails_for_good_and_the_report_is_linked(asked):
    asked["outcomes"] = (GOOD, BAD, SILENT)
    operator, context = refresh()
    with pytest.raises(AirflowFailException, match="azure: jump: 1 rows"):
        operator.execute(context)
    assert context.pushed["prices"]["azure"]["report"] == "/reports/azure/index.html"


def test_refresh_when_a_cloud_is_silent_then_fails_for_a_retry(asked):
    asked["outcomes"] = (GOOD, SILENT)
    operator, context = refresh()
    with pytest.raises(AirflowException, match="gcp: CloudUnavailableError") as caught:
        operator.execute(context)
    assert not isinstance(caught.value, AirflowFailException)


def test_refresh_when_no_source_is_named_then_nothing_to_do(asked):
    asked["outcomes"] = ()
    operator, context = refresh()
    assert operator.execute(context) == {}

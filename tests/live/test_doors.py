"""What is let in: the REST API's own checks, admit's, and who may do what."""

import pytest
from tests.live.scenarios import status_of
from tests.live.theatre import LIFECYCLE, script

from hostler_sandbox.airflow_client import AirflowApiError, AirflowClient

pytestmark = [pytest.mark.live, pytest.mark.xdist_group("live"), pytest.mark.sandbox, pytest.mark.timeout(1500)]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("accelerator", "H1000"),
        ("nodes", 0),
        ("nodes", "two"),
        ("max_cost_usd", -5),
        ("max_price_usd_per_hour", -1),
        ("capacity_types", ["stolen"]),
        ("tenant", ""),
        ("deadline", "tomorrow"),
        ("script", 7),
    ],
)
def test_post_when_the_schema_sees_the_fault_then_400_naming_the_field(stage, played, field, value):
    with pytest.raises(AirflowApiError) as error:
        stage.client("ops").trigger(LIFECYCLE, script("true", **{field: value}), f"live-bad-{field}")
    assert error.value.status == 400
    assert field in error.value.detail


def test_post_when_the_user_may_only_look_then_403(stage):
    assert status_of(lambda: stage.client("eyes").trigger(LIFECYCLE, {}, "live-eyes")) == 403


def test_post_when_the_password_is_wrong_then_401(stage):
    stranger = AirflowClient(stage.airflow.url, "admin", "wrong")
    assert status_of(lambda: stranger.trigger(LIFECYCLE, {}, "live-stranger")) == 401


@pytest.mark.parametrize("field", ["surprise", "deadline", "recipe", "regions", "secrets"])
def test_admit_when_only_it_sees_the_fault_then_refused_by_name_and_nothing_is_bought(played, field):
    seen = played("refused")[field]
    assert seen["state"] == "failed"
    assert seen["tasks"]["admit"] == "failed"
    assert seen["tasks"]["launch"] == "upstream_failed"
    assert field in seen["log"]
    assert seen["events"][0].what == "request.refused"
    assert seen["machines"] == []

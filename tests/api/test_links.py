import pytest
from tests.api.fleet_of import lease_view

from hostler.api.links import AirflowLinks, phase_now
from hostler.model.enums import LeaseState, Phase


@pytest.mark.parametrize(
    ("reached", "state", "phase"),
    [
        (None, LeaseState.REQUESTED, Phase.ADMIT),
        ("admit", LeaseState.REQUESTED, Phase.PLAN),
        ("validate", LeaseState.ACTIVE, Phase.RUN),
        ("receipt", LeaseState.ACTIVE, Phase.RECEIPT),
        ("launch", LeaseState.DRAINING, Phase.RELEASE),
        ("launch", LeaseState.RELEASED, Phase.RECEIPT),
    ],
)
def test_phase_when_a_step_is_done_then_the_next_one_unless_it_ends(reached, state, phase):
    assert phase_now(lease_view(0, lease={"reached": reached, "state": state}).lease) is phase


def test_links_when_there_is_no_airflow_then_none():
    links, lease = AirflowLinks(base=None), lease_view(0).lease
    assert links.run(lease) is None
    assert links.task(lease, Phase.RUN) is None


def test_links_when_the_ui_is_elsewhere_then_absolute_and_quoted():
    links = AirflowLinks(base="https://flow.example.org/team")
    link = links.task(lease_view(0, dag_id="a/b").lease, Phase.RUN)
    assert link == ("https://flow.example.org/team/dags/a%2Fb/runs/manual__2026-12-01T00%3A00%3A00%2B00%3A00_0000/tasks/run")

"""The Fleet page in a running Airflow: nobody gets in without Airflow's own login, and the ledger's leases are there."""

import json
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

pytestmark = [pytest.mark.live, pytest.mark.xdist_group("live"), pytest.mark.sandbox, pytest.mark.timeout(1500)]

ROUTES = ("", "static/fleet.js", "static/fleet.svg", "api/summary", "api/leases", "api/leases/nowhere", "api/nodes", "nothing")


def ask(stage, route, **headers):
    """Returns status and body of one of the page's routes."""
    try:
        with urlopen(Request(f"{stage.airflow.url}/hostler/{route}", headers=headers), timeout=60) as answer:
            return answer.status, answer.read()
    except HTTPError as error:
        with error:
            return error.code, error.read()


@pytest.fixture(scope="module")
def token(stage):
    """The web token of somebody who may only look."""
    client = stage.client("eyes")
    client.health()
    return client._token


@pytest.mark.parametrize("route", ROUTES)
def test_page_when_airflow_knows_nobody_then_401_on_every_route(stage, route):
    assert ask(stage, route)[0] == 401
    assert ask(stage, route, Authorization="Bearer made-up")[0] == 401
    assert ask(stage, route, Cookie="_token=made-up")[0] == 401


def test_page_when_the_user_may_look_then_page_and_figures_by_token_and_by_cookie(stage, token):
    for headers in ({"Authorization": f"Bearer {token}"}, {"Cookie": f"_token={token}"}):
        status, page = ask(stage, "", **headers)
        assert status == 200
        assert b"<title>Fleet" in page
        status, summary = ask(stage, "api/summary", **headers)
        assert status == 200
        assert json.loads(summary)["spending"]["max_nodes"] == 64


def test_page_when_runs_have_been_started_then_their_leases_with_links_that_airflow_answers(stage, played, token):
    played("refused")  # by then some others have leases
    status, answer = ask(stage, "api/leases?ended=true&limit=200", Authorization=f"Bearer {token}")
    assert status == 200
    rows = json.loads(answer)["rows"]
    assert rows
    assert {row["dag_id"] for row in rows} <= {"hostler_node_lifecycle", "hostler_scheduled_run"}
    with urlopen(f"{stage.airflow.url}{rows[0]['run_url']}", timeout=60) as page:
        assert page.status == 200


def test_page_when_the_menu_is_asked_for_then_the_view_is_there(stage):
    plugins = stage.client("admin").get("/plugins")["plugins"]
    views = [view for plugin in plugins for view in plugin["external_views"] if view["url_route"] == "hostler-fleet"]
    assert [view["href"] for view in views] == ["/hostler/"]

"""The routes: who is let in, what is shown, and what never is."""

import asyncio
import json
import re
import threading
import time
from dataclasses import replace
from datetime import timedelta

import httpx
import pytest
from tests.api.conftest import BadgeDoor, serve
from tests.api.fleet_of import DAG, NOW, SECRET, ShownLedger, big_fleet, lease_view

from hostler.api.app import create_app
from hostler.api.reader import THREADS
from hostler.ledger.errors import LedgerUnavailableError
from hostler.model.enums import LeaseState, NodeState
from hostler.model.lease import Event

ROUTES = [route.path for route in create_app(door=BadgeDoor(), reader=None, links=None).routes]
LEASE_ID = lease_view(0).lease.lease_id


def filled(route):
    return route.replace("{lease_id}", LEASE_ID).replace("{name}", "fleet.js")


def test_routes_when_listed_then_all_are_get_and_none_is_forgotten():
    routes = create_app(door=BadgeDoor(), reader=None, links=None).routes
    assert {method for route in routes for method in route.methods} == {"GET"}
    assert set(ROUTES) == {"/", "/static/{name}", "/api/summary", "/api/leases", "/api/leases/{lease_id}", "/api/nodes"}


@pytest.mark.parametrize("badge", [None, "mallory"])
@pytest.mark.parametrize("route", [*ROUTES, "/docs", "/openapi.json", "/nothing", "/static/../app.py", "//"])
async def test_route_when_the_caller_is_nobody_then_401_and_nothing_is_said(page, route, badge):
    answer = await page.get(filled(route), badge=badge)
    assert answer.status_code == 401
    assert answer.headers["www-authenticate"] == "Badge"
    assert answer.json() == {"detail": "who are you?"}
    assert page.ledger.reads == 0


@pytest.mark.parametrize("method", ["HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"])
@pytest.mark.parametrize("route", ROUTES)
async def test_route_when_another_method_comes_then_401_for_nobody_and_405_for_others(page, route, method):
    assert (await page.client.request(method, filled(route))).status_code == 401
    assert (await page.client.request(method, filled(route), headers={"badge": "ada"})).status_code == 405


@pytest.mark.parametrize("route", ROUTES)
async def test_route_when_the_caller_may_not_look_then_403(page, route):
    answer = await page.get(filled(route), badge="eve")
    assert (answer.status_code, answer.json()) == (403, {"detail": "not you"})


@pytest.mark.parametrize("route", ROUTES)
async def test_route_when_the_caller_may_look_then_200_without_any_secret(page, route):
    page.ledger.events = [Event(lease_id=LEASE_ID, who="ada", what="lease.admitted", why="asked for", at=NOW)]
    for query in ("", "?ended=true") if route in {"/api/leases", "/api/nodes"} else ("",):
        answer = await page.get(filled(route) + query)
        assert answer.status_code == 200
        assert SECRET not in answer.text + str(answer.headers)


@pytest.mark.parametrize("badge", [None, "ada"])
async def test_answer_when_any_then_only_own_things_may_be_loaded_and_nobody_else_may_frame_it(page, badge):
    policy = (await page.get("/", badge=badge)).headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "frame-ancestors 'self'" in policy
    assert "unsafe" not in policy
    assert "http" not in policy


async def test_page_when_served_then_all_it_names_is_served_too_and_nothing_is_inline(page):
    html = (await page.get("/")).text
    named = re.findall(r'(?:src|href)="(static/[^"]+)"', html)
    assert len(named) == 3
    assert not re.search(r"https?:|<style| style=|<script(?![^>]* src=)| on\w+=", html)
    seen = set()
    while named:
        path = named.pop()
        seen.add(path)
        answer = await page.get(f"/{path}")
        assert answer.status_code == 200, path
        imports = [f"static/{name}" for name in re.findall(r'from "\./([^"]+)"', answer.text)]
        named += [path for path in imports if path not in seen]
    assert len(seen) >= 7


async def test_summary_when_asked_then_spending_stands_against_limits(page):
    page.ledger.stopped = True
    summary = (await page.get("/api/summary")).json()
    assert summary["spending"] == {"usd_per_hour": "132.04", "max_usd_per_hour": "64000", "nodes": 3, "max_nodes": 2400}
    assert [tenant["tenant"] for tenant in summary["tenants"]] == ["speech", "vision"]
    assert summary["is_spending_stopped"]
    assert summary["verdicts"] == {"healthy": 3}


async def test_leases_when_asked_then_state_cost_and_links_are_there(page):
    row = (await page.get(f"/api/leases?q={LEASE_ID}")).json()["rows"][0]
    assert (row["state"], row["phase"], row["nodes"], row["verdicts"]) == ("active", "run", 2, {"healthy": 2})
    # Two machines at 55.04 an hour, one for 2 h, one for 2 h 1 min.
    assert (row["cost_usd"], row["usd_per_hour"]) == ("221.08", "110.08")
    assert row["run_url"].startswith(f"/flow/dags/{DAG}/runs/manual__2026-12-01T00%3A00")
    assert row["log_url"] == row["run_url"] + "/tasks/run"


async def test_cost_when_a_node_is_gone_then_it_stops_at_the_clouds_word(page):
    ended = {"state": NodeState.GONE, "ended_at": NOW - timedelta(hours=1)}
    page.ledger.views = [lease_view(0, 1, node=ended)]
    row = (await page.get("/api/leases")).json()["rows"][0]
    assert (row["nodes"], row["cost_usd"], row["usd_per_hour"]) == (0, "55.04", "0.00")
    assert (await page.get("/api/nodes")).json()["rows"] == []
    assert len((await page.get("/api/nodes?ended=true")).json()["rows"]) == 1


async def test_leases_when_released_then_only_shown_when_asked_for(page):
    page.ledger.views = [lease_view(0, lease={"state": LeaseState.RELEASED}), lease_view(1)]
    assert (await page.get("/api/leases")).json()["total"] == 1
    both = (await page.get("/api/leases?ended=true&sort=state&descending=true")).json()
    assert [(row["state"], row["phase"]) for row in both["rows"]] == [("released", "receipt"), ("active", "run")]


async def test_callers_when_they_may_read_some_dags_then_only_leases_of_those(page):
    other = lease_view(5, 3, dag_id="of_another_team", tenant="search")
    page.ledger.views.append(other)
    assert (await page.get("/api/nodes", badge="ada")).json()["total"] == 6
    assert (await page.get("/api/nodes", badge="bob")).json()["all"] == 3
    assert [t["tenant"] for t in (await page.get("/api/summary", badge="bob")).json()["tenants"]] == ["speech", "vision"]
    path = f"/api/leases/{other.lease.lease_id}"
    assert (await page.get(path, badge="ada")).status_code == 200
    refused = await page.get(path, badge="bob")
    nowhere = await page.get("/api/leases/nowhere", badge="bob")
    assert (refused.status_code, refused.text) == (nowhere.status_code, nowhere.text) == (404, '{"detail":"no such lease"}')
    page.door.bob_sees = frozenset()
    assert (await page.get("/api/leases", badge="bob")).json() == {"rows": [], "offset": 0, "total": 0, "all": 0}


async def test_story_when_asked_then_the_newest_event_is_first_and_fences_are_left_out(page):
    page.ledger.events = [
        Event(lease_id=LEASE_ID, who="ada", what=what, why=f"because {n}", at=NOW, sequence=n)
        for n, what in enumerate(("lease.admitted", "fence.taken", "plan.made"), 1)
    ]
    story = (await page.get(f"/api/leases/{LEASE_ID}")).json()
    assert [event["what"] for event in story["events"]] == ["plan.made", "lease.admitted"]
    assert len(story["nodes"]) == 2
    assert story["receipt"] is None


async def test_answer_when_nothing_changed_then_304_and_the_time_of_the_read(page):
    page.ledger.views = [lease_view(2)]  # cheap: its cost moves by a cent in 7.8 s
    first = await page.get("/api/nodes")
    page.ledger.at += timedelta(milliseconds=900)
    again = await page.get("/api/nodes", **{"if-none-match": first.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    assert again.headers["x-hostler-read-at"]
    page.ledger.at += timedelta(minutes=5)
    later = await page.get("/api/nodes", **{"if-none-match": first.headers["etag"]})
    assert later.status_code == 200
    assert later.headers["etag"] != first.headers["etag"]
    assert first.headers["cache-control"] == "no-store"


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("limit=0", "limit"),
        ("limit=201", "limit"),
        ("offset=-1", "offset"),
        ("sort=host_key", "sort"),
        ("surprise=1", "surprise"),
    ],
)
async def test_table_when_the_question_is_wrong_then_422_naming_the_field(page, query, field):
    answer = await page.get(f"/api/nodes?{query}")
    assert answer.status_code == 422
    assert answer.json()["detail"][0]["loc"] == ["query", field]


async def test_table_when_the_ledger_is_away_then_503_with_its_words(page):
    page.ledger.fails = LedgerUnavailableError("ledger at db:5432/ledger does not answer")
    answer = await page.get("/api/leases")
    assert (answer.status_code, answer.json()["detail"]) == (503, "ledger at db:5432/ledger does not answer")
    page.ledger.fails = None
    assert (await page.get("/api/leases")).status_code == 200


async def test_reads_when_many_look_at_once_then_the_ledger_is_asked_once():
    ledger = ShownLedger([lease_view(0, 2)])
    app = serve(ledger, BadgeDoor(), max_age_s=60.0)
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://fleet") as client:
        paths = ["/api/summary", "/api/leases", "/api/nodes"] * 20
        answers = await asyncio.gather(*(client.get(path, headers={"badge": "ada"}) for path in paths))
    assert {answer.status_code for answer in answers} == {200}
    assert ledger.reads == 1


async def test_reads_when_many_stories_are_asked_for_then_in_few_threads():
    class SlowLedger(ShownLedger):
        now_reading = most = 0
        lock = threading.Lock()

        def view(self, lease_id):
            with self.lock:
                self.now_reading += 1
                self.most = max(self.most, self.now_reading)
            time.sleep(0.01)  # the work of a database: long enough for others to come
            with self.lock:
                self.now_reading -= 1
            return super().view(lease_id)

    ledger = SlowLedger([lease_view(number) for number in range(12)])
    app = serve(ledger, BadgeDoor())
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://fleet") as client:
        paths = [f"/api/leases/{view.lease.lease_id}" for view in ledger.views]
        answers = await asyncio.gather(*(client.get(path, headers={"badge": "ada"}) for path in paths))
    assert {answer.status_code for answer in answers} == {200}
    assert 1 < ledger.most <= THREADS


async def test_tables_when_the_fleet_has_2000_nodes_then_an_answer_is_small_and_the_worst_come_first():
    app = serve(big_fleet(2000), BadgeDoor())
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://fleet") as client:
        answer = await client.get("/api/nodes", headers={"badge": "ada"})
        rows = answer.json()["rows"]
        assert answer.json()["total"] == 1992
        assert [row["verdict"] for row in rows[:13]] == ["failed"] * 6 + ["unknown"] * 3 + ["degraded"] * 3 + ["healthy"]
        assert len(answer.content) < 60_000
        found = (await client.get("/api/nodes?q=xid 79 CORDONED", headers={"badge": "ada"})).json()
    assert {row["is_cordoned"] for row in found["rows"]} == {True}
    assert found["total"] == 3


def test_app_when_imported_then_neither_airflow_nor_a_cloud_comes_along():
    import subprocess
    import sys

    code = f"import sys; sys.path[:] = {sys.path!r}; import hostler.api.app; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True).stdout.split()
    assert [name for name in loaded if name.startswith(("airflow", "boto", "asyncssh", "hostler_sandbox"))] == []


def test_rows_when_a_record_has_new_fields_then_they_are_not_shown_by_themselves():
    view = lease_view(0)
    assert replace(view.lease, wrapped_data_key="x") != view.lease
    from hostler.api.links import AirflowLinks
    from hostler.api.rows import lease_row

    shown = lease_row(view, NOW, AirflowLinks(base=None)).fields
    assert not {"wrapped_data_key", "fence", "request", "plan"} & set(shown)
    assert "secrets" not in json.dumps(shown, default=str)

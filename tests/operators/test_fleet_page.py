"""The Fleet page in Airflow: the door on Airflow's own auth manager with real tokens, and what the plugin registers."""

import httpx
import pytest
from fastapi import FastAPI
from tests.api.fleet_of import DAG, ShownLedger, fleet_file, lease_view

from hostler.api.app import create_app
from hostler.api.links import AirflowLinks
from hostler.api.reader import FleetReader
from hostler_operators import fleet_page
from hostler_operators.fleet_page import AirflowDoor, FleetPage, readable_dags

# Airflow's API server imports a library that imports Starlette's test client, which would rather have another HTTP client.
pytestmark = pytest.mark.filterwarnings("ignore:Using `httpx` with `starlette.testclient`")

ROUTES = ["/", "/static/fleet.js", "/api/summary", "/api/leases", "/api/leases/nowhere", "/api/nodes", "/nothing"]


@pytest.fixture
def manager(monkeypatch):
    """Airflow's default auth manager; the list of revoked tokens, which is in a database, is empty."""
    from airflow.api_fastapi.app import create_auth_manager
    from airflow.models.revoked_token import RevokedToken
    from tests.api.fleet_of import SECRET

    monkeypatch.setenv("AIRFLOW__API_AUTH__JWT_SECRET", SECRET * 3)
    monkeypatch.setattr(RevokedToken, "is_revoked", lambda jti: False)
    return create_auth_manager()


@pytest.fixture
def token_of(manager):
    from airflow.api_fastapi.auth.managers.simple.user import SimpleAuthManagerUser

    def make(role, lasts_s=60):
        return manager.generate_jwt(SimpleAuthManagerUser(username="ada", role=role), expiration_time_in_seconds=lasts_s)

    return make


@pytest.fixture
async def client(manager, monkeypatch):
    """The plugin's own app over a ledger in memory, mounted as Airflow does it, inside of Airflow's own middleware."""
    from airflow.api_fastapi.auth.middlewares.refresh_token import JWTRefreshMiddleware

    links, ledger = AirflowLinks(base=""), ShownLedger([lease_view(0), lease_view(1, dag_id="other")])
    reader = FleetReader(ledger=lambda: ledger, fleet=fleet_file, links=links, max_age_s=0.0)
    app = create_app(door=AirflowDoor(), reader=reader, links=links)
    monkeypatch.setattr(fleet_page, "_app", lambda: app)
    airflow = FastAPI()
    airflow.mount(fleet_page.PREFIX, FleetPage())
    airflow.add_middleware(JWTRefreshMiddleware)
    async with httpx.AsyncClient(transport=httpx.ASGITransport(airflow), base_url="http://flow/hostler") as made:
        yield made


@pytest.mark.parametrize("route", ROUTES)
async def test_page_when_no_valid_token_comes_then_401(client, token_of, route):
    expired = token_of("admin", lasts_s=-60)
    for headers in (
        {},
        {"Authorization": "Bearer made-up"},
        {"Authorization": f"Bearer {expired}"},
        {"Authorization": f"Basic {token_of('admin')}"},
        {"Cookie": "_token=made-up"},
        {"Cookie": f"_token={expired}"},
    ):
        answer = await client.get(route, headers=headers)
        assert answer.status_code == 401, headers
        assert answer.headers["www-authenticate"] == 'Bearer realm="Airflow"'


@pytest.mark.parametrize("route", ROUTES)
async def test_page_when_the_user_may_not_read_dags_then_403(client, token_of, route):
    answer = await client.get(route, headers={"Authorization": f"Bearer {token_of(None)}"})
    assert answer.status_code == 403


@pytest.mark.parametrize("role", ["viewer", "op", "admin"])
async def test_page_when_the_user_may_read_dags_then_200_by_token_and_by_cookie(client, token_of, role):
    for headers in ({"Authorization": f"Bearer {token_of(role)}"}, {"Cookie": f"_token={token_of(role)}"}):
        answer = await client.get("/api/leases", headers=headers)
        assert (answer.status_code, answer.json()["total"]) == (200, 2)


async def test_page_when_a_user_may_read_one_dag_only_then_only_its_leases(client, token_of, manager, monkeypatch):
    def only_ours(*, method, user, access_entity=None, details=None):
        return method == "GET" and (details is None or details.id == DAG)

    monkeypatch.setattr(manager, "is_authorized_dag", only_ours)
    answer = await client.get("/api/leases", headers={"Authorization": f"Bearer {token_of('viewer')}"})
    assert [row["dag_id"] for row in answer.json()["rows"]] == [DAG]


def test_readable_when_airflow_has_teams_then_it_says_which_dags(manager, monkeypatch):
    monkeypatch.setenv("AIRFLOW__CORE__MULTI_TEAM", "True")
    asked = []
    monkeypatch.setattr(manager, "get_authorized_dag_ids", lambda **who: asked.append(who) or {"mine", "another"})
    assert readable_dags("ada", frozenset({"mine", "theirs"})) == {"mine"}
    assert asked == [{"user": "ada", "method": "GET"}]


def test_plugin_when_loaded_then_the_page_is_mounted_behind_the_door_and_in_the_menu(monkeypatch):
    from hostler_plugin import HostlerPlugin

    (registered,) = HostlerPlugin.fastapi_apps
    assert registered["url_prefix"] == "/hostler"
    assert isinstance(registered["app"], FleetPage)
    # Workers and schedulers load the plugin too: they make no app.
    assert fleet_page._app.cache_info().currsize == 0
    (view,) = HostlerPlugin.external_views
    assert (view["href"], view["destination"], view["url_route"]) == ("/hostler/", "nav", "hostler-fleet")
    monkeypatch.setenv("AIRFLOW__API__BASE_URL", "https://flow.example.org/team/")
    assert fleet_page.external_view()["href"] == "/team/hostler/"

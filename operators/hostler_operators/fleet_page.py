"""The Fleet page in Airflow's API server: who may look is what Airflow's own auth manager says, on every route.

A plugin's app stands outside of Airflow's login: without a door of its own, each of its routes answers anybody.
"""

from functools import cache, partial
from typing import Any, Final
from urllib.parse import urlsplit

from airflow.sdk import conf
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from hostler.api.callers import Caller, NotAllowedError, NotSignedInError
from hostler.ledger.port import Ledger

PREFIX: Final = "/hostler"


class AirflowDoor:
    """Takes what Airflow's API takes: a JSON web token as bearer, or the cookie of who is signed in to the UI."""

    challenge = 'Bearer realm="Airflow"'

    async def admit(self, request: Request) -> Caller:
        """See ``hostler.api.callers.Door``."""
        from airflow.api_fastapi.app import get_auth_manager
        from airflow.api_fastapi.core_api.security import bearer_scheme, get_user

        try:
            user = await get_user(request, None, await bearer_scheme(request))
        except HTTPException:
            # Airflow answers 403 to a token that is not valid; to us that is nobody.
            raise NotSignedInError("no valid Airflow login or token") from None
        may_look = await run_in_threadpool(partial(get_auth_manager().is_authorized_dag, method="GET", user=user))
        if not may_look:
            raise NotAllowedError("you may not read Dags in this Airflow")
        return Caller(name=str(user.get_name()), readable=partial(readable_dags, user))


def readable_dags(user: Any, dag_ids: frozenset[str]) -> frozenset[str]:
    """Returns those of the Dags that the user may read; asks the auth manager, which may ask its database."""
    from airflow.api_fastapi.app import get_auth_manager

    manager = get_auth_manager()
    if conf.getboolean("core", "multi_team", fallback=False):
        # It alone knows each Dag's team. A Dag that Airflow has forgotten belongs to none, and is shown to nobody.
        return dag_ids & manager.get_authorized_dag_ids(user=user, method="GET")
    return frozenset(manager.filter_authorized_dag_ids(dag_ids=set(dag_ids), user=user, method="GET"))


class FleetPage:
    """The app, made at its first request: plugins are loaded by workers and schedulers too, which serve nothing."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers one request."""
        await _app()(scope, receive, send)


def base_path() -> str:
    """Returns the path under which Airflow's UI lies on its host, without a slash at the end; empty for the root."""
    return urlsplit(conf.get("api", "base_url", fallback="") or "").path.rstrip("/")


def external_view() -> dict[str, Any]:
    """Returns the entry of Airflow's menu, beside ``Dags``."""
    return {
        "name": "Fleet",
        "href": f"{base_path()}{PREFIX}/",
        "destination": "nav",
        "nav_top_level": True,
        "url_route": "hostler-fleet",
        "icon": f"{base_path()}{PREFIX}/static/fleet.svg",
    }


@cache
def _app() -> ASGIApp:
    from hostler.api.app import create_app
    from hostler.api.links import AirflowLinks
    from hostler.api.reader import FleetReader
    from hostler.wiring.settings import read_fleet_file

    links = AirflowLinks(base=base_path())
    return create_app(door=AirflowDoor(), reader=FleetReader(ledger=_ledger, fleet=read_fleet_file, links=links), links=links)


@cache
def _ledger() -> Ledger:
    from hostler.stores.postgres import PostgresLedger
    from hostler.wiring.settings import ledger_url, read_fleet_file

    ledger: Ledger = PostgresLedger(ledger_url(read_fleet_file()))
    return ledger

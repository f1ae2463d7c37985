"""The app: one page, what it is made of, and read-only JSON routes. Every route stands behind the guard."""

from collections.abc import Sequence
from importlib import resources
from typing import Annotated, Final

from anyio import to_thread
from fastapi import Depends, FastAPI, HTTPException, Query
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from hostler.api.answers import json_answer, tagged
from hostler.api.callers import Caller, Door
from hostler.api.guard import Guard
from hostler.api.links import AirflowLinks
from hostler.api.paging import cut
from hostler.api.queries import LeasesQuery, NodesQuery, TableQuery
from hostler.api.reader import FleetReader, Snapshot
from hostler.api.rows import Row, lease_story
from hostler.api.summary import summarise
from hostler.config.fleet_file import FleetFileError
from hostler.ledger.errors import LeaseNotFoundError, LedgerError

PAGE: Final = "fleet.html"
_MEDIA: Final = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}


def create_app(*, door: Door, reader: FleetReader, links: AirflowLinks) -> FastAPI:
    """Returns the app, ready to be served by itself or mounted under a prefix.

    Args:
        door: who is let in. reader: of the ledger. links: to Airflow's UI.
    """
    # The schema and its pages would be routes of their own, for nobody.
    app = FastAPI(title="Hostler fleet", docs_url=None, redoc_url=None, openapi_url=None)
    app.add_middleware(Guard, door=door)
    for error in (LedgerError, FleetFileError):
        app.add_exception_handler(error, _unavailable)
    _add_page(app)
    _add_tables(app, reader)
    _add_story(app, reader, links)
    return app


def caller_of(request: Request) -> Caller:
    """Returns who asks, as the guard has found out."""
    caller: Caller = request.state.caller
    return caller


CallerDep = Annotated[Caller, Depends(caller_of)]


def _add_page(app: FastAPI) -> None:
    folder = resources.files("hostler.api") / "static"
    files = {item.name: item.read_bytes() for item in folder.iterdir() if item.is_file() and item.name.endswith(tuple(_MEDIA))}

    @app.get("/")
    async def page(request: Request) -> Response:
        return _file(request, PAGE)

    @app.get("/static/{name}")
    async def static(request: Request, name: str) -> Response:
        return _file(request, name)

    def _file(request: Request, name: str) -> Response:
        if name not in files:
            raise HTTPException(404, "no such file")
        media = _MEDIA[name[name.rindex(".") :]]
        return tagged(request, files[name], media, {"Cache-Control": "private, no-cache"})


def _add_tables(app: FastAPI, reader: FleetReader) -> None:
    @app.get("/api/summary")
    async def summary(request: Request, caller: CallerDep) -> Response:
        snapshot = await reader.snapshot()
        leases, nodes = await _visible(caller, snapshot.leases), await _visible(caller, snapshot.nodes)
        return json_answer(request, summarise(snapshot, leases, nodes), snapshot.read_at)

    @app.get("/api/leases")
    async def leases(request: Request, caller: CallerDep, query: Annotated[LeasesQuery, Query()]) -> Response:
        snapshot = await reader.snapshot(with_ended=query.ended)
        return _table(request, await _visible(caller, snapshot.leases), query, snapshot)

    @app.get("/api/nodes")
    async def nodes(request: Request, caller: CallerDep, query: Annotated[NodesQuery, Query()]) -> Response:
        snapshot = await reader.snapshot(with_ended=query.ended)
        return _table(request, await _visible(caller, snapshot.nodes), query, snapshot)


def _add_story(app: FastAPI, reader: FleetReader, links: AirflowLinks) -> None:
    @app.get("/api/leases/{lease_id}")
    async def lease(request: Request, caller: CallerDep, lease_id: str) -> Response:
        try:
            view, events, now = await reader.story(lease_id)
        except LeaseNotFoundError:
            raise HTTPException(404, "no such lease") from None
        dag_id = view.lease.run.dag_id
        if dag_id not in await to_thread.run_sync(caller.readable, frozenset({dag_id})):
            # As for one that is not there: whether it exists is nobody else's business.
            raise HTTPException(404, "no such lease")
        return json_answer(request, lease_story(view, events, now, links), now)


async def _visible(caller: Caller, rows: Sequence[Row]) -> list[Row]:
    """Returns the rows of leases that the caller may see."""
    readable = await to_thread.run_sync(caller.readable, frozenset(row.dag_id for row in rows))
    return [row for row in rows if row.dag_id in readable]


def _table(request: Request, rows: Sequence[Row], query: TableQuery, snapshot: Snapshot) -> Response:
    page = cut(rows, query.wish)
    document = {"rows": [row.fields for row in page.rows], "offset": page.offset, "total": page.total, "all": len(rows)}
    return json_answer(request, document, snapshot.read_at)


async def _unavailable(request: Request, error: Exception) -> Response:
    """Answers that nothing can be shown now; these errors are written for people and hold no password."""
    del request
    return JSONResponse({"detail": str(error)}, 503, headers={"Retry-After": "5"})

from types import SimpleNamespace

import httpx
import pytest
from tests.api.fleet_of import DAG, ShownLedger, fleet_file, lease_view

from hostler.api.app import create_app
from hostler.api.callers import Caller, NotAllowedError, NotSignedInError
from hostler.api.links import AirflowLinks
from hostler.api.reader import FleetReader


class BadgeDoor:
    """Callers say who they are: ``ada`` sees all, ``bob`` the Dags in ``bob_sees``, ``eve`` may not look."""

    challenge = "Badge"

    def __init__(self):
        self.bob_sees = frozenset({DAG})

    async def admit(self, request):
        name = request.headers.get("badge")
        if name == "eve":
            raise NotAllowedError("not you")
        if name not in {"ada", "bob"}:
            raise NotSignedInError("who are you?")
        return Caller(name=name, readable=lambda ids: ids if name == "ada" else ids & self.bob_sees)


def serve(ledger, door, **options):
    links = AirflowLinks(base="/flow")
    reader = FleetReader(ledger=lambda: ledger, fleet=fleet_file, links=links, **{"max_age_s": 0.0, **options})
    return create_app(door=door, reader=reader, links=links)


@pytest.fixture
async def page():
    """A served page: ``ledger``, ``door``, ``app``, ``client``, and ``await get(path, badge='ada')``."""
    ledger, door = ShownLedger([lease_view(0, 2), lease_view(1, 1, tenant="speech")]), BadgeDoor()
    app = serve(ledger, door)
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://fleet") as client:

        async def get(path, badge="ada", **headers):
            return await client.get(path, headers={"badge": badge, **headers} if badge else headers)

        yield SimpleNamespace(ledger=ledger, door=door, app=app, client=client, get=get)

"""``hostler page``: the Fleet page on this machine's loopback, with Airflow down or not there."""

import argparse
import socket
from functools import cache, partial
from pathlib import Path
from typing import Final

from hostler.ledger.port import Ledger

HOST: Final = "127.0.0.1"


def page(options: argparse.Namespace) -> int:
    """Serves the page until it is interrupted."""
    import uvicorn
    from starlette.middleware.trustedhost import TrustedHostMiddleware

    from hostler.api.app import create_app
    from hostler.api.links import AirflowLinks
    from hostler.api.reader import FleetReader
    from hostler.api.tokens import TokenDoor, read_token
    from hostler.wiring.settings import read_fleet_file

    read_fleet_file()  # a wrong file is told now, not in the browser
    token_file = Path(options.token_file).expanduser()
    door = TokenDoor(read_token(token_file))
    links = AirflowLinks(base=_base(options.airflow_url))
    reader = FleetReader(ledger=cache(_open_ledger), fleet=read_fleet_file, links=links)
    # A foreign page that gives its own name this machine's address must not reach it under that name.
    app = TrustedHostMiddleware(create_app(door=door, reader=reader, links=links), allowed_hosts=[HOST, "localhost"])
    config = uvicorn.Config(app, log_level="warning", access_log=False, server_header=False, proxy_headers=False)
    with socket.create_server((HOST, options.port)) as listener:
        # Never the token itself: terminals are shared and logged.
        say = partial(print, flush=True)
        say(f"Fleet page: http://{HOST}:{listener.getsockname()[1]}/")
        say(f"It asks for a user name (any) and a password: the token in {token_file}. Ctrl-C ends it.")
        uvicorn.Server(config).run(sockets=[listener])
    return 0


def _open_ledger() -> Ledger:
    from hostler.stores.postgres import PostgresLedger
    from hostler.wiring.settings import ledger_url, read_fleet_file

    ledger: Ledger = PostgresLedger(ledger_url(read_fleet_file()))
    return ledger


def _base(url: str | None) -> str | None:
    """Returns the UI's address without a slash at its end. Raises ValueError unless it is one for a browser."""
    if url is not None and not url.startswith(("http://", "https://")):
        raise ValueError(f"--airflow-url: allowed is http://... or https://..., found {url!r}")
    return None if url is None else url.rstrip("/")

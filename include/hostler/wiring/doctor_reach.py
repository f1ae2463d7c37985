"""Whether SSH gets anywhere from this machine: to the jump host, and to nodes that live."""

import asyncio
import socket
from collections.abc import Iterator
from typing import Final

from hostler.cloud.doctor import Check, fail, ok, unknown, warn
from hostler.cloud.driver import CloudDriver, Machine, MachineState
from hostler.cloud.errors import CloudError
from hostler.config.clouds import ReachSettings

_TIMEOUT_S: Final = 5.0
_TRIED: Final = 3
"""Nodes that are called: those listed first."""


def check_reach(driver: CloudDriver, reach: ReachSettings) -> Iterator[Check]:
    """Yields a check of the jump host, where one is named, and one of nodes that live. Opens connections, logs in nowhere."""
    if reach.jump_host is not None:
        yield asyncio.run(_check_jump(reach))
        return
    name = "reach nodes"
    try:
        found = [machine for region in driver.regions for machine in driver.list_nodes(region)]
    except CloudError as error:
        yield unknown(name, f"nodes could not be listed: {str(error)[:300]}", "mend the credentials or rights first")
        return
    running = [machine for machine in found if machine.state is MachineState.RUNNING and machine.address]
    if not running:
        yield unknown(name, "no node lives, so none could be called", "run it again while one lives, from where Airflow runs")
        return
    yield _call(name, running[:_TRIED], reach.port)


def _call(name: str, machines: list[Machine], port: int) -> Check:
    silent = [machine.provider_id for machine in machines if not _answers(str(machine.address), port)]
    text = f"{len(machines) - len(silent)} of {len(machines)} nodes take a connection to port {port}"
    fix = "look at the ssh check above and at the route; run it where Airflow's workers and triggerer run"
    if not silent:
        return ok(name, text)
    make = fail if len(silent) == len(machines) else warn
    return make(name, f"{text}; silent: {', '.join(silent)}", fix)


def _answers(host: str, port: int) -> bool:
    try:
        with socket.create_connection((host, port), timeout=_TIMEOUT_S):
            return True
    except OSError:
        return False


async def _check_jump(reach: ReachSettings) -> Check:
    """Asks the jump host for its host key and compares it with the pinned one."""
    import asyncssh

    place = (reach.jump_host or "").partition("@")[2]
    host, _, port = place.rpartition(":")
    name, fix = "reach jump host", "look at clouds.aws.reach.jump_host, the route to it, and its firewall"
    try:
        shown = await asyncio.wait_for(asyncssh.get_server_host_key(host, int(port), config=None), _TIMEOUT_S)
    except (OSError, asyncssh.Error, TimeoutError) as error:
        return fail(name, f"{place} does not answer: {str(error) or type(error).__name__}", fix)
    if shown is None:
        return unknown(name, f"{place} shows no host key", fix)
    theirs = shown.export_public_key("openssh").decode().split()[:2]
    if theirs[0] != str(reach.jump_host_key).split()[0]:
        text = f"{place} prefers a key of kind {theirs[0]}, and one of another kind is pinned: not compared"
        return unknown(name, text, f"pin its {theirs[0]} key in reach.jump_host_key")
    if theirs != str(reach.jump_host_key).split()[:2]:
        return fail(name, f"{place} shows another host key than the pinned one", "find out why before anything else")
    return ok(name, f"{place} answers with the pinned host key")

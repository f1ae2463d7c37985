"""Follows a workload from the triggerer: starts or re-attaches the job, polls it, wakes a worker when one is needed."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

from airflow.triggers.base import BaseTrigger, TriggerEvent

from hostler.ledger.errors import FenceLostError, LeaseNotFoundError, LedgerUnavailableError
from hostler.lifecycle.converge import converge
from hostler.lifecycle.fleet import Fleet
from hostler.lifecycle.next_run import WORKING
from hostler.lifecycle.outcome import Failed, Reached
from hostler.lifecycle.slots import slots_of
from hostler.model.enums import Phase
from hostler.model.lease import Event, LeaseView, lease_id_for
from hostler.model.request import RunRef
from hostler_sensors.fleet_access import LEDGER_PAUSE_S, patient_fleet, shared_fleet
from hostler_sensors.run_identity import holder_of
from hostler_sensors.triggers.converge import MIN_AFTER_DEFERRAL_S, fired

FOLLOW_S = 240.0
"""How long one converge follows the job before it takes the fence anew, and with it leaves one more event."""

WORKER_ONLY = frozenset({"write:intent:before", "launch:before", "terminate:before"})
"""Labels of ``Fleet.crash`` before what only a worker does: the triggerer's cloud permissions are for reading."""


class WorkerNeededError(Exception):
    """What is to be done next is for a worker: nothing of it was done here."""


class RunTrigger(BaseTrigger):
    """Drives the phase ``run`` of a lease as long as no machine has to be bought for it.

    Args:
        lease_dag_id, lease_run_id: the run whose lease it is. attempt: try of the task; part of the fence holder's name.
        quiet_s: fires no event before this many seconds; 0 only when no worker deferred to it (``start_from_trigger``).
    """

    def __init__(self, *, lease_dag_id: str, lease_run_id: str, attempt: str, quiet_s: float = MIN_AFTER_DEFERRAL_S) -> None:
        super().__init__()  # type: ignore[no-untyped-call] # airflow.triggers.base has no annotations there
        self.lease_dag_id = lease_dag_id
        self.lease_run_id = lease_run_id
        self.attempt = attempt
        self.quiet_s = quiet_s

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """Returns class path and arguments."""
        arguments = {
            "lease_dag_id": self.lease_dag_id,
            "lease_run_id": self.lease_run_id,
            "attempt": self.attempt,
            "quiet_s": self.quiet_s,
        }
        return "hostler_sensors.triggers.run.RunTrigger", arguments

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Yields one event when the job has ended, a node is missing, or the lease is somebody else's now."""
        loop = asyncio.get_running_loop()
        not_before = loop.time() + self.quiet_s
        reason = await self._follow(without_purchases(await patient_fleet()))
        await asyncio.sleep(max(0.0, not_before - loop.time()))
        yield fired(self._lease_id, reason)

    async def on_kill(self) -> None:
        """Records that a person ended the step. The job goes on.

        After a mark the teardowns, which started before this, stop it in order, with a last checkpoint; after a clear the new
        try, which may have started before this as well, takes it over. Neither must find it killed.
        """
        fleet = await shared_fleet()
        event = Event(
            lease_id=self._lease_id,
            who=self._holder,
            what="run.detached",
            why="the task was marked or cleared in Airflow; the job itself was not touched",
            at=await asyncio.to_thread(fleet.ledger.now),
        )
        await asyncio.to_thread(fleet.ledger.append_events, [event])

    @property
    def _lease_id(self) -> str:
        return lease_id_for(self._run_ref)

    @property
    def _run_ref(self) -> RunRef:
        return RunRef(dag_id=self.lease_dag_id, run_id=self.lease_run_id)

    @property
    def _holder(self) -> str:
        return holder_of(self._run_ref, "run", f"{self.attempt}/triggerer")

    async def _follow(self, fleet: Fleet) -> str:
        """Drives the job until a worker is needed; returns why."""
        while True:
            try:
                if words := await self._look(fleet):
                    return words
            except LeaseNotFoundError:
                return "there is no lease: admit has not run"
            except FenceLostError:
                return "somebody else drives this lease now"
            except LedgerUnavailableError as error:
                # The job goes on without us: no reason to spend the task's retries on a database that is away.
                self.log.warning("the ledger is away, next look in %.0f s: %s", LEDGER_PAUSE_S, error)
                await fleet.sleep(LEDGER_PAUSE_S)

    async def _look(self, fleet: Fleet) -> str:
        """Drives the job for a while; returns why a worker is needed, empty when none is."""
        if words := missing_nodes(await asyncio.to_thread(fleet.ledger.view, self._lease_id)):
            return words
        try:
            outcome = await converge(fleet, self._lease_id, Phase.RUN, holder=self._holder, budget_s=FOLLOW_S)
        except WorkerNeededError as error:
            return str(error)
        if isinstance(outcome, Reached):
            return "the job has ended"
        if isinstance(outcome, Failed):
            return outcome.reason
        self.log.info("%s; next look in %.0f s", outcome.reason, outcome.retry_after_s)
        await fleet.sleep(outcome.retry_after_s)
        return ""


def without_purchases(fleet: Fleet) -> Fleet:
    """Returns the fleet with a guard: before a machine would be bought or ended, converge is stopped by WorkerNeededError.

    Stopping there is safe: converge may be ended at any of its ``crash`` points, and goes on in the next process.
    """

    def guard(label: str) -> None:
        if label in WORKER_ONLY:
            raise WorkerNeededError("a node has to be replaced")
        fleet.crash(label)

    return replace(fleet, crash=guard)


def missing_nodes(view: LeaseView) -> str:
    """Returns which slots have no working node, in words; empty when all have one. Filling them is a worker's task."""
    missing = [str(slot.index) for slot in slots_of(view) if slot.node is None or slot.node.state not in WORKING]
    return f"no working node in slot {', '.join(missing)}" if missing else ""

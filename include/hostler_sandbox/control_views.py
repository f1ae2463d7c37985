"""What the control API shows. Every figure is simulated and says so."""

from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any

from hostler_sandbox.state.estate import Estate
from hostler_sandbox.state.faults import Faults
from hostler_sandbox.state.machines import ALIVE, Machine, MachineState


class Views:
    """The GET half of the control API.

    Args:
        details: facts of a machine that only its front knows, by id.
    """

    def __init__(self, estate: Estate, faults: Faults, details: Callable[[str], Mapping[str, Any]]) -> None:
        self._estate = estate
        self._faults = faults
        self._details = details
        self._shows: dict[str, Callable[[Mapping[str, str]], Mapping[str, Any]]] = {
            "journal": self._journal,
            "machines": self._machines,
            "cost": self._cost,
            "state": self._state,
            "figures": self._figures,
        }

    @property
    def names(self) -> frozenset[str]:
        """The views there are."""
        return frozenset(self._shows)

    def show(self, name: str, query: Mapping[str, str]) -> Mapping[str, Any]:
        """Returns a view. Raises ValueError for a wrong query."""
        return {"simulated": True, **self._shows[name](query)}

    def figures(self) -> dict[str, Any]:
        """Returns counts for a report: refusals, nodes launched and lost, machines still held, cost in USD."""
        counts = self._estate.journal.figures()
        return {**counts, "live_nodes": len(self._running()), "cost_usd": str(round(self.cost_usd(), 6))}

    def cost_usd(self) -> Decimal:
        """Returns what all machines have cost so far."""
        now = self._estate.clock.now()
        with self._estate.lock:
            return sum((one.cost_usd(now) for one in self._estate.machines.values()), self._estate.settled_cost_usd)

    def _running(self) -> list[Machine]:
        """Machines that somebody still has to end; one that is shutting down is not gone either."""
        with self._estate.lock:
            return [one for one in self._estate.machines.values() if one.state in ALIVE | {MachineState.SHUTTING_DOWN}]

    def _figures(self, _query: Mapping[str, str]) -> Mapping[str, Any]:
        return self.figures()

    def _journal(self, query: Mapping[str, str]) -> Mapping[str, Any]:
        text = query.get("after", "0")
        if not text.isdigit():
            raise ValueError(f"after: {text!r}: must be a whole number of 0 or more")
        wanted = {name: query[name] for name in ("kind", "action", "event", "error") if name in query}
        entries = self._estate.journal.after(int(text), **wanted)
        return {"entries": entries, "last_sequence": entries[-1]["sequence"] if entries else int(text)}

    def _machines(self, _query: Mapping[str, str]) -> Mapping[str, Any]:
        now = self._estate.clock.now()
        with self._estate.lock:
            shown = [
                {
                    "machine_id": one.machine_id,
                    "state": one.state.value,
                    "is_live": one.state is not MachineState.TERMINATED,
                    "cloud": one.order.cloud,
                    "region": one.order.region,
                    "zone": one.order.zone,
                    "instance_type": one.order.instance_type,
                    "capacity_type": one.order.capacity_type,
                    "address": one.address,
                    "launched_at": one.launched_at.isoformat(),
                    "ended_at": one.ended_at.isoformat() if one.ended_at else None,
                    "changed_by": one.changed_by.value if one.changed_by else None,
                    "is_marked": one.marked_by is not None,
                    "price_usd_per_hour": str(one.price_usd_per_hour),
                    "cost_usd": str(round(one.cost_usd(now), 6)),
                    **self._details(one.machine_id),
                }
                for one in self._estate.machines.values()
            ]
        return {"machines": shown}

    def _cost(self, _query: Mapping[str, str]) -> Mapping[str, Any]:
        now = self._estate.clock.now()
        with self._estate.lock:
            by_machine = {one.machine_id: str(round(one.cost_usd(now), 6)) for one in self._estate.machines.values()}
            forgotten = {"machines": self._estate.settled_count, "usd": str(round(self._estate.settled_cost_usd, 6))}
        return {
            "currency": "USD",
            "total_usd": str(round(self.cost_usd(), 6)),
            "machines": by_machine,
            "no_longer_listed": forgotten,
        }

    def _state(self, _query: Mapping[str, str]) -> Mapping[str, Any]:
        clock = self._estate.clock
        return {
            "now": clock.now().isoformat(),
            "clock_scale": clock.scale,
            "figures": self.figures(),
            "pools": self._estate.pools.shown(),
            "quotas": self._estate.quotas.shown(),
            "faults": self._faults.shown(),
            "live": [one.machine_id for one in self._running()],
        }

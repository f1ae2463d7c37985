"""The control API: stock, quotas, prices, faults, notices, journal. Tests and people call it; the product never does.

JSON in, JSON out; a wrong order is a 400 that names the field and what is allowed.
"""

import json
from collections.abc import Callable, Iterable
from decimal import Decimal, InvalidOperation
from typing import Any, Final
from urllib.parse import parse_qs

from hostler_sandbox.state.cloud import Cloud
from hostler_sandbox.state.errors import RefusedError
from hostler_sandbox.state.faults import FaultError
from hostler_sandbox.state.machines import Machine
from hostler_sandbox.state.types import DEFAULT_VCPU_QUOTA, TYPES

CAPACITY_TYPES: Final = ("on-demand", "spot", "reserved")
Document = dict[str, Any]


class OrderError(ValueError):
    """The order is wrong; the text names the field and what is allowed."""


class Control:
    """The WSGI app."""

    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud
        self._posts: dict[str, Callable[[Document], Any]] = {
            "/_sandbox/stock": self.set_stock,
            "/_sandbox/quota": self.set_quota,
            "/_sandbox/price": self.set_price,
            "/_sandbox/fault": self.order_fault,
            "/_sandbox/clear-faults": self.clear_faults,
            "/_sandbox/interrupt": self.interrupt,
            "/_sandbox/reclaim": self.reclaim,
            "/_sandbox/node-fault": self.node_fault,
            "/_sandbox/power-off": self.power_off,
        }

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        """Answers one request."""
        status, answer = self._answer(environ)
        body = json.dumps(answer, default=str).encode()
        start_response(f"{status} simulated", [("Content-Type", "application/json"), ("Content-Length", str(len(body)))])
        return [body]

    def _answer(self, environ: dict[str, Any]) -> tuple[int, Any]:
        path, query = environ["PATH_INFO"], parse_qs(environ.get("QUERY_STRING", ""))
        if environ["REQUEST_METHOD"] == "GET":
            return self._look(path, query)
        if path not in self._posts:
            return 404, {"error": f"no such order; there are {', '.join(sorted(self._posts))}"}
        try:
            document = json.loads(environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0)) or b"{}")
            if not isinstance(document, dict):
                raise OrderError("the body is one JSON object")
            answer = self._posts[path](document)
        except (OrderError, FaultError, RefusedError, json.JSONDecodeError) as error:
            return 400, {"error": str(error)}
        self._cloud.journal.write("control", order=path, document=document)
        return 200, answer if answer is not None else {"done": True}

    def _look(self, path: str, query: dict[str, list[str]]) -> tuple[int, Any]:
        if path == "/_sandbox/journal":
            after, kind = int(query.get("after", ["0"])[0]), query.get("kind", [""])[0] or None
            return 200, {"simulated": True, "entries": self._cloud.journal.after(after, kind)}
        if path == "/_sandbox/machines":
            return 200, {"simulated": True, "machines": [self._shown(machine) for machine in self._cloud.all()]}
        if path in ("/_sandbox/figures", "/_sandbox/cost"):
            return 200, self._cloud.figures()
        return 404, {"error": "look at /_sandbox/journal, /_sandbox/machines or /_sandbox/figures"}

    def set_stock(self, document: Document) -> None:
        """Sets a pool: zone, instance_type, capacity_type, count (null: unlimited)."""
        key = self._pool(document)
        count = document.get("count")
        if count is None:
            self._cloud.stock.pools.pop(key, None)
        elif isinstance(count, int) and count >= 0:
            self._cloud.stock.pools[key] = count
        else:
            raise OrderError("count: a whole number of 0 or more, or null for unlimited")

    def set_quota(self, document: Document) -> None:
        """Sets a vCPU limit: region, family, spot (true or false), vcpus."""
        family, vcpus = document.get("family"), document.get("vcpus")
        if family not in DEFAULT_VCPU_QUOTA:
            raise OrderError(f"family: allowed are {', '.join(DEFAULT_VCPU_QUOTA)}")
        if not isinstance(vcpus, int) or vcpus < 0:
            raise OrderError("vcpus: a whole number of 0 or more")
        self._cloud.stock.quotas[str(document.get("region")), family, bool(document.get("spot"))] = vcpus

    def set_price(self, document: Document) -> None:
        """Sets a price: zone, instance_type, capacity_type, usd_per_hour."""
        key = self._pool(document)
        try:
            price = Decimal(str(document.get("usd_per_hour")))
        except InvalidOperation as error:
            raise OrderError("usd_per_hour: a number above 0") from error
        if not price.is_finite() or price <= 0:
            raise OrderError("usd_per_hour: a number above 0")
        self._cloud.stock.prices[key] = price

    def order_fault(self, document: Document) -> None:
        """Orders a fault of the wire; see ``state.faults``."""
        self._cloud.faults.order(document)

    def clear_faults(self, document: Document) -> None:
        """Takes all ordered faults back."""
        del document
        self._cloud.faults.clear()

    def interrupt(self, document: Document) -> None:
        """Gives a spot notice: machine_id, and notice_s (null: two minutes)."""
        notice_s = document.get("notice_s")
        if notice_s is not None and not isinstance(notice_s, (int, float)):
            raise OrderError("notice_s: seconds, or null for two minutes")
        self._cloud.interrupt(self._machine(document), notice_s)

    def reclaim(self, document: Document) -> None:
        """Takes a machine at once, without a notice: machine_id."""
        self._cloud.reclaim(self._machine(document))

    def node_fault(self, document: Document) -> None:
        """Injects a fault into a node: machine_id, kind (freeze, thaw, cut, mend, disk_full, gpu), and for gpu the fault."""
        machine, nodes = self._machine(document), self._cloud.nodes
        fault = {key: value for key, value in document.items() if key not in {"machine_id", "kind"}}
        if "fault" in fault:
            fault["kind"] = fault.pop("fault")
        kinds: dict[str, Callable[[str], None]] = {
            "freeze": nodes.freeze,
            "thaw": nodes.thaw,
            "cut": nodes.cut_network,
            "mend": nodes.mend_network,
            "disk_full": nodes.fill_disk,
            "gpu": lambda node_id: nodes.gpu_fault(node_id, fault),
        }
        if document.get("kind") not in kinds:
            raise OrderError(f"kind: allowed are {', '.join(kinds)}")
        try:
            self._cloud.on_node(machine, kinds[str(document["kind"])])
        except ValueError as error:
            raise OrderError(f"fault: {error}") from error

    def power_off(self, document: Document) -> None:
        """Shuts a guest down from within: machine_id."""
        machine = self._machine(document)
        self._cloud.nodes.kill(machine.machine_id)
        self._cloud.power_off(machine.machine_id)

    def _machine(self, document: Document) -> Machine:
        named = document.get("machine_id")
        for machine in self._cloud.all():
            if machine.machine_id == named:
                return machine
        raise OrderError(f"machine_id: no machine {named!r}; GET /_sandbox/machines lists them")

    def _pool(self, document: Document) -> tuple[str, str, str]:
        zone, name, kind = document.get("zone"), document.get("instance_type"), document.get("capacity_type")
        if not isinstance(zone, str) or not zone:
            raise OrderError("zone: a zone such as us-east-1a")
        if name not in TYPES:
            raise OrderError(f"instance_type: allowed are {', '.join(sorted(TYPES))}")
        if kind not in CAPACITY_TYPES:
            raise OrderError(f"capacity_type: allowed are {', '.join(CAPACITY_TYPES)}")
        return zone, str(name), str(kind)

    def _shown(self, machine: Machine) -> Document:
        now = self._cloud.clock()
        return {
            "machine_id": machine.machine_id,
            "state": machine.state(now),
            "is_live": machine.is_live(),
            "zone": machine.zone,
            "instance_type": machine.instance_type,
            "capacity_type": machine.capacity_type,
            "address": machine.address,
            "tags": machine.tags,
            "token": machine.token,
            "launched_at": machine.launched_at,
            "ended_at": machine.ended_at,
            "end_code": machine.end_code,
            "cost_usd": str(machine.cost_usd(now)),
        }

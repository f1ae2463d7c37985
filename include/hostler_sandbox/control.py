"""The control API: stock, quotas, prices, faults, notices, the clock; and what is to be seen. The product never calls it.

``POST /_sandbox/<name>`` takes a JSON object, ``GET`` gives one. What cannot be done is a 400 that names the field and what is
allowed, or a 404 for a machine that does not exist.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict
from decimal import Decimal, InvalidOperation
from typing import Any, Final
from urllib.parse import parse_qs

from hostler_sandbox.control_fields import Fields
from hostler_sandbox.control_views import Views
from hostler_sandbox.interruptions import Interruptions
from hostler_sandbox.node_faults import inject
from hostler_sandbox.state.errors import UnknownMachineError, WrongStateError
from hostler_sandbox.state.estate import Delays, Estate
from hostler_sandbox.state.faults import KINDS, Faults, read_fault
from hostler_sandbox.state.machines import Cause, Machine
from hostler_sandbox.state.pools import ANY, StockRule
from hostler_sandbox.state.quotas import bucket_of

_PREFIX: Final = "/_sandbox/"
_NOTICE_S: Final = 120.0
_CAPACITY_TYPES: Final = ("on-demand", "spot", ANY)
Reply = Mapping[str, Any]


class NoSuchThingError(Exception):
    """What a call names does not exist."""


class Control:
    """The WSGI app. Thread-safe.

    Args:
        on_reset: forgets what fronts keep beside the estate. add_event: (instance id, code, not before, description) -> event id.
    """

    def __init__(
        self,
        *,
        estate: Estate,
        faults: Faults,
        views: Views,
        region_of: Callable[[str], str],
        on_reset: Callable[[], None],
        add_event: Callable[..., str],
        send_event: Callable[[str, str, dict[str, Any]], None],
    ) -> None:
        self._estate = estate
        self._faults = faults
        self._views = views
        self._region_of = region_of
        self._on_reset = on_reset
        self._add_event = add_event
        self._first_delays = estate.delays
        self._interruptions = Interruptions(estate, send_event)
        self._posts: dict[str, Callable[[Fields], Reply]] = {
            "stock": self._stock,
            "quota": self._quota,
            "price": self._price,
            "fault": self._fault,
            "clear-faults": self._clear_faults,
            "interrupt": self._interrupt,
            "reclaim": self._reclaim,
            "power-off": self._power_off,
            "node-fault": self._node_fault,
            "event": self._event,
            "clock": self._clock,
            "delays": self._delays,
            "reset": self._reset,
        }

    def __call__(self, environ: Mapping[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        """Answers one request."""
        method, path = str(environ["REQUEST_METHOD"]), str(environ["PATH_INFO"])
        text = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0)) if method == "POST" else b""
        self._estate.timers.run_due()
        try:
            status, reply = "200 OK", self._reply(method, path, str(environ.get("QUERY_STRING", "")), text)
        except NoSuchThingError as error:
            status, reply = "404 Not Found", {"error": str(error)}
        except UnknownMachineError as error:
            status, reply = "404 Not Found", {"error": f"machine_id: {error}: no such machine"}
        except WrongStateError as error:
            status, reply = "409 Conflict", {"error": f"{error}: ending, or marked already"}
        except ValueError as error:
            status, reply = "400 Bad Request", {"error": str(error)}
        if method == "POST":
            self._estate.journal.add(
                "control", path=path, status=int(status[:3]), user_agent=str(environ.get("HTTP_USER_AGENT", "")),
                body=text.decode("utf-8", "replace")[:2000],
            )  # fmt: skip
        body = json.dumps(reply).encode()
        start_response(status, [("Content-Type", "application/json"), ("Content-Length", str(len(body)))])
        return [body]

    def _reply(self, method: str, path: str, query: str, text: bytes) -> Reply:
        name = path.removeprefix(_PREFIX)
        if not path.startswith(_PREFIX) or (name not in self._posts and name not in self._views.names):
            raise NoSuchThingError(
                f"{path}: allowed: {', '.join(_PREFIX + one for one in sorted({*self._posts, *self._views.names}))}"
            )
        if method == "GET":
            if name not in self._views.names:
                raise ValueError(f"{path}: takes POST")
            return self._views.show(name, {key: values[-1] for key, values in parse_qs(query).items()})
        if name not in self._posts:
            raise ValueError(f"{path}: takes GET")
        fields = Fields.read(text)
        reply = self._posts[name](fields)
        return {"simulated": True, **reply}

    def _stock(self, fields: Fields) -> Reply:
        rule = StockRule(
            zone=fields.text("zone", ANY),
            instance_type=fields.text("instance_type", ANY),
            capacity_type=fields.text("capacity_type", ANY, allowed=_CAPACITY_TYPES),
            count=fields.count("count"),
        )
        fields.done()
        self._estate.pools.set(rule)
        return {
            "zone": rule.zone,
            "instance_type": rule.instance_type,
            "capacity_type": rule.capacity_type,
            "count": rule.count,
        }

    def _quota(self, fields: Fields) -> Reply:
        region, family = fields.text("region"), fields.text("family", "")
        family = family or bucket_of(fields.text("instance_type"))
        fields.text("instance_type", "")
        capacity_type = fields.text("capacity_type", "on-demand", allowed=_CAPACITY_TYPES[:2])
        vcpus = fields.count("vcpus")
        fields.done()
        self._estate.quotas.set(region, family, capacity_type, vcpus)
        return {"region": region, "family": family, "capacity_type": capacity_type, "vcpus": vcpus}

    def _price(self, fields: Fields) -> Reply:
        instance_type, zone = fields.text("instance_type"), fields.text("zone", "")
        capacity_type = fields.text("capacity_type", "spot" if zone else "on-demand", allowed=_CAPACITY_TYPES[:2])
        text = str(fields.value("usd_per_hour"))
        fields.done()
        try:
            price = Decimal(text)
        except InvalidOperation:
            raise ValueError(f"usd_per_hour: {text!r}: must be a number above 0") from None
        if capacity_type == "spot" and not zone:
            raise ValueError("zone: missing; a spot price is that of a zone")
        if capacity_type == "on-demand":
            self._estate.prices.set_on_demand(instance_type, price)
            return {"instance_type": instance_type, "usd_per_hour": str(price)}
        self._estate.prices.set_spot(zone, instance_type, price)
        taken = self._interruptions.price_rose(zone, instance_type)
        return {"instance_type": instance_type, "zone": zone, "usd_per_hour": str(price), "marked": taken}

    def _fault(self, fields: Fields) -> Reply:
        return {"id": self._faults.add(read_fault(fields.all())), "kinds": KINDS}

    def _clear_faults(self, fields: Fields) -> Reply:
        fault_id = fields.text("id", "")
        fields.done()
        if not fault_id:
            self._faults.clear()
        elif not self._faults.remove(fault_id):
            raise NoSuchThingError(f"id: {fault_id!r}: no such fault in force")
        return {"in_force": self._faults.shown()}

    def _interrupt(self, fields: Fields) -> Reply:
        machine_id, notice_s = fields.text("machine_id"), fields.number("notice_s", _NOTICE_S)
        kind = fields.text("kind", "spot", allowed=("spot", "rebalance", "hardware"))
        fields.done()
        if kind == "rebalance":
            return _told(self._interruptions.recommend_rebalance(machine_id))
        cause = Cause.HARDWARE if kind == "hardware" else Cause.SPOT_CAPACITY
        if cause is Cause.SPOT_CAPACITY and self._estate.get(machine_id).order.capacity_type != "spot":
            raise ValueError(f"machine_id: {machine_id} is no spot machine; kind 'hardware' takes any")
        return _told(self._interruptions.interrupt(machine_id, notice_s=notice_s, cause=cause))

    def _reclaim(self, fields: Fields) -> Reply:
        machine_id = fields.text("machine_id")
        fields.done()
        cause = Cause.SPOT_CAPACITY if self._estate.get(machine_id).order.capacity_type == "spot" else Cause.HARDWARE
        return _told(self._interruptions.interrupt(machine_id, notice_s=0, cause=cause))

    def _power_off(self, fields: Fields) -> Reply:
        machine = self._estate.get(fields.text("machine_id"))
        fields.done()
        inject(self._estate, machine, "power_off", {})
        return _told(machine)

    def _node_fault(self, fields: Fields) -> Reply:
        machine = self._estate.get(fields.text("machine_id"))
        inject(self._estate, machine, fields.text("kind"), fields.rest())
        return _told(machine)

    def _event(self, fields: Fields) -> Reply:
        machine = self._estate.get(fields.text("machine_id"))
        code, in_s = fields.text("code"), fields.number("in_s", 3600.0)
        description = fields.text("description", "The instance is running on degraded hardware")
        fields.done()
        return {"id": self._add_event(machine.machine_id, code, in_s, description)}

    def _clock(self, fields: Fields) -> Reply:
        scale, advance_s = fields.number("scale", self._estate.clock.scale), fields.number("advance_s", 0.0)
        fields.done()
        self._estate.clock.set_scale(scale)
        self._estate.clock.advance(advance_s)
        self._estate.timers.run_due()
        return {"now": self._estate.clock.now().isoformat(), "scale": scale}

    def _delays(self, fields: Fields) -> Reply:
        now = asdict(self._estate.delays)
        wanted = {name: fields.number(name, value) for name, value in now.items()}
        fields.done()
        self._estate.delays = Delays(**wanted)
        return wanted

    def _reset(self, fields: Fields) -> Reply:
        fields.done()
        ended = [machine.machine_id for machine in self._estate.alive()]
        for machine_id in ended:
            self._estate.terminate(machine_id, Cause.RESET)
        self._faults.clear()
        self._estate.pools.clear()
        self._estate.quotas.clear()
        self._estate.prices.clear()
        self._estate.delays = self._first_delays
        self._on_reset()
        return {"ended": ended}


def _told(machine: Machine) -> Reply:
    at = machine.takes_effect_at.isoformat() if machine.takes_effect_at else None
    return {"machine_id": machine.machine_id, "state": machine.state.value, "takes_effect_at": at}

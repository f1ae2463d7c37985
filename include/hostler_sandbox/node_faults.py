"""Faults of nodes, by name: what the control API calls ``node-fault``."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from hostler_sandbox.nodes_port import NodeRuntime
from hostler_sandbox.nodes_power import SupportsFreeDisk, SupportsPower
from hostler_sandbox.state.estate import Estate
from hostler_sandbox.state.machines import Machine

_PLAIN: Final[dict[str, Callable[[NodeRuntime, str], None]]] = {
    "freeze": lambda runtime, node_id: runtime.freeze(node_id),
    "thaw": lambda runtime, node_id: runtime.thaw(node_id),
    "cut": lambda runtime, node_id: runtime.cut_network(node_id),
    "mend": lambda runtime, node_id: runtime.mend_network(node_id),
    "disk_full": lambda runtime, node_id: runtime.fill_disk(node_id),
}
_KINDS: Final = (*_PLAIN, "disk_freed", "gpu", "power_off")


def inject(estate: Estate, machine: Machine, kind: str, details: Mapping[str, Any]) -> None:
    """Injects one fault. ``gpu`` takes ``fault``: an object, for example ``{"kind": "xid", "xid": 79, "gpu": 3}``.

    Raises:
        ValueError: the kind is unknown, the machine has no node now, or the runtime does not know the fault.
    """
    fault = details.get("fault")
    unknown = sorted(set(details) - ({"fault"} if kind == "gpu" else set()))
    if kind not in _KINDS:
        raise ValueError(f"kind: {kind!r}: allowed: {', '.join(_KINDS)}")
    if unknown:
        raise ValueError(f"{unknown[0]}: unknown for kind {kind}")
    if kind == "gpu" and not isinstance(fault, dict):
        raise ValueError(f"fault: {fault!r}: must be an object such as {{'kind': 'xid', 'xid': 79, 'gpu': 0}}")
    try:
        _do(estate, machine.machine_id, kind, fault or {})
    except KeyError:
        raise ValueError(f"machine_id: {machine.machine_id} is {machine.state.value} and has no node now") from None
    estate.journal.add("node", event=f"fault:{kind}", machine_id=machine.machine_id, fault=fault)
    # Status checks see what the hypervisor sees: a guest that does not answer. Source: EC2 user guide, "Status checks".
    if kind in {"freeze", "cut"}:
        machine.notes["impaired"] = kind
    elif kind in {"thaw", "mend"}:
        machine.notes.pop("impaired", None)


def _do(estate: Estate, node_id: str, kind: str, fault: Mapping[str, Any]) -> None:
    runtime = estate.runtime
    if kind in _PLAIN:
        _PLAIN[kind](runtime, node_id)
    elif kind == "gpu":
        runtime.gpu_fault(node_id, fault)
    elif kind == "power_off":
        if isinstance(runtime, SupportsPower):
            runtime.stop(node_id)
        estate.power_off(node_id)
    elif isinstance(runtime, SupportsFreeDisk):
        runtime.free_disk(node_id)
    else:
        raise ValueError(f"kind: {kind}: this sandbox's nodes cannot")

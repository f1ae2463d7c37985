"""The rehearsal cloud: real wire APIs on loopback, real SSH nodes, faults on demand. All it shows is simulated.

``with hostler_sandbox.start(SandboxOptions(folder=...)) as sandbox:`` runs one in this process; ``python -m hostler_sandbox``
runs one alone. Parts are imported when first asked for: programs on nodes import this package too, and must start fast.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hostler_sandbox.server import Sandbox, SandboxOptions
    from hostler_sandbox.state.estate import Delays

__all__ = ["Delays", "Sandbox", "SandboxOptions", "start"]


def start(options: "SandboxOptions") -> "Sandbox":
    """Returns a sandbox; it runs from entering to leaving its ``with`` block. One a process: moto's state is the process's."""
    from hostler_sandbox.server import Sandbox

    return Sandbox(options)


def __getattr__(name: str) -> Any:
    if name in {"Sandbox", "SandboxOptions"}:
        from hostler_sandbox import server

        return getattr(server, name)
    if name == "Delays":
        from hostler_sandbox.state.estate import Delays

        return Delays
    raise AttributeError(name)

"""The rehearsal cloud: real wire APIs on loopback, real SSH nodes, faults on demand."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hostler_sandbox.server import Sandbox, SandboxOptions


def start(options: "SandboxOptions") -> "Sandbox":
    """Starts a sandbox in this process; close it, or use it as a context manager. Imports moto, which takes seconds."""
    from hostler_sandbox.server import Sandbox

    return Sandbox(options)

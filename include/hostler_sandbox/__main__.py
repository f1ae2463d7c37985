"""``python -m hostler_sandbox --state-dir DIR``: a sandbox of its own, until SIGTERM, SIGINT or, if asked, its parent's end."""

import argparse
import gc
import os
import signal
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from types import FrameType

from hostler_sandbox.processes import become_subreaper, descendants, die_with_parent, kill_all

_DELAYS = (
    ("--pending-s", "pending_s", "how long a machine is pending"),
    ("--shutting-down-s", "shutting_down_s", "how long a machine is shutting down"),
    ("--stopping-s", "stopping_s", "how long a machine is stopping"),
    ("--list-lag-s", "list_lag_s", "how long lists do not show a new machine"),
    ("--listed-s", "listed_s", "how long lists show a terminated machine"),
    ("--boot-s", "boot_s", "from running to the open SSH port"),
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a sandbox. Returns the exit status: 0 after a signal, 1 when it could not start."""
    options = _parser().parse_args(arguments)
    over = threading.Event()

    def stop(_number: int, _frame: FrameType | None) -> None:
        over.set()

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, stop)
    if sys.platform.startswith("linux"):
        become_subreaper()
    if options.die_with_parent:
        parent = os.getppid()
        die_with_parent(signal.SIGTERM)
        if parent == 1:
            # It died before it could be watched.
            over.set()
    return _serve(options, over)


def _serve(options: argparse.Namespace, over: threading.Event) -> int:
    began_s = time.monotonic()
    _say("the Hostler sandbox is starting; everything it shows is simulated")
    # Late: moto takes a second or two to import, and signals are to be heeded from the start.
    # Its tables of types and prices live as long as the process: the collector need not walk them.
    gc.disable()
    from hostler_sandbox.server import SANDBOX_FILE, Sandbox, SandboxOptions
    from hostler_sandbox.state.estate import Delays

    gc.freeze()
    gc.enable()
    delays = {field: value for _, field, _ in _DELAYS if (value := getattr(options, field)) is not None}
    settings = SandboxOptions(
        folder=options.state_dir,
        seed=options.seed,
        clock_scale=options.clock_scale,
        delays=Delays(**delays),
        has_nodes=not options.no_nodes,
        port=options.port,
        control_port=options.control_port,
        ssh_port=options.ssh_port,
        allows_blocks=options.allow_capacity_blocks,
    )
    try:
        with Sandbox(settings) as sandbox:
            info = sandbox.info
            _say(f"Amazon's API: {info['aws_endpoint']}   control: {info['control_url']}   SSH port: {info['ssh_port']}")
            _say(f"ready after {time.monotonic() - began_s:.1f} s: {options.state_dir / SANDBOX_FILE}")
            while not over.wait(0.5):
                pass
            _say("stopping")
    except OSError as error:
        _say(f"cannot start: {error}")
        return 1
    finally:
        # Node processes that left their tree came to us, the subreaper.
        kill_all(descendants(os.getpid()))
    _say("stopped; no node is left")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m hostler_sandbox", description="A simulated cloud on loopback.")
    parser.add_argument(
        "--state-dir", type=Path, required=True, help="folder for sandbox.json, the journal and the nodes' disks"
    )
    parser.add_argument("--seed", type=int, help="picks which zones are out of stock")
    parser.add_argument("--clock-scale", type=_positive, default=1.0, help="sandbox seconds in a real one")
    parser.add_argument("--no-nodes", action="store_true", help="machines run nothing")
    parser.add_argument(
        "--die-with-parent", action="store_true", help="end when the process that started this one ends (Linux)"
    )
    parser.add_argument("--allow-capacity-blocks", action="store_true", help="let capacity blocks be bought")
    for port in ("--port", "--control-port", "--ssh-port"):
        parser.add_argument(port, type=int, default=0, help="0: a free one")
    for flag, _, words in _DELAYS:
        parser.add_argument(flag, type=_seconds, help=f"{words}, in sandbox seconds")
    return parser


def _seconds(text: str) -> float:
    value = float(text)
    if not 0 <= value < float("inf"):
        raise argparse.ArgumentTypeError("must be 0 or more")
    return value


def _positive(text: str) -> float:
    value = float(text)
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError("must be above 0")
    return value


def _say(words: str) -> None:
    print(f"sandbox: {words}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())

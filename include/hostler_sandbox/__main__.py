"""``python -m hostler_sandbox``: a rehearsal cloud on loopback until it is stopped."""

import argparse
import signal
import sys
import threading
from pathlib import Path

from hostler_sandbox.processes import become_subreaper, die_with_parent
from hostler_sandbox.server import Sandbox, SandboxOptions
from hostler_sandbox.state.cloud import Delays


def main() -> int:
    """Runs until SIGTERM or SIGINT; then ends every node."""
    parser = argparse.ArgumentParser(prog="python -m hostler_sandbox", description=__doc__)
    parser.add_argument("--state-dir", required=True, type=Path, metavar="DIR", help="for nodes, journal and sandbox.json")
    parser.add_argument("--port", type=int, default=0, help="of the AWS endpoint (default: a free one)")
    parser.add_argument("--seed", type=int, help="picks the zones that are out of H100 spot at the start")
    parser.add_argument("--pending-s", type=float, default=1.0, help="seconds from launch to running (default 1)")
    parser.add_argument("--list-lag-s", type=float, default=0.0, help="seconds that a new machine stays out of lists")
    parser.add_argument("--die-with-parent", action="store_true", help="end when the process that started this one ends")
    options = parser.parse_args()
    if options.die_with_parent:
        die_with_parent()
    become_subreaper()
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    delays = Delays(pending_s=options.pending_s, list_lag_s=options.list_lag_s)
    with Sandbox(SandboxOptions(folder=options.state_dir, port=options.port, seed=options.seed, delays=delays)) as sandbox:
        path = sandbox.write_facts()
        print(
            f"sandbox (simulated): AWS at {sandbox.aws_endpoint}, control at {sandbox.control_url}; facts in {path}", flush=True
        )
        stop.wait()
        path.unlink(missing_ok=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())

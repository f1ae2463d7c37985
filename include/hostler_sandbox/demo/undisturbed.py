"""The same training without a cloud, a loss or a delay: what the demo's weights are held against."""

import json
import os
import socket
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from hostler.recipes.files import package_files

_ADDRESS: Final = "127.0.0.3"
_MOST_S: Final = 240.0


class UndisturbedError(RuntimeError):
    """The training did not end well; the text has its last words."""


def undisturbed_weights(folder: Path, conf: Mapping[str, Any]) -> str:
    """Trains as the demo's request says, in processes of this machine, and returns the SHA-256 of the final weights.

    Args:
        folder: empty or missing; everything lies in it. conf: the request; its ``step_delay_s`` is left out.

    Raises:
        UndisturbedError: a rank failed or took more than four minutes.
    """
    port = _free_port()
    ranks = [_start(folder / f"rank{rank}", rank, port, conf) for rank in range(conf["nodes"])]
    try:
        for process, place in ranks:
            if process.wait(_MOST_S):
                raise UndisturbedError(f"rank in {place} ended with {process.returncode}: {_tail(place / 'log')}")
    except subprocess.TimeoutExpired as error:
        raise UndisturbedError(f"not done after {_MOST_S:.0f} s: {_tail(ranks[0][1] / 'log')}") from error
    finally:
        for process, _ in ranks:
            process.kill()
            process.wait()
    lines = (ranks[0][1] / "metrics.jsonl").read_text().splitlines()
    return str(json.loads(lines[-1])["weights_sha256"])


def _start(place: Path, rank: int, port: int, conf: Mapping[str, Any]) -> tuple[subprocess.Popen[bytes], Path]:
    """Starts one rank as the agent would; returns its process and its folder."""
    for path, content in package_files("hostler.recipes.training.digits", "digits").items():
        (place / "code" / path).parent.mkdir(parents=True, exist_ok=True)
        (place / "code" / path).write_bytes(content)
    options = {name: text for name, text in conf.get("recipe_options", {}).items() if name != "step_delay_s"}
    env = {
        "PATH": os.environ.get("PATH", ""),
        "RANK": str(rank),
        "WORLD_SIZE": str(conf["nodes"]),
        "MASTER_ADDR": _ADDRESS,
        "MASTER_PORT": str(port),
        "HOSTLER_JOB_ID": "undisturbed",
        "HOSTLER_CHECKPOINT_DIR": str(place / "checkpoints"),
        "HOSTLER_OUTPUT_DIR": str(place / "output"),
        "HOSTLER_METRICS_FILE": str(place / "metrics.jsonl"),
        "HOSTLER_CHECKPOINT_INTERVAL_STEPS": str(conf["checkpoint_interval_steps"]),
        **{f"HOSTLER_OPTION_{name.upper()}": str(text) for name, text in options.items()},
    }
    with (place / "log").open("wb") as log:
        command = [sys.executable, "-m", "digits.train"]
        return subprocess.Popen(command, cwd=place / "code", env=env, stdout=log, stderr=subprocess.STDOUT), place


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((_ADDRESS, 0))
        return int(probe.getsockname()[1])


def _tail(log: Path) -> str:
    return log.read_text(errors="replace")[-500:].strip()

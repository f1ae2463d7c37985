"""Trains a digit classifier once per node, data-parallel across the gang: ``python -m digits.train``.

Reads the user-code contract from the environment and these options as ``HOSTLER_OPTION_<NAME>``: ``epochs`` (12) or ``steps``,
``batch_size`` (64, of the whole gang), ``hidden_size`` (64), ``learning_rate`` (0.15), ``seed`` (7), ``step_delay_s`` (0: how
much longer each step takes), ``join_s`` (300), ``answer_s`` (60). Same seed and world size give the same weights, bit for bit,
undisturbed or resumed from any checkpoint. Exit status: 0 trained, 1 the gang broke or nothing could be read, 143 asked to end.
"""

from __future__ import annotations

import os
import signal
import sys
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Mapping

SIGTERM_STATUS = 128 + 15


@dataclass(frozen=True)
class Settings:
    """What the environment asks for. ``steps`` 0: as many as ``epochs`` make."""

    rank: int
    world_size: int
    master: tuple[str, int]
    job_id: str
    checkpoint_dir: Path
    output_dir: Path
    metrics_file: Path
    checkpoint_interval_steps: int
    epochs: int
    steps: int
    batch_size: int
    hidden_size: int
    learning_rate: float
    seed: int
    step_delay_s: float
    join_s: float
    answer_s: float


@dataclass
class Asked:
    """What signals have asked for since the last step."""

    flags: dict[str, bool] = field(default_factory=lambda: {"checkpoint": False, "end": False})

    def on_signal(self, number: int, _frame: FrameType | None) -> None:
        """Notes the wish; it is granted at the end of the step."""
        self.flags["checkpoint" if number == signal.SIGUSR1 else "end"] = True

    def take(self) -> dict[str, bool]:
        """Returns what was asked for; a checkpoint wish is then forgotten, an end is not."""
        taken = dict(self.flags)
        self.flags["checkpoint"] = False
        return taken


def settings_of(env: Mapping[str, str]) -> Settings:
    """Returns the settings. Raises KeyError or ValueError naming the variable that is missing or wrong."""

    def option(name: str, default: float) -> float:
        text = env.get("HOSTLER_OPTION_" + name.upper(), "")
        try:
            return float(text) if text else default
        except ValueError:
            raise ValueError(f"option {name}: {text!r} is not a number") from None

    return Settings(
        rank=int(env.get("RANK", "0")),
        world_size=int(env.get("WORLD_SIZE", "1")),
        master=(env.get("MASTER_ADDR", "127.0.0.1"), int(env.get("MASTER_PORT", "29500"))),
        job_id=env["HOSTLER_JOB_ID"],
        checkpoint_dir=Path(env["HOSTLER_CHECKPOINT_DIR"]),
        output_dir=Path(env["HOSTLER_OUTPUT_DIR"]),
        metrics_file=Path(env["HOSTLER_METRICS_FILE"]),
        checkpoint_interval_steps=int(env.get("HOSTLER_CHECKPOINT_INTERVAL_STEPS", "20")),
        epochs=int(option("epochs", 12)),
        steps=int(option("steps", 0)),
        batch_size=int(option("batch_size", 64)),
        hidden_size=int(option("hidden_size", 64)),
        learning_rate=option("learning_rate", 0.15),
        seed=int(option("seed", 7)),
        step_delay_s=option("step_delay_s", 0),
        join_s=option("join_s", 300),
        answer_s=option("answer_s", 60),
    )


def main() -> int:
    """Trains; returns the exit status."""
    asked = Asked()
    signal.signal(signal.SIGUSR1, asked.on_signal)  # before the slow imports: an early signal must not end the program
    signal.signal(signal.SIGTERM, asked.on_signal)
    for library in (
        "OPENBLAS",
        "OMP",
        "MKL",
    ):  # one thread: the order of additions, hence the bits, must not depend on the load
        os.environ.setdefault(library + "_NUM_THREADS", "1")
    from .gang import GangError
    from .loop import train

    try:
        finished = train(settings_of(os.environ), asked.take)
    except (GangError, OSError, KeyError, ValueError) as error:
        print(f"training ended: {type(error).__name__}: {error}", file=sys.stderr, flush=True)
        return 1
    return 0 if finished else SIGTERM_STATUS


if __name__ == "__main__":
    sys.exit(main())

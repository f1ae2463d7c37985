"""Checkpoints of the digits training: whole folders ``step-<n>``, made complete by one rename, proved by a hash."""

from __future__ import annotations

import hashlib
import io
import json
import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
STATE_FILE = "state.npy"
META_FILE = "meta.json"


@dataclass(frozen=True)
class State:
    """All that the next step needs. Random numbers and the data's order follow from seed and step alone.

    Attributes:
        weights, momentum: flat, equally long. config: what must be equal for a resume to make sense.
    """

    step: int
    weights: Array
    momentum: Array
    config: dict[str, Any]


def encode(state: State) -> bytes:
    """Returns the state's arrays as bytes; equal states give equal bytes."""
    buffer = io.BytesIO()
    np.save(buffer, np.stack([state.weights, state.momentum]), allow_pickle=False)
    return buffer.getvalue()


def decode(step: int, content: bytes, config: dict[str, Any]) -> State:
    """Returns the state of encoded arrays. Raises ValueError when they are damaged."""
    weights, momentum = np.load(io.BytesIO(content), allow_pickle=False)
    return State(step, weights.copy(), momentum.copy(), config)


def write(folder: Path, state: State) -> Path:
    """Writes ``step-<n>`` whole or not at all, and returns it; one that is there already is left as it is."""
    final = folder / f"step-{state.step}"
    if final.is_dir():
        return final
    temporary = folder / f".step-{state.step}.{os.getpid()}.partial"
    shutil.rmtree(temporary, ignore_errors=True)
    temporary.mkdir(parents=True)
    content = encode(state)
    meta = {"version": 1, "step": state.step, "sha256": hashlib.sha256(content).hexdigest(), "config": state.config}
    for name, data in ((STATE_FILE, content), (META_FILE, json.dumps(meta, sort_keys=True, indent=1).encode())):
        with (temporary / name).open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
    temporary.rename(final)
    return final


def complete_steps(folder: Path, config: dict[str, Any]) -> dict[int, str]:
    """Returns step -> hash of every checkpoint here that is undamaged and of this configuration."""
    found: dict[int, str] = {}
    for path in folder.glob("step-*"):
        try:
            meta = json.loads((path / META_FILE).read_text(encoding="utf-8"))
            digest = hashlib.sha256((path / STATE_FILE).read_bytes()).hexdigest()
            problem = "damaged" if digest != meta["sha256"] or path.name != f"step-{meta['step']}" else ""
            problem = problem or ("" if meta["config"] == config else f"made with {meta['config']}, this is {config}")
        except (OSError, ValueError, KeyError, TypeError) as error:
            problem = f"{type(error).__name__}: {error}"
        if problem:
            print(f"checkpoint {path.name} is left out: {problem}", flush=True)
        else:
            found[int(meta["step"])] = digest
    return found


def read(folder: Path, step: int, config: dict[str, Any]) -> State:
    """Reads one that ``complete_steps`` named. Raises OSError or ValueError."""
    return decode(step, (folder / f"step-{step}" / STATE_FILE).read_bytes(), config)

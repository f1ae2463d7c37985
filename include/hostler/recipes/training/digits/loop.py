"""The training loop: a two-layer network by gradient descent with momentum, the gang's gradients summed in rank order."""

from __future__ import annotations

import hashlib
import json
import time
from dataclasses import dataclass
from typing import Any, Callable

import numpy as np

from . import checkpoints
from .checkpoints import Array, State
from .gang import Gang, GangError
from .train import Settings

MOMENTUM = 0.9
TEST_SHARE = 5
"""One sample in five is for the test."""
CLASSES = 10


@dataclass(frozen=True)
class Digits:
    """Samples of 64 numbers from 0 to 1, with labels from 0 to 9."""

    x: Array
    y: Any
    test_x: Array
    test_y: Any


def load(seed: int) -> Digits:
    """Returns scikit-learn's bundled digits, split by the seed."""
    from sklearn.datasets import load_digits

    x, y = load_digits(return_X_y=True)
    order = np.random.default_rng([seed, 0x5EED]).permutation(len(y))
    x, y = np.asarray(x, dtype=np.float64)[order] / 16.0, y[order]
    size = len(y) // TEST_SHARE
    return Digits(x[size:], y[size:], x[:size], y[:size])


class Network:
    """Views of the flat weights as the two layers, and what they say of samples."""

    def __init__(self, inputs: int, hidden: int) -> None:
        self._shapes = ((inputs, hidden), (hidden,), (hidden, CLASSES), (CLASSES,))
        self.size = sum(int(np.prod(shape)) for shape in self._shapes)

    def first_weights(self, seed: int) -> Array:
        """Returns the weights that training starts from."""
        rng = np.random.default_rng([seed, 0])
        parts = [rng.normal(0, np.sqrt(2 / shape[0]), shape) if len(shape) > 1 else np.zeros(shape) for shape in self._shapes]
        return np.concatenate([part.ravel() for part in parts])

    def layers(self, flat: Array) -> list[Array]:
        """Returns the flat weights cut into layers, as views."""
        ends = np.cumsum([int(np.prod(shape)) for shape in self._shapes])[:-1]
        return [part.reshape(shape) for part, shape in zip(np.split(flat, ends), self._shapes)]

    def scores(self, flat: Array, x: Array) -> tuple[Array, Array]:
        """Returns the hidden layer's output and the log-probabilities of the classes."""
        w1, b1, w2, b2 = self.layers(flat)
        hidden = np.maximum(x @ w1 + b1, 0)
        raw = hidden @ w2 + b2
        raw = raw - raw.max(axis=1, keepdims=True)
        return hidden, raw - np.log(np.exp(raw).sum(axis=1, keepdims=True))

    def gradient(self, flat: Array, x: Array, y: Any) -> tuple[Array, float]:
        """Returns the gradient and the loss, both summed (not averaged) over the samples; zeros for none."""
        hidden, log_p = self.scores(flat, x)
        rows = np.arange(len(y))
        delta = np.exp(log_p)
        delta[rows, y] -= 1
        back = (delta @ self.layers(flat)[2].T) * (hidden > 0)
        parts = (x.T @ back, back.sum(axis=0), hidden.T @ delta, delta.sum(axis=0))
        return np.concatenate([part.ravel() for part in parts]), float(-log_p[rows, y].sum())


def agree_on_start(gang: Gang, settings: Settings, config: dict[str, Any], fresh: Callable[[], State]) -> State:
    """Returns the state that all ranks start from: the newest checkpoint that any of them has whole, else a fresh one.

    Raises:
        GangError: two ranks hold different checkpoints of that step, or one was started with another configuration.
    """
    mine = checkpoints.complete_steps(settings.checkpoint_dir, config)
    offers = [
        head for head, _ in gang.exchange({"steps": {str(step): digest for step, digest in mine.items()}, "config": config})
    ]
    for rank, offer in enumerate(offers):
        if offer["config"] != config:
            raise GangError(f"rank {rank} runs with {offer['config']}, rank {gang.rank} with {config}")
    newest = max((int(step) for offer in offers for step in offer["steps"]), default=0)
    if newest == 0:
        return fresh()
    digests = {offer["steps"][str(newest)] for offer in offers if str(newest) in offer["steps"]}
    if len(digests) > 1:
        raise GangError(f"ranks hold different checkpoints of step {newest}")
    giver = next(rank for rank, offer in enumerate(offers) if str(newest) in offer["steps"])
    content = checkpoints.encode(checkpoints.read(settings.checkpoint_dir, newest, config)) if giver == gang.rank else b""
    return checkpoints.decode(newest, gang.exchange({}, content)[giver][1], config)


def train(settings: Settings, asked: Callable[[], dict[str, bool]]) -> bool:
    """Trains to the end, or to the end of the step in which somebody asked to stop.

    Args:
        asked: returns what this rank's signals ask for since the last call.

    Returns:
        True when all steps are done.

    Raises:
        GangError: the gang broke; what the last checkpoint holds is safe.
    """
    data = load(settings.seed)
    network = Network(data.x.shape[1], settings.hidden_size)
    per_epoch = -(-len(data.y) // settings.batch_size)
    total = settings.steps or settings.epochs * per_epoch
    names = ("batch_size", "hidden_size", "learning_rate", "seed", "world_size")
    config = {name: getattr(settings, name) for name in names}
    address, limits = settings.master, {"join_s": settings.join_s, "answer_s": settings.answer_s}
    gang = Gang(settings.rank, settings.world_size, address, settings.job_id, **limits)
    try:
        state = agree_on_start(
            gang, settings, config, lambda: State(0, network.first_weights(settings.seed), np.zeros(network.size), config)
        )
        report(settings, resumed_from_step=state.step, step=state.step, steps_total=total)
        while state.step < total:
            state, loss, flags = one_step(state, data, network, settings=settings, gang=gang, asked=asked())
            report(settings, step=state.step, loss=loss)
            if (
                flags["checkpoint"]
                or flags["end"]
                or state.step % settings.checkpoint_interval_steps == 0
                or state.step == total
            ):
                save(state, settings)
            if flags["end"] and state.step < total:
                print(f"asked to end at step {state.step} of {total}", flush=True)
                return False
        finish(state, data, network, settings)
        gang.exchange({"done": True})  # nobody hangs up before all have finished
    finally:
        gang.close()
    return True


def one_step(
    state: State, data: Digits, network: Network, *, settings: Settings, gang: Gang, asked: dict[str, bool]
) -> tuple[State, float, dict[str, bool]]:
    """Returns the next state, the batch's mean loss over the gang, and what any rank was asked for."""
    if settings.step_delay_s > 0:
        time.sleep(settings.step_delay_s)
    epoch, position = divmod(state.step, -(-len(data.y) // settings.batch_size))
    order = np.random.default_rng([settings.seed, 1, epoch]).permutation(len(data.y))
    batch = order[position * settings.batch_size : (position + 1) * settings.batch_size]
    mine = batch[settings.rank :: settings.world_size]
    gradient, loss = network.gradient(state.weights, data.x[mine], data.y[mine])
    total, flags = gang.reduce(np.append(gradient, loss), asked)
    mean = total / len(batch)
    momentum = MOMENTUM * state.momentum - settings.learning_rate * mean[:-1]
    return State(state.step + 1, state.weights + momentum, momentum, state.config), float(mean[-1]), flags


def save(state: State, settings: Settings) -> None:
    """Writes a checkpoint; rank 0 alone does, the ranks' states are equal."""
    if settings.rank == 0:
        checkpoints.write(settings.checkpoint_dir, state)
        print(f"checkpoint of step {state.step}", flush=True)


def finish(state: State, data: Digits, network: Network, settings: Settings) -> None:
    """Measures the trained network, reports, and writes the weights to the output folder."""
    _, log_p = network.scores(state.weights, data.test_x)
    accuracy = float((log_p.argmax(axis=1) == data.test_y).mean())
    digest = hashlib.sha256(np.ascontiguousarray(state.weights, dtype="<f8").tobytes()).hexdigest()
    if settings.rank == 0:
        settings.output_dir.mkdir(parents=True, exist_ok=True)
        np.save(settings.output_dir / "weights.npy", state.weights, allow_pickle=False)
        summary = {"step": state.step, "accuracy": accuracy, "weights_sha256": digest, "config": state.config}
        (settings.output_dir / "summary.json").write_text(json.dumps(summary, indent=1) + "\n", encoding="utf-8")
    report(settings, step=state.step, accuracy=accuracy, weights_sha256=digest)
    print(f"trained: step {state.step}, accuracy {accuracy:.4f}, weights {digest}", flush=True)


def report(settings: Settings, **values: Any) -> None:
    """Appends one line to the metrics file."""
    settings.metrics_file.parent.mkdir(parents=True, exist_ok=True)
    with settings.metrics_file.open("a", encoding="utf-8") as file:
        file.write(json.dumps(values) + "\n")

"""Trains a digit classifier with PyTorch DistributedDataParallel and automatic mixed precision; torchrun starts it on nodes.

NCCL and CUDA where there are accelerators, else gloo and the CPU. On CUDA ``precision`` auto is bf16 where the device has it,
else fp16 with a gradient scaler; on the CPU it is bf16. Contract, options and exit status are those of the digits recipe;
``batch_size`` is that of the whole gang. Rank 0 writes checkpoints; at the start the newest one that any rank holds whole is
taken, handed to the others by rank. A peer that dies makes the collectives fail after ``answer_s``, and with them the job.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import shutil
import signal
import sys
import time
from contextlib import nullcontext
from datetime import timedelta
from pathlib import Path
from typing import Any

SIGTERM_STATUS = 128 + 15
CLASSES = 10
ASKED = {"checkpoint": False, "end": False}


def on_signal(number: int, _frame: object) -> None:
    """Notes the wish; it is granted at the end of the step."""
    ASKED["checkpoint" if number == signal.SIGUSR1 else "end"] = True


signal.signal(signal.SIGUSR1, on_signal)  # before the slow imports: an early signal must not end the program
signal.signal(signal.SIGTERM, on_signal)

import torch  # noqa: E402 - see above
import torch.distributed as dist  # noqa: E402 - see above
from torch import nn  # noqa: E402 - see above


def option(name: str, default: float) -> float:
    """Returns a number among the recipe's options. Raises ValueError."""
    text = os.environ.get("HOSTLER_OPTION_" + name.upper(), "")
    return float(text) if text else default


def report(**values: Any) -> None:
    """Appends a line to the node's metrics file; one process a node does."""
    if os.environ.get("LOCAL_RANK", "0") == "0":
        path = Path(os.environ["HOSTLER_METRICS_FILE"])
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(values) + "\n")


class Trainer:
    """Model, optimizer, data and place in the gang of this process."""

    def __init__(self) -> None:
        seed = int(option("seed", 7))
        torch.manual_seed(seed)
        self.rank, self.world_size = dist.get_rank(), dist.get_world_size()
        is_cuda = torch.cuda.is_available()
        local = int(os.environ.get("LOCAL_RANK", "0"))
        self.device = torch.device("cuda", local % torch.cuda.device_count()) if is_cuda else torch.device("cpu")
        if is_cuda:
            torch.cuda.set_device(self.device)
        self.seed, self.batch_size = seed, int(option("batch_size", 64))
        self.x, self.y, self.test_x, self.test_y = self._data()
        hidden = int(option("hidden_size", 64))
        net = nn.Sequential(nn.Linear(self.x.shape[1], hidden), nn.ReLU(), nn.Linear(hidden, CLASSES)).to(self.device)
        self.model = nn.parallel.DistributedDataParallel(net, device_ids=[self.device.index] if is_cuda else None)
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=option("learning_rate", 0.004))
        self.precision = self._precision()
        self.scaler = torch.amp.GradScaler(self.device.type, enabled=is_cuda and self.precision == "fp16")
        self.step = 0
        self.config = {"seed": seed, "batch_size": self.batch_size, "hidden_size": hidden, "world_size": self.world_size}
        self.folder = Path(os.environ["HOSTLER_CHECKPOINT_DIR"])

    def _data(self) -> tuple[torch.Tensor, ...]:
        from sklearn.datasets import load_digits

        x, y = load_digits(return_X_y=True)
        order = torch.randperm(len(y), generator=torch.Generator().manual_seed(self.seed))
        inputs, labels = torch.tensor(x, dtype=torch.float32)[order] / 16, torch.tensor(y)[order]
        size = len(y) // 5
        return tuple(part.to(self.device) for part in (inputs[size:], labels[size:], inputs[:size], labels[:size]))

    def _precision(self) -> str:
        asked = os.environ.get("HOSTLER_OPTION_PRECISION", "") or "auto"
        if asked == "auto":
            return "bf16" if self.device.type == "cpu" or torch.cuda.is_bf16_supported() else "fp16"
        if asked == "fp16" and self.device.type == "cpu":
            raise ValueError("precision fp16 needs CUDA; allowed on the CPU: auto, bf16, fp32")
        return asked

    def autocast(self) -> Any:
        """Returns the context in which the forward pass runs."""
        if self.precision == "fp32":
            return nullcontext()
        return torch.autocast(self.device.type, torch.bfloat16 if self.precision == "bf16" else torch.float16)

    @property
    def steps_per_epoch(self) -> int:
        """Batches of one pass over the data."""
        return -(-len(self.y) // self.batch_size)

    def train_step(self) -> float:
        """Does one step and returns the batch's mean loss over the gang."""
        epoch, position = divmod(self.step, self.steps_per_epoch)
        shuffle = torch.Generator().manual_seed(self.seed * 1_000_003 + epoch)
        order = torch.randperm(len(self.y), generator=shuffle)
        batch = order[position * self.batch_size : (position + 1) * self.batch_size]
        mine = batch[self.rank :: self.world_size].to(self.device)
        self.optimizer.zero_grad(set_to_none=True)
        with self.autocast():
            scores = self.model(self.x[mine])
        # DDP averages gradients over ranks, so a sum times ranks over the batch gives the mean of the whole batch
        losses = nn.functional.cross_entropy(scores.float(), self.y[mine], reduction="sum") / len(batch)
        self.scaler.scale(losses * self.world_size).backward()
        self.scaler.step(self.optimizer)
        self.scaler.update()
        self.step += 1
        total = losses.detach()
        dist.all_reduce(total)
        return float(total)

    def state(self) -> bytes:
        """Returns all that the next step needs."""
        parts = {
            "step": self.step,
            "model": self.model.module.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "scaler": self.scaler.state_dict(),
            "config": self.config,
        }
        buffer = io.BytesIO()
        torch.save(parts, buffer)
        return buffer.getvalue()

    def save(self) -> None:
        """Writes ``step-<n>`` whole or not at all; rank 0 alone does."""
        final = self.folder / f"step-{self.step}"
        if self.rank != 0 or final.is_dir():
            return
        temporary = self.folder / f".step-{self.step}.{os.getpid()}.partial"
        shutil.rmtree(temporary, ignore_errors=True)
        temporary.mkdir(parents=True)
        content = self.state()
        meta = {"version": 1, "step": self.step, "sha256": hashlib.sha256(content).hexdigest(), "config": self.config}
        (temporary / "state.pt").write_bytes(content)
        (temporary / "meta.json").write_text(json.dumps(meta, indent=1), encoding="utf-8")
        temporary.rename(final)
        print(f"checkpoint of step {self.step}", flush=True)

    def _complete_steps(self) -> dict[int, bytes]:
        found: dict[int, bytes] = {}
        for path in self.folder.glob("step-*"):
            try:
                meta, content = json.loads((path / "meta.json").read_text()), (path / "state.pt").read_bytes()
                if hashlib.sha256(content).hexdigest() == meta["sha256"] and meta["config"] == self.config:
                    found[int(meta["step"])] = content
                    continue
                problem = "damaged, or made with another configuration"
            except (OSError, ValueError, KeyError, TypeError) as error:
                problem = f"{type(error).__name__}: {error}"
            print(f"checkpoint {path.name} is left out: {problem}", flush=True)
        return found

    def resume(self) -> None:
        """Takes the newest checkpoint that any rank holds whole; the lowest such rank hands it to all."""
        mine = self._complete_steps()
        offers: list[Any] = [None] * self.world_size
        dist.all_gather_object(offers, max(mine, default=0))
        newest = max(offers)
        if newest == 0:
            return
        giver = offers.index(newest)
        box: list[Any] = [mine[newest] if giver == self.rank else None]
        dist.broadcast_object_list(box, src=giver, device=self.device)
        parts = torch.load(io.BytesIO(box[0]), map_location=self.device, weights_only=True)
        self.model.module.load_state_dict(parts["model"])
        self.optimizer.load_state_dict(parts["optimizer"])
        self.scaler.load_state_dict(parts["scaler"])
        self.step = parts["step"]

    def asked_anywhere(self) -> dict[str, bool]:
        """Returns what the signals of any rank asked for since the last step."""
        flags = torch.tensor([int(ASKED["checkpoint"]), int(ASKED["end"])], device=self.device)
        ASKED["checkpoint"] = False
        dist.all_reduce(flags, op=dist.ReduceOp.MAX)
        return {"checkpoint": bool(flags[0]), "end": bool(flags[1])}

    def finish(self) -> None:
        """Measures, reports, and writes the weights to the output folder."""
        self.model.eval()
        with torch.no_grad():
            accuracy = float((self.model.module(self.test_x).argmax(1) == self.test_y).float().mean())
        weights = {name: tensor.cpu() for name, tensor in self.model.module.state_dict().items()}
        digest = hashlib.sha256(b"".join(tensor.numpy().tobytes() for _, tensor in sorted(weights.items()))).hexdigest()
        if self.rank == 0:
            output = Path(os.environ["HOSTLER_OUTPUT_DIR"])
            output.mkdir(parents=True, exist_ok=True)
            torch.save(weights, output / "weights.pt")
        report(step=self.step, accuracy=accuracy, weights_sha256=digest)
        print(f"trained: step {self.step}, accuracy {accuracy:.4f}, precision {self.precision}, weights {digest}", flush=True)


def train() -> int:
    """Trains to the end, or to the end of the step in which somebody asked to stop; returns the exit status."""
    trainer = Trainer()
    trainer.resume()
    total = int(option("steps", 0)) or int(option("epochs", 12)) * trainer.steps_per_epoch
    report(resumed_from_step=trainer.step, step=trainer.step, steps_total=total)
    interval = int(os.environ.get("HOSTLER_CHECKPOINT_INTERVAL_STEPS", "20"))
    while trainer.step < total:
        time.sleep(option("step_delay_s", 0))
        loss = trainer.train_step()
        report(step=trainer.step, loss=loss)
        asked = trainer.asked_anywhere()
        if asked["checkpoint"] or asked["end"] or trainer.step % interval == 0 or trainer.step == total:
            trainer.save()
        if asked["end"] and trainer.step < total:
            return SIGTERM_STATUS
    trainer.finish()
    dist.barrier()  # nobody hangs up before all have finished
    return 0


def main() -> int:
    """Joins the gang, trains, leaves it."""
    limit = timedelta(seconds=max(option("answer_s", 60), option("join_s", 300)))
    dist.init_process_group("nccl" if torch.cuda.is_available() else "gloo", timeout=limit)
    try:
        return train()
    finally:
        dist.destroy_process_group()


if __name__ == "__main__":
    sys.exit(main())

"""``make bench``: prints one table of ratios and writes ``.bench/results.json``. CPU seconds of this process; best of three."""

import io
import json
import os
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from tests import samples
from tests.sim.scenario import play_seed

from hostler.cli.table import render
from hostler.model.enums import CapacityType
from hostler.model.offering import Offering
from hostler.planning.plan import make_plan
from hostler.vault.envelope import Sealer

FOLDER = Path(".bench")
SIZE = 64 * 1024 * 1024
FRAME = 8 * 1024 * 1024
NOW = datetime(2026, 12, 1, tzinfo=UTC)


def best_cpu_s(act: Callable[[], object], rounds: int = 3) -> float:
    """Returns the least CPU seconds of several rounds."""
    times = []
    for _ in range(rounds):
        began = time.process_time()
        act()
        times.append(time.process_time() - began)
    return min(times)


def encryption() -> tuple[str, float, float, str]:
    """Framed envelope against bare AES-GCM of the same library over the same frames; hashing of the result is ours alone."""
    content, key = os.urandom(SIZE), os.urandom(32)

    def ours() -> None:
        sealer = Sealer(io.BytesIO(), key, "bench/object")
        for start in range(0, SIZE, FRAME):
            sealer.write(content[start : start + FRAME])
        sealer.close()

    def bare() -> None:
        cipher = AESGCM(key)
        for index, start in enumerate(range(0, SIZE, FRAME)):
            cipher.encrypt(index.to_bytes(12, "big"), content[start : start + FRAME], None)

    return "seal 64 MiB in frames", best_cpu_s(ours), best_cpu_s(bare), "AESGCM over the same frames"


def planning() -> tuple[str, float, float, str]:
    """A plan with all reasons over 2,000 offerings against a bare sort of them by price."""
    offerings = [
        Offering(
            cloud="aws",
            region=f"region-{number % 10}",
            zone=f"region-{number % 10}{'abcd'[number % 4]}",
            instance_type=f"type-{number}",
            capacity_type=CapacityType.SPOT if number % 2 else CapacityType.ON_DEMAND,
            accelerator="H100" if number % 3 else "A100",
            accelerator_count=8,
            vcpu_count=192,
            memory_mib=2_097_152,
            price_usd_per_hour=Decimal(number % 97 + 1),
        )
        for number in range(2000)
    ]
    request = samples.request(capacity_types=(CapacityType.SPOT, CapacityType.ON_DEMAND))
    ours = best_cpu_s(lambda: make_plan(request, offerings, (), NOW))
    bare = best_cpu_s(lambda: sorted(offerings, key=lambda item: (item.price_usd_per_hour, item.key)))
    return "plan over 2,000 offerings", ours, bare, "sorted() of them"


def simulation() -> tuple[str, float, float, str]:
    """A simulated life with faults against one without: what the weather costs."""
    stormy = best_cpu_s(lambda: [play_seed(seed) for seed in range(10)], rounds=1) / 10
    return "one simulated life (mean of 10 seeds)", stormy, 0.1, "the aim, 0.1 s a seed"


def main() -> int:
    """Runs all, prints the table, writes the results."""
    results = [bench() for bench in (encryption, planning, simulation)]
    rows = [(name, f"{ours:.4f}", f"{bound:.4f}", f"{ours / bound:.2f}", what) for name, ours, bound, what in results]
    sys.stdout.write(render(("WHAT", "OURS CPU S", "BOUND CPU S", "RATIO", "BOUND"), rows) + "\n")
    FOLDER.mkdir(exist_ok=True)
    document = [{"what": name, "ours_cpu_s": ours, "bound_cpu_s": bound, "bound": what} for name, ours, bound, what in results]
    (FOLDER / "results.json").write_text(json.dumps(document, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())

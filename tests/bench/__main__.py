"""``make bench``: prints one table of ratios and writes ``.bench/results.json``. CPU seconds of this process; best of three."""

import io
import json
import os
import re
import sys
import time
import tracemalloc
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from xml.etree import ElementTree as ET

from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from tests import samples
from tests.bench.planning import planning as over_price_lists
from tests.sim.scenario import play_seed

from hostler.cli.table import render
from hostler.health.kernel_burst import read_log
from hostler.health.sources import explain
from hostler.model.enums import CapacityType
from hostler.model.offering import Offering
from hostler.planning.plan import make_plan
from hostler.vault.envelope import Sealer, open_pieces

FOLDER = Path(".bench")
SIZE = 64 * 1024 * 1024
FRAME = 8 * 1024 * 1024
LARGE = 1024 * 1024 * 1024
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


def large_stream() -> tuple[str, float, float, str]:
    """Sealing and opening 1 GiB of zeros that never is in memory as a whole. Peak of this process beyond its start, in MiB."""
    key, piece = os.urandom(32), bytes(FRAME)

    class _Pipe:
        def __init__(self) -> None:
            self.waiting: list[bytes] = []

        def write(self, data: bytes) -> None:
            self.waiting.append(data)

        def pieces(self) -> Iterator[bytes]:
            sealer = Sealer(self, key, "bench/large")
            for _ in range(LARGE // FRAME):
                sealer.write(piece)
                yield from self.taken()
            sealer.close()
            yield from self.taken()

        def taken(self) -> Iterator[bytes]:
            while self.waiting:
                yield self.waiting.pop(0)

    tracemalloc.start()
    size = sum(len(plain) for plain in open_pieces(_Pipe().pieces(), key, "bench/large"))
    peak_mib = tracemalloc.get_traced_memory()[1] / 2**20
    tracemalloc.stop()
    if size != LARGE:
        raise AssertionError(f"{size} bytes came back of {LARGE}")
    return "peak MiB of memory, 1 GiB sealed and opened", peak_mib, 64.0, "the aim, 64 MiB"


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


def captures() -> tuple[str, float, float, str]:
    """Recognising, parsing and judging 1,000 captures (XML and JSON) against the bare parsers of the same texts."""
    folder = Path(__file__).parents[1] / "data"
    documents = [path.read_text(encoding="utf-8") for path in sorted((folder / "nvidia-smi").glob("*.xml"))]
    cards = [path.read_text(encoding="utf-8") for path in sorted((folder / "rocm-smi").glob("*.json"))]
    rounds = 1000 // (len(documents) + len(cards))
    texts = (documents + cards) * rounds

    def bare() -> None:
        for text in documents * rounds:
            ET.fromstring(text)  # noqa: S314 - files of this repository
        for text in cards * rounds:
            json.loads(text)

    ours = best_cpu_s(lambda: [explain(text, name="") for text in texts])
    return f"judge {len(texts)} captures", ours, best_cpu_s(bare), "ElementTree and json of the same texts"


def kernel_lines() -> tuple[str, float, float, str]:
    """5,000 lines of a kernel log, one in ten a fault, against one bare regular expression over the same lines. Aim: below 1 s."""
    faults = (
        "NVRM: Xid (PCI:0000:04:00): 79, pid=1234, name=python3, GPU has fallen off the bus.",
        "NVRM: Xid (PCI:0008:01:00): 145, RLW_SRC_TRACK Nonfatal XC1 i0 Link 12 (0x040988e2 0x00000008 0x00000000 0x00000000)",
        "nvidia-nvswitch3: SXid (PCI:0000:05:00.0): 12028, Non-fatal, Link 32 egress non-posted PRIV error",
        "pcieport 0000:00:1c.5: AER: Corrected error received: id=00e5",
        "mlx5_core 0000:41:00.0 ens6f0np0: Link down",
    )
    quiet = (
        "usb 1-1: new high-speed USB device number 4 using xhci_hcd",
        "audit: type=1400 apparmor=STATUS operation=profile_load",
    )
    lines = [
        f"[{number / 7:12.6f}] {faults[number // 10 % 5] if number % 10 == 0 else quiet[number % 2]}" for number in range(5000)
    ]
    scan = re.compile(r"NVRM: Xid \(PCI:([0-9a-f:.]+)\): (\d+)|SXid|AER:|mlx5_core")
    return (
        "judge 5,000 kernel lines",
        best_cpu_s(lambda: read_log(lines)),
        best_cpu_s(lambda: [scan.search(line) for line in lines]),
        "one regex",
    )


def main() -> int:
    """Runs all, prints the table, writes the results."""
    results = [bench() for bench in (encryption, large_stream, planning, simulation, captures, kernel_lines)]
    results += over_price_lists()
    rows = [(name, f"{ours:.4f}", f"{bound:.4f}", f"{ours / bound:.3g}", what) for name, ours, bound, what in results]
    sys.stdout.write(render(("WHAT", "OURS CPU S", "BOUND CPU S", "RATIO", "BOUND"), rows) + "\n")
    FOLDER.mkdir(exist_ok=True)
    document = [{"what": name, "ours_cpu_s": ours, "bound_cpu_s": bound, "bound": what} for name, ours, bound, what in results]
    (FOLDER / "results.json").write_text(json.dumps(document, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())

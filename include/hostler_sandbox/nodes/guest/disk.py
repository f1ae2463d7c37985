"""``df``: the simulated disk of the node, plus what its root folder really holds."""

import os
import sys
from pathlib import Path

from .state import NodeState


def main(_program: str, node: NodeState, arguments: list[str]) -> int:
    """Prints one file system; sizes in KiB (``-m`` MiB, ``-h`` for people, ``-B1`` bytes, ``--output=avail,...``)."""
    values = node.read()
    total = int(values["disk.total_mib"]) * 1024
    used = min(total, int(values["disk.used_mib"]) * 1024 + held_bytes(node.root) // 1024)
    used = total if values["disk.full"] == "1" else used
    unit, label = _unit(arguments)
    numbers = {"size": total, "used": used, "avail": total - used}
    fields = {key: f"{value * 1024 // unit}" if unit else _human(value) for key, value in numbers.items()}
    fields |= {"source": "/dev/simulated", "pcent": f"{used * 100 // total}%", "target": "/", "fstype": "ext4"}
    heads = {"source": "Filesystem", "size": label, "used": "Used", "avail": "Available" if unit else "Avail", "pcent": "Use%",
             "target": "Mounted on", "fstype": "Type"}  # fmt: skip
    asked = next((word.partition("=")[2].split(",") for word in arguments if word.startswith("--output=")), None)
    columns = asked or ["source", "size", "used", "avail", "pcent", "target"]
    sys.stdout.write(" ".join(heads[column] for column in columns) + "\n")
    sys.stdout.write(" ".join(fields[column] for column in columns) + "\n")
    return 0


def _unit(arguments: list[str]) -> tuple[int, str]:
    if "-h" in arguments or "-Ph" in arguments or "-hP" in arguments:
        return 0, "Size"
    if "-m" in arguments or "-BM" in arguments or "-Pm" in arguments:
        return 1024 * 1024, "1M-blocks"
    if "-B1" in arguments or "--block-size=1" in arguments:
        return 1, "1B-blocks"
    if "-BG" in arguments:
        return 1024**3, "1G-blocks"
    return 1024, "1K-blocks"


def _human(kib: int) -> str:
    return f"{kib / 1024 / 1024:.1f}G"


def held_bytes(root: Path) -> int:
    """Returns the bytes of the files below a folder; links to shared files hold nothing."""
    total = 0
    for folder, _, names in os.walk(root):
        for name in names:
            try:
                total += os.lstat(f"{folder}/{name}").st_size
            except FileNotFoundError:
                continue
    return total

"""``lspci``: the accelerators on the bus, those that have fallen off left out, and the machine's own devices.

Source: lspci -nn captures of A10 and A100 machines.
"""

import sys

from .state import NodeState, accelerators

_HOST = (
    ("0000:00:00.0", "Host bridge", "0600", "Intel Corporation 440FX - 82441FX PMC [Natoma]", "8086:1237", ""),
    ("0000:00:04.0", "Non-Volatile memory controller", "0108", "Amazon.com, Inc. NVMe EBS Controller", "1d0f:8061", ""),
    ("0000:00:05.0", "Ethernet controller", "0200", "Amazon.com, Inc. Elastic Network Adapter (ENA)", "1d0f:ec20", ""),
)


def main(_program: str, node: NodeState, arguments: list[str]) -> int:
    """Prints the bus; ``-n``/``-nn`` with numbers, ``-D`` with domains, ``-d vendor:`` one vendor."""
    letters = "".join(word[1:] for word in arguments if word.startswith("-") and not word.startswith("--"))
    vendor = (
        next((arguments[place + 1] for place, word in enumerate(arguments[:-1]) if word == "-d"), ":").split(":")[0].lower()
    )
    rows = list(_HOST)
    for one in accelerators(node.read()):
        kind, number = ("VGA compatible controller", "0300") if one["name"].endswith("A10G") else ("3D controller", "0302")
        rows.append(
            (one["bus_id"][4:].lower(), kind, number, f"NVIDIA Corporation {one['name']}", f"10de:{one['pci_id']}", "rev a1")
        )
    for slot, kind, number, name, ids, revision in rows:
        if vendor and not ids.startswith(vendor):
            continue
        place = slot if "D" in letters else slot.removeprefix("0000:")
        tail = f" ({revision})" if revision else ""
        if "nn" in letters:
            sys.stdout.write(f"{place} {kind} [{number}]: {name} [{ids}]{tail}\n")
        elif "n" in letters:
            sys.stdout.write(f"{place} {number}: {ids}{tail}\n")
        else:
            sys.stdout.write(f"{place} {kind}: {name}{tail}\n")
    return 0

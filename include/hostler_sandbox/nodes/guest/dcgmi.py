"""``dcgmi discovery -l`` and ``dcgmi diag -r 1``: what the hardware state says, in DCGM's shape.

Source: public captures of ``dcgmi diag -j`` (test names and statuses).
"""

import json
import sys

from .state import NodeState, accelerators


def main(_program: str, node: NodeState, arguments: list[str]) -> int:
    """Runs one command and returns its exit status."""
    values = node.read()
    if arguments[:1] in (["--version"], ["-v"]):
        sys.stdout.write("Version : 4.4.1 (simulated)\n")
        return 0
    if not values.get("svc.nvidia-dcgm", "").endswith(",active") and "diag" not in arguments:
        sys.stdout.write("Error: unable to establish a connection to the specified host: localhost\n")
        return 255
    if not values["module.loaded"] or values["module.loaded"] != values["lib.version"]:
        sys.stdout.write("Error: Unable to initialize DCGM engine: DCGM requires a working NVIDIA driver\n")
        return 255
    found = accelerators(values)
    if arguments[:1] == ["discovery"]:
        sys.stdout.write(f"{len(found)} GPUs found. (simulated)\n")
        for place, one in enumerate(found):
            sys.stdout.write(f"| {place} | Name: {one['name']} | PCI Bus ID: {one['bus_id']} | Device UUID: {one['uuid']} |\n")
        return 0
    return _diagnose(found, is_json="-j" in arguments or "--json" in arguments)


def _diagnose(found: list[dict[str, str]], *, is_json: bool) -> int:
    tests = {
        "Denylist": "Pass",
        "NVML Library": "Fail" if any(one["lost"] == "1" for one in found) else "Pass",
        "CUDA Main Library": "Pass",
        "Permissions and OS Blocks": "Pass",
        "Persistence Mode": "Pass" if all(one["persistence"] == "1" for one in found) else "Warn",
        "Environment Variables": "Pass",
        "Page Retirement/Row Remap": "Fail"
        if any("1" in {one["remap_pending"], one["remap_failed"], one["retire_pending"]} for one in found)
        else "Pass",
        "Graphics Processes": "Pass",
        "Inforom": "Pass",
    }
    failed = "Fail" in tests.values()
    if is_json:
        category = {
            "category": "Deployment",
            "tests": [{"name": name, "results": [{"status": status}]} for name, status in tests.items()],
        }
        sys.stdout.write(json.dumps({"DCGM GPU Diagnostic": {"test_categories": [category], "simulated": True}}) + "\n")
    else:
        sys.stdout.write("Successfully ran diagnostic for group. (simulated)\n")
        sys.stdout.writelines(f"| {name:<26} | {status} |\n" for name, status in tests.items())
    return 226 if failed else 0

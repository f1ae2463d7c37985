"""``nvidia-smi``: what set-up, probe and people ask of it. Fails as the real one does when the driver is not in order.

Source: captures of drivers 535, 590 and 595; error texts as reported in public issues; exit statuses from the manual
(https://docs.nvidia.com/deploy/nvidia-smi/): 6 no device, 9 driver not loaded, 15 device lost, 18 library and driver differ.
"""

import sys
import time

from . import smi_query, smi_table, smi_tree
from .packages import cuda_of
from .state import NodeState, accelerators

_NO_DRIVER = (
    "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. "
    "Make sure that the latest NVIDIA driver is installed and running.\n\n"
)


_SETTINGS = (
    ("persistence", "-pm", "--persistence-mode"),
    ("ecc_pending", "-e", "--ecc-config"),
    ("mig", "-mig", "--multi-instance-gpu"),
    ("power_limit_watts", "-pl", "--power-limit"),
)
"""Reading that a setting changes, and the setting's names."""


def main(_program: str, node: NodeState, arguments: list[str]) -> int:
    """Runs one command and returns its exit status."""
    while node.read().get("driver.hangs") == "1":
        time.sleep(0.05)
    values = node.read()
    driver, library = values["module.loaded"], values["lib.version"]
    if not driver:
        sys.stdout.write(_NO_DRIVER)
        return 9
    if driver != library:
        sys.stdout.write(
            f"Failed to initialize NVML: Driver/library version mismatch\nNVML library version: {library.rsplit('.', 1)[0]}\n"
        )
        return 18
    if "--version" in arguments:
        sys.stdout.write(f"NVIDIA-SMI version  : {library}\nNVML version        : {library.rsplit('.', 1)[0]}\n")
        sys.stdout.write(f"DRIVER version      : {driver}\nCUDA Version        : {cuda_of(driver)}\n")
        return 0
    found = accelerators(values)
    if not found:
        sys.stdout.write("No devices were found\n")
        return 6
    chosen = _chosen(found, arguments)
    if chosen is None:
        sys.stdout.write("No devices were found\n")
        return 6
    change = _change(node, arguments, [one["index"] for one in chosen])
    return _show(node, values, chosen, arguments) if change is None else change


def _chosen(found: list[dict[str, str]], arguments: list[str]) -> list[dict[str, str]] | None:
    """Returns the devices that ``-i`` names (index, UUID, bus id), numbered as the driver numbers them; None for an unknown
    one.
    """
    for place, one in enumerate(found):
        one["number"] = str(place)
    wanted = _value(arguments, "-i", "--id")
    if wanted is None:
        return found
    chosen = []
    for word in wanted.split(","):
        names = [one for one in found if word in {one["number"], one["uuid"], one["bus_id"], one["bus_id"][4:]}]
        if not names:
            return None
        chosen += names
    return chosen


def _value(arguments: list[str], *names: str) -> str | None:
    for place, word in enumerate(arguments):
        for name in names:
            if word == name and place + 1 < len(arguments):
                return arguments[place + 1]
            if word.startswith(f"{name}="):
                return word.partition("=")[2]
    return None


def _change(node: NodeState, arguments: list[str], indices: list[str]) -> int | None:
    """Handles what changes a setting; None when nothing of that was asked."""
    reset = {"-r", "--gpu-reset"} & set(arguments)
    for key, *names in _SETTINGS:
        value = _value(arguments, *names)
        if value is None:
            continue
        number = {"ENABLED": "1", "DISABLED": "0"}.get(value.upper(), value)
        with node.change() as values:
            for index in indices:
                if values.get(f"gpu.{index}.{key}"):
                    values[f"gpu.{index}.{key}"] = number
        sys.stdout.write("All done.\n")
        return 0
    if not reset:
        return None
    with node.change() as values:
        if any(values[f"gpu.{index}.processes"] for index in indices):
            sys.stdout.write("The following GPUs could not be reset: In use by another client\n")
            return 19
        for index in indices:
            prefix = f"gpu.{index}."
            cleared = {"ecc_volatile_corrected": "0", "ecc_volatile_uncorrected": "0", "throttle": "1"}
            values |= {prefix + key: value for key, value in cleared.items()}
            values[prefix + "ecc"] = values[prefix + "ecc_pending"]
            values[prefix + "remap_pending"] = "0" if values[prefix + "remap_pending"] else ""
            values[prefix + "recovery_action"] = (
                "0" if values[prefix + "recovery_action"] == "1" else values[prefix + "recovery_action"]
            )
    sys.stdout.write("GPU was successfully reset.\nAll done.\n")
    return 0


def _show(  # noqa: PLR0911  # one return for each form of output
    node: NodeState, values: dict[str, str], chosen: list[dict[str, str]], arguments: list[str]
) -> int:
    query = _value(arguments, "--query-gpu")
    if query is not None:
        return smi_query.print_csv(values, chosen, query, _value(arguments, "--format") or "csv")
    apps = _value(arguments, "--query-compute-apps")
    if apps is not None:
        return smi_query.print_apps(chosen, apps, _value(arguments, "--format") or "csv")
    lost = [one for one in chosen if one["lost"] == "1"]
    for one in lost:
        sys.stdout.write(
            f"Unable to determine the device handle for GPU {one['bus_id'][4:]}: GPU is lost.  "
            "Reboot the system to recover this GPU\n"
        )
    if lost:
        return 15
    if arguments[:1] == ["nvlink"]:
        return smi_table.print_nvlink(chosen)
    if arguments[:1] == ["topo"]:
        return smi_table.print_topology(chosen)
    if {"-L", "--list-gpus"} & set(arguments):
        return smi_table.print_list(chosen)
    if {"-q", "--query"} & set(arguments):
        if {"-x", "--xml-format"} & set(arguments):
            sys.stdout.write(smi_tree.as_xml(node, values, chosen))
        else:
            sys.stdout.write(smi_tree.as_text(node, values, chosen))
        return 0
    sys.stdout.write(smi_table.table(values, chosen))
    return 0

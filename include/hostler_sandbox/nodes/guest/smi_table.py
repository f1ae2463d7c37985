"""The short forms of ``nvidia-smi``: the table, ``-L``, ``nvlink -s``, ``topo -m``."""

import sys
import time

from .packages import cuda_of

_RULE = "+" + "-" * 41 + "+" + "-" * 24 + "+" + "-" * 22 + "+\n"


def print_list(chosen: list[dict[str, str]]) -> int:
    """Prints ``-L``, MIG devices below their own."""
    for one in chosen:
        sys.stdout.write(f"GPU {one['number']}: {one['name']} (UUID: {one['uuid']})\n")
        if one["mig"] == "1":
            for index in range(int(one["mig_devices"])):
                size_gb = int(one["memory_total_mib"]) // 8192
                sys.stdout.write(f"  MIG 1g.{size_gb}gb     Device  {index}: (UUID: MIG-{index}{one['uuid'][5:]})\n")
    return 0


def print_nvlink(chosen: list[dict[str, str]]) -> int:
    """Prints the state of each link."""
    for one in chosen:
        sys.stdout.write(f"GPU {one['number']}: {one['name']} (UUID: {one['uuid']})\n")
        if one["mig"] == "1":
            sys.stdout.write("Nvlink queries are not supported for Devices in MIG mode\n")
        elif one["nvlinks"] == "0":
            sys.stdout.write("Device does not have or support Nvlink\n")
        else:
            down = int(one["nvlinks_down"])
            for link in range(int(one["nvlinks"])):
                state = "<inactive>" if down >> link & 1 else f"{one['nvlink_gb_per_s']} GB/s"
                sys.stdout.write(f"\t Link {link}: {state}\n")
    return 0


def print_topology(chosen: list[dict[str, str]]) -> int:
    """Prints the matrix: bonded links where there are some, else a path through the processor."""
    names = [f"GPU{one['number']}" for one in chosen]
    sys.stdout.write("\t" + "\t".join(names) + "\n")
    for row in chosen:
        cells = [" X " if row is column else f"NV{row['nvlinks']}" if row["nvlinks"] != "0" else "NODE" for column in chosen]
        sys.stdout.write(f"GPU{row['number']}\t" + "\t".join(cells) + "\n")
    return 0


def table(values: dict[str, str], chosen: list[dict[str, str]]) -> str:
    """Returns the table that ``nvidia-smi`` alone prints."""
    driver = values["module.loaded"]
    head = f"NVIDIA-SMI {driver:<22} Driver Version: {driver:<14} CUDA Version: {cuda_of(driver):<8}"
    lines = [
        time.strftime("%a %b %e %H:%M:%S %Y       *** simulated by hostler_sandbox ***\n"),
        "+" + "-" * 89 + "+\n",
        f"| {head:<88}|\n",
        _RULE,
        f"| {'GPU  Name                 Persistence-M':<40}| {'Bus-Id          Disp.A':<23}| {'Volatile Uncorr. ECC':<21}|\n",
        f"| {'Fan  Temp   Perf          Pwr:Usage/Cap':<40}| {'          Memory-Usage':<23}| {'GPU-Util  Compute M.':<21}|\n",
        "|" + "=" * 41 + "+" + "=" * 24 + "+" + "=" * 22 + "|\n",
    ]
    for one in chosen:
        mode = "On" if one["persistence"] == "1" else "Off"
        ecc = one["ecc_volatile_uncorrected"] if one["ecc"] == "1" else "Off"
        power = f"{float(one['power_watts']):.0f}W / {one['power_limit_watts']:>4}W"
        memory = f"{one['memory_used_mib']}MiB / {one['memory_total_mib']}MiB"
        load = "N/A" if one["mig"] == "1" else f"{one['utilisation_percent']}%"
        lines.append(f"| {one['number']:>3}  {one['name']:<26} {mode:>7} |   {one['bus_id']} Off   | {ecc:>20} |\n")
        lines.append(f"| N/A {one['temperature_c']:>4}C    P0    {power:>21} | {memory:>22} | {load:>8}      Default |\n")
        lines.append(_RULE)
    return "".join(lines)

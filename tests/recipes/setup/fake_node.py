"""A small machine for the setup: one program that answers by the name it is called by, over a JSON file of state.

It obeys orders: a package brings its programs, a module loads only when it is installed and nothing else holds the device.
"""

import json
import os
import sys
from pathlib import Path

HOME = Path(os.environ.get("FAKE_NODE", "."))
STATE = HOME / "state.json"
DRIVER = "580.95.05"
OFFERS = {
    "nvidia-driver-580-open": f"{DRIVER}-0ubuntu1",
    "nvidia-driver-580": f"{DRIVER}-0ubuntu1",
    "nvidia-fabricmanager-580": f"{DRIVER}-1",
    "cuda-toolkit-13-0": "13.0.1-1",
    "nvidia-container-toolkit": "1.18.0-1",
    "chrony": "4.5-1",
    "pciutils": "1:3.10-1",
}
PROGRAMS = {
    "nvidia-driver-580-open": ["nvidia-smi"],
    "nvidia-driver-580": ["nvidia-smi"],
    "nvidia-fabricmanager-580": ["nv-fabricmanager"],
    "cuda-toolkit-13-0": ["nvcc"],
    "nvidia-container-toolkit": ["nvidia-ctk"],
    "pciutils": ["lspci"],
}
ALWAYS = [
    "apt-get", "apt-cache", "apt-mark", "dpkg", "dpkg-query", "lspci", "lsmod", "modprobe", "systemctl", "shutdown", "curl",
    "df",
]  # fmt: skip
FRESH = {
    "packages": {"bash": "5.2-1", "python3": "3.12-1"},
    "held": [],
    "gpus": 8,
    "nouveau": False,
    "loaded": None,
    "library": None,
    "persistence": False,
    "services": {"systemd-timesyncd": "active"},
    "free_kib": 100 << 20,
    "reboots": 0,
    "updated": False,
    "repository": True,
}


def say(text: str) -> None:
    """Prints a line."""
    sys.stdout.write(text + "\n")


def build(folder: Path, **changes: object) -> None:
    """Makes the machine's folder."""
    (folder / "bin").mkdir(parents=True)
    (folder / "root/proc/sys/kernel/random").mkdir(parents=True)
    (folder / "root/proc/sys/kernel/random/boot_id").write_text("boot-0\n")
    (folder / "root/etc").mkdir()
    (folder / "root/etc/os-release").write_text('ID=ubuntu\nVERSION_ID="24.04"\nPRETTY_NAME="Ubuntu 24.04 LTS"\n')
    (folder / "state.json").write_text(json.dumps({**FRESH, **changes}))
    for name in ALWAYS:
        link(folder, name)
    for name in ("tee", "mkdir", "chown", "uname", "sh"):
        (folder / "bin" / name).symlink_to(f"/bin/{name}" if Path(f"/bin/{name}").exists() else f"/usr/bin/{name}")
    (folder / "bin/python3").symlink_to(sys.executable)


def link(folder: Path, name: str) -> None:
    """Puts a program on the machine's PATH."""
    path = folder / "bin" / name
    path.write_text(f'#!/bin/sh\nexec "{sys.executable}" -S "{__file__}" "$0" "$@"\n')
    path.chmod(0o755)


def reboot(folder: Path) -> None:
    """What a reboot does: the installed module loads instead of whatever was there."""
    state = json.loads((folder / "state.json").read_text())
    state.update(nouveau=False, loaded=state["library"], persistence=False)
    (folder / "state.json").write_text(json.dumps(state))
    (folder / "root/proc/sys/kernel/random/boot_id").write_text(f"boot-{state['reboots']}\n")


def installs(state: dict, arguments: list[str]) -> int:
    """``apt-get install name=version*``."""
    for word in arguments:
        name, _, pattern = word.partition("=")
        version = OFFERS.get(name)
        if version is None or not state["repository"] or not version.startswith(pattern.rstrip("*")):
            say(f"E: Unable to locate package {name}")
            return 100
        state["packages"][name] = version
        for program in PROGRAMS.get(name, []):
            link(HOME, program)
        if name.startswith("nvidia-driver"):
            state["library"] = DRIVER
        if name == "chrony":
            state["services"]["chrony"] = "inactive"
    return 0


def smi(state: dict, arguments: list[str]) -> int:
    """nvidia-smi, as far as the setup asks it."""
    if state["loaded"] is None:
        say("NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.")
        return 9
    if state["loaded"] != state["library"]:
        say("Failed to initialize NVML: Driver/library version mismatch")
        return 18
    if arguments[:1] == ["-pm"]:
        state["persistence"] = True
    elif arguments == ["-L"]:
        say("\n".join(f"GPU {index}: NVIDIA H100 80GB HBM3 (UUID: GPU-{index})" for index in range(state["gpus"])))
    elif "driver_version" in arguments[0]:
        say("\n".join([state["loaded"]] * state["gpus"]))
    else:
        say("\n".join(["Enabled" if state["persistence"] else "Disabled"] * state["gpus"]))
    return 0


def services(state: dict, arguments: list[str]) -> int:
    """systemctl is-active, enable, restart."""
    name = arguments[-1]
    known = name in state["services"] or (name == "nvidia-fabricmanager" and "nvidia-fabricmanager-580" in state["packages"])
    if arguments[0] == "is-active":
        say(state["services"].get(name, "inactive"))
        return 0 if state["services"].get(name) == "active" else 3
    if not known:
        say(f"Unit {name}.service could not be found.")
        return 1
    if "--now" in arguments or arguments[0] == "restart":
        state["services"][name] = "active"
    return 0


def answer(program: str, state: dict, arguments: list[str]) -> int:  # noqa: C901, PLR0911, PLR0912 - one arm a program
    """Returns the exit status of one program."""
    if program == "apt-get":
        if arguments[-1] == "update":
            state["updated"] = True
            return 0
        return installs(state, arguments[arguments.index("install") + 1 :])
    if program == "apt-cache":
        if arguments[1] in OFFERS and state["repository"]:
            name, version = arguments[1], OFFERS[arguments[1]]
            say(f"{name}:\n  Installed: (none)\n  Candidate: 999.1-1\n  Version table:\n     999.1-1 500\n     {version} 500")
        return 0
    if program == "apt-mark":
        if arguments[0] == "showhold":
            say("\n".join(state["held"]))
        else:
            state["held"] += arguments[1:]
        return 0
    if program == "dpkg-query":
        say(
            "\n".join(
                f"{'hi' if name in state['held'] else 'ii'}  {name} {version}" for name, version in state["packages"].items()
            )
        )
        return 0
    if program == "lspci":
        for index in range(state["gpus"]):
            say(f"{index:02x}:00.0 3D controller [0302]: NVIDIA Corporation GH100 [H100 SXM5 80GB] [10de:2330] (rev a1)")
        return 0
    if program == "lsmod":
        say("Module Size Used by")
        say("nouveau 1 0" if state["nouveau"] else "nvidia 1 0" if state["loaded"] else "loop 1 0")
        return 0
    if program == "modprobe":
        if state["library"] is None or state["nouveau"]:
            say("modprobe: FATAL: Module nvidia not found.")
            return 1
        state["loaded"] = state["loaded"] or state["library"]
        return 0
    if program == "df":
        say(f"Filesystem 1024-blocks Used Available Capacity Mounted on\n/dev/sda1 9 9 {state['free_kib']} 9% /")
        return 0
    if program == "shutdown":
        state["reboots"] += 1
        return 0
    if program == "nvidia-ctk" and arguments[0] == "runtime":
        path = HOME / "root/etc/docker/daemon.json"
        path.parent.mkdir(exist_ok=True)
        path.write_text('{"runtimes": {"nvidia": {"path": "nvidia-container-runtime"}}}')
        return 0
    spoken = {
        "nvidia-ctk": "NVIDIA Container Toolkit CLI version 1.18.0",
        "nv-fabricmanager": f"Fabric Manager version is : {state.get('fabric', DRIVER)}",
        "nvcc": "Cuda compilation tools, release 13.0, V13.0.88",
        "dpkg": "",
    }
    if program in spoken:
        say(spoken[program])
        return 0
    if program == "nvidia-smi":
        return smi(state, arguments)
    return services(state, arguments) if program == "systemctl" else 1


if __name__ == "__main__":
    held = json.loads(STATE.read_text())
    status = answer(Path(sys.argv[1]).name, held, sys.argv[2:])
    STATE.write_text(json.dumps(held))
    sys.exit(status)

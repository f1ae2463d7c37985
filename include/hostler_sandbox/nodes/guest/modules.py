"""``modprobe``, ``lsmod``, ``modinfo``, ``update-initramfs``: the NVIDIA kernel module loads when it is installed and free
to.
"""

import sys

from .state import NodeState

_NVIDIA = ("nvidia", "nvidia_uvm", "nvidia_modeset", "nvidia_drm")


def main(program: str, node: NodeState, arguments: list[str]) -> int:
    """Runs one command and returns its exit status."""
    words = [word.replace("-", "_") for word in arguments if not word.startswith("-")]
    if program == "lsmod":
        return _list(node)
    if program == "modinfo":
        return _info(node, words, arguments)
    if program == "update-initramfs" or not words:
        return 0
    is_removal = bool({"-r", "--remove"} & set(arguments))
    with node.change() as values:
        return _remove(node, values, words[0]) if is_removal else _load(node, values, words[0])


def _load(node: NodeState, values: dict[str, str], name: str) -> int:
    if name == "nouveau":
        return 0
    if name not in _NVIDIA:
        return 0 if name in {"overlay", "br_netfilter", "ib_core", "nvidia_peermem", "loop"} else _fatal(values, name)
    if not values["module.installed"]:
        return _fatal(values, name)
    if values["module.loaded"]:
        return 0
    if values["nouveau"] == "1" or values["gpu.count"] == "0":
        sys.stderr.write("modprobe: ERROR: could not insert 'nvidia': No such device\n")
        node.log_kernel(
            "NVRM: The NVIDIA probe routine was not called for the GPU(s): another driver (nouveau) holds them."
            if values["nouveau"] == "1"
            else "NVRM: No NVIDIA GPU found."
        )
        return 1
    values["module.loaded"] = values["module.installed"]
    node.log_kernel(f"NVRM: loading NVIDIA UNIX x86_64 Kernel Module  {values['module.loaded']}  (simulated)")
    return 0


def _fatal(values: dict[str, str], name: str) -> int:
    sys.stderr.write(f"modprobe: FATAL: Module {name} not found in directory /lib/modules/{values['kernel']}\n")
    return 1


def _remove(node: NodeState, values: dict[str, str], name: str) -> int:
    if name == "nouveau":
        values["nouveau"] = "0"
        return 0
    if name == "nvidia" and values["module.loaded"]:
        busy = any(value for key, value in values.items() if key.endswith(".processes"))
        if busy or values.get("svc.nvidia-persistenced", "").endswith(",active"):
            sys.stderr.write("modprobe: FATAL: Module nvidia is in use.\n")
            return 1
        values["module.loaded"] = ""
        node.log_kernel("NVRM: unloading (simulated)")
    return 0


def _list(node: NodeState) -> int:
    values = node.read()
    sys.stdout.write("Module                  Size  Used by\n")
    if values["module.loaded"]:
        sys.stdout.writelines(f"{name:<16} {8_000_000:>12}  0\n" for name in _NVIDIA)
    if values["nouveau"] == "1":
        sys.stdout.write(f"{'nouveau':<16} {3_000_000:>12}  0\n")
    return 0


def _info(node: NodeState, words: list[str], arguments: list[str]) -> int:
    values = node.read()
    if not words or words[-1] not in _NVIDIA or not values["module.installed"]:
        sys.stderr.write(f"modinfo: ERROR: Module {words[-1] if words else ''} not found.\n")
        return 1
    only = {"-F", "--field"} & set(arguments)
    version = values["module.installed"]
    sys.stdout.write(
        f"{version}\n" if only else f"filename:       nvidia.ko\nversion:        {version}\nlicense:        NVIDIA\n"
    )
    return 0

"""What is on the machine in the end, for the report."""

from __future__ import annotations

import platform
import re

from .step import Context
from .steps_driver import fabric_version, loaded_driver
from .steps_system import framework_versions


def versions(context: Context) -> dict[str, object]:
    """Returns names and versions; None for what this machine does not have."""
    machine = context.machine
    release = re.search(r'^PRETTY_NAME="?([^"\n]+)', machine.read("/etc/os-release"), re.MULTILINE)
    nvcc = machine.path("/usr/local/cuda/bin/nvcc")
    cuda = re.search(r"release ([\d.]+)", machine.run(str(nvcc) if nvcc.exists() else "nvcc", "--version").output)
    containers = re.search(r"version ([\d.]+)", machine.run("nvidia-ctk", "--version").output)
    return {
        "system": release.group(1) if release else None,
        "kernel": platform.release(),
        "python": platform.python_version(),
        "driver": loaded_driver(context)[0],
        "cuda_toolkit": cuda.group(1) if cuda else None,
        "container_toolkit": containers.group(1) if containers else None,
        "fabric_manager": fabric_version(context) if context.options.needs_fabric else None,
        "framework": framework_versions(context)[0],
    }

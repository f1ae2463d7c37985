"""Steps for accelerators: found, driver loaded, persistence, fabric, CUDA toolkit, containers, packages held."""

from __future__ import annotations

import json
import re
import time

from .machine import RebootNeeded, StepError
from .options import (
    CLOSED_MODULE_ACCELERATORS,
    CONTAINER_TOOLKIT_VERSION,
    CUDA_TOOLKIT,
    DRIVER_BRANCH,
    DRIVER_VERSION,
    FROM_IMAGE,
    PINNED,
    TORCH_DRIVER_BRANCH,
    Options,
)
from .packages import Apt, ensure_offered
from .step import Context, Step, with_accelerators

NVIDIA_CONTROLLER = re.compile(r"\[030[02]\]: .*\[10de:[0-9a-f]{4}\]")
"""A VGA or 3D controller of vendor 10de. Source: PCI class codes 0300 and 0302; PCI vendor list."""


def accelerators_problem(context: Context) -> str | None:
    """The bus must show as many as were bought."""
    done = context.machine.run("lspci", "-nn")
    if done.code != 0:
        return f"lspci: {done.last_line}"
    found = sum(bool(NVIDIA_CONTROLLER.search(line)) for line in done.output.splitlines())
    if found != context.options.count:
        return f"{found} NVIDIA accelerators on the bus, {context.options.count} expected"
    return None


def install_lspci(context: Context) -> None:
    """All we can do is to bring the program that looks."""
    if not context.machine.has("lspci"):
        context.packages.refresh()
        context.packages.install([("pciutils", "")])


def loaded_driver(context: Context) -> tuple[str | None, str]:
    """Returns the version of the working driver, or None and the words that tell why there is none."""
    done = context.machine.run("nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader", timeout_s=90)
    versions = {line.strip() for line in done.output.splitlines() if re.fullmatch(r"\d+(\.\d+)+", line.strip())}
    if done.code == 0 and len(versions) == 1:
        return versions.pop(), ""
    return None, done.last_line


def driver_problem(context: Context) -> str | None:
    """A driver must be loaded that serves every accelerator; which one, the options say."""
    version, words = loaded_driver(context)
    if version is None:
        return f"no working driver: {words}"
    if context.options.driver == PINNED and version != DRIVER_VERSION:
        return f"driver {version}, pinned is {DRIVER_VERSION}"
    if context.options.torch == "true" and int(version.partition(".")[0]) < TORCH_DRIVER_BRANCH:
        return f"driver {version}, PyTorch needs {TORCH_DRIVER_BRANCH} or newer"
    shown = context.machine.run("nvidia-smi", "-L").output.count("GPU ")
    return None if shown == context.options.count else f"the driver shows {shown} accelerators of {context.options.count}"


def driver_packages(options: Options, *, is_apt: bool) -> list[tuple[str, str]]:
    """Returns the driver's packages, without its desktop parts where they come apart."""
    is_open = options.accelerator not in CLOSED_MODULE_ACCELERATORS
    if is_apt:
        return [(f"nvidia-driver-{DRIVER_BRANCH}" + ("-open" if is_open else ""), DRIVER_VERSION)]
    module = "kmod-nvidia-open-dkms" if is_open else "kmod-nvidia-latest-dkms"
    return [(module, DRIVER_VERSION), ("nvidia-driver-cuda", DRIVER_VERSION)]


def apply_driver(context: Context) -> None:
    """Installs what is missing, loads it, and calls for a reboot when something else is loaded in its place."""
    machine, packages = context.machine, context.packages
    wanted = driver_packages(context.options, is_apt=isinstance(packages, Apt))
    installed = packages.installed()
    missing = [one for one in wanted if not installed.get(one[0], "").startswith(one[1])]
    if missing and context.options.driver != FROM_IMAGE and not _loads_what_is_there(context):
        ensure_offered(packages, wanted)
        packages.install(wanted)
    if "nouveau" in _modules(context):
        raise RebootNeeded("nouveau holds the accelerators")
    loading = machine.run("modprobe", "nvidia", as_root=True, timeout_s=120)
    problem = driver_problem(context)
    if problem is None:
        return
    if "nvidia" in _modules(context) or "nvidia" in machine.read("/var/run/reboot-required.pkgs"):
        raise RebootNeeded(f"another driver is loaded than is installed: {problem}")
    raise StepError(f"driver: {problem}; modprobe nvidia: {loading.last_line}")


def _loads_what_is_there(context: Context) -> bool:
    """True when an image brought a driver that only was not loaded."""
    if "nouveau" in _modules(context) or context.machine.run("modprobe", "nvidia", as_root=True, timeout_s=120).code != 0:
        return False
    return driver_problem(context) is None


def _modules(context: Context) -> set[str]:
    lines = context.machine.run("lsmod").output.splitlines()
    return {line.split()[0] for line in lines if line.strip()}


def persistence_problem(context: Context) -> str | None:
    """Without it the driver lets go of idle accelerators, and with it their settings."""
    done = context.machine.run("nvidia-smi", "--query-gpu=persistence_mode", "--format=csv,noheader", timeout_s=90)
    states = [line.strip() for line in done.output.splitlines() if line.strip()]
    if done.code != 0 or not states:
        return f"persistence mode is not known: {done.last_line}"
    return None if set(states) == {"Enabled"} else f"persistence mode is {', '.join(sorted(set(states)))}"


def apply_persistence(context: Context) -> None:
    """Starts the daemon that keeps it over reboots, where the driver brought one, and sets it now."""
    context.machine.run("systemctl", "enable", "--now", "nvidia-persistenced", as_root=True)
    context.machine.must("nvidia-smi", "-pm", "1", timeout_s=120)


def fabric_version(context: Context) -> str | None:
    """Returns the fabric manager's version, from the program itself or from its package; None when there is none."""
    told = context.machine.run("nv-fabricmanager", "--version")
    packages = context.packages.installed()
    kept = [version for name, version in packages.items() if re.fullmatch(r"nvidia-fabric-?manager(-\d+)?", name)]
    found = re.search(r"\d+\.\d+(\.\d+)?", told.output if told.code == 0 else " ".join(kept))
    return found.group(0) if found else None


def fabric_problem(context: Context) -> str | None:
    """The fabric manager must be the driver's own version, and active: else NVSwitch machines run no CUDA at all."""
    version, words = loaded_driver(context)
    if version is None:
        return f"no working driver: {words}"
    found = fabric_version(context)
    if found is None:
        return "no fabric manager"
    if found != version:
        return f"fabric manager {found}, driver {version}"
    state = context.machine.run("systemctl", "is-active", "nvidia-fabricmanager").output.strip()
    return None if state == "active" else f"fabric manager is {state or 'not known'}"


def apply_fabric(context: Context) -> None:
    """Installs the driver's own version and starts it; it needs seconds to train the links."""
    version, words = loaded_driver(context)
    if version is None:
        raise StepError(f"no working driver: {words}")
    branch = version.partition(".")[0]
    if fabric_version(context) != version:
        names = (f"nvidia-fabricmanager-{branch}", "nvidia-fabricmanager")
        offered = [name for name in names if context.packages.offers(name, version)]
        if not offered:
            ensure_offered(context.packages, [(names[0], version)])
        context.packages.install([((offered or names)[0], version)])
    context.machine.must("systemctl", "enable", "nvidia-fabricmanager")
    context.machine.must("systemctl", "restart", "nvidia-fabricmanager", timeout_s=180)
    deadline = time.monotonic() + 60
    while fabric_problem(context) and time.monotonic() < deadline:
        time.sleep(2)


def cuda_problem(context: Context) -> str | None:
    """A compiler must be there; an image's own is good enough."""
    nvcc = context.machine.path("/usr/local/cuda/bin/nvcc")
    done = context.machine.run(str(nvcc) if nvcc.exists() else "nvcc", "--version")
    return None if done.code == 0 and "release" in done.output else f"no CUDA toolkit: {done.last_line}"


def apply_cuda(context: Context) -> None:
    """Installs the pinned toolkit."""
    if context.options.cuda_toolkit == FROM_IMAGE:
        return
    wanted = [("cuda-toolkit-" + "-".join(CUDA_TOOLKIT), ".".join(CUDA_TOOLKIT))]
    ensure_offered(context.packages, wanted)
    context.packages.install(wanted)


def containers_problem(context: Context) -> str | None:
    """nvidia-ctk must be there and the container runtime must know of it."""
    done = context.machine.run("nvidia-ctk", "--version")
    if done.code != 0:
        return f"no container toolkit: {done.last_line}"
    try:
        runtimes = json.loads(context.machine.read("/etc/docker/daemon.json") or "{}").get("runtimes", {})
    except ValueError as error:
        return f"/etc/docker/daemon.json: {error}"
    return None if "nvidia" in runtimes else "the container runtime does not know the NVIDIA runtime"


def apply_containers(context: Context) -> None:
    """Installs the toolkit and has it write the runtime's configuration."""
    if not context.machine.has("nvidia-ctk") and context.options.container_toolkit != FROM_IMAGE:
        wanted = [("nvidia-container-toolkit", CONTAINER_TOOLKIT_VERSION)]
        ensure_offered(context.packages, wanted)
        context.packages.install(wanted)
    context.machine.must("nvidia-ctk", "runtime", "configure", "--runtime=docker")
    if context.machine.run("systemctl", "is-active", "docker").output.strip() == "active":
        context.machine.must("systemctl", "restart", "docker", timeout_s=120)


def held_problem(context: Context) -> str | None:
    """No upgrade may touch the driver while the node is rented."""
    unheld = context.packages.unheld()
    if unheld:
        return f"not held: {', '.join(unheld)}"
    return None if context.packages.upgrades_spare_us() else "unattended upgrades may change the driver"


def apply_held(context: Context) -> None:
    """Holds what is installed."""
    unheld = context.packages.unheld()
    if unheld:
        context.packages.hold(unheld)
    context.packages.spare_us()


def _needs_fabric(options: Options) -> bool:
    return options.needs_fabric


DRIVER_STEPS = (
    Step("accelerators", accelerators_problem, install_lspci, with_accelerators),
    Step("driver", driver_problem, apply_driver, with_accelerators),
    Step("fabric manager", fabric_problem, apply_fabric, _needs_fabric),
    Step("persistence mode", persistence_problem, apply_persistence, with_accelerators),
    Step("CUDA toolkit", cuda_problem, apply_cuda, with_accelerators),
    Step("container toolkit", containers_problem, apply_containers, with_accelerators),
    Step("packages held", held_problem, apply_held, with_accelerators),
)
"""In order: each needs those before it."""

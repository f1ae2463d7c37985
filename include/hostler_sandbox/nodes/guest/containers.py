"""``docker info``/``version`` and ``nvidia-ctk runtime configure``: enough to set up and verify the container runtime.

Containers do not run here: ``docker run`` says so and fails.
"""

import json
import sys
from pathlib import Path
from typing import Any

from .state import NodeState

_SETTINGS = "etc/docker/daemon.json"


def main(program: str, node: NodeState, arguments: list[str]) -> int:
    """Runs one command and returns its exit status."""
    return _toolkit(node, arguments) if program == "nvidia-ctk" else _docker(node, arguments)


def _settings(node: NodeState) -> dict[str, Any]:
    path = node.root / _SETTINGS
    try:
        found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    except ValueError:
        return {}
    return found


def _toolkit(node: NodeState, arguments: list[str]) -> int:
    if "--version" in arguments:
        sys.stdout.write("NVIDIA Container Toolkit CLI version 1.18.0 (simulated)\n")
        return 0
    if arguments[:2] != ["runtime", "configure"]:
        return 0
    config = next((word.partition("=")[2] for word in arguments if word.startswith("--config=")), "")
    path = Path(config) if config and config.startswith(str(node.root)) else node.root / _SETTINGS
    settings = _settings(node)
    settings.setdefault("runtimes", {})["nvidia"] = {"args": [], "path": "nvidia-container-runtime"}
    if "--set-as-default" in arguments or "--nvidia-set-as-default" in arguments:
        settings["default-runtime"] = "nvidia"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(settings, indent=4) + "\n", encoding="utf-8")
    sys.stderr.write(f'level=info msg="Wrote updated config to {path}"\n')
    return 0


def _docker(node: NodeState, arguments: list[str]) -> int:
    if arguments[:1] == ["--version"]:
        sys.stdout.write("Docker version 28.2.2, build simulated\n")
        return 0
    if not node.read().get("svc.docker", "").endswith(",active"):
        sys.stderr.write("Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon running?\n")
        return 1
    if arguments[:1] == ["info"]:
        runtimes = {"io.containerd.runc.v2": {}, "runc": {}, **_settings(node).get("runtimes", {})}
        default = _settings(node).get("default-runtime", "runc")
        form = next((arguments[place + 1] for place, word in enumerate(arguments[:-1]) if word in {"-f", "--format"}), "")
        form = form or next((word.partition("=")[2] for word in arguments if word.startswith("--format=")), "")
        if "json" in form or ".Runtimes" in form:
            shown = runtimes if ".Runtimes" in form else {"Runtimes": runtimes, "DefaultRuntime": default, "Name": "simulated"}
            sys.stdout.write(json.dumps(shown) + "\n")
        else:
            sys.stdout.write(f"Server (simulated):\n Runtimes: {' '.join(sorted(runtimes))}\n Default Runtime: {default}\n")
        return 0
    if arguments[:1] in (["version"], ["ps"], ["images"]):
        return 0
    sys.stderr.write("docker: containers do not run on a simulated node\n")
    return 125

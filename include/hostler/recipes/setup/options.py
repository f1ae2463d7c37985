"""What the setup is told, and the versions it pins."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Mapping

DRIVER_BRANCH = "580"
DRIVER_VERSION = "580.95.05"
"""Serves Volta to Blackwell and CUDA 13.0. Source: NVIDIA data centre driver release notes R580, read 2026-12-01."""

TORCH_DRIVER_BRANCH = 580
"""The oldest that the pinned PyTorch's CUDA 13 runs on. Source: CUDA 13.0 release notes, read 2026-12-01."""

CUDA_TOOLKIT = ("13", "0")
CONTAINER_TOOLKIT_VERSION = "1.18.0"

CLOSED_MODULE_ACCELERATORS = frozenset({"V100", "V100-32GB"})
"""Too old for the open kernel modules, which newer ones need. Source: NVIDIA/open-gpu-kernel-modules, read 2026-12-01."""

FABRIC_ACCELERATORS = frozenset({"A100", "A100-80GB", "B200", "B300", "H100", "H200"})
FABRIC_COUNT = 8
"""NVSwitch machines have eight of these. Source: NVIDIA Fabric Manager user guide, read 2026-12-01."""

# Newest versions for each Python; those of 3.11 and later are the controller's own (constraints.txt). Read 2026-12-01.
FRAMEWORK = {
    (3, 8): {"numpy": "1.24.4", "scikit-learn": "1.3.2", "cryptography": "43.0.3"},
    (3, 9): {"numpy": "2.0.2", "scikit-learn": "1.6.1", "cryptography": "43.0.3"},
    (3, 10): {"numpy": "2.2.6", "scikit-learn": "1.7.2", "cryptography": "50.0.2"},
    (3, 11): {"numpy": "2.4.6", "scikit-learn": "1.9.1", "cryptography": "50.0.2"},
    (3, 12): {"numpy": "2.5.5", "scikit-learn": "1.9.1", "cryptography": "50.0.2"},
}
NVML_VERSION = "13.615.71"
TORCH_VERSION = "2.13.0"

FROM_IMAGE = "image"
PINNED = "pinned"
AUTO = "auto"


class OptionError(Exception):
    """An option is unknown or has a value that is not allowed; nothing was done."""


@dataclass(frozen=True)
class Options:
    """Options, all of them texts.

    Attributes:
        accelerator: short name, such as ``H100``; empty for a machine without. accelerator_count: how many there must be.
        driver: ``auto`` keeps a working driver that is new enough and installs the pinned one otherwise; ``pinned`` wants
            exactly the pinned one; ``image`` never installs. cuda_toolkit, container_toolkit: ``auto`` keeps what is there and
            installs the pinned one otherwise; ``image`` never installs. What an image should bring is verified all the same.
        torch: ``true`` installs PyTorch too. min_free_gib: least free disk.
    """

    accelerator: str = ""
    accelerator_count: str = "0"
    driver: str = AUTO
    cuda_toolkit: str = AUTO
    container_toolkit: str = AUTO
    torch: str = "false"
    min_free_gib: str = "10"

    @property
    def count(self) -> int:
        """How many accelerators there must be."""
        return int(self.accelerator_count) if self.accelerator else 0

    @property
    def needs_fabric(self) -> bool:
        """True on machines whose accelerators hang on NVSwitches."""
        return self.accelerator in FABRIC_ACCELERATORS and self.count == FABRIC_COUNT

    @property
    def packages(self) -> dict[str, str]:
        """Python packages and their versions, for the Python that runs the setup."""
        python = max((known for known in FRAMEWORK if known <= sys.version_info[:2]), default=min(FRAMEWORK))
        torch = {"torch": TORCH_VERSION} if self.torch == "true" else {}
        return {**FRAMEWORK[python], "nvidia-ml-py": NVML_VERSION, **torch}


_CHOICES = {
    "driver": (AUTO, PINNED, FROM_IMAGE),
    "cuda_toolkit": (AUTO, FROM_IMAGE),
    "container_toolkit": (AUTO, FROM_IMAGE),
    "torch": ("true", "false"),
}


def parse(given: Mapping[str, object]) -> Options:
    """Returns the options. Raises OptionError naming the option and what is allowed."""
    known = {field.name for field in fields(Options)}
    for name, value in given.items():
        if name not in known:
            raise OptionError(f"unknown option {name!r}; allowed: {', '.join(sorted(known))}")
        if not isinstance(value, str):
            raise OptionError(f"option {name}: {value!r} is no text")
        if name in _CHOICES and value not in _CHOICES[name]:
            raise OptionError(f"option {name}: {value!r}; allowed: {', '.join(_CHOICES[name])}")
        if name in ("accelerator_count", "min_free_gib") and not value.isdigit():
            raise OptionError(f"option {name}: {value!r}; allowed: a whole number, 0 or more")
    return Options(**{name: str(value) for name, value in given.items()})


def load() -> Options:
    """Reads the options file; none is the same as an empty one. Raises OptionError."""
    path = Path(os.environ.get("HOSTLER_SETUP_OPTIONS") or "options.json")
    if not path.exists():
        return Options()
    try:
        given = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise OptionError(f"{path}: {error}") from error
    if not isinstance(given, dict):
        raise OptionError(f"{path}: a JSON object is needed")
    return parse(given)

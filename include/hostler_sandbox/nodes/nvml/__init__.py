"""Builds the NVML library that programs on nodes load."""

import shutil
import subprocess
from pathlib import Path
from typing import Final

_SOURCE: Final = Path(__file__).parent / "nvml.c"
_BUILD_S: Final = 60


def build(folder: Path) -> Path | None:
    """Compiles the library once into ``folder`` and returns it; None when there is no C compiler or it refuses the source."""
    library = folder / "libnvidia-ml.so.1"
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        return None
    if library.exists() and library.stat().st_mtime >= max(path.stat().st_mtime for path in _SOURCE.parent.glob("*.[ch]")):
        return library
    temporary = library.with_suffix(".new")
    argv = [
        compiler,
        "-std=gnu11",
        "-O1",
        "-shared",
        "-fPIC",
        "-Wl,-soname,libnvidia-ml.so.1",
        "-o",
        str(temporary),
        str(_SOURCE),
    ]
    done = subprocess.run([*argv, "-ldl"], capture_output=True, check=False, timeout=_BUILD_S)
    if done.returncode != 0:
        return None
    temporary.replace(library)
    return library

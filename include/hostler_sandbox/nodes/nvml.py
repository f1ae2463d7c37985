"""Builds the NVML library that programs on nodes load."""

import shutil
import subprocess
from pathlib import Path
from typing import Final

SOURCE: Final = Path(__file__).parent / "nvml"
_BUILD_S: Final = 60


def build(folder: Path) -> Path | None:
    """Compiles the library once into ``folder`` and returns it; None when there is no C compiler or it refuses the source."""
    library = folder / "libnvidia-ml.so.1"
    sources = sorted(SOURCE.glob("*.c"))
    compiler = shutil.which("gcc") or shutil.which("cc")
    if not sources or compiler is None:
        return None
    newest = max(path.stat().st_mtime for path in SOURCE.iterdir())
    if library.exists() and library.stat().st_mtime >= newest:
        return library
    temporary = library.with_suffix(".new")
    argv = [compiler, "-std=c11", "-O1", "-shared", "-fPIC", "-Wl,-soname,libnvidia-ml.so.1", "-o", str(temporary)]
    done = subprocess.run([*argv, *map(str, sources), "-ldl"], capture_output=True, check=False, timeout=_BUILD_S)
    if done.returncode != 0:
        return None
    temporary.replace(library)
    return library

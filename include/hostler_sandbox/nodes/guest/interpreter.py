"""The node's Python: a real interpreter that sees the node's own site folder only; pip and venv as far as set-up needs them.

Layout: ``usr/bin/python3`` with ``usr/pyvenv.cfg``, so the interpreter itself keeps host packages out. Ubuntu ships Python
without pip and without ensurepip, and forbids ``pip install`` outside a virtual environment (PEP 668): so do these nodes
until ``python3-pip`` / ``python3-venv`` are installed.
"""

import os
import sys
from pathlib import Path
from typing import Final

PIP_VERSION: Final = "24.0"
_HOOK_FILE: Final = "hostler_sandbox_venv.pth"
_SCRIPT: Final = '#!/bin/sh\nexec "{python}" -m {module} "$@"\n'


def version_folder() -> str:
    """Returns the library folder's name, such as ``python3.11``."""
    return f"python{sys.version_info.major}.{sys.version_info.minor}"


def site_of(prefix: Path) -> Path:
    """Returns the site folder below a prefix (the node's ``usr`` or a virtual environment)."""
    return prefix / "lib" / version_folder() / "site-packages"


def make_python(root: Path, base: str, *, is_managed: bool) -> None:
    """Puts Python on a node. ``is_managed``: pip refuses to install outside a virtual environment."""
    prefix = root / "usr"
    site_of(prefix).mkdir(parents=True, exist_ok=True)
    for name in ("python3", version_folder()):
        link = prefix / "bin" / name
        if not os.path.lexists(link):
            link.symlink_to(base)
    major = f"{sys.version_info.major}.{sys.version_info.minor}.{sys.version_info.micro}"
    text = f"home = {Path(base).parent}\ninclude-system-site-packages = false\nversion = {major}\nexecutable = {base}\n"
    (prefix / "pyvenv.cfg").write_text(text, encoding="utf-8")
    hook = f"import sys; sys.path.append({str(_guest_parent())!r}); import guest.venv_hook; sys.path.pop()\n"
    (site_of(prefix) / _HOOK_FILE).write_text(hook, encoding="utf-8")
    if is_managed:
        (prefix / "lib" / version_folder() / "EXTERNALLY-MANAGED").write_text("[externally-managed]\n", encoding="utf-8")


def make_pip(prefix: Path, python: str) -> None:
    """Puts ``pip`` below a prefix: a module for ``python -m pip`` and scripts."""
    site = site_of(prefix)
    (site / "pip").mkdir(parents=True, exist_ok=True)
    (site / "pip/__init__.py").write_text(f'__version__ = "{PIP_VERSION}"\n', encoding="utf-8")
    main = f"import sys\nsys.path.append({str(_guest_parent())!r})\nfrom guest.pip import main\nsys.exit(main(sys.argv[1:]))\n"
    (site / "pip/__main__.py").write_text(main, encoding="utf-8")
    info = site / f"pip-{PIP_VERSION}.dist-info"
    info.mkdir(exist_ok=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: pip\nVersion: {PIP_VERSION}\n", encoding="utf-8")
    (info / "RECORD").write_text("", encoding="utf-8")
    for name in ("pip", "pip3"):
        make_script(prefix / "bin" / name, python, "pip")


def make_script(path: Path, python: str, module: str) -> None:
    """Writes an executable that runs a module with this interpreter."""
    path.unlink(missing_ok=True)
    path.write_text(_SCRIPT.format(python=python, module=module), encoding="utf-8")
    path.chmod(0o755)


def _guest_parent() -> Path:
    return Path(__file__).resolve().parent.parent

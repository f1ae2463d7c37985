"""Joins the agent's sources into the one file that is put on nodes. Same sources, same bytes."""

import functools
import hashlib
import io
import zipfile
from importlib.resources import files

_EPOCH = (1980, 1, 1, 0, 0, 0)  # the earliest time that a zip file can name
_MAIN = "import sys\n\nfrom hostler.recipes.agent.main import main\n\nsys.exit(main(sys.argv[1:]))\n"
_EMPTY_PACKAGES = ("hostler", "hostler/vault", "hostler/recipes", "hostler/recipes/agent")
_NOT_ON_NODES = frozenset({"__init__.py", "build.py"})


@functools.cache
def build_agent() -> bytes:
    """Returns the agent as a zip application, to be run by ``python3 FILE``."""
    contents = {f"{package}/__init__.py": b"" for package in _EMPTY_PACKAGES}
    contents["__main__.py"] = _MAIN.encode()
    contents["hostler/vault/envelope.py"] = (files("hostler.vault") / "envelope.py").read_bytes()
    for entry in files("hostler.recipes.agent").iterdir():
        if entry.name.endswith(".py") and entry.name not in _NOT_ON_NODES:
            contents[f"hostler/recipes/agent/{entry.name}"] = entry.read_bytes()
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:  # stored: compressors differ between versions
        for name in sorted(contents):
            archive.writestr(zipfile.ZipInfo(name, _EPOCH), contents[name])
    return buffer.getvalue()


@functools.cache
def agent_name() -> str:
    """Returns the agent's file name; it changes with its content, so a running daemon's file is never replaced."""
    return f"agent-{hashlib.sha256(build_agent()).hexdigest()[:16]}.pyz"

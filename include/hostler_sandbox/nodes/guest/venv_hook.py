"""Loaded by every Python of a node at start: makes ``python3 -m venv`` put the node's pip into what it makes."""

from __future__ import annotations

import importlib.machinery
import sys

TYPE_CHECKING = False  # the typing module's own would cost 3 ms at each start of Python on a node
if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import ModuleType
    from typing import Any

_MISSING = """The virtual environment was not created successfully because ensurepip is not
available.  On Debian/Ubuntu systems, you need to install the python3-venv
package using the following command.

    apt install python3.12-venv

You may need to use sudo with that command.  After installing the python3-venv
package, recreate your virtual environment.
"""


class _Finder:
    """Lets the standard ``venv`` load, then replaces the one step that would run the bundled pip."""

    @staticmethod
    def find_spec(name: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> Any:
        if name != "venv":
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        if spec and spec.loader:
            load = spec.loader.exec_module

            def exec_module(module: ModuleType) -> None:
                load(module)
                module.EnvBuilder._setup_pip = _setup_pip  # noqa: SLF001  # the one seam venv has

            spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec


def _setup_pip(_builder: object, context: Any) -> None:
    from pathlib import Path  # this file loads at every start of Python on a node

    from .interpreter import make_pip
    from .programs import node_of

    node = node_of(Path(sys.prefix))
    if node.read().get("pkg.python3-venv") is None:
        sys.stdout.write(_MISSING)
        raise SystemExit(1)
    make_pip(Path(context.env_dir), context.env_exe)


sys.meta_path.insert(0, _Finder)  # find_spec is all that is asked of it

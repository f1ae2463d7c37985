"""``apt-mark hold``, ``unhold``, ``showhold``."""

import sys

from . import packages
from .state import NodeState


def main(_program: str, node: NodeState, arguments: list[str]) -> int:
    """Runs one command and returns its exit status."""
    words = [word for word in arguments if not word.startswith("-")]
    command, names = (words[0], words[1:]) if words else ("", [])
    if command == "showhold":
        held = [key[5:] for key in sorted(node.read()) if key.startswith("hold.")]
        sys.stdout.writelines(f"{name}\n" for name in held if not names or name in names)
        return 0
    if command not in {"hold", "unhold"}:
        sys.stderr.write(f"E: Invalid operation {command}\n")
        return 100
    status = 0
    with node.change() as values:
        for name in names:
            if f"pkg.{name}" not in values and packages.find(name) is None:
                sys.stderr.write(f"E: Unable to locate package {name}\n")
                status = 100
            elif command == "hold":
                known = f"hold.{name}" in values
                values[f"hold.{name}"] = "1"
                sys.stdout.write(f"{name} was already set on hold.\n" if known else f"{name} set on hold.\n")
            else:
                values.pop(f"hold.{name}", None)
                sys.stdout.write(f"Canceled hold on {name}.\n")
    return status

"""First file of every stand-in program: finds its node by its own path, then runs the program of its own name.

Started as ``python -I -S launch.py <path it was called by> arguments...`` by a shell script on the node, so that the
start costs about 15 ms and sees neither the caller's environment nor any site folder.
"""

import sys
from pathlib import Path

if __name__ == "__main__":
    sys.path.append(str(Path(__file__).resolve().parent.parent))
    from guest.programs import run  # type: ignore[import-not-found]  # the package under the name it has on a node

    sys.exit(run(Path(sys.argv[1]), sys.argv[2:]))

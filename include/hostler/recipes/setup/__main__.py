"""Sets a node up. Standard library, Python 3.8 or newer; needs root or passwordless sudo.

Options come from ``options.json`` in the working folder, or the file that ``HOSTLER_SETUP_OPTIONS`` names; ``options.py`` lists
them. Progress goes to standard output, a report with all versions to ``$HOSTLER_HOME/setup/report.json``.

Exit status: 0, every check passed at the end; 1, a step failed and its words are the last line; 75, the machine reboots now.
**Reboots**: where a loaded nouveau or another driver version is in the way, setup notes it in ``setup/state.json`` of its home,
calls for the reboot itself, waits to be ended by it (``HOSTLER_REBOOT_WAIT_S``, 60) and else exits with 75. Whoever started it
starts it again once the node answers: every step looks first at what is there, so it goes on where it was. A third reboot is
refused. Started again before the reboot came, it calls again.

``HOSTLER_ROOT`` goes before absolute paths of files (not of programs); it is empty on real machines.
"""

from __future__ import annotations

import sys

from .main import main

if __name__ == "__main__":
    sys.exit(main())

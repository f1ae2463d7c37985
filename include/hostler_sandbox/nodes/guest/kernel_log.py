"""``dmesg`` and ``journalctl``: this boot's kernel messages.

Stamps count from the host's boot, as ``/proc/uptime`` on a node does.
"""

import sys
import time

from .state import NodeState


def main(program: str, node: NodeState, arguments: list[str]) -> int:
    """Prints the messages in the asked form and returns the exit status."""
    flags = set(arguments)
    if program == "journalctl" and not flags & {"-k", "--dmesg", "-kb", "-bk"} and "_TRANSPORT=kernel" not in flags:
        sys.stdout.write("-- No entries --\n")
        return 0
    form = _form(program, arguments)
    offset = time.time() - time.clock_gettime(time.CLOCK_BOOTTIME)
    host = (node.root / "etc/hostname").read_text(encoding="utf-8").strip()
    for stamp, text in node.kernel_log():
        sys.stdout.write(_line(form, stamp, offset + stamp, host, text))
    return 0


def _form(program: str, arguments: list[str]) -> str:
    if program == "dmesg":
        if {"-T", "--ctime"} & set(arguments):
            return "ctime"
        return "iso" if "--time-format=iso" in arguments or ("--time-format" in arguments and "iso" in arguments) else "raw"
    joined = " ".join(arguments)
    return next((name for name in ("short-monotonic", "short-iso", "cat") if name in joined), "short")


def _line(form: str, stamp: float, at: float, host: str, text: str) -> str:
    local = time.localtime(at)
    fraction = f"{at % 1:.6f}"[2:]
    forms = {
        "raw": f"[{stamp:12.6f}] {text}",
        "ctime": f"[{time.strftime('%a %b %e %H:%M:%S %Y', local)}] {text}",
        "iso": f"{time.strftime('%Y-%m-%dT%H:%M:%S', local)},{fraction}{time.strftime('%z', local)} {text}",
        "short": f"{time.strftime('%b %d %H:%M:%S', local)} {host} kernel: {text}",
        "short-iso": f"{time.strftime('%Y-%m-%dT%H:%M:%S%z', local)} {host} kernel: {text}",
        "short-monotonic": f"[{stamp:12.6f}] {host} kernel: {text}",
        "cat": text,
    }
    return forms[form] + "\n"

"""``shutdown``, ``poweroff``, ``halt``, ``reboot``: presses the node's power button in the sandbox."""

import http.client
import json
import sys
import time

from .state import NodeState


def main(program: str, node: NodeState, arguments: list[str]) -> int:
    """Asks for it and returns at once, as systemd does; the node goes down a moment later."""
    flags = {letter for word in arguments if word.startswith("-") and not word.startswith("--") for letter in word[1:]}
    longs = {word for word in arguments if word.startswith("--")}
    words = [word for word in arguments if not word.startswith("-")]
    action = (
        "reboot" if program == "reboot" or (program == "shutdown" and ("r" in flags or "--reboot" in longs)) else "poweroff"
    )
    if program == "shutdown" and "c" in flags:
        return _press(node, "cancel", 0)
    try:
        delay_s = _delay_s(words[0] if words else ("+1" if program == "shutdown" else "now"))
    except ValueError:
        sys.stderr.write(f"Failed to parse time specification: {words[0]}\n")
        return 1
    if delay_s > 1:
        sys.stderr.write(f"{action.capitalize()} scheduled in {delay_s:.0f} s, use 'shutdown -c' to cancel.\n")
    return _press(node, action, delay_s)


def _delay_s(word: str) -> float:
    """Reads ``now``, ``+minutes`` or ``hh:mm``. Raises ValueError."""
    if word == "now":
        return 0.1
    if ":" in word:
        hour, minute = (int(part) for part in word.split(":"))
        now = time.localtime()
        return ((hour * 60 + minute - now.tm_hour * 60 - now.tm_min) % 1440) * 60.0
    return max(0.1, int(word.removeprefix("+")) * 60.0)


def _press(node: NodeState, action: str, delay_s: float) -> int:
    facts = node.facts()
    connection = http.client.HTTPConnection(facts["address"], facts["metadata_port"], timeout=10)
    try:
        connection.request("POST", "/sandbox/power", body=json.dumps({"action": action, "delay_s": delay_s}))
        return 0 if connection.getresponse().status == http.HTTPStatus.OK else 1
    except OSError as error:
        sys.stderr.write(f"Failed to talk to init daemon: {error.strerror}\n")
        return 1
    finally:
        connection.close()

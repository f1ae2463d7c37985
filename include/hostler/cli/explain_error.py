"""``hostler explain-error``: what a cloud's error means, one JSON line in, one JSON line out."""

import argparse
import json
import sys
from collections.abc import Iterable, Iterator
from typing import Any

from hostler.catalog.error_rules import explain

_SHOWN = 80


def explain_error(_options: argparse.Namespace) -> int:
    """Reads JSON lines ``{"cloud", "call", "raw"}`` from standard input and prints one JSON line for each.

    Returns:
        0: every line was explained. 1: some lines could not be read; what is printed for them names the problem.
        2: standard input is closed.
    """
    if sys.stdin is None:
        print('hostler: standard input is closed; JSON lines {"cloud", "call", "raw"} are wanted', file=sys.stderr)
        return 2
    has_broken = False
    for answer in explained(sys.stdin.buffer):
        has_broken |= "problem" in answer
        print(json.dumps(answer), flush=True)
    return int(has_broken)


def explained(lines: Iterable[bytes]) -> Iterator[dict[str, Any]]:
    """Yields the answer for each line that is not empty, in order; for one that cannot be read, one with ``problem``."""
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            yield _answer(line)
        except (ValueError, RecursionError) as error:
            yield _problem(f"line {number}: {_said(error)}")


def _answer(line: bytes) -> dict[str, Any]:
    """Returns the explanation of one line.

    Raises:
        ValueError: it is no JSON object with ``raw``.
    """
    asked = json.loads(line.decode("utf-8-sig", "replace"))
    if not isinstance(asked, dict):
        raise ValueError('not an object: {"cloud": ..., "call": ..., "raw": ...} is wanted')  # noqa: TRY004 - a line, no argument
    if "raw" not in asked:
        raise ValueError("raw is missing: the error's text, or the document that the cloud answered with")
    found = explain(_word(asked.get("cloud")), _word(asked.get("call")), asked["raw"])
    return {
        "action": found.action,
        "error": found.error,
        "scope": found.scope,
        "hints": dict(found.hints),
        "unknown": found.is_unknown,
    }


def _word(value: object) -> str:
    """Returns a name; one that is missing or of another kind is met by shape."""
    return value if isinstance(value, str) else ""


def _problem(text: str) -> dict[str, Any]:
    return {"problem": text, "action": None, "error": None, "scope": None, "hints": {}, "unknown": True}


def _said(error: Exception) -> str:
    if isinstance(error, RecursionError):
        return "nested too deeply to be read as JSON"
    if isinstance(error, json.JSONDecodeError):
        return f"not JSON: {error.msg} at character {error.pos}"
    return str(error)[: _SHOWN * 2]

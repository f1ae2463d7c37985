"""JSON as tools print it: with lines of words before and after it (pure)."""

import json
import re
from typing import Any, Final

_START: Final = re.compile(r"^\s*(?=\{\s*[\"}]|\[\s*[\[{\"\]\d-])", re.MULTILINE)
"""A line that opens an object or an array; ``[WARNING]`` does not."""


def load(text: str) -> Any:
    """Returns the JSON document of the text, words around it left out.

    None when there is none, when it is cut or malformed, when there are two, or when it is nested absurdly deep: a part of a
    document is never taken for the whole.
    """
    start = _START.search(text)
    if start is None:
        return None
    try:
        found, end = json.JSONDecoder().raw_decode(text, start.end())
    except (ValueError, RecursionError):
        return None
    return None if _START.search(text, end) else found


def load_lines(text: str) -> list[Any]:
    """Returns the documents of a text with one a line; a line that is none is None. Empty lines are left out."""
    return [load(line) for line in text.splitlines() if line.strip()]

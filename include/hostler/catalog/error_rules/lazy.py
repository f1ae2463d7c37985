"""Patterns that are compiled when they are first used: a command that explains one line needs a tenth of them."""

import re


class Lazy:
    """A pattern, without regard to case, with the two searches that are needed here. Thread-safe: compiling twice does no harm."""

    __slots__ = ("_made", "_text")

    def __init__(self, text: str) -> None:
        self._text = text
        self._made: re.Pattern[str] | None = None

    def search(self, text: str) -> re.Match[str] | None:
        """Returns the first match; None when there is none."""
        return self._compiled().search(text)

    def findall(self, text: str) -> list[str]:
        """Returns the one group (or, without groups, the whole) of each match, in order."""
        return self._compiled().findall(text)

    def _compiled(self) -> re.Pattern[str]:
        if self._made is None:
            self._made = re.compile(self._text, re.IGNORECASE)
        return self._made

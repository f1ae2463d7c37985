"""The contract of a source: how its text is recognised, and what its parser answers."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Protocol

from hostler.model.health import SourceHealth

MAX_CHARS: Final = 16 * 1024 * 1024
"""Above this a captured output is no such output; a source of long logs may set more."""


class Parse(Protocol):
    """Judges the whole text. Never raises for any text: what cannot be read is ``unknown``."""

    def __call__(self, text: str, *, command: str | None, exit_code: int | None) -> SourceHealth:
        """Returns the verdict; ``command`` and ``exit_code`` of the captured call are None when not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """One kind of captured text.

    Attributes:
        kind: the word for it, such as ``nvidia-smi-xml``; unique.
        detect: told the first 64 Ki characters and the file's name, says how sure it is that the text is of this kind: 0.0
            (not) to 1.0 (certain). Never raises.
        parse: see ``Parse``.
        command: regular expression, searched in the command that was captured (any case); a match speaks for this kind and is
            all there is to go by when the output is empty. Empty: no command says so.
        max_chars: a longer text is not parsed but ``unknown``.
    """

    kind: str
    detect: Callable[[str, str], float]
    parse: Parse
    command: str = ""
    max_chars: int = MAX_CHARS

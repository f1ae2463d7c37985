"""All sources, and the dispatch of a captured text to the one that it belongs to."""

import re
from typing import Final

from hostler.health.roll_up import unreadable
from hostler.health.sources import gpu_capture, log_kernel, log_list, log_training
from hostler.health.sources.gpu_rows import GPU_SOURCES
from hostler.health.sources.log_rows import LOG_SOURCES
from hostler.health.sources.source import Source
from hostler.model.health import SourceHealth


def _of_section(text: str, command: str, exit_code: int | None) -> SourceHealth:
    return explain(text, name="", command=command or None, exit_code=exit_code)


SOURCES: Final[dict[str, Source]] = {
    source.kind: source
    for source in (gpu_capture.source(_of_section), log_list.source(_of_section), *GPU_SOURCES, *LOG_SOURCES)
}
"""Kind -> source, in the order in which equal scores are decided."""

_LAST_ASKED: Final = ((log_kernel.KERNEL_LOG, log_kernel.knows), (log_training.TRAINING, log_training.knows))
"""Logs of single bare messages: asked for texts that nothing else claims, since they ask each of their rules."""

NOT_RECOGNISED: Final = "unknown"
HEAD_CHARS: Final = 64 * 1024
CERTAIN: Final = 1.0
COMMAND_SCORE: Final = 0.35
BINARY_RATIO: Final = 0.1


def explain(
    text: str, *, name: str, kind: str | None = None, command: str | None = None, exit_code: int | None = None
) -> SourceHealth:
    """Returns what a captured text says of the health of a node and its accelerators.

    Args:
        text: the whole output or log. name: of its file, a hint; may be empty.
        kind: one of ``SOURCES``; None: recognised from text, name and command.
        command: the command line that was captured, when known. exit_code: its exit status, when known.

    Raises:
        ValueError: no source is called ``kind``; the text lists them.
    """
    if kind is not None and kind not in SOURCES:
        raise ValueError(f"no source {kind!r}; there are {', '.join(SOURCES)}")
    is_binary = _is_binary(text)
    source = SOURCES[kind] if kind else None if is_binary else recognise(text, name, command)
    if source is None:
        return unreadable(NOT_RECOGNISED, _why_not(text))
    if len(text) > source.max_chars:
        return unreadable(source.kind, f"{len(text)} characters, limit {source.max_chars}: not read")
    if is_binary:
        return unreadable(source.kind, "binary content, not text")
    try:
        return source.parse(text, command=command, exit_code=exit_code)
    except Exception as error:  # noqa: BLE001 - the net below the parsers: what breaks one is unknown, never healthy
        return unreadable(source.kind, f"the text could not be read: {type(error).__name__}: {error}")


def recognise(text: str, name: str, command: str | None = None) -> Source | None:
    """Returns the source that is the most sure of the text; None when none has a reason to be."""
    head, best, most = text[:HEAD_CHARS], None, 0.0
    for source in SOURCES.values():
        score = source.detect(head, name)
        if score >= CERTAIN:
            return source
        if source.command and command and re.search(source.command, command, re.IGNORECASE):
            score += COMMAND_SCORE
        if score > most:
            best, most = source, score
    return best or next((source for source, knows in _LAST_ASKED if knows(head)), None)


def _is_binary(text: str) -> bool:
    head = text[:HEAD_CHARS]
    return "\x00" in head or head.count("\ufffd") > BINARY_RATIO * len(head)


def _why_not(text: str) -> str:
    if not text.strip():
        return "empty: nothing was captured"
    return "binary content, not text" if _is_binary(text) else "no source recognises this text; name one with --source"

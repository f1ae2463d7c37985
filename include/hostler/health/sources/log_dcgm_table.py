"""The table that ``dcgmi diag`` prints without ``-j`` (DCGM 1.7 to 4) (pure)."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

_ROW: Final = re.compile(r"^\|([^|\n]{1,400})\|([^|\n]{0,4000})\|\s*$")
_STATUS: Final = re.compile(
    r"(pass|fail|warn(?:ing)?|skip(?:ped)?|not run|isolated fail)(?:\s{0,4}-\s{0,4}(?P<which>all|gpus?:?[\d, ]{1,200}))?\s*",
    re.IGNORECASE,
)
_OF_GPU: Final = re.compile(r"gpu {0,2}(\d{1,3}):? {1,4}(pass|fail|warn(?:ing)?|skip(?:ped)?|not run)\s*", re.IGNORECASE)
_BORDER: Final = re.compile(r"[|+][-=+ ]{2}")
_ONE_CELL: Final = re.compile(r"\|\s{0,4}\S(?:[^|\s]| (?! )){0,120}\s{0,200}\|\s*$")
UNREADABLE: Final = "cannot be read"
_DETAIL: Final = frozenset({"warning", "error", "info", "result", "warnings", "errors"})
_NO_TEST: Final = re.compile(
    r"diagnostic|dcgm version|driver version|gpu device ids|eud .{0,20}version|cuda version|nvml version|hostname",
    re.IGNORECASE,
)


@dataclass(slots=True)
class Row:
    """One result of the table; gpus empty: of all or of none. text: warnings below it."""

    name: str
    status: str
    gpus: tuple[int, ...] = ()
    text: str = ""


def read_table(text: str) -> Iterator[Row]:
    """Yields the results in the order of the table; each with the warnings that stand below it."""
    rows: list[Row] = []
    name = ""
    is_detail = False
    for line in text.splitlines():
        found = _ROW.match(line.strip())
        if found is None:
            if "|" in line and not _BORDER.match(line.strip()) and not _ONE_CELL.match(line.strip()):
                rows.append(Row("a line of the table", UNREADABLE, text=line.strip()[:80]))
            continue
        left, right = found[1].strip(" -"), found[2].strip(" -")
        if left.lower() in _DETAIL or left.lower().startswith(("warning:", "error:")):
            is_detail = left.lower() != "info"
            if is_detail:
                _add(rows, right)
            continue
        if left and _NO_TEST.match(left):
            continue
        name = left or name
        told = list(_results(name, right))
        if told:
            is_detail = False
            rows += told
        elif not left and is_detail:
            _add(rows, right)
        elif left and right:
            is_detail = False
            rows.append(Row(name, right))
    yield from rows


def _results(name: str, cell: str) -> Iterator[Row]:
    one = _OF_GPU.fullmatch(cell)
    if one:
        yield Row(name, one[2], (int(one[1]),))
        return
    found = _STATUS.fullmatch(cell)
    if found:
        which = found["which"] or ""
        yield Row(name, found[1], tuple(int(number) for number in re.findall(r"\d{1,3}", which)))


def _add(rows: list[Row], text: str) -> None:
    if rows and text and len(rows[-1].text) < 2000:  # noqa: PLR2004 - more is no help to a reader
        rows[-1].text = f"{rows[-1].text} {text}".strip()

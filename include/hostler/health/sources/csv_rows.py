"""The rows of nvidia-smi's CSV: which line is a heading, a row, an error text; which column a cell belongs to (pure)."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from hostler.health.sources.gpu_fields import FIELDS
from hostler.health.words import LostDevice, lost_devices, node_finding

_QUERY: Final = re.compile(r"--query-[a-z-]+[=\s]+[\"']?([^\s\"']+)", re.IGNORECASE)
_INDEX_AND_NAME: Final = re.compile(r"\s*\d{1,3}\s*,\s*(nvidia|tesla|geforce|quadro)\b", re.IGNORECASE)
"""How rows without a heading most often begin: with these two nobody has to name the columns."""
IDENTITY_COLUMNS: Final = ("uuid", "gpu_uuid", "pci.bus_id", "gpu_bus_id", "index")
_OTHER_COLUMNS: Final = frozenset({
    "timestamp", "driver_version", "count", "serial", "gpu_serial", "index", "pci.bus_id", "gpu_bus_id", "pid", "process_name",
    "used_gpu_memory", "used_memory", "compute_mode", "vbios_version", "display_active", "memory.free", "utilization.memory",
    "utilization.encoder", "utilization.decoder", "clocks.gr", "clocks.mem", "clocks.sm", "clocks.current.graphics", "compute_cap",
    "clocks.current.memory", "enforced.power.limit", "retired_pages.address", "retired_pages.cause", "display_mode", "minor_number",
})  # fmt: skip
_PREFIXES: Final = (
    "clocks_event_reasons.", "clocks_throttle_reasons.", "ecc.errors.", "retired_pages.", "remapped_rows.", "encoder.",
    "fabric.", "power.", "temperature.", "utilization.", "memory.", "clocks.", "pcie.", "mig.", "module.",
)  # fmt: skip
_FIELD_COLUMNS: Final = frozenset(spelling for row in FIELDS.values() for spelling in row[3])
HEALTH_COLUMNS: Final = (
    _FIELD_COLUMNS
    | {f"ecc.errors.uncorrected.{age}.{part}" for age in ("volatile", "aggregate") for part in ("total", "sram", "dram")}
    | {f"clocks_{word}_reasons.active" for word in ("event", "throttle")}
    | {f"clocks_{word}_reasons.hw_slowdown" for word in ("event", "throttle")}
) - {"uuid", "gpu_uuid", "name", "gpu_name"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One row: its cells, by column where there are columns, and the error text before it, if it had one of its own."""

    line: str
    cells: tuple[str, ...]
    values: dict[str, str] = field(default_factory=dict)
    is_malformed: bool = False
    lost: LostDevice | None = None

    @property
    def identity(self) -> str | None:
        """UUID, address or index, the first that is told; None when the row names no GPU."""
        for column in IDENTITY_COLUMNS:
            value = self.values.get(column, "")
            if value and not value.startswith("[") and "err" not in value.lower():
                return value
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """All rows; ``columns`` lower case without units, empty when nobody named them, ``is_partial`` when not all were named.

    ``lost``: devices that error lines name; ``unpaired``: those without a row. ``errors``: other lines that tell of a fault.
    """

    columns: tuple[str, ...] = ()
    has_heading: bool = False
    is_partial: bool = False
    rows: tuple[Row, ...] = ()
    lost: tuple[LostDevice, ...] = ()
    unpaired: tuple[LostDevice, ...] = ()
    errors: tuple[str, ...] = ()


def read_table(text: str, command: str | None) -> Table:
    """Returns the rows of the text; columns come from its heading, else from ``--query-gpu`` of the command."""
    columns, is_partial = _asked(command)
    has_heading = False
    rows: list[Row] = []
    lost: list[LostDevice] = []
    waiting: list[LostDevice] = []
    unpaired: list[LostDevice] = []
    errors: list[str] = []
    for line in text.splitlines():
        if not line.strip():
            continue
        named = lost_devices(line)
        if named:
            lost += named
            waiting += named
            continue
        cells = tuple(cell.strip() for cell in line.split(","))
        if not rows and not has_heading and is_heading(cells):
            columns, is_partial, has_heading = _names(cells), False, True
            continue
        if (
            has_heading and cells[0].lower().startswith(columns[0]) and _names(cells) == columns
        ):  # -l prints no second heading, but two captures in one file do
            continue
        if node_finding(line):
            errors.append(line.strip())
            continue
        if not columns and _INDEX_AND_NAME.match(line):
            columns, is_partial = ("index", "name"), True
        row = _row(line, cells, columns, is_partial=is_partial)
        if waiting and _holds_errors_only(row):
            row = replace(row, lost=waiting.pop())  # the text right before the row is its own
        unpaired += waiting
        waiting = []
        rows.append(row)
    return Table(
        columns=columns, has_heading=has_heading, is_partial=is_partial, rows=tuple(rows), lost=tuple(lost),
        unpaired=(*unpaired, *waiting), errors=tuple(errors),
    )  # fmt: skip


def is_heading(cells: Sequence[str]) -> bool:
    """Returns whether the cells are names of columns that nvidia-smi has."""
    names = _names(cells)
    if not all(name[:1].isalpha() and name.isascii() and name.replace("_", "").replace(".", "").isalnum() for name in names):
        return False
    return any(name in _FIELD_COLUMNS or name in _OTHER_COLUMNS or name.startswith(_PREFIXES) for name in names)


def _names(cells: Sequence[str]) -> tuple[str, ...]:
    return tuple(cell.split(" [", 1)[0].lower() for cell in cells)


def _asked(command: str | None) -> tuple[tuple[str, ...], bool]:
    """Returns the columns that the command asks for, and whether the list is cut short with dots."""
    found = _QUERY.search(command or "")
    if not found:
        return (), False
    names = tuple(name.strip().lower() for name in found[1].split(",") if name.strip())
    if any(set(name) <= {".", "…"} for name in names):
        return names[: next(at for at, name in enumerate(names) if set(name) <= {".", "…"})], True
    return names, False


def _row(line: str, cells: tuple[str, ...], columns: tuple[str, ...], *, is_partial: bool) -> Row:
    if is_partial:
        return Row(
            line=line, cells=cells, values=dict(zip(columns, cells, strict=False)), is_malformed=len(cells) < len(columns)
        )
    is_malformed = bool(columns) and len(cells) != len(columns)
    return Row(
        line=line,
        cells=cells,
        values=dict(zip(columns, cells, strict=False)) if not is_malformed else {},
        is_malformed=is_malformed,
    )


def _holds_errors_only(row: Row) -> bool:
    return row.identity is None and any("error" in cell.lower() or "lost" in cell.lower() for cell in row.cells)

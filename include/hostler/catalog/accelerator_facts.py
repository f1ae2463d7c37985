"""What accelerators can do: memory, speed, links. One dated table with a source for each row."""

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from functools import lru_cache
from importlib.resources import files
from types import MappingProxyType
from typing import Final

from hostler.catalog.errors import CatalogError

TABLE: Final = "accelerators_2026-12.csv"
AS_OF: Final = "2026-12-01"

KINDS: Final = ("gpu", "tpu", "neuron", "fpga", "other")
PRECISIONS: Final = ("fp32", "fp16", "bf16", "fp8", "int8")
"""What the table has a speed for. ``int4`` weights are computed in fp16 or bf16."""

_COLUMNS: Final = [
    *("Name", "Kind", "MemoryMiB", "BandwidthGBs", "Fp32", "Fp16", "Bf16", "Fp8", "Int8"),
    *("LinkGBs", "Linked", "Graphics", "Video", "Source"),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class AcceleratorFacts:
    """One accelerator.

    Attributes:
        kind: one of ``KINDS``. bandwidth_gb_per_s: of its memory.
        tflops: precision -> dense peak; only precisions that it has.
        link_gb_per_s: to its neighbours, both directions together; 0 when there is PCIe only. linked_count: how many one network
            of such links joins.
    """

    name: str
    kind: str
    memory_mib: int
    bandwidth_gb_per_s: Decimal
    tflops: Mapping[str, Decimal]
    link_gb_per_s: Decimal
    linked_count: int
    has_graphics: bool
    has_video: bool
    source: str


@lru_cache(maxsize=1)
def accelerator_facts() -> Mapping[str, AcceleratorFacts]:
    """Returns the table that comes with Hostler, by short name.

    Raises:
        CatalogError: the installed file is damaged; install again.
    """
    text = files("hostler.catalog").joinpath("data", TABLE).read_text(encoding="utf-8")
    return read_facts(text, source=TABLE)


def read_facts(text: str, *, source: str) -> Mapping[str, AcceleratorFacts]:
    """Returns the rows of a table; lines that begin with ``#`` are remarks. Raises CatalogError: names line and field."""
    found: dict[str, AcceleratorFacts] = {}
    heading: list[str] | None = None
    for line, words in enumerate(text.splitlines(), start=1):
        if not words.strip() or words.startswith("#"):
            continue
        cells = next(csv.reader([words]))
        if heading is None:
            heading = cells
            if heading != _COLUMNS:
                raise CatalogError(source, line, f"the columns are not {', '.join(_COLUMNS)}")
            continue
        if len(cells) != len(heading):
            raise CatalogError(source, line, f"{len(cells)} cells, expected {len(heading)}")
        facts = _parse(dict(zip(heading, cells, strict=True)), source, line)
        if facts.name in found:
            raise CatalogError(source, line, f"Name {facts.name!r} stands twice")
        found[facts.name] = facts
    return MappingProxyType(found)


def _parse(row: Mapping[str, str], source: str, line: int) -> AcceleratorFacts:
    def number(column: str, *, least: int) -> Decimal:
        try:
            value = Decimal(row[column])
        except InvalidOperation:
            value = Decimal("NaN")
        if not value.is_finite() or value < least:
            raise CatalogError(source, line, f"{column} {row[column]!r} is not a number of {least} or more")
        return value

    def choice(column: str, allowed: tuple[str, ...]) -> str:
        if row[column] not in allowed:
            raise CatalogError(source, line, f"{column} {row[column]!r} is not one of {', '.join(allowed)}")
        return row[column]

    if not row["Name"] or not row["Source"]:
        raise CatalogError(source, line, "Name and Source must not be empty")
    speeds = {name: number(name.capitalize(), least=0) for name in PRECISIONS}
    return AcceleratorFacts(
        name=row["Name"],
        kind=choice("Kind", KINDS),
        memory_mib=int(number("MemoryMiB", least=1)),
        bandwidth_gb_per_s=number("BandwidthGBs", least=1),
        tflops=MappingProxyType({name: speed for name, speed in speeds.items() if speed}),
        link_gb_per_s=number("LinkGBs", least=0),
        linked_count=int(number("Linked", least=1)),
        has_graphics=choice("Graphics", ("yes", "no")) == "yes",
        has_video=choice("Video", ("yes", "no")) == "yes",
        source=row["Source"],
    )

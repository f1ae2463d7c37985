"""Reads the tables of ``health/data``. Every row of every table carries its source and the day it was read."""

import csv
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Final

from hostler.catalog.errors import CatalogError

TABLES: Final = (
    "accelerators",
    "dcgm_errors",
    "faults",
    "floors",
    "instance_types",
    "kernel_lines",
    "limits",
    "recovery",
    "sxids",
    "throttle_bits",
    "training_lines",
    "xid_144_150",
    "xid_74",
    "xids",
)

Row = Mapping[str, str]


@cache
def rows(table: str) -> tuple[Row, ...]:
    """Returns the rows of one table that comes with Hostler, in the order of the file.

    Raises:
        CatalogError: the installed file is damaged; install again.
    """
    name = f"{table}.csv"
    text = files("hostler.health").joinpath("data", name).read_text(encoding="utf-8")
    return read(text, source=name)


def read(text: str, *, source: str) -> tuple[Row, ...]:
    """Returns the rows of a table's text; lines that begin with ``#`` are remarks.

    Raises:
        CatalogError: a row has no source or no day, or more or fewer fields than the header; names file and row (from 1).
    """
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    found = tuple(csv.DictReader(lines))
    for number, row in enumerate(found, start=1):
        if None in row or None in row.values():
            raise CatalogError(source, number, "the row has not as many fields as the header")
        if not row.get("source") or not row.get("read_on"):
            raise CatalogError(source, number, "the row has no source or no read_on")
    return found

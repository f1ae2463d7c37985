"""docs/guarantees.md names tests that exist, and every fault of the list by a kind of its own."""

import ast
import re
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "guarantees.md").read_text()
ROWS = re.findall(r"^\| (?!guarantee \||---)(.+?) \| (`tests/.+`) \|$", PAGE, re.MULTILINE)
FAULTS = ["B01", "B02", "B04", "B06", "B07", "B08", "B10", "B11", "B12", "B14", "B15", "B18", "B41", "B42", "B45", "B47"]


@cache
def names_in(path):
    tree = ast.parse((ROOT / path).read_text())
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}


def named(cell):
    return re.findall(r"`(tests/[\w/]+\.py)::(test_\w+)`", cell)


def test_page_when_it_names_a_test_then_that_test_exists():
    everything = [place for _, cell in ROWS for place in named(cell)]
    assert len(everything) > 100
    missing = [f"{path}::{name}" for path, name in everything if not (ROOT / path).exists() or name not in names_in(path)]
    assert missing == []


def test_page_when_it_has_a_row_then_at_least_one_test_stands_in_it():
    assert len(ROWS) == len(re.findall(r"^\| (?!guarantee \||---)", PAGE.replace("|---|---|", ""), re.MULTILINE))
    assert all(named(cell) for _, cell in ROWS)


def test_page_when_faults_are_listed_then_each_has_tests_of_its_own():
    tests = {words[:3]: set(named(cell)) for words, cell in ROWS if re.match(r"B\d\d: ", words)}
    assert sorted(tests) == FAULTS
    together = [place for places in tests.values() for place in places]
    assert len(together) == len(set(together))


def test_page_when_a_test_carries_a_faults_number_then_it_stands_in_that_row():
    told = {name for _, cell in ROWS for _, name in named(cell)}
    for path in (
        "tests/lifecycle/test_bug_reports.py",
        "tests/lifecycle/test_bug_reports_running.py",
        "tests/lifecycle/test_reap.py",
    ):
        numbered = {name for name in names_in(path) if re.match(r"test_b\d\d_", name)}
        assert {name for name in numbered - told if name[5:8].upper() in FAULTS} == set()

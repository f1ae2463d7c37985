"""The table of kernel lines is sound, and no line, however hostile, breaks or stalls the reader."""

import json
import re
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hostler.health.catalog.tables import rows
from hostler.health.kernel_event import LineKind
from hostler.health.kernel_lines import read_line
from hostler.health.kernel_words import word_rules
from hostler.model.enums import Verdict


def test_rules_when_read_then_each_has_words_and_only_known_actions():
    assert len(word_rules()) == len(rows("kernel_lines"))
    assert len({rule.name for rule in word_rules()}) == len(word_rules())
    for rule in word_rules():
        assert rule.words
        assert all(hint and hint == hint.lower() for hint in rule.hints)
        assert rule.pattern.pattern == rule.pattern.pattern.lower() or "\\S" in rule.pattern.pattern
        assert rule.is_fatal <= (rule.verdict is Verdict.FAILED)


@pytest.mark.parametrize("table", ["kernel_lines", "training_lines"])
def test_patterns_when_read_then_every_repeat_is_bounded(table):
    for row in rows(table):
        bare = re.sub(r"\[[^\]]*\]", "C", re.sub(r"\\.", "", row["pattern"]))
        assert not re.search(r"[*+]|\{\d+,\}", bare), row["name"]


SEEDS = (
    "NVRM: Xid (PCI:",
    "SXid (",
    "pid=",
    "name=",
    "mlx5_core",
    "(0x0 ",
    "[",
    "AER: ",
    "fallen off ",
    "[Hardware Error]: ",
    "nvme",
    '{"MESSAGE": "',
    "pcie bus error ",
    "link ",
    "amdgpu ",
    " Fatal",
    "xfs (",
    "rcu: ",
    "task a:",
    "nvrm: ",
    "GPU at ",
    "1,1,1,",
    "Jan 1 ",
)


@pytest.mark.parametrize("seed", SEEDS)
def test_line_when_long_and_hostile_then_time_stays_bounded(seed):
    began = time.process_time()
    for line in (seed * 20_000, seed + " " * 300_000, seed + "a" * 300_000, seed + "0" * 300_000, seed + "(" * 300_000):
        read_line(line)
    assert time.process_time() - began < 5.0


@given(st.text(max_size=400))
@settings(max_examples=200, deadline=None)
def test_line_when_any_text_then_it_is_read(text):
    assert read_line(text).kind in LineKind


PIECES = st.lists(
    st.one_of(
        st.sampled_from(SEEDS),
        st.text(max_size=12),
        st.integers(0, 99_999).map(str),
        st.sampled_from(("):", ",", ": ", "0000:9b:00", "\x00")),
    ),
    max_size=12,
)


@given(PIECES)
@settings(max_examples=300, deadline=None)
def test_line_when_made_of_real_pieces_then_it_is_read_and_shown(pieces):
    json.dumps(read_line("".join(pieces)).document())

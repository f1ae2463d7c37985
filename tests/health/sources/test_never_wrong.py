"""No input breaks a parser, and nothing that breaks a failing output makes it healthy."""

import json
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.health.sources.samples import AMD, NVLINKS, PROBE, TPU, planted, rocm, section, with_cells, xml

from hostler.health.sources import SOURCES, explain
from hostler.health.sources.document import document

QUERY = section("h100-80gb", "idle :: query (-q)")[1]
CSV = section("h100-80gb", "load :: query-gpu")[1]
TABLE = section("h100-80gb", "load :: nvidia-smi (def")[1]

FAILING = {
    "xml rows": planted(xml("a10g"), "<remapped_row_failure>No", "<remapped_row_failure>Yes"),
    "xml pending": planted(xml("a10g"), "<remapped_row_pending>No", "<remapped_row_pending>Yes"),
    "xml banks": planted(xml("a10g"), "histogram_none>0 bank", "histogram_none>2 bank"),
    "xml ecc": planted(xml("a10g"), "<sram_uncorrectable>0", "<sram_uncorrectable>1"),
    "xml heat": planted(xml("a10g"), "<gpu_temp>17 C", "<gpu_temp>97 C"),
    "xml lost": planted(xml("a10g"), "<gpu_temp>17 C", "<gpu_temp>GPU is lost"),
    "query recovery": planted(QUERY, "Recovery Action                                : None", "Recovery Action : Reset"),
    "query sram": planted(QUERY, "SRAM Threshold Exceeded                    : No", "SRAM Threshold Exceeded : Yes"),
    "query fabric": planted(QUERY, ": Completed", ": In Progress"),
    "query margin": re.sub(r"(GPU T.Limit Temp +: )\d+ C", r"\1-5 C", QUERY),
    "csv recovery": with_cells(CSV, gpu_recovery_action="Reboot"),
    "csv rows": with_cells(CSV, remapped_rows__failure="Yes"),
    "csv ecc": with_cells(CSV, ecc__errors__uncorrected__volatile__total="3"),
    "table ecc": planted(TABLE, "Off |                    0 |", "Off |                    4 |"),
    "nvlink": planted(NVLINKS, "Link 3: 25 GB/s", "Link 3: <inactive>"),
    "rocm": planted(rocm("telegraf_mi100_rocm571"), 'junction) (C)": "34.0"', 'junction) (C)": "112.0"'),
    "amd": planted(AMD, '"total_uncorrectable_count": 0', '"total_uncorrectable_count": 2'),
    "tpu": planted(TPU, '"HEALTHY"', '"TIMEOUT"'),
    "probe": planted(PROBE, '"has_remap_failed": false', '"has_remap_failed": true'),
}
KINDS = {name: explain(text, name="").source for name, text in FAILING.items()}


def lines_without(text, at):
    lines = text.splitlines(keepends=True)
    return "".join(lines[:at] + lines[at + 1 :])


def swapped(text, place, word):
    """The text with the value at one place swapped: what stands between tags, after a colon, or between commas."""
    values = list(re.finditer(r"(?<=>)[^<>\n]+(?=</)|(?<=: )[^\n,]+|(?<=, )[^,\n]+", text))
    if not values:
        return text
    value = values[place % len(values)]
    return text[: value.start()] + word + text[value.end() :]


@pytest.mark.parametrize("name", FAILING)
def test_failing_output_when_whole_then_failed(name):
    assert explain(FAILING[name], name="").verdict == "failed"


@pytest.mark.parametrize("name", FAILING)
def test_failing_output_when_any_one_line_is_deleted_then_never_healthy(name):
    text = FAILING[name]
    healthy = [
        line
        for at, line in enumerate(text.splitlines())
        if explain(lines_without(text, at), name="", kind=KINDS[name]).verdict == "healthy"
    ]
    assert healthy == []


@given(st.sampled_from(sorted(FAILING)), st.data())
@settings(max_examples=300)
def test_failing_output_when_it_is_cut_anywhere_then_never_healthy(name, data):
    text = FAILING[name]
    at = data.draw(st.integers(0, len(text.rstrip()) - 1))
    if name == "nvlink" and text[at - 1 : at + 1].count("\n") and at >= text.index("GPU 1"):
        return  # a list of GPUs that ends between two of them looks whole
    assert explain(text[:at], name="", kind=KINDS[name]).verdict != "healthy"
    assert explain(text[:at], name="").verdict != "healthy"


@given(
    st.sampled_from(sorted(FAILING)),
    st.integers(0, 2000),
    st.sampled_from(["N/A", "[N/A]", "", "ERR!", "[Unknown Error]", "\x01"]),
)
@settings(max_examples=600)
def test_failing_output_when_a_value_is_swapped_for_none_then_never_healthy(name, place, word):
    text = swapped(FAILING[name], place, word)
    assert explain(text, name="", kind=KINDS[name]).verdict != "healthy"


@given(st.sampled_from(sorted(name for name in FAILING if name.startswith("xml"))), st.integers(0, 400))
@settings(max_examples=150)
def test_failing_xml_when_a_tag_or_a_block_is_deleted_then_never_healthy(name, place):
    text = FAILING[name]
    blocks = list(re.finditer(r"<(\w+)>(?:[^<]|<(?!/\1>))*</\1>\s*", text))
    block = blocks[place % len(blocks)]
    assert explain(text[: block.start()] + text[block.end() :], name="").verdict != "healthy"


@given(
    st.sampled_from(sorted(SOURCES)),
    st.text(max_size=400),
    st.one_of(st.none(), st.text(max_size=30)),
    st.one_of(st.none(), st.integers()),
)
@settings(max_examples=400)
def test_any_text_when_given_to_any_source_then_no_parser_breaks_and_nothing_is_healthy(kind, text, command, status):
    source = SOURCES[kind]
    health = source.parse(text, command=command, exit_code=status)  # past the net of explain

    assert 0.0 <= source.detect(text, "") <= 1.0
    assert json.dumps(document(health))


PIECES = st.lists(
    st.sampled_from(
        [
            *(line for text in FAILING.values() for line in text.splitlines(keepends=True)[:60]),
            "Unable to determine the device handle for GPU0000:02:00.0: Unknown Error\n",
            "[Unknown Error], ERR!, 0\n", f"GPU {'9' * 5000}: x (UUID: y)\n", "9" * 5000, "<gpu id='1'>", "</gpu>", "{", "}", "[",
            '"gpu": 1,', '"card0": {', "\t", "\n", "|", ",", "GPU 0: x (UUID: y)\n", "Link 1: 1 GB/s\n", "# gpu pwr gtemp\n",
            "│ /dev/vfio/1 │ x │\n", "TPU Chips\n",
        ]
    ),
    max_size=30,
)  # fmt: skip


@given(st.sampled_from(sorted(SOURCES)), PIECES)
@settings(max_examples=600)
def test_torn_pieces_of_outputs_when_mixed_then_no_parser_breaks(kind, pieces):
    health = SOURCES[kind].parse("".join(pieces), command=None, exit_code=None)

    assert json.dumps(document(health))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4)
    | st.dictionaries(
        st.sampled_from(
            ["gpu", "card0", "ecc", "temperature", "hotspot", "value", "usage", "sections", "stdout", "command", "version", "power",
             "accelerators", "kernel_log", "state", "health", "symptoms", "nodes", "acceleratorType", "gpu_data", "throttle", "x"]
        ),
        inner,
        max_size=6,
    ),
    max_leaves=25,
)  # fmt: skip


@given(st.sampled_from(["rocm-smi", "amd-smi", "tpu-node", "probe", "nvidia-smi-capture"]), JSON)
@settings(max_examples=500)
def test_any_json_when_given_to_a_source_of_json_then_no_parser_breaks(kind, value):
    health = SOURCES[kind].parse(json.dumps(value), command=None, exit_code=None)

    assert json.dumps(document(health))

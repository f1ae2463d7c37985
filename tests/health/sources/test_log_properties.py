"""No text breaks a parser; a failing output never becomes healthy by being damaged."""

import json
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.health.sources.test_log_dcgm import OLD_HEALTH, SMI_ERRORS, TABLE, diag
from tests.health.sources.test_log_host import DF, TRACKING
from tests.health.sources.test_log_kernel import FABRIC
from tests.health.sources.test_log_net import A100, IBSTAT
from tests.health.sources.test_log_tests import BURN, IB, nccl

from hostler.health.sources import explain
from hostler.health.sources.document import document
from hostler.health.sources.log_rows import LOG_SOURCES
from hostler.model.enums import Verdict

KINDS = [source.kind for source in LOG_SOURCES]

MISCOMPARE = {"error_id": 52, "warning": "GPU 1 memory miscompare"}
FATAL = "detected NVSwitch fatal error 20034 on fid 0 on NVSwitch pci bus id 00000000:86:00.0 physical id 3 port 61"
BROKEN = {
    "dcgmi-diag": diag(("memory", [{"entity_group": "GPU", "entity_id": 1, "status": "Fail", "warnings": [MISCOMPARE]}])),
    "dcgmi-health": OLD_HEALTH.format(overall="Failure"),
    "nvlink-errors": SMI_ERRORS.format(recovery="9", crc="0"),
    "fabric-manager-log": "\n".join(FABRIC.format(level=level, message=FATAL) for level in ("ERROR", "ERROR")),
    "nccl-tests": nccl(100.0),
    "gpu-burn": BURN.format(rate="6783 (17093", errors="0", temp="59", result="\tGPU 1: FAULTY\n"),
    "ib-status": IBSTAT.format(state="Down", phys="Polling", rate="10", layer="InfiniBand"),
    "ib-bandwidth": IB.format(unit="Gb", size=8388608, value="130.0"),
    "lspci": f"01:00.0 {A100} (rev ff)\n",
    "df": DF.format(used=50, percent=99, second=10),
    "clock": TRACKING.format(skew="9600.00000", leap="Normal"),
}
TABLE_FAILS = TABLE.format(pcie="Fail - All" + " " * 37, more="")
WORDS = (
    "Link ",
    "GPU 0: ",
    "Pass",
    "Fail",
    "|",
    "\n",
    "CA 'mlx5_0'\n",
    "Port 1:\n",
    "state: ",
    "# ",
    "Active",
    "%",
    " ",
    "{",
    '"',
    "[",
    "Xid (",
    "0",
    "/sys/",
)


# Not the open-ended logs: any part of one is a log too.
@pytest.mark.parametrize("kind", [*(kind for kind in KINDS if kind in BROKEN), "table"])
def test_failing_output_when_one_letter_is_damaged_then_never_healthy(kind):
    text = TABLE_FAILS if kind == "table" else BROKEN[kind]
    source = "dcgmi-diag" if kind == "table" else kind
    assert explain(text, name="", kind=source).verdict in {Verdict.FAILED, Verdict.DEGRADED}
    healed = [
        (at, text[max(0, at - 20) : at + 10])
        for at, letter in enumerate(text)
        if not letter.isspace() and explain(f"{text[:at]}#{text[at + 1 :]}", name="", kind=source).verdict is Verdict.HEALTHY
    ]
    assert healed == []


@pytest.mark.parametrize("kind", ["dcgmi-diag", "dcgmi-health", "nccl-tests", "gpu-burn"])
def test_failing_output_when_it_is_cut_off_then_never_healthy(kind):
    text = BROKEN[kind]
    for end in range(len(text)):
        assert explain(text[:end], name="", kind=kind).verdict is not Verdict.HEALTHY


@pytest.mark.parametrize("kind", KINDS)
@given(data=st.data())
@settings(max_examples=25, deadline=None)
def test_source_when_given_any_text_then_it_answers(kind, data):
    text = data.draw(
        st.one_of(
            st.text(max_size=300),
            st.lists(st.one_of(st.sampled_from(WORDS), st.text(max_size=8)), max_size=40).map("".join),
            st.recursive(
                st.none() | st.integers() | st.text(max_size=8),
                lambda inner: (
                    st.lists(inner, max_size=3)
                    | st.dictionaries(
                        st.sampled_from(
                            (
                                "DCGM Diagnostic",
                                "tests",
                                "results",
                                "name",
                                "status",
                                "body",
                                "children",
                                "value",
                                "/sys/class/net/a/b",
                            )
                        ),
                        inner,
                        max_size=4,
                    )
                ),
                max_leaves=12,
            ).map(json.dumps),
        )
    )
    health = explain(text, name="", kind=kind, exit_code=data.draw(st.sampled_from((None, 0, 1, 226))))
    assert health.source == kind
    assert not any("could not be read: " in reason and "Error:" in reason for reason in health.unknown)
    json.dumps(document(health))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("kept", [0.3, 0.6, 0.9])
def test_source_when_given_another_sources_text_then_it_answers(kind, kept):
    for text in (*BROKEN.values(), TABLE_FAILS):
        health = explain(text[: int(kept * len(text))], name="", kind=kind)
        assert not any("could not be read: " in reason and "Error:" in reason for reason in health.unknown)


HOSTILE = (
    "#",
    " ",
    "\t",
    "0",
    "a",
    "| ",
    "GPU 0: ",
    "Link 0: ",
    "proc'd: 1 ",
    "errors: ",
    "100.0%  proc'd: ",
    "01:00.0 a: ",
    "/a ",
    "- ",
    ": ",
    "(",
    "[a] ",
    "CA 'a'\n",
    "1 2 3 4 5 6 7 8 9 ",
    "nan ",
    "step 1 ",
    "Fail - ",
    "UNIT.service ",
    "/sys/class/net/",
)


@pytest.mark.parametrize("kind", KINDS)
def test_source_when_a_text_is_long_and_hostile_then_time_stays_bounded(kind):
    began = time.process_time()
    for seed in HOSTILE:
        line = seed * (60_000 // len(seed))
        explain(line, name="", kind=kind)
    assert time.process_time() - began < 20.0


@pytest.mark.parametrize("kind", BROKEN)
def test_output_when_no_kind_is_given_then_it_is_recognised(kind):
    assert explain(BROKEN[kind], name="").source == kind

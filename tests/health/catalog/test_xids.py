"""NVIDIA's catalogue against the lists that public checkers carry, its work-flows, and every row's source."""

import pytest

from hostler.catalog.errors import CatalogError
from hostler.health.catalog import XidContext, cause_in, dcgm_error, dcgm_errors, decode_74, sxid, sxids, xid, xids
from hostler.health.catalog.tables import TABLES, read, rows
from hostler.model.enums import HealthAction, Verdict

RESET_OR_MORE = HealthAction.RESET_GPU.rank
PCI = "NVRM: Xid (PCI:0000:04:00): "

# code -> NVIDIA's immediate bucket, what a public list does against it, what comes of that.
CONTRADICTIONS = {
    63: ("IGNORE", "AzNHC fails the node", "false drain"),
    68: ("RESTART_APP", "AzNHC fails the node", "false drain"),
    69: ("RESTART_APP", "AzNHC fails the node, k8s-device-plugin#189 marks the GPU unhealthy", "false drain"),
    80: ("RESTART_APP", "AzNHC fails the node", "false drain"),
    92: ("IGNORE", "AzNHC fails the node", "false drain"),
    94: (
        "RESTART_APP",
        "k8s-device-plugin#1974, #1014 mark the GPU unhealthy for ever; GCM calls it critical",
        "lost capacity",
    ),
    109: ("RESET_GPU", "GCM calls it non-critical, k8s-device-plugin#1974 ignores it", "a sick GPU stays in service"),
}
NOT_LISTED_ELSEWHERE = {
    95: "RESET_GPU",
    110: "RESET_GPU",
    136: "RESET_GPU",
    140: "RESET_GPU",
    143: "RESET_GPU",
    158: "RESET_GPU",
}


@pytest.mark.parametrize(("code", "what"), CONTRADICTIONS.items())
def test_xid_when_a_public_list_contradicts_nvidia_then_nvidia_is_followed(code, what):
    bucket, _theirs, harm = what
    rule = xid(code)

    assert rule.nvidia_immediate == bucket
    if harm == "a sick GPU stays in service":
        assert (rule.verdict, rule.action) == (Verdict.FAILED, HealthAction.RESET_GPU)
    else:
        assert rule.verdict is Verdict.HEALTHY
        assert rule.action.rank < RESET_OR_MORE


@pytest.mark.parametrize(("code", "bucket"), NOT_LISTED_ELSEWHERE.items())
def test_xid_when_public_lists_miss_a_fatal_code_then_it_is_ours(code, bucket):
    assert (xid(code).nvidia_immediate, xid(code).verdict) == (bucket, Verdict.FAILED)


RUNG_OF_BUCKET = {
    "IGNORE": (HealthAction.NONE, HealthAction.DRAIN_AND_DIAG),
    "RESTART_APP": (HealthAction.RESTART_APP, HealthAction.RESTART_APP),
    "RESET_GPU": (HealthAction.RESET_GPU, HealthAction.RESET_GPU),
    "RESTART_VM": (HealthAction.REBOOT_NODE, HealthAction.REBOOT_NODE),
    "RESTART_BM": (HealthAction.REBOOT_NODE, HealthAction.REBOOT_NODE),
}
STRICTER_THAN_IGNORE = {157, 161}
"""NVIDIA: no spare is left, it still works. We plan a diagnosis, and keep it in service (degraded)."""


def test_xids_when_nvidia_names_a_bucket_then_our_rung_is_that_bucket():
    for rule in xids():
        if rule.nvidia_immediate not in RUNG_OF_BUCKET:
            continue
        least, most = RUNG_OF_BUCKET[rule.nvidia_immediate]
        assert least.rank <= rule.action.rank <= most.rank, rule.code
        if rule.nvidia_immediate == "IGNORE" and rule.code not in STRICTER_THAN_IGNORE:
            assert rule.action.rank <= HealthAction.RECORD.rank, rule.code
        assert (rule.verdict is Verdict.FAILED) == (least.rank >= RESET_OR_MORE), rule.code


def test_xid_when_a_code_is_unused_or_new_then_it_is_seen_but_harms_nothing():
    for code in (1, 58, 61, 999):
        assert (xid(code).action, xid(code).verdict) == (HealthAction.RECORD, Verdict.DEGRADED)


@pytest.mark.parametrize(
    ("companions", "line", "nvidia", "action", "follows"),
    [
        (frozenset(), "", "RESTART_FM", HealthAction.RESTART_SERVICE, False),
        (frozenset({45}), "", "RESTART_FM", HealthAction.RESTART_SERVICE, False),
        (frozenset({79}), "", "IGNORE", HealthAction.NONE, True),
        (
            frozenset(),
            f"{PCI}45, pid=1, name=python3, Ch 0000000c caused by previous Xid 145",
            "IGNORE",
            HealthAction.NONE,
            True,
        ),
    ],
)
def test_xid_45_when_alone_or_not_then_its_work_flow_is_followed(companions, line, nvidia, action, follows):
    rule = xid(45, XidContext(line=line, companions=companions))

    assert (rule.nvidia_action, rule.action, rule.is_follow_up) == (nvidia, action, follows)
    assert rule.verdict is Verdict.HEALTHY


def test_cause_when_a_line_names_it_then_it_is_a_number():
    assert cause_in("Ch 0000000c caused by previous Xid 149") == 149
    assert cause_in("Ch 0000000c") is None


@pytest.mark.parametrize(
    ("companions", "nvidia"), [((), "RESET_GPU"), ((63,), "DRAIN_AND_RESET"), ((64,), "DRAIN_AND_RESET"), ((95,), "RESET_GPU")]
)
def test_xid_48_when_a_remap_comes_with_it_then_it_is_drained_first(companions, nvidia):
    assert xid(48, XidContext(companions=frozenset(companions))).nvidia_action == nvidia


@pytest.mark.parametrize(
    ("numbers", "companions", "first", "again"),
    [
        ("0x0, 0x0, 0x10000, 0x0, 0x0, 0x0, 0x0", (), HealthAction.RESET_GPU, HealthAction.DRAIN_AND_DIAG),  # gpud sample
        ("0x800001, 0x0, 0x0, 0x0, 0x0, 0x0, 0x0", (), HealthAction.NONE, HealthAction.NONE),  # bits 0 and 23: ignored
        ("0x2, 0x0, 0x0, 0x0, 0x0, 0x0, 0x0", (), HealthAction.DRAIN_AND_DIAG, HealthAction.DRAIN_AND_DIAG),  # bit 1 alone
        ("0x2, 0x0, 0x0, 0x0, 0x0, 0x0, 0x0", (79,), HealthAction.RECORD, HealthAction.RECORD),
        ("0x2, 0x0, 0x0, 0x0, 0x0, 0x0, 0x0", (45,), HealthAction.DRAIN_AND_DIAG, HealthAction.DRAIN_AND_DIAG),
        ("0x12, 0x0, 0x0, 0x0, 0x0, 0x0, 0x0", (), HealthAction.RESET_GPU, HealthAction.DRAIN_AND_DIAG),  # bit 1 beside bit 4
        ("0x200000, 0x0, 0x0, 0x0, 0x0, 0x0, 0x0", (), HealthAction.RESET_GPU, HealthAction.DRAIN_AND_REPLACE),
        ("0x0, 0x0, 0x2000, 0x0, 0x0, 0x0, 0x0", (), HealthAction.DRAIN_AND_DIAG, HealthAction.DRAIN_AND_DIAG),
        ("0x0, 0x0, 0x0, 0x0, 0x100000, 0x0, 0x0", (), HealthAction.RECORD, HealthAction.DRAIN_AND_DIAG),
        ("0x0, 0x80000000, 0x0, 0x0, 0x0, 0x0, 0x0", (), HealthAction.RESET_GPU, HealthAction.DRAIN_AND_DIAG),  # not named
        ("0x0, 0x0, 0x0, 0x0, 0x0, 0x0, 0x0", (), HealthAction.RESET_GPU, HealthAction.DRAIN_AND_DIAG),  # nothing told
    ],
)
def test_xid_74_when_registers_are_told_then_their_bits_decide(numbers, companions, first, again):
    line = f"NVRM: Xid (PCI:0003:00:00): 74, pid=1, name=x, NVLink: fatal error detected on link 14({numbers})"
    rule = xid(74, XidContext(line=line, companions=frozenset(companions)))

    assert rule.action is first
    assert rule.link == 14
    assert rule.repeat is None or rule.repeat.action is again
    assert decode_74(line, frozenset(companions) - {45}).repeat_action is again


@pytest.mark.parametrize(
    ("text", "nvidia", "action", "verdict", "sub_code"),
    [
        # leptonai/gpud#1160, #1174; NVIDIA/NVSentinel#1357: the kernel's Nonfatal does not go over the table
        ("149, NETIR_LINK_EVT Fatal XC0 i0 Link 00 (0x025001c6 0x00000000 0x0)", "RESET_GPU", "reset_gpu", "failed", 37),
        ("149, NETIR_LINK_EVT Fatal XC0 i0 Link 00 (0x026001c6 0x00000000 0x0)", "IGNORE", "record", "healthy", 38),
        ("149, NETIR_LINK_EVT/NETIR_LINK_DOWN Fatal XC0 i0 Link 00 (0x02500011 0x0)", "RESET_GPU", "reset_gpu", "failed", 37),
        ("149, NETIR Fatal XC0 i0 Link -1 (0x000fe406", "RESET_GPU", "reset_gpu", "failed", None),
        ("145, RLW_REMAP Nonfatal XC1 i0 Link 10 (0x00000004 0x00000040 0x0)", "RESET_GPU", "reset_gpu", "failed", None),
        ("145, RLW_REMAP Nonfatal XC1 i0 Link 10 (0x00000082 0x00000040 0x0)", "RESET_GPU", "reset_gpu", "failed", None),
        ("145, RLW_RXPIPE Nonfatal XC0 i0 Link 13 (0x0409a0c2 0x00000008 0x1)", "IGNORE", "record", "healthy", None),
        ("145, RLW_RXPIPE Nonfatal XC0 i0 Link 13 (0x00000086 0x00000001 0x0)", "RESET_GPU", "reset_gpu", "failed", None),
        (
            "145, pid=11436, name=x, RLW_SRC_TRACK Nonfatal XC1 i0 Link 03 (0x040868e2 0x8)",
            "XID_154_EVAL",
            "restart_app",
            "healthy",
            None,
        ),
        ("150, MSE_WATCHDOG Fatal XC0 i0 Link 00 (0x00000000 0x00000000)", "RESET_GPU", "reset_gpu", "failed", None),
        (
            "144, SAW_EGR Nonfatal XC0 i0 Link 00 (0x00000004 0x00000001)",
            "WORKFLOW_NVLINK5_ERR",
            "drain_and_diag",
            "degraded",
            None,
        ),
        ("144, SAW_EGR Fatal XC0 i0 Link 00 (0x00000004 0x00000001)", "WORKFLOW_NVLINK5_ERR", "drain_and_diag", "failed", None),
        ("145, RLW_RXPIPE Nonfatal XC0 i0 Link 11 (...)", "WORKFLOW_NVLINK5_ERR", "drain_and_diag", "degraded", None),
        # two causes in one status: the strictest
        ("145, RLW_REMAP Nonfatal XC1 i0 Link 10 (0x00000004 0x00000140 0x0)", "RESET_GPU", "reset_gpu", "failed", None),
    ],
)
def test_xid_144_to_150_when_decoded_then_the_table_decides(text, nvidia, action, verdict, sub_code):
    rule = xid(int(text[:3]), XidContext(line=PCI + text))

    assert (rule.nvidia_action, rule.action, rule.verdict, rule.sub_code) == (nvidia, action, verdict, sub_code)


def test_xid_144_to_150_when_the_driver_is_told_then_only_its_layout_counts():
    line = f"{PCI}149, NETIR_LINK_EVT Fatal XC0 i0 Link 08 (0x004505c6 0x0)"

    assert xid(149, XidContext(line=line, driver_major=570)).nvidia_action == "RESET_GPU"
    assert xid(149, XidContext(line=line, driver_major=580)).nvidia_action == "WORKFLOW_NVLINK5_ERR"


@pytest.mark.parametrize("row", rows("xid_144_150"), ids=lambda row: f"{row['code']}-{row['unit']}-{row['status'][:10]}")
def test_decode_when_a_line_is_made_of_a_table_row_then_it_finds_the_row_again(row):
    status = row["status"].split("/")[0] or "0x00000000"
    for layout in ("v1_mask", "v2_mask"):
        number = int(row[layout].replace("-", "0"), 2)
        line = f"{PCI}{row['code']}, {row['unit'].split('/')[0]} Nonfatal XC0 i0 Link 00 (0x{number:08x} {status} 0x0)"
        assert xid(int(row["code"]), XidContext(line=line)).nvidia_action == row["nvidia_action"]


@pytest.mark.parametrize(
    ("tail", "nvidia", "action", "verdict"),
    [
        ("from 0x0 (None) to 0x1 (GPU Reset Required)", "RESET_GPU", "reset_gpu", "failed"),
        ("from 0x0 (None) to 0x2 (Node Reboot Required)", "RESTART_BM", "reboot_node", "failed"),
        ("from 0x0 (None) to 0x3 (Drain P2P)", "DRAIN_P2P", "drain_and_diag", "failed"),
        ("from 0x0 (None) to 0x4 (Drain and Reset)", "DRAIN_AND_RESET", "reset_gpu", "failed"),
        ("from 0x1 (GPU Reset Required) to 0x0 (None)", "IGNORE", "none", "healthy"),
        ("from 0x1 (GPU Reset Required) to 0x9 (Something New)", "", "drain_and_diag", "failed"),
        ("(", "XID_154", "record", "degraded"),
    ],
)
def test_xid_154_when_the_driver_names_a_recovery_then_it_is_followed(tail, nvidia, action, verdict):
    rule = xid(154, XidContext(line=f"{PCI}154, GPU recovery action changed {tail}"))

    assert (rule.nvidia_action, rule.action, rule.verdict) == (nvidia, action, verdict)


@pytest.mark.parametrize(
    ("code", "line", "action", "verdict"),
    [
        (12028, "SXid (PCI:0000:05:00.0): 12028, Non-fatal, Link 32 egress non-posted PRIV error", "record", "degraded"),
        (12028, "SXid (PCI:0000:05:00.0): 12028, Fatal", "reset_gpu", "failed"),
        (22013, "SXid (PCI:0000:0a:00.0): 22013, Non-fatal, Link 57 Minion Link DLREQ interrupt", "none", "healthy"),
        (24007, "SXid (PCI:0000:c3:00.0): 24007, Fatal, Link 28 sourcetrack timeout error (First)", "drain_and_diag", "failed"),
        (20034, "", "drain_and_diag", "failed"),
        (23005, "SXid (PCI:0000:c3:00.0): 23005, Non-fatal", "reboot_node", "failed"),
        (11012, "SXid (PCI:0000:c3:00.0): 11012, Non-fatal", "none", "healthy"),
        (99999, "SXid (PCI:0000:c3:00.0): 99999, Fatal", "drain_and_diag", "failed"),
        (26008, "SXid (PCI:0004:00:00.0): 26008, SOE Watchdog error", "record", "degraded"),
    ],
)
def test_sxid_when_the_line_says_fatal_or_not_then_it_counts_where_the_table_leaves_it_open(code, line, action, verdict):
    rule = sxid(code, line)

    assert (rule.action, rule.verdict) == (action, verdict)


def test_dcgm_error_when_named_or_numbered_then_it_is_the_same_row():
    assert dcgm_error(70) == dcgm_error("NVLINK_CRC_ERROR_THRESHOLD") == dcgm_error("DCGM_FR_NVLINK_CRC_ERROR_THRESHOLD")
    assert dcgm_error("DCGM_FR_ROW_REMAP_FAILURE").action is HealthAction.DRAIN_AND_REPLACE
    assert dcgm_error("DCGM_FR_NVLINK_DOWN").action is HealthAction.REBOOT_NODE
    assert dcgm_error("DCGM_FR_CUDA_API").verdict is Verdict.UNKNOWN
    assert dcgm_error("DCGM_FR_MEMORY_ALLOC").verdict is Verdict.DEGRADED
    assert dcgm_error("DCGM_FR_NEW").verdict is Verdict.FAILED


def test_dcgm_errors_when_nvsentinel_resets_or_restarts_then_we_never_do_less():
    least = {"COMPONENT_RESET": HealthAction.RESET_GPU, "RESTART_BM": HealthAction.REBOOT_NODE}
    for rule in dcgm_errors():
        if rule.nvsentinel_action in least and rule.kind == "hardware":
            assert rule.action.rank >= least[rule.nvsentinel_action].rank, rule.name


def test_tables_when_listed_then_every_row_has_source_and_date_and_every_key_is_single():
    for table in TABLES:
        assert all(row["source"] and row["read_on"] for row in rows(table))
    for rules in (xids(), sxids()):
        assert len({rule.code for rule in rules}) == len(rules)
    assert len(xids()) == 172


def test_read_when_a_row_has_no_source_or_is_short_then_it_is_refused():
    with pytest.raises(CatalogError, match="no source"):
        read("code,source,read_on\n1,,2026-12-01", source="x.csv")
    with pytest.raises(CatalogError, match="as many fields"):
        read("code,source,read_on\n1,there", source="x.csv")

import json

import pytest
from tests.health.shared_captures import FOLDER, capture, needs_captures

from hostler.health.catalog import XidContext, xid
from hostler.health.kernel_event import LineKind
from hostler.health.kernel_lines import read_line
from hostler.model.enums import HealthAction, Verdict

KINDS = {
    "mlx5": "nic",
    "gpu_fallen_off_bus_no_xid": "fallen_off_bus",
    "nvrm_other": "other",
    "pcie_aer": "pcie",
    "xid": "xid",
    "sxid": "sxid",
}
LABELLED = [json.loads(line) for line in capture("kernel-logs/kernel_lines.jsonl").splitlines()] if FOLDER else []


@needs_captures
@pytest.mark.parametrize("case", LABELLED, ids=[case["id"] for case in LABELLED])
def test_line_when_labelled_then_kind_number_address_and_program_are_right(case):
    event = read_line(case["line"])
    assert event.kind == KINDS[case["kind"]]
    if case.get("code") is not None:
        assert event.code == case["code"]
    address = (case.get("pci") or "").removeprefix("PCI:")
    if address and "$" not in address and "..." not in address:
        assert event.pci == address
    if "pid" in case:
        assert event.pid == (int(case["pid"]) if str(case["pid"]).isdigit() else None)
        process = (case["process"] or "").strip("`")
        assert event.process == (None if process in {"", "<unknown>"} else process)
    if "fatal" in case:
        assert event.is_fatal == case["fatal"]


@needs_captures
@pytest.mark.parametrize("case", [case for case in LABELLED if case.get("catalog")], ids=lambda case: case["id"])
def test_line_when_labelled_then_action_is_that_of_nvidias_catalogue(case):
    event = read_line(case["line"])
    immediate = case["catalog"]["immediate"]
    if immediate.startswith(("WORKFLOW", "XID_154")) and event.nvidia_action != immediate:
        assert event.nvidia_action == xid(case["code"], XidContext(line=case["line"])).nvidia_action
        assert event.nvidia_action in {"IGNORE", "RESET_GPU", "XID_154_EVAL", "RESTART_FM", "DRAIN_AND_RESET"}
    else:
        assert event.nvidia_action == immediate


BODY = "NVRM: Xid (PCI:0000:04:00): 79, pid=1234, name=train.3, GPU has fallen off the bus."
FORMS = (
    BODY,
    f"[   12.345678] {BODY}",
    f"[Sun Feb 23 16:24:18 2025] {BODY}",
    f"[  +0.000844] {BODY}",
    f"<3>[6085126.134786] {BODY}",
    f"kern  :err   : [   12.345678] {BODY}",
    f"kern  :err   : 2025-01-21T04:41:44,285060+00:00 {BODY}",
    f"2025-01-21T04:41:44+0000 node1 kernel: {BODY}",
    f"Jan 21 11:18:36 node1 kernel: [ 6085126.134786] {BODY}",
    f"<3>Dec 31 23:59:59 node1 kernel: {BODY}",
    f"<3>1 2025-01-21T04:41:44.285060Z node1 kernel - - - {BODY}",
    f"3,1227,437812449932,c;{BODY}",
    f"3,1227,437812449932,-,caller=T12;{BODY}",
    f"[   12.345678][ T1234] {BODY}",
    json.dumps({"MESSAGE": BODY, "__REALTIME_TIMESTAMP": "1737434504285060", "_TRANSPORT": "kernel"}),
    json.dumps({"MESSAGE": list(BODY.encode()), "_BOOT_ID": "a"}),
    json.dumps({"log": BODY + "\n", "stream": "stdout"}),
    BODY + "\r",
)


@pytest.mark.parametrize("line", FORMS)
def test_line_when_in_any_form_then_it_says_the_same(line):
    event = read_line(line)
    assert (event.kind, event.code, event.pci, event.pid, event.process) == ("xid", 79, "0000:04:00", 1234, "train.3")
    assert (event.nvidia_action, event.action, event.is_fatal) == ("RESTART_BM", HealthAction.REBOOT_NODE, True)


@pytest.mark.parametrize(
    ("address", "normal"),
    [
        ("PCI:0000:9B:00", "0000:9b:00"),
        ("PCI:00000000:9b:00.0", "0000:9b:00.0"),
        ("PCI:00010000:9b:00.0", "00010000:9b:00.0"),
        ("0000:03:00", "0000:03:00"),
        ("03:00", "0000:03:00"),
        ("PCI:000d:00:00", "000d:00:00"),
        ("PCI:...", None),
        ("PCI:$pci", None),
        ("GPU-12345678-1234-5678-9abc-def012345678", None),
    ],
)
def test_xid_when_address_is_written_anyhow_then_it_is_normal_or_none(address, normal):
    assert read_line(f"NVRM: Xid ({address}): 31, pid=7").pci == normal


@pytest.mark.parametrize(
    ("who", "pid", "process"),
    [
        ("pid=2079991, name=pt_main_thread, Ch 00000007", 2079991, "pt_main_thread"),
        ("pid='<unknown>', name=<unknown>, Ch 00000007", None, None),
        ("pid='2079991', name='python3', Ch 00000007", 2079991, "python3"),
        ("pid=7, name=KMS thread, Timeout", 7, "KMS thread"),
        ("pid=7, name=nvc:[driver], Timeout", 7, "nvc:[driver]"),
        ("pid=7, name=VLLM::Worker, channel 0x00000008", 7, "VLLM::Worker"),
        ("pid=7, name=a,b, Ch 1", 7, "a,b"),
        ("pid=7, name=idle", 7, "idle"),
        ("pid=7, name=proc Recommended Action=COMPONENT_RESET", 7, "proc"),
        ("pid=7", 7, None),
        ("Ch 00000007", None, None),
        ("pid=XXX", None, None),
    ],
)
def test_xid_when_program_is_written_anyhow_then_it_is_read_or_none(who, pid, process):
    event = read_line(f"NVRM: Xid (PCI:0000:01:00): 31, {who}")
    assert (event.pid, event.process) == (pid, process)


@pytest.mark.parametrize(
    ("code", "nvidia", "action"),
    [
        (13, "RESTART_APP", "restart_app"),
        (31, "RESTART_APP", "restart_app"),
        (43, "IGNORE", "record"),
        (45, "RESTART_FM", "restart_service"),
        (48, "RESET_GPU", "reset_gpu"),
        (62, "RESET_GPU", "reset_gpu"),
        (63, "IGNORE", "record"),
        (64, "RESET_GPU", "reset_gpu"),
        (79, "RESTART_BM", "reboot_node"),
        (92, "IGNORE", "record"),
        (94, "RESTART_APP", "restart_app"),
        (95, "RESET_GPU", "reset_gpu"),
        (109, "RESET_GPU", "reset_gpu"),
        (119, "RESET_GPU", "reset_gpu"),
        (120, "RESET_GPU", "reset_gpu"),
        (140, "RESET_GPU", "reset_gpu"),
        (143, "RESET_GPU", "reset_gpu"),
        (99999, None, "record"),
    ],
)
def test_xid_when_alone_then_both_actions_are_the_catalogues(code, nvidia, action):
    event = read_line(f"NVRM: Xid (PCI:0000:01:00): {code}, pid=1, name=a, text")
    assert (event.nvidia_action, event.action.value) == (nvidia, action)


@pytest.mark.parametrize(
    "line",
    [
        "NVRM: GPU at PCI:0000:9b:00: GPU-509665ad-b600-ac93-3616-d754b23d636d",
        "",
        "{",
        '{"MESSAGE": null}',
        '{"MESSAGE": [256, -1, "a"]}',
    ],
)
def test_line_when_it_says_nothing_then_other_without_action(line):
    event = read_line(line)
    assert (event.kind, event.code, event.action) == (LineKind.OTHER, None, HealthAction.NONE)


@pytest.mark.parametrize(
    "line",
    [
        "NVRM: Xid (PCI:0000:b3:00.0): INVALID, pid=1234, name=process",
        "NVRM: Xid (PCI:{}): {}, pid=1814139, name=cuda_assert_64b",
        "NVRM: Xid",
        "NVRM: Xid (...)",
        "NVRM: Xid error: xyz, invalid data",
        "nvidia-nvswitch0: SXid (PCI:0000:00:00.0): xyz, Fatal error",
    ],
)
def test_xid_when_its_number_is_unreadable_then_unknown_and_never_nothing(line):
    event = read_line(line)
    assert (event.kind, event.code, event.verdict) == (LineKind.OTHER, None, Verdict.UNKNOWN)


@pytest.mark.parametrize(
    ("line", "kind", "action", "fatal"),
    [
        ("pcieport 0000:50:00.0: AER: PCIe Bus Error: severity=Uncorrectable (Fatal)", "pcie", "reboot_node", True),
        (
            "pcieport 0000:00:03.0: PCIe Bus Error: severity=Uncorrected (Fatal), type=Transaction Layer, (Requester ID)",
            "pcie",
            "reboot_node",
            True,
        ),
        (
            "pcieport 0000:80:1b.4: AER: Uncorrectable (Non-Fatal) error message received from 0000:80:1b.4",
            "pcie",
            "record",
            False,
        ),
        ("pcieport 0000:00:03.0: AER: Multiple Uncorrected (Fatal) error received: 0000:00:03.0", "pcie", "reboot_node", True),
        ("pcieport 0000:00:1c.5: AER: Corrected error received: id=00e5", "pcie", "record", False),
        (
            "pcieport 0000:01:00.0: PCIe Bus Error: severity=Corrected, type=Data Link Layer, (Receiver ID)",
            "pcie",
            "record",
            False,
        ),
        ("nvidia 0000:03:00.0: AER: can't recover (no error_detected callback)", "pcie", "reboot_node", True),
        ("pcieport 0000:00:03.0: AER: device recovery successful", "pcie", "none", False),
        ("pcieport 0000:00:03.0:   device [8086:6f08] error status/mask=00004020/00000000", "pcie", "none", False),
        ("pcieport 0000:20:01.0: DPC: containment event, status:0x1f01 source:0x0000", "pcie", "reboot_node", True),
        ("nvidia-gpu 0000:09:00.3: Refused to change power state, currently in D3", "pcie", "reboot_node", True),
        (
            "mlx5_core 0000:5c:00.0: mlx5_pcie_event:299:(pid 268269): Detected insufficient power on the PCIe slot (27W).",
            "nic",
            "record",
            False,
        ),
        (
            "mlx5_core 0000:61:00.0: wait_func:1132:(pid 141181): CREATE_DCT(0x710) timeout. Will cause a leak of a command resource",
            "nic",
            "drain_and_diag",
            False,
        ),
        (
            "mlx5_core 0000:61:00.0: poll_health:820:(pid 0): device's health compromised - reached miss count",
            "nic",
            "reboot_node",
            True,
        ),
        ("mlx5_core 0000:41:00.0 ens6f0np0: Link down", "nic", "record", False),
        ("mlx5_core 0000:41:00.0 ens6f0np0: Link up", "nic", "none", False),
        ("mlx5_core 0000:41:00.0 ens6f0np0: TX timeout detected", "nic", "record", False),
        (
            "mlx5_core 0000:41:00.0: Port module event[error]: module 0, Cable error, High Temperature",
            "nic",
            "drain_and_diag",
            False,
        ),
        ("NVRM: GPU 0000:01:00.0: RmInitAdapter failed! (0x22:0x56:894)", "other", "reboot_node", True),
        ("NVRM: GPU 0000:01:00.0: rm_init_adapter failed, device minor number 0", "other", "reboot_node", True),
        ("NVRM: API mismatch: the client has the version 460.73.01, but", "other", "reboot_node", False),
        ("NVRM: BAR1 is 0M @ 0x0 (PCI:0000:81:00.0)", "other", "reboot_node", True),
        ("NVRM: This PCI I/O region assigned to your NVIDIA device is invalid:", "other", "reboot_node", True),
        ("nouveau 0000:01:00.0: fifo: PBDMA0: 00040000 [PBENTRY]", "other", "reboot_node", True),
        ("mce: [Hardware Error]: Machine check events logged", "other", "record", False),
        ("mce: [Hardware Error]: CPU 0: Machine Check Exception: 5 Bank 9", "other", "drain_and_replace", True),
        ("mce: CPU0: 1 Corrected error(s) detected. Check CMCI storm count.", "other", "record", False),
        ("mce: CPU0: Core temperature above threshold, cpu clock throttled", "other", "record", False),
        ("mce: CPU0: Core temperature/speed normal", "other", "none", False),
        ("nvme 0000:34:00.0: PCIe Bus Error: severity=Uncorrectable (Fatal), type=Data Link Layer", "pcie", "record", False),
        ("snd_hda_intel 0000:03:00.1: AER: can't recover (no error_detected callback)", "pcie", "record", False),
        ("pcieport 0000:30:03.0: DPC: ERR_FATAL detected", "pcie", "reboot_node", True),
        ("aer_event: 0000:0c:00.0 PCIe Bus Error: severity=Fatal, Uncorrectable Internal Error", "pcie", "reboot_node", True),
        (
            "NVRM: nvGpuOpsReportFatalError: uvm encountered global fatal error 0x60, requiring os reboot",
            "other",
            "reboot_node",
            True,
        ),
        ("mlx5_cmd_out_err:806:(pid 1): mlx5_core 0000:d1:00.0: ACCESS_REG(0x805) op_mod(0x1) failed", "nic", "record", False),
        ("EXT4-fs (dm-0): I/O error while writing superblock", "other", "drain_and_diag", False),
        ("block nvme0n1: no available path - failing I/O", "other", "drain_and_diag", False),
        ("VFS: file-max limit 1000000 reached", "other", "record", False),
        ("amdgpu 0000:83:00.0: amdgpu: [gfxhub0] no-retry page fault (src_id:0 ring:24)", "other", "restart_app", False),
        ("EDAC MC0: 1 UE memory read error on CPU_SrcID#0_Ha#0_Chan#1_DIMM#0", "other", "drain_and_diag", True),
        ("EDAC MC1: 2 CE memory scrubbing error on CPU_SrcID#1", "other", "record", False),
        ("Memory cgroup out of memory: Killed process 4242 (python3) total-vm:1kB", "other", "restart_app", False),
        ("EXT4-fs (nvme0n1p1): Remounting filesystem read-only", "other", "drain_and_diag", True),
        (
            "EXT4-fs error (device sda1): ext4_find_entry:1455: inode #2: comm ls: reading directory lblock 0",
            "other",
            "drain_and_diag",
            False,
        ),
        ("XFS (md127): log I/O error -5", "other", "drain_and_diag", False),
        ("blk_update_request: I/O error, dev nvme2n1, sector 6442712256 op 0x1:(WRITE)", "other", "drain_and_diag", False),
        ("INFO: task python3:4242 blocked for more than 120 seconds.", "other", "record", False),
        ("INFO: task python3:4242 blocked for more than 604 seconds.", "other", "reboot_node", False),
        ("watchdog: BUG: soft lockup - CPU#3 stuck for 23s! [python3:4242]", "other", "reboot_node", True),
        (
            "python3[4242]: segfault at 7f797fe00000 ip 00007f7c7ac69996 sp 00007f7c12fd7c30 error 4 in libnccl.so.2",
            "other",
            "restart_app",
            False,
        ),
        ("amdgpu 0000:83:00.0: amdgpu: GPU reset(2) failed", "other", "reboot_node", True),
        ("clocksource: Long readout interval, skipping watchdog check: cs_nsec: 1584036171", "other", "none", False),
        (
            "NVRM: Rate limiting GSP RPC error prints for GPU at PCI:0000:9b:00 (printing 1 of every 30).",
            "other",
            "reset_gpu",
            True,
        ),
    ],
)
def test_line_without_number_when_it_tells_a_fault_then_its_row_answers(line, kind, action, fatal):
    event = read_line(f"[   12.345678] {line}")
    assert (event.kind.value, event.action.value, event.is_fatal) == (kind, action, fatal)
    assert event.source or event.rule == ""


@pytest.mark.parametrize(
    "line",
    [
        "Memory cgroup out of memory: Killed process 4242 (python3) total-vm:1kB",
        "Out of memory: Kill process 4242 (python3) score 900 or sacrifice child",
        "INFO: task python3:4242 blocked for more than 120 seconds.",
        "[  1.0] INFO: task python3:4242 blocked for more than 120 seconds.",
        "watchdog: BUG: soft lockup - CPU#3 stuck for 23s! [python3:4242]",
        "python3[4242]: segfault at 7f797fe00000 ip 00007f7c7ac69996 sp 00007f7c12fd7c30 error 4",
    ],
)
def test_line_when_it_names_a_program_in_the_kernels_way_then_pid_and_name_are_read(line):
    event = read_line(line)
    assert (event.pid, event.process) == (4242, "python3")


@pytest.mark.parametrize(
    ("line", "pci"),
    [
        ("GPU has fallen off the bus", None),
        ("NVRM: GPU 0000:29:00.0: GPU has fallen off the bus.", "0000:29:00.0"),
        ("NVRM: GPU 18:00.0: GPU has fallen off the bus.", "0000:18:00.0"),
        ("NVRM: GPU at 0000:01:00.0 has fallen off the bus.", "0000:01:00.0"),
        ("NVRM: GPU at PCI:0000:9b:00 has fallen off the bus.", "0000:9b:00"),
        (
            "NVRM: The NVIDIA GPU 0000:b3:00.0 (PCI ID: 10de:26b5) installed in this system has fallen off the bus and",
            "0000:b3:00.0",
        ),
    ],
)
def test_fallen_off_the_bus_when_without_number_then_answered_like_79(line, pci):
    event = read_line(line)
    assert (event.kind, event.code, event.pci) == ("fallen_off_bus", None, pci)
    assert (event.nvidia_action, event.action, event.verdict) == ("RESTART_BM", HealthAction.REBOOT_NODE, Verdict.FAILED)

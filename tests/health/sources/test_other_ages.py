"""Outputs of other ages and tools than those of the collection: each is read, and judged by its rule."""

import re

import pytest
from tests.health.documents import device, document
from tests.health.shared_captures import FOLDER, capture, needs_captures

from hostler.health.first import judge
from hostler.health.kernel_lines import read_line
from hostler.health.sources import explain
from hostler.model.enums import HealthAction, Verdict

MESSAGES = (
    ("[   99.125] mce: CPU0: Core temperature above threshold, cpu clock throttled", "kernel-log", "degraded"),
    ("mce: [Hardware Error]: Corrected error, no action required", "kernel-log", "degraded"),
    ("[ 100.1] mlx5_core 0000:5c:00.0: poll_health:739:(pid 0): Fatal error 1 detected", "kernel-log", "failed"),
    ("amdgpu 0000:83:00.0: amdgpu: GPU reset begin!", "kernel-log", "failed"),
    ("INFO: task python3:4455 blocked for more than 120 seconds.", "kernel-log", "degraded"),
    ("EXT4-fs error (device nvme0n1p1): ext4_find_entry:1455: inode #2: comm ls: reading directory", "kernel-log", "degraded"),
    (
        "W tensorflow/core/common_runtime/bfc_allocator.cc:497] Allocator (GPU_0_bfc) ran out of memory trying to allocate 2GiB",
        "training-log",
        "healthy",
    ),
    (
        (
            "[rank5]:[F1121 02:13:14 ProcessGroupNCCL.cpp:1557] [PG ID 0] Terminating the process after attempting to dump debug "
            "info, due to ProcessGroupNCCL watchdog hang."
        ),
        "training-log",
        "degraded",
    ),
    ("Error 803: system has unsupported display driver / cuda driver combination", "training-log", "failed"),
    (
        (
            "coordination_service_agent.cc:560] Coordination agent is set to ERROR: UNAVAILABLE: Task "
            "/job:jax_worker/replica:0/task:3 heartbeat timeout."
        ),
        "training-log",
        "degraded",
    ),
    (
        "ERROR: Unexpected bus error encountered in worker. This might be caused by insufficient shared memory (shm).",
        "training-log",
        "healthy",
    ),
    (
        "[2024-05-01 10:00:01,123] [ERROR] [launch.py:322:sigkill_handler] ['/usr/bin/python3'] exits with return code = -9",
        "training-log",
        "degraded",
    ),
)


@pytest.mark.parametrize(("text", "kind", "verdict"), MESSAGES)
def test_message_when_it_stands_bare_then_it_is_recognised_and_judged(text, kind, verdict):
    health = explain(f"{text}\n", name="")
    assert (health.source, health.verdict.value) == (kind, verdict)


@pytest.mark.parametrize(
    ("line", "pci"),
    [
        ("pcieport 0000:50:00.0: AER: PCIe Bus Error: severity=Uncorrectable (Fatal)", "0000:50:00.0"),
        ("pcieport 0000:00:01.1: AER: Multiple Corrected error received: 0000:01:00.0", "0000:01:00.0"),
        ("pcieport 0000:00:01.1: AER: Correctable error message received from 0000:01:00.0", "0000:01:00.0"),
        ("mlx5_core 0000:5c:00.0: Port module event[error]: module 0, Cable error, Bus stuck", "0000:5c:00.0"),
        ("nvidia 0000:01:00.0:    [20] UnsupReq               (First)", "0000:01:00.0"),
        ("a port of 0000:01:00.0:8080", None),
    ],
)
def test_line_when_a_colon_follows_the_address_then_it_is_read(line, pci):
    assert read_line(line).pci == pci


COPIES = """cpu_to_gpu0_by_sm_under_numa0_uni 26.1736
cpu_to_gpu0_by_dma_under_numa0_uni 26.1878
gpu0_to_cpu_by_sm_under_numa0_uni 5.01589
gpu0_to_cpu_by_dma_under_numa0_uni 21.8659
gpu0_to_gpu1_write_by_dma_under_numa0_uni 274.951
cpu_to_gpu1_by_dma_under_numa0_uni 26.207
"""
SHMOO = """[CUDA Bandwidth Test] - Starting...
 Device 0: Tesla V100-PCIE-32GB
bandwidthTest-H2D-Pinned, Bandwidth = 12.4 GB/s, Time = 0.00549 s, Size = 68000000 bytes, NumDevsUsed = 1
Result = PASS
"""
ECC = "[CUDA_ERROR_ECC_UNCORRECTABLE] uncorrectable ECC error encountered in expression cuMemcpyAsync"


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        (COPIES, "healthy"),
        (COPIES.replace("26.207", "2.1"), "degraded"),
        (SHMOO, "healthy"),
        (SHMOO.replace("PASS", "FAIL"), "failed"),
        (SHMOO.replace("Result = PASS\n", ""), "unknown"),
        (SHMOO.replace("Result = PASS", ECC), "failed"),
    ],
)
def test_copy_test_when_slow_failed_cut_or_stopped_by_the_gpu_then_it_is_told(text, verdict):
    health = explain(text, name="")
    assert (health.source, health.verdict.value) == ("bandwidth-test", verdict)


def test_nccl_when_eight_gpus_of_a_board_are_far_below_their_kind_then_it_is_watched():
    ranks = "".join(
        f"#  Rank {at:2d} Group  0 Pid 12 on node1 device {at:2d} [0x0f] NVIDIA H100 80GB HBM3\n" for at in range(8)
    )
    head = "# Collective test starting: all_reduce_perf\n# nThread 1 nGpus 8\n"
    columns = (
        "#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong\n"
    )
    row = " 17179869184    4294967296     float     sum      -1    62407  148.62  {0:.2f}      0    62375  148.62  {0:.2f}      0\n"
    end = "# Out of bounds values : 0 OK\n# Avg bus bandwidth    : 100.0\n#\n"
    for busbw, verdict in ((479.0, Verdict.HEALTHY), (260.0, Verdict.DEGRADED), (120.0, Verdict.FAILED)):
        assert explain(f"{head}{ranks}{columns}{row.format(busbw)}{end}", name="").verdict is verdict


def test_port_counters_when_a_fabric_dump_is_read_then_hexadecimal_counts():
    text = (
        "Port=2 Lid=0x0599 GUID=0x0011223344550001 Device=54000 Port Name=S1/N1/P2\n"
        "symbol_error_counter_extended=0x{:016x}\nlink_error_recovery_counter_extended=0x0000000000000000\n"
    )
    assert explain(text.format(0), name="").verdict is Verdict.HEALTHY
    assert explain(text.format(255), name="").verdict is Verdict.DEGRADED


def test_diag_when_a_test_passes_with_a_warning_of_words_only_then_degraded():
    text = '{"DCGM GPU Diagnostic": {"test_categories": [{"category": "Hardware", "tests": [{"name": "Memory", "results": [%s]}]}]}}'
    passed = '{"gpu_ids": "0,1", "status": "PASS"%s}'
    assert explain(text % (passed % ""), name="").verdict is Verdict.HEALTHY
    assert explain(text % (passed % ', "warnings": "could not allocate 90% memory"'), name="").verdict is Verdict.DEGRADED


TABLE = """+-----------------------------------------------------------------------------+
| NVIDIA-SMI 390.48                 Driver Version: 390.48                    |
|-------------------------------+----------------------+----------------------+
|   0  GeForce GTX 108...  Off  | 00000000:05:00.0 Off |                  N/A |
| 23%   35C    P8     9W / 250W |      2MiB / 11178MiB |      0%      Default |
+-------------------------------+----------------------+----------------------+
|   1  GeForce GTX 108...  Off  | 00000000:06:00.0 Off |                  N/A |
|ERR!  ERR! ERR!    ERR! / ERR! | GPU is lost          |ERR!                  ERR! |
+-------------------------------+----------------------+----------------------+
| Processes:                                                       GPU Memory |
|  No running processes found                                                 |
+-----------------------------------------------------------------------------+
"""


def test_table_when_a_second_line_says_that_the_gpu_is_lost_then_it_alone_failed():
    health = explain(TABLE, name="")
    assert [(one.verdict, one.action) for one in health.accelerators] == [
        (Verdict.HEALTHY, HealthAction.NONE),
        (Verdict.FAILED, HealthAction.REBOOT_NODE),
    ]


DETAIL = re.compile(r"(<clocks_\w+_reason_(?:hw_thermal|hw_power_brake)_slowdown>)[^<]*(?=<)")


@needs_captures
def test_xml_when_an_old_card_has_no_details_of_its_slowdown_then_one_of_them_missing_is_another_matter():
    text = capture("nvidia-smi-xml/telegraf_tesla-t4.xml") if FOLDER else ""
    assert explain(text, name="").verdict is Verdict.HEALTHY
    assert explain(DETAIL.sub(r"\1N/A", text), name="").verdict is Verdict.HEALTHY
    assert explain(DETAIL.sub(r"\1N/A", text, count=1), name="").verdict is Verdict.UNKNOWN
    assert explain(re.sub(r"<clocks_\w+_reason_hw_thermal_slowdown>.*\n", "", text), name="").verdict is Verdict.UNKNOWN


def test_probe_when_it_tells_of_corrected_errors_then_their_limit_counts_and_old_documents_are_read():
    for field in ("ecc_sram_correctable_count", "ecc_dram_correctable_count"):
        many = judge(document(device(**{field: 10**9})), accelerator="H100", accelerator_count=1)
        assert many.verdict is Verdict.DEGRADED
    old = device()
    del old["ecc_sram_correctable_count"], old["ecc_dram_correctable_count"]
    assert judge(document(old), accelerator="H100", accelerator_count=1).verdict is Verdict.HEALTHY


def test_csv_rows_when_a_line_is_long_and_blank_then_it_is_refused_soon():
    assert explain(f"{' ' * 20_000}x,y\n", name="").verdict is Verdict.UNKNOWN

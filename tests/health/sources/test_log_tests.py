"""Performance tests: NCCL, gpu-burn, copies, InfiniBand."""

import json

import pytest
from tests.health.shared_captures import FOLDER, capture, needs_captures

from hostler.health.sources import explain
from hostler.model.enums import HealthAction, Verdict

GOOD, LOW = (case["stdout"] for case in json.loads(capture("bench-logs/gcm_nccl_outputs.json"))) if FOLDER else ("", "")


@needs_captures
@pytest.mark.parametrize("name", ["superbench_nccl_allreduce.log", "superbench_nccl_reducescatter.log"])
def test_nccl_when_the_average_is_low_and_the_largest_size_good_then_healthy(name):
    assert explain(capture(f"bench-logs/{name}"), name=name).verdict is Verdict.HEALTHY


@needs_captures
def test_nccl_when_two_runs_are_compared_then_one_is_good_and_one_low():
    assert explain(GOOD, name="").verdict is Verdict.HEALTHY
    low = explain(LOW, name="")
    assert (low.verdict, low.action) == (Verdict.DEGRADED, HealthAction.RECORD)
    assert "181.39" in low.reasons[0]


HEAD = """# nThread 1 nGpus 1 minBytes 8 maxBytes 8589934592 step: 2(factor) warmup iters: 5 iters: 20
#
# Using devices
{ranks}
#                                                              out-of-place                       in-place
#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)
"""
HALF = "    8109.1  132.41  {busbw:>6}      {wrong}"
ROW = "{size:>12}    {count:>12}     float     sum      -1" + HALF + HALF + "\n"
TAIL = "# Out of bounds values : {wrong} {word}\n# Avg bus bandwidth    : {average}\n#\n"


def nccl(busbw, *, size=8589934592, wrong=0, model="NVIDIA A100-SXM4-80GB", hosts=("a",), tail=True):
    ranks = "\n".join(
        f"#  Rank {host * 8 + gpu:2} Group  0 Pid  66421 on {name} device {gpu:2} [0x00] {model}"
        for host, name in enumerate(hosts)
        for gpu in range(8)
    )
    rows = ROW.format(size=8, count=2, busbw="0.01", wrong=0) + ROW.format(size=size, count=size // 4, busbw=busbw, wrong=wrong)
    end = TAIL.format(wrong=wrong * 2, word="FAILED" if wrong else "OK", average=busbw / 2) if tail else ""
    return HEAD.format(ranks=ranks) + rows + end


@pytest.mark.parametrize(
    ("text", "verdict", "action"),
    [
        (nccl(235.0), Verdict.HEALTHY, HealthAction.NONE),
        (nccl(100.0), Verdict.FAILED, HealthAction.DRAIN_AND_DIAG),
        (nccl(152.0), Verdict.DEGRADED, HealthAction.RECORD),
        (nccl(12.0, model="NVIDIA A100 80GB PCIe"), Verdict.FAILED, HealthAction.DRAIN_AND_DIAG),
        (nccl(20.0, model="NVIDIA A100 80GB PCIe"), Verdict.HEALTHY, HealthAction.NONE),
        (nccl(90.0, hosts=("a", "b")), Verdict.FAILED, HealthAction.DRAIN_AND_DIAG),
        (nccl(380.0, hosts=("a", "b"), model="NVIDIA H100 80GB HBM3"), Verdict.HEALTHY, HealthAction.NONE),
        (nccl(235.0, wrong=3), Verdict.FAILED, HealthAction.DRAIN_AND_DIAG),
        (nccl(235.0, tail=False), Verdict.UNKNOWN, HealthAction.RECORD),
        (nccl(235.0, size=1024), Verdict.UNKNOWN, HealthAction.RECORD),
        (
            "# nThread 1 nGpus 8\n a: Test NCCL failure common.cu:958 'unhandled system error'\n",
            Verdict.FAILED,
            HealthAction.DRAIN_AND_DIAG,
        ),
        ("# nThread 1 nGpus 8\n a: Test CUDA failure common.cu:891 'out of memory'\n", Verdict.UNKNOWN, HealthAction.RECORD),
        ("", Verdict.UNKNOWN, HealthAction.RECORD),
    ],
)
def test_nccl_when_a_run_is_read_then_the_largest_size_decides(text, verdict, action):
    health = explain(text, name="", command="all_reduce_perf -b 8 -e 8G -f 2 -g 8")
    assert (health.source, health.verdict, health.action) == ("nccl-tests", verdict, action)


def test_nccl_when_it_is_an_exchange_then_the_floor_of_reductions_does_not_count():
    assert explain(nccl(30.0), name="", command="alltoall_perf -b 8 -e 8G").verdict is Verdict.HEALTHY


BURN = """GPU 0: NVIDIA A100-SXM4-80GB (UUID: GPU-b876c63f-396c-f826-5cd0-6b8409990352)
GPU 1: NVIDIA A100-SXM4-80GB (UUID: GPU-3f38364f-09ad-250f-5aea-564e405504f6)
100.0%  proc'd: 6783 (16942 Gflop/s) - {rate} Gflop/s)   errors: 0 - {errors}   temps: 62 C - {temp} C
Killing processes.. done

Tested 2 GPUs:
\tGPU 0: OK
{result}"""


@pytest.mark.parametrize(
    ("rate", "errors", "temp", "result", "verdict"),
    [
        ("6783 (17093", "0", "59", "\tGPU 1: OK\n", Verdict.HEALTHY),
        ("6783 (17093", "12  (WARNING!)", "59", "\tGPU 1: FAULTY\n", Verdict.FAILED),
        ("-1 (0", "-1  (DIED!)", "59", "\tGPU 1: FAULTY\n", Verdict.FAILED),
        ("2000 (9000", "0", "59", "\tGPU 1: OK\n", Verdict.DEGRADED),
        ("6783 (17093", "0", "88", "\tGPU 1: OK\n", Verdict.DEGRADED),
        ("6783 (17093", "0", "59", "", Verdict.UNKNOWN),
    ],
)
def test_burn_when_a_run_is_read_then_each_gpu_is_judged(rate, errors, temp, result, verdict):
    health = explain(BURN.format(rate=rate, errors=errors, temp=temp, result=result), name="")
    assert (health.source, health.verdict) == ("gpu-burn", verdict)
    assert health.accelerators[0].verdict is Verdict.HEALTHY


@needs_captures
def test_burn_when_the_real_one_then_eight_sound_gpus():
    health = explain(capture("bench-logs/superbench_gpu_burn.log"), name="")
    assert [(one.index, one.verdict) for one in health.accelerators] == [(gpu, Verdict.HEALTHY) for gpu in range(8)]


def test_burn_when_cut_in_the_middle_then_never_healthy():
    text = BURN.format(rate="6783 (17093", errors="0", temp="59", result="\tGPU 1: OK\n")
    for end in range(0, len(text), 7):
        assert explain(text[:end], name="", kind="gpu-burn").verdict is not Verdict.HEALTHY or end >= len(text) - 8


NVBANDWIDTH = """nvbandwidth Version: v0.6
Device 0: NVIDIA H100 80GB HBM3 (00000000:18:00)
Device 1: NVIDIA H100 80GB HBM3 (00000000:2a:00)

Running host_to_device_memcpy_ce.
memcpy CE CPU(row) -> GPU(column) bandwidth (GB/s)
           0         1
 0     {first}     55.41

SUM host_to_device_memcpy_ce 110.79
"""


@pytest.mark.parametrize(("first", "verdict"), [("55.38", Verdict.HEALTHY), ("3.10", Verdict.DEGRADED)])
def test_nvbandwidth_when_one_gpu_is_slow_then_that_gpu(first, verdict):
    health = explain(NVBANDWIDTH.format(first=first), name="")
    assert health.source == "bandwidth-test"
    assert [one.verdict for one in health.accelerators] == [verdict, Verdict.HEALTHY]


CUDA = """[CUDA Bandwidth Test] - Starting...
Running on...

 Device 0: Tesla T4
 Quick Mode

 Host to Device Bandwidth, 1 Device(s)
 PINNED Memory Transfers
   Transfer Size (Bytes)\tBandwidth({unit}/s)
   32000000\t\t\t{value}

Result = PASS
"""


@pytest.mark.parametrize(
    ("unit", "value", "verdict"),
    [("GB", "12.5", Verdict.HEALTHY), ("MB", "12500.1", Verdict.HEALTHY), ("MB", "1500.1", Verdict.DEGRADED)],
)
def test_cuda_bandwidth_when_units_differ_then_the_same_speed(unit, value, verdict):
    assert explain(CUDA.format(unit=unit, value=value), name="").verdict is verdict


def test_bandwidth_when_the_test_broke_then_unknown():
    text = "[CUDA Bandwidth Test] - Starting...\ncudaGetDeviceProperties returned 100\n-> no CUDA-capable device is detected\n"
    assert explain(text, name="").verdict is Verdict.UNKNOWN


@needs_captures
def test_rocm_copy_when_the_real_one_then_healthy():
    assert explain(capture("bench-logs/superbench_rocm_memory_h2d_bw.log"), name="").verdict is Verdict.HEALTHY


IB = """                    RDMA_Write BW Test
 #bytes     #iterations    BW peak[{unit}/sec]    BW average[{unit}/sec]   MsgRate[Mpps]
 2          5000             0.01               0.01               2.778732
 {size}    5000             {value}             {value}               0.002
"""


@pytest.mark.parametrize(
    ("unit", "size", "value", "verdict"),
    [
        ("Gb", 8388608, "392.1", Verdict.HEALTHY),
        ("Gb", 8388608, "196.5", Verdict.HEALTHY),
        ("MB", 8388608, "23400.1", Verdict.HEALTHY),
        ("Gb", 8388608, "130.0", Verdict.DEGRADED),
        ("MB", 8388608, "14000.0", Verdict.DEGRADED),
        ("Gb", 8388608, "0.00", Verdict.FAILED),
        ("Gb", 4096, "60.0", Verdict.UNKNOWN),
    ],
)
def test_ib_write_when_read_then_the_largest_size_fills_a_link_or_not(unit, size, value, verdict):
    assert explain(IB.format(unit=unit, size=size, value=value), name="").verdict is verdict


def test_ib_write_when_it_ends_in_an_error_then_failed_and_when_it_never_ran_then_unknown():
    broken = "RDMA_Write BW Test\n Completion with error at client\n Failed status 12: wr_id 0 syndrom 0x81\n"
    assert explain(broken, name="").verdict is Verdict.FAILED
    assert explain("RDMA_Write BW Test\nCouldn't connect to node2:18515\n", name="").verdict is Verdict.UNKNOWN


@needs_captures
def test_ib_write_when_both_ends_are_interleaved_then_judged_at_the_largest():
    assert explain(capture("bench-logs/superbench_ib_loopback_all_sizes.log"), name="").verdict is Verdict.HEALTHY

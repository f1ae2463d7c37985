"""The host itself: disks, clock, tasks, services; and training logs."""

import json

import pytest
from tests.health.shared_captures import FOLDER, capture, needs_captures

from hostler.health.sources import explain
from hostler.health.sources.log_training import training_rules
from hostler.model.enums import HealthAction, Verdict

DF = """Filesystem      Size  Used Avail Use% Mounted on
tmpfs            26G  2.3M   26G   1% /run
/dev/root       194G  {used}G  100G  {percent}% /
/dev/loop3       64M   64M     0 100% /snap/core20/2015
/dev/nvme1n1
                 7.0T  1.0T  6.0T  {second}% /scratch
"""


@pytest.mark.parametrize(
    ("percent", "second", "verdict"),
    [
        (49, 10, Verdict.HEALTHY),
        (80, 10, Verdict.DEGRADED),
        (85, 10, Verdict.FAILED),
        (100, 10, Verdict.FAILED),
        (49, 92, Verdict.FAILED),
    ],
)
def test_df_when_a_disk_fills_then_it_is_told_and_packages_that_are_always_full_are_not(percent, second, verdict):
    health = explain(DF.format(used=50, percent=percent, second=second), name="", command="df -h")
    assert (health.source, health.verdict) == ("df", verdict)


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        (
            "Filesystem       Inodes   IUsed    IFree IUse% Mounted on\n/dev/root      25804800  300000 25504800    2% /\n",
            Verdict.HEALTHY,
        ),
        (
            "Filesystem       Inodes   IUsed    IFree IUse% Mounted on\n/dev/root      25804800 25804800       0  100% /\n",
            Verdict.FAILED,
        ),
        (
            "Filesystem       Inodes   IUsed    IFree IUse% Mounted on\nnfs:/h 0 0 0 - /h\n/dev/sda1 10 1 9 10% /\n",
            Verdict.HEALTHY,
        ),
        ("df: /mnt/data: Transport endpoint is not connected\n", Verdict.FAILED),
        (
            "df: /mnt/data: Stale file handle\nFilesystem 1K-blocks Used Available Use% Mounted on\n/dev/sda1 100 10 90 10% /\n",
            Verdict.FAILED,
        ),
        ("", Verdict.UNKNOWN),
        ("Filesystem      Size  Used Avail Use% Mounted on\n", Verdict.UNKNOWN),
    ],
)
def test_df_when_inodes_and_errors_are_read_then_they_are_judged(text, verdict):
    assert explain(text, name="", command="df -i").verdict is verdict


TRACKING = """Reference ID    : A9FEA97B (169.254.169.123)
Stratum         : 4
System time     : {skew} seconds slow of NTP time
Last offset     : -0.000001234 seconds
Leap status     : {leap}
"""

NTPQ = "     remote           refid      st t when poll reach   delay   offset  jitter\n====\n"


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        (TRACKING.format(skew="0.000012345", leap="Normal"), Verdict.HEALTHY),
        (TRACKING.format(skew="0.250000000", leap="Normal"), Verdict.DEGRADED),
        (TRACKING.format(skew="3600.000000", leap="Normal"), Verdict.FAILED),
        (TRACKING.format(skew="0.000000000", leap="Not synchronised"), Verdict.DEGRADED),
        ("506 Cannot talk to daemon\n", Verdict.DEGRADED),
        (
            NTPQ + "*169.254.169.123 .GPS. 1 u 33 64 377 0.251 0.012 0.010\n",
            Verdict.HEALTHY,
        ),
        (
            NTPQ + "*169.254.169.123 .GPS. 1 u 33 64 377 0.251 -450.5 0.010\n",
            Verdict.DEGRADED,
        ),
        (
            NTPQ + " 169.254.169.123 .INIT. 16 u - 64 0 0.000 0.000 0.000\n",
            Verdict.DEGRADED,
        ),
        (
            "               Local time: Tue 2026-12-01\nSystem clock synchronized: yes\n              NTP service: active\n",
            Verdict.HEALTHY,
        ),
        (
            "               Local time: Tue 2026-12-01\nSystem clock synchronized: no\n              NTP service: inactive\n",
            Verdict.DEGRADED,
        ),
        ("unsynchronised\n  polling server every 64 s\n", Verdict.DEGRADED),
        ("", Verdict.UNKNOWN),
    ],
)
def test_clock_when_any_tool_tells_it_then_it_is_judged(text, verdict):
    assert explain(text, name="", command="chronyc tracking").verdict is verdict


PS = """USER         PID %CPU %MEM    VSZ   RSS TTY      STAT START   TIME COMMAND
root           1  0.0  0.0 168000 12000 ?        Ss   Nov30   0:01 /sbin/init
root         900  0.0  0.0      0     0 ?        D    Nov30   0:00 [kworker/u256:2]
{row}
"""


@pytest.mark.parametrize(
    ("row", "verdict"),
    [
        ("root        4242  0.0  0.0 168000 12000 ?        Sl   Nov30   0:01 python3 train.py", Verdict.HEALTHY),
        ("root        4242  0.0  0.0 168000 12000 ?        D    Nov30   0:01 nvidia-smi", Verdict.DEGRADED),
        ("root        4242  0.0  0.0      0     0 ?        Z    Nov30   0:01 [python3] <defunct>", Verdict.DEGRADED),
    ],
)
def test_ps_when_a_task_hangs_then_it_is_told(row, verdict):
    health = explain(PS.format(row=row), name="", command="ps aux")
    assert (health.source, health.verdict) == ("processes", verdict)


@pytest.mark.parametrize(
    ("text", "command", "verdict", "action"),
    [
        ("active\n", "systemctl is-active nvidia-fabricmanager", Verdict.HEALTHY, HealthAction.NONE),
        ("inactive\n", "systemctl is-active nvidia-fabricmanager", Verdict.FAILED, HealthAction.RESTART_SERVICE),
        ("active\nfailed\n", "systemctl is-active sshd nvidia-dcgm", Verdict.FAILED, HealthAction.RESTART_SERVICE),
        (
            "  UNIT LOAD ACTIVE SUB DESCRIPTION\n0 loaded units listed.\n",
            "systemctl --failed",
            Verdict.HEALTHY,
            HealthAction.NONE,
        ),
        (
            "\u25cf nvidia-fabricmanager.service loaded failed failed NVIDIA fabric manager service\n",
            "systemctl --failed",
            Verdict.FAILED,
            HealthAction.RESTART_SERVICE,
        ),
        (
            "\u25cf apt-daily.service loaded failed failed Daily apt\n",
            "systemctl --failed",
            Verdict.DEGRADED,
            HealthAction.RECORD,
        ),
        (
            "\u25cf sshd.service - OpenSSH server\n     Loaded: loaded (/lib/x)\n     Active: active (running) since Tue\n",
            "",
            Verdict.HEALTHY,
            HealthAction.NONE,
        ),
        (
            "\u00d7 nvidia-dcgm.service - DCGM\n     Loaded: loaded (/lib/x)\n     Active: failed (Result: exit-code) since Tue\n",
            "",
            Verdict.FAILED,
            HealthAction.RESTART_SERVICE,
        ),
        ("", "systemctl is-active sshd", Verdict.UNKNOWN, HealthAction.RECORD),
    ],
)
def test_services_when_systemctl_tells_them_then_they_are_judged(text, command, verdict, action):
    health = explain(text, name="", command=command or None)
    assert (health.source, health.verdict, health.action) == ("services", verdict, action)


@pytest.mark.parametrize(
    ("root", "verdict"),
    [
        ("/dev/root on / type ext4 (rw,relatime,discard,errors=remount-ro)", Verdict.HEALTHY),
        ("/dev/root on / type ext4 (ro,relatime,discard,errors=remount-ro)", Verdict.FAILED),
        ("/dev/root on / type ext4 (rw,relatime,emergency_ro)", Verdict.FAILED),
        ("proc2 on /proc2 type proc (rw,relatime)", Verdict.UNKNOWN),
    ],
)
def test_mounts_when_the_root_is_read_only_then_failed(root, verdict):
    text = f"proc on /proc type proc (rw,nosuid)\n{root}\n/dev/loop0 on /snap/core/1 type squashfs (ro,nodev)\n"
    assert explain(text, name="", command="mount").verdict is verdict


def test_mounts_when_in_the_kernels_form_then_read_too():
    text = "proc /proc proc rw,nosuid 0 0\n/dev/nvme0n1p1 / ext4 ro,relatime 0 0\n/dev/nvme1n1 /scratch xfs rw,noatime 0 0\n"
    assert explain(text, name="", command="cat /proc/mounts").verdict is Verdict.FAILED


RIGHT = {
    "nccl-1": ("training.nccl_timeout", Verdict.DEGRADED, HealthAction.DRAIN_AND_DIAG),
    "nccl-2": ("training.nccl_timeout", Verdict.DEGRADED, HealthAction.RESTART_APP),
    "nccl-4": ("training.nccl_timeout", Verdict.DEGRADED, HealthAction.RESTART_APP),
    "elastic-1": ("training.membership", Verdict.HEALTHY, HealthAction.NONE),
}


@needs_captures
@pytest.mark.parametrize("case", [json.loads(line) for line in capture("training_logs.jsonl").splitlines()] if FOLDER else [])
def test_training_log_when_labelled_then_judged_right(case):
    health = explain(case["text"], name="", command=None)
    code, verdict, action = RIGHT[case["id"]]
    assert (health.source, health.verdict, health.action) == ("training-log", verdict, action)
    assert code in {finding.code for finding in health.findings}


@pytest.mark.parametrize(
    ("line", "code", "verdict", "action"),
    [
        ("torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB", "cuda_oom", "healthy", "restart_app"),
        (
            "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB. GPU 0 has a total capacity of 79.1 GiB",
            "cuda_oom",
            "healthy",
            "restart_app",
        ),
        ("RuntimeError: CUDA error: an illegal memory access was encountered", "illegal_access", "healthy", "restart_app"),
        ("RuntimeError: CUDA error: device-side assert triggered", "illegal_access", "healthy", "restart_app"),
        ("RuntimeError: CUDA error: uncorrectable ECC error encountered", "gpu_ecc", "failed", "reset_gpu"),
        ("RuntimeError: CUDA error: unspecified launch failure", "launch_failure", "degraded", "restart_app"),
        ("Error 802: system not yet initialized", "fabric_not_ready", "failed", "restart_service"),
        ("RuntimeError: No CUDA GPUs are available", "no_gpu", "failed", "reboot_node"),
        ("RuntimeError: CUDA error: invalid device ordinal", "device_count", "degraded", "drain_and_diag"),
        ("step 1200 | loss nan | lr 1e-4", "nan", "healthy", "restart_app"),
        ("ValueError: Loss is nan, stopping training", "nan", "healthy", "restart_app"),
        (
            "torch.distributed.DistBackendError: NCCL error: remote process exited or there was a network error",
            "nccl_remote",
            "degraded",
            "restart_app",
        ),
        (
            "node1:123:456 [0] NCCL WARN NET/IB : Got completion from peer 10.0.0.2<1234> with error 12, opcode 0",
            "ib_error",
            "degraded",
            "drain_and_diag",
        ),
        (
            "RuntimeError: [../third_party/gloo] Connection closed by peer [10.0.0.2]:1234",
            "peer_lost",
            "degraded",
            "restart_app",
        ),
        ("ConnectionResetError: [Errno 104] Connection reset by peer", "peer_lost", "degraded", "restart_app"),
        ("OSError: [Errno 28] No space left on device", "no_space", "failed", "record"),
        ("OSError: [Errno 30] Read-only file system: '/scratch/x'", "read_only", "failed", "drain_and_diag"),
        ("slurmstepd: error: Detected 1 oom_kill event in StepId=1", "host_oom", "degraded", "restart_app"),
        ("ModuleNotFoundError: No module named 'apex'", "program", "healthy", "restart_app"),
        ("WARNING: Received SIGTERM, saving a checkpoint", "stopped", "healthy", "none"),
    ],
)
def test_training_log_when_a_fault_is_told_then_program_and_node_are_told_apart(line, code, verdict, action):
    health = explain(f"[rank0]: step 1 loss 2.31\n[rank0]: step 2 loss 2.30\n{line}\n", name="")
    assert health.source == "training-log"
    assert f"training.{code}" in {finding.code for finding in health.findings}
    assert (health.verdict.value, health.action.value) == (verdict, action)


@pytest.mark.parametrize(
    "line",
    [
        "epoch 3 loss 0.12",
        "step=200 loss=1.5 finance=0.1",
        "INFO: loaded nanogpt config; step 1",
        "Gradient overflow. Skipping step, loss 1.2",
    ],
)
def test_training_log_when_it_goes_on_then_healthy(line):
    health = explain(f"[rank0]: {line}\n", name="train.log")
    assert (health.verdict, health.action) == (Verdict.HEALTHY, HealthAction.NONE)


def test_training_log_when_the_first_collective_is_on_the_next_line_then_start_up():
    text = "[rank3] Watchdog caught collective operation timeout:\nWorkNCCL(SeqNum=1, OpType=ALLGATHER, Timeout(ms)=600000)"
    assert explain(text, name="").action is HealthAction.DRAIN_AND_DIAG


def test_training_log_when_empty_or_silent_then_unknown():
    assert explain("", name="train.log", kind="training-log").verdict is Verdict.UNKNOWN
    assert explain("hello\n", name="train.log", kind="training-log").verdict is Verdict.UNKNOWN
    assert explain("step 1 loss 2\n", name="", kind="training-log", exit_code=1).verdict is Verdict.UNKNOWN


def test_training_rules_when_read_then_each_is_named_once():
    names = [rule.name for rule in training_rules()]
    assert len(names) == len(set(names))

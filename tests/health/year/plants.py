"""One real fault of each kind, put into a node's life; who looks after the node does what the engine asks for, in vain."""

from dataclasses import dataclass
from datetime import timedelta

from tests.health.documents import document
from tests.health.year.node import GPU_COUNT, LOOK_S, START

from hostler.health.baseline import Measurement, Next, Peer, finding_of, judge, next_after
from hostler.health.engine import Located, Look
from hostler.health.pci import device_key
from hostler.model.enums import HealthAction, Verdict

MOST_S = 2 * 86_400.0

NVLINK5 = "NETIR_LINK_EVT  Fatal   XC0 i0 Link 09 (0x004525c6 0x00000000 0x00000000 0x00000000 0x00000000 0x00000000)"
ASKED = "GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """How long it took until the verdict named the fault, and until the rung was asked for; None: never."""

    kind: str
    named_after_s: float | None
    asked_after_s: float | None
    action: str
    words: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Plant:
    """A fault: what each look shows from then on, and what the engine must come to.

    Attributes:
        begin: writes the first lines. show: takes one look. cause: that must be named; empty: the verdict unknown itself.
        verdict, action: that must be reached (or a higher rung).
    """

    kind: str
    cause: str
    action: HealthAction
    show: object
    begin: object = None
    verdict: Verdict = Verdict.FAILED


def spoilt(**changes):
    def show(node, _age_s):
        return node.look(node.devices(changes))

    return show


def lines(*entries):
    def begin(node):
        for after_s, (code, text) in enumerate(entries):
            node.write(code, 0, text, after_s=float(after_s) / 10)

    return begin


def healthy(node, _age_s):
    return node.look()


def lost(node, _age_s):
    devices = node.devices()
    devices[0] = {**devices[0], "error": "GPU is lost"}
    return node.look(devices)


def absent(node, _age_s):
    return node.look(node.devices()[1:])


def recurs(node, age_s):
    if int(age_s / LOOK_S) % 30 == 0:
        node.write(62, 0, "pid=1, name=x, 0000(0000) 00000000")
    return node.look()


def shader_and_diagnosis(node, age_s):
    """The same unit fails in two jobs; the diagnosis that is then asked for fails, too."""
    if int(age_s / LOOK_S) in {1, 60}:
        node.write(13, 0, f"pid={int(age_s) + 1}, name=python3, Graphics SM Warp Exception on (GPC 1, TPC 3, SM 0): x")
    decision = node.look()
    return node.hear([diagnosis(node)]) if decision.wants_test else decision


def silent_engine(node, age_s):
    """A line alone, nothing else to be seen of it; the diagnosis that is asked for fails."""
    decision = node.look()
    return node.hear([diagnosis(node)]) if decision.wants_test and age_s > 5 * LOOK_S else decision


def diagnosis(node):
    from tests.health.engine.node import finding

    gpu = device_key(node.pci(0))
    found = Located(accelerator=gpu, finding=finding("dcgm.diag", "failed", "drain_and_diag", "diagnosis failed: memory"))
    return Look(stream="dcgm", taken_at=f"d{node.at_s}", seen=frozenset({gpu}), states=(found,))


PEER = Peer(accelerator="H100", driver_version="590.48.01", instance_type="p5.48xlarge")


def measured(node, value, *, alone):
    at = START + timedelta(seconds=node.at_s)
    return Measurement(node=node.name, peer=PEER, metric="all_reduce_gb_per_s", value=value, at=at, was_alone=alone)


FLEET = [
    Measurement(node=f"peer-{number}", peer=PEER, metric="all_reduce_gb_per_s", value=470.0 + number, at=START)
    for number in range(10)
]


def slow_links(node, age_s):
    """The nightly test fails, and again alone: each failure is one look of the test's own stream."""
    if int(age_s / LOOK_S) not in {10, 30}:
        return node.look()
    one = measured(node, 300.0, alone=int(age_s / LOOK_S) == 30)
    judged = judge(one, FLEET)
    assert next_after([(one, judged)]) is (Next.ACCUSE if one.was_alone else Next.REPEAT_ALONE)
    state = Located(accelerator="", finding=finding_of(one, judged))
    return node.look(extra=[Look(stream="test", taken_at=f"t{node.at_s}", states=(state,))])


def hangs(node, _age_s):
    """The library gives no answer; the kernel's log is still read."""
    return node.look(
        [], source="none", driver_version=None, errors=["nvml: no answer in 8.0 s", "nvidia-smi: no answer in 8.0 s"]
    )


def is_gone(node, _age_s):
    return node.silence()


def broken_driver(text):
    def show(node, _age_s):
        node.at_s += LOOK_S
        told = document(boot_id=f"{node.name}-{node.boot}", source="none", driver_version=None, errors=[text])
        from hostler.health.engine import probe_looks

        return node.hear(probe_looks(told, accelerator="H100", accelerator_count=GPU_COUNT, taken_at=str(node.at_s)))

    return show


A = HealthAction
PLANTS = (
    Plant(
        kind="Xid 79, then the GPU is lost",
        cause="bus",
        action=A.REBOOT_NODE,
        begin=lines((79, "pid=1, GPU has fallen off the bus.")),
        show=lost,
    ),
    Plant(kind="a GPU is gone without a line", cause="bus", action=A.REBOOT_NODE, show=absent),
    Plant(kind="the driver calls a GPU lost", cause="bus", action=A.REBOOT_NODE, show=lost),
    Plant(
        kind="double-bit ECC (Xid 48, 63, counter)",
        cause="memory",
        action=A.RESET_GPU,
        begin=lines((48, "pid=1, DBE"), (63, "Row Remapper"), (45, "pid=1, Ch 8")),
        show=spoilt(ecc_volatile_uncorrectable_count=1, is_remap_pending=True),
    ),
    Plant(kind="a row remap is pending", cause="memory", action=A.RESET_GPU, show=spoilt(is_remap_pending=True)),
    Plant(kind="a row remap has failed", cause="memory", action=A.DRAIN_AND_REPLACE, show=spoilt(has_remap_failed=True)),
    Plant(
        kind="SRAM over its threshold", cause="memory", action=A.DRAIN_AND_REPLACE, show=spoilt(is_sram_threshold_exceeded=True)
    ),
    Plant(
        kind="uncontained error (Xid 95, counter)",
        cause="memory",
        action=A.RESET_GPU,
        begin=lines((95, "pid=1, Uncontained")),
        show=spoilt(ecc_volatile_uncorrectable_count=2),
    ),
    Plant(
        kind="memory is short",
        cause="memory",
        action=A.DRAIN_AND_DIAG,
        verdict=Verdict.DEGRADED,
        show=spoilt(memory_total_mib=70_000),
    ),
    Plant(kind="an NVLink is inactive", cause="nvlink", action=A.RESTART_SERVICE, show=spoilt(nvlink_active_count=17)),
    Plant(
        kind="NVLink 5 link down (Xid 149, 154)",
        cause="recovery",
        action=A.RESET_GPU,
        begin=lines((149, NVLINK5), (154, ASKED)),
        show=spoilt(recovery_action="Reset"),
    ),
    Plant(kind="the driver asks for a reset", cause="recovery", action=A.RESET_GPU, show=spoilt(recovery_action="Reset")),
    Plant(
        kind="GSP time-out (Xid 119), driver hangs",
        cause="engine",
        action=A.RESET_GPU,
        begin=lines((119, "pid=1, name=x, Timeout")),
        show=hangs,
    ),
    Plant(kind="micro-controller halts every 30 min (Xid 62)", cause="engine", action=A.RESET_GPU, show=recurs),
    Plant(
        kind="Xid 109 alone, diagnosis fails",
        cause="engine",
        action=A.RESET_GPU,
        begin=lines((109, "pid=1, CTX SWITCH TIMEOUT")),
        show=silent_engine,
    ),
    Plant(
        kind="one shader unit fails twice (Xid 13)",
        cause="program",
        action=A.DRAIN_AND_DIAG,
        verdict=Verdict.HEALTHY,
        show=shader_and_diagnosis,
    ),
    Plant(
        kind="too hot (over the device's limit)", cause="thermal", action=A.DRAIN_AND_DIAG, show=spoilt(temperature_margin_c=-4)
    ),
    Plant(
        kind="warm for hours (over 85 C)",
        cause="thermal_warning",
        action=A.RECORD,
        verdict=Verdict.DEGRADED,
        show=spoilt(temperature_c=86),
    ),
    Plant(
        kind="hardware slowdown at a rate",
        cause="throttle",
        action=A.DRAIN_AND_DIAG,
        verdict=Verdict.DEGRADED,
        show=spoilt(throttle_mask=0x48),
    ),
    Plant(kind="power brake", cause="facility", action=A.RECORD, verdict=Verdict.DEGRADED, show=spoilt(throttle_mask=0x80)),
    Plant(
        kind="PCIe x8 under load", cause="pcie", action=A.DRAIN_AND_DIAG, verdict=Verdict.DEGRADED, show=spoilt(pcie_width=8)
    ),
    Plant(
        kind="driver and library differ",
        cause="driver",
        action=A.REBOOT_NODE,
        show=broken_driver("nvidia-smi: Failed to initialize NVML: Driver/library version mismatch"),
    ),
    Plant(
        kind="driver is not loaded",
        cause="driver",
        action=A.RESTART_SERVICE,
        show=broken_driver("NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver."),
    ),
    Plant(kind="another accelerator than bought", cause="model", action=A.DRAIN_AND_REPLACE, show=spoilt(name="NVIDIA A10G")),
    Plant(kind="all-reduce 36 % below the fleet", cause="performance", action=A.DRAIN_AND_DIAG, show=slow_links),
    Plant(kind="the driver's library hangs", cause="", action=A.REBOOT_NODE, verdict=Verdict.UNKNOWN, show=hangs),
    Plant(kind="the probe is silent for good", cause="", action=A.NONE, verdict=Verdict.UNKNOWN, show=is_gone),
)


def plant(node, fault):
    """Puts the fault into the node and looks until the engine has named it and asked for its rung."""
    began_s, named, asked = node.at_s, None, None
    if fault.begin is not None:
        fault.begin(node)
    decision = None
    while node.at_s - began_s < MOST_S and asked is None:
        decision = fault.show(node, node.at_s - began_s)
        age_s = node.at_s - began_s
        if named is None and _is_named(decision, fault):
            named = age_s
        if named is not None and decision.action.rank >= fault.action.rank:
            asked = age_s
    words = "" if decision is None else "; ".join(_words(decision))
    return Found(kind=fault.kind, named_after_s=named, asked_after_s=asked, action=decision.action.value, words=words)


def _words(decision):
    from hostler.health.engine import why

    return why(decision)[:2]


def _is_named(decision, fault):
    if not fault.cause:
        return decision.verdict in {Verdict.UNKNOWN, fault.verdict} and bool(decision.unknown)
    causes = {one.cause for one in decision.faults}
    return fault.cause in causes and (decision.verdict is fault.verdict or fault.verdict is Verdict.HEALTHY)


def lemon(node):
    """The same fault comes back a day after each remedy: returns the rungs that were asked for, in order."""
    asked = []
    for _ in range(3):
        while True:
            decision = node.look(node.devices({"ecc_volatile_uncorrectable_count": 3}))
            if decision.action.rank >= HealthAction.RESET_GPU.rank:
                break
        asked.append(decision.action.value)
        node.remedy(decision.action)
        node.reboot()
        node.settle()
        node.pass_until(node.at_s + 86_400.0)
    return asked

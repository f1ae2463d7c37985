"""A node as the engine sees it: looks at a steady pace, states and lines put in by hand."""

from datetime import UTC, datetime, timedelta

from hostler.health.engine import Located, Look, Memory, decide, note_remedy, observe, xid_events
from hostler.model.enums import HealthAction, Verdict
from hostler.model.health import Finding

START = datetime(2026, 1, 1, tzinfo=UTC)
GPUS = tuple(f"0000:{number:02x}:00" for number in range(8))


def finding(code, verdict="failed", action="reset_gpu", what=None):
    return Finding(
        code=code,
        what=what or f"{code} is bad",
        verdict=Verdict(verdict),
        action=HealthAction(action),
        evidence="as seen",
        source=f"document of {code}",
    )


def state(code, verdict="failed", action="reset_gpu", gpu=GPUS[0]):
    return Located(accelerator=gpu, finding=finding(code, verdict, action))


def xid_line(code, uptime_s, gpu=GPUS[0], text="pid=77, name=python3"):
    line = f"NVRM: Xid (PCI:{gpu}): {code}, {text}"
    return {"code": code, "pci_bus_id": gpu, "at_uptime_s": uptime_s, "line": line}


class Node:
    """Looks every ``every_s``; the kernel log of a boot is read whole at every look, as the probe does."""

    def __init__(self, every_s=60.0):
        self.memory = Memory()
        self.now = START
        self.every_s = every_s
        self.boot = 1
        self.log = []
        self.silences = ()
        self.count = 0

    def serial(self):
        self.count += 1
        return f"answer {self.count}"

    def nvml(self, *states, seen=GPUS, unknown=(), is_answered=True, stream="nvml"):
        return Look(
            stream=stream,
            taken_at=self.serial(),
            boot_id=f"boot-{self.boot}",
            is_answered=is_answered,
            seen=frozenset(seen),
            states=tuple(states),
            unknown=tuple(unknown),
        )

    def kernel(self, is_answered=True):
        events = xid_events(self.log) if is_answered else ()
        taken_at, boot_id = self.serial(), f"boot-{self.boot}"
        return Look(stream="kernel-log", taken_at=taken_at, boot_id=boot_id, is_answered=is_answered, events=events)

    def look(self, *states, times=1, **how):
        for _ in range(times):
            self.now += timedelta(seconds=self.every_s)
            looks = [self.nvml(*states, **how), self.kernel()]
            self.memory = observe(self.memory, looks, self.now, silences=self.silences)
        return self.decision

    def hear(self, *looks):
        self.now += timedelta(seconds=self.every_s)
        self.memory = observe(self.memory, looks, self.now, silences=self.silences)
        return self.decision

    def write(self, code, uptime_s=None, **what):
        self.log.append(xid_line(code, self.uptime_s if uptime_s is None else uptime_s, **what))

    @property
    def uptime_s(self):
        return (self.now - START).total_seconds()

    def reboot(self):
        self.boot += 1
        self.log = []

    def remedy(self, action, gpu=None):
        self.memory = note_remedy(self.memory, HealthAction(action), accelerator=gpu)

    @property
    def decision(self):
        return decide(self.memory, self.now, silences=self.silences)

    @property
    def said(self):
        decision = self.decision
        return decision.verdict.value, decision.action.value, decision.is_confirmed

"""A simulated node and whoever watches it: probe documents go through the real parser and the real engine."""

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

from tests.health.documents import device, document

from hostler.health.engine import Look, Memory, decide, note_remedy, observe, probe_looks
from hostler.model.enums import HealthAction, Verdict

START = datetime(2026, 1, 1, tzinfo=UTC)
LOOK_S = 60.0
SLOW_LOOK_S = 600.0
YEAR_S = 365 * 86_400.0
GPU_COUNT = 2


@dataclass(slots=True)
class SimNode:
    """One node. Times are seconds since it was bought; looks come every ``LOOK_S``, stretches without news are passed over.

    Attributes:
        harms: (second, action) of each time that the engine asked for harm. failed_s: seconds with verdict failed.
    """

    name: str
    gpu_count: int = GPU_COUNT
    at_s: float = 0.0
    boot: int = 1
    booted_at_s: float = 0.0
    xids: list = field(default_factory=list)
    memory: Memory = field(default_factory=Memory)
    harms: list = field(default_factory=list)
    failed_s: float = 0.0
    looks: int = 0
    clock_off: timedelta = timedelta(0)

    @property
    def now(self):
        return START + self.clock_off + timedelta(seconds=self.at_s)

    @property
    def decision(self):
        return decide(self.memory, self.now)

    def pci(self, index):
        return f"00000000:{index:02d}:09.0"

    def write(self, code, index=0, text="pid=100, name=python3", after_s=0.0):
        """Puts a line into the kernel log."""
        uptime = self.at_s - self.booted_at_s + after_s
        line = f"[{uptime:12.6f}] NVRM: Xid (PCI:{self.pci(index)[4:-2]}): {code}, {text}"
        entry = {"code": code, "pci_bus_id": self.pci(index)[4:-2], "at_uptime_s": uptime, "line": line}
        self.xids = [*self.xids, entry][-200:]

    def reboot(self):
        """Resets the devices and empties the log."""
        self.boot, self.booted_at_s, self.xids = self.boot + 1, self.at_s, []

    def devices(self, spoilt=None, index=0):
        return [device(number, **(spoilt or {} if number == index else {})) for number in range(self.gpu_count)]

    def look(self, devices=None, extra=(), seconds=LOOK_S, **changes):
        """Takes one look: devices and fields of the document as given, else healthy."""
        self.at_s += seconds
        told = document(*(self.devices() if devices is None else devices), boot_id=f"{self.name}-{self.boot}", xids=self.xids)
        told.update(changes)
        looks = probe_looks(told, accelerator="H100", accelerator_count=self.gpu_count, taken_at=str(self.at_s))
        return self.hear([*looks, *extra])

    def calm(self, seconds=LOOK_S):
        """Takes one healthy look; the same as ``look()`` without new lines, and cheaper."""
        self.at_s += seconds
        seen = frozenset(self.pci(index).removeprefix("0000")[:-2] for index in range(self.gpu_count))
        each = {"taken_at": str(self.at_s), "boot_id": f"{self.name}-{self.boot}"}
        return self.hear([Look(stream="nvml", seen=seen, **each), Look(stream="kernel-log", **each)])

    def silence(self, is_log_read=False):
        """Takes one look that brings nothing: the probe failed, or the driver's library alone."""
        self.at_s += LOOK_S
        each = {"taken_at": str(self.at_s), "boot_id": f"{self.name}-{self.boot}" if is_log_read else None}
        return self.hear(
            [Look(stream="nvml", is_answered=False, **each), Look(stream="kernel-log", is_answered=is_log_read, **each)]
        )

    def hear(self, looks):
        self.looks += 1
        self.memory = observe(self.memory, looks, self.now)
        decision = self.decision
        if decision.action.rank >= HealthAction.RESET_GPU.rank:
            self.harms.append((self.at_s, decision.action, decision))
        if decision.verdict is Verdict.FAILED:
            self.failed_s += LOOK_S
        return decision

    def remedy(self, action):
        self.memory = note_remedy(self.memory, action)

    def settle(self, most_s=4 * 3600.0):
        """Looks on until no fault is open."""
        until = self.at_s + most_s
        while self.at_s < until:
            decision = self.calm(SLOW_LOOK_S if self._waits_only() else LOOK_S)
            if not self.memory.sessions and decision.verdict is Verdict.HEALTHY:
                return
        return

    def _waits_only(self):
        return all(one.clears == "quiet" for one in self.memory.sessions)

    def pass_until(self, second):
        """Passes a stretch of healthy looks: with no fault open, all they do is to add watched time."""
        gap = second - self.at_s
        if gap <= 0:
            return
        if self.memory.sessions or any(count for _stream, count in self.memory.silent) or self.memory.unknown:
            self.settle()
            gap = max(0.0, second - self.at_s)
        self.at_s += gap
        self.memory = replace(self.memory, watched_s=self.memory.watched_s + gap, now=self.now.isoformat())

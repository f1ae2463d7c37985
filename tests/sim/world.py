"""One simulated deployment: account, ledger, nodes, and processes that can be ended at any of their steps."""

import asyncio
import random
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from tests.sim.nodes import SimNodes

from hostler.drivers.fake.cloud import FakeCloud
from hostler.drivers.fake.driver import FakeDriver
from hostler.ledger.errors import LedgerUnavailableError
from hostler.ledger.port import Caps
from hostler.lifecycle.fleet import Fleet, LifecycleSettings
from hostler.lifecycle.seams import Seams
from hostler.model.enums import FleetMode, Verdict
from hostler.model.health import HealthReport
from hostler.model.lease import Backup
from hostler.model.offering import PlacementPlan
from hostler.model.request import RunRef
from hostler.reach.port import JobOrder
from hostler.stores.memory import MemoryLedger

BEGIN = datetime(2027, 1, 1, tzinfo=UTC)
DEPLOYMENT = "sim"
YIELD_CHANCE = 0.25


class SimCrashError(BaseException):
    """The process is gone. Not an Exception: nothing in the code under test may catch it."""


class FakeKeys:
    key_id = "sim-key"

    def new_data_key(self, context):
        return bytes(32), "d3JhcHBlZA=="

    def unwrap(self, wrapped, context):
        return bytes(32)


class MemoryStore:
    """A backup store. ``is_away``: it answers nothing."""

    uri = "file:///backup"

    def __init__(self):
        self.objects = {}
        self.is_away = False

    def get(self, key):
        if self.is_away:
            raise OSError("the store is away")
        if key not in self.objects:
            raise FileNotFoundError(key)
        return self.objects[key]

    def replace(self, key, content, *, expected):
        if self.is_away:
            raise OSError("the store is away")
        if self.objects.get(key) != expected:
            return False
        self.objects[key] = content
        return True


class FakeIdentity:
    def host_key_pair(self, intent_id):
        return "private", f"ssh-ed25519 {intent_id}"

    def user_ca_public_key(self):
        return "ssh-ed25519 ca"


def plan_by_price(request, offerings, stock_outs, now):
    """A plain ranking: capacity types in the order asked, then price, then zone."""
    order = {kind: index for index, kind in enumerate(request.capacity_types)}
    ranked = sorted(offerings, key=lambda o: (order[o.capacity_type], o.price_usd_per_hour, o.key))
    return PlacementPlan(offerings=tuple(ranked), refusals=(), made_at=now)


def judge_by_word(document, **_what):
    verdict = Verdict(document["verdict"])
    return HealthReport(verdict=verdict, reasons=() if verdict is Verdict.HEALTHY else ("made up",))


def orders_by_rank(lease, job, nodes):
    return [
        JobOrder(job_id=job.job_id, attempt_token=job.attempt_token, argv=("train",), rank=rank, world_size=len(nodes))
        for rank, _node in enumerate(nodes)
    ]


def seal_all(store, lease, objects, sealed_at, **_keys):
    return Backup(
        backup_id=f"{lease.lease_id}-{sealed_at:%H%M%S%f}",
        lease_id=lease.lease_id,
        manifest_uri=f"file:///backup/{lease.lease_id}",
        manifest_sha256="0" * 64,
        object_count=len(objects),
        size_bytes=len(objects),
        sealed_at=sealed_at,
        is_verified=True,
    )


SEAMS = Seams(
    make_plan=plan_by_price,
    judge=judge_by_word,
    check_workload=lambda request: [],
    orders_for=orders_by_rank,
    setup_options=lambda lease: {},
    seal=seal_all,
)


@dataclass(slots=True)
class Process:
    """One operating system process that drives leases. Once dead, nothing of it acts any more but calls already on the wire."""

    name: str
    world: "World"
    crash_chance: float = 0.0
    crash_at: str | None = None
    stall_chance: float = 0.0
    is_dead: bool = False
    label: str = ""

    def crash(self, label):
        self.label = label
        if self.is_dead:
            raise SimCrashError(label)
        world = self.world
        if self.crash_at == label or (self.crash_chance and world.rng.random() < self.crash_chance):
            self.is_dead = True
            world.crashes += 1
            world.log(f"{self.name} crashes at {label}")
            raise SimCrashError(label)

    async def offload(self, work):
        world = self.world
        if self.is_dead:
            raise SimCrashError("offload")
        latency_s = world.latency()
        # A suspended process wakes up with an old view just before it writes. Before a cloud's call it would be one that
        # outlives the driver's call budget, which no controller can tell from one that never comes.
        if (
            self.stall_chance
            and self.label in {"write:intent:before", "write:node-launched:before"}
            and world.rng.random() < self.stall_chance
        ):
            latency_s += world.rng.choice([world.rng.uniform(1, 10), world.rng.uniform(5, 60)])
            world.log(f"{self.name} is suspended before {self.label}")
        self.label = ""
        # Others come in between now and then only: half of a life's time would go into letting nobody pass.
        if latency_s or world.rng.random() < YIELD_CHANCE:
            await asyncio.sleep(latency_s)
        if self.is_dead and not (latency_s and world.rng.random() < 0.5):
            raise SimCrashError("offload")
        try:
            return work()
        finally:
            world.check()

    async def sleep(self, seconds):
        if self.is_dead:
            raise SimCrashError("sleep")
        await asyncio.sleep(seconds)

    def kill(self):
        """Ends the process: its next step does not happen; a call on the wire may still arrive."""
        self.is_dead = True


class OutageLedger:
    """The world's ledger behind a line that may be cut: before a call, or after a change was kept."""

    def __init__(self, world):
        self._world = world

    def __getattr__(self, name):
        method, world = getattr(self._world.ledger, name), self._world

        def call(*args, **kwargs):
            if world.is_ledger_away:
                if name in {"write", "insert_intent", "append_events"} and world.rng.random() < 0.1:
                    method(*args, **kwargs)
                raise LedgerUnavailableError("away")
            return method(*args, **kwargs)

        return call


@dataclass(slots=True)
class World:
    """Everything that outlives processes.

    Attributes:
        lags: longest latency of a call in seconds; 0: every call is answered at once.
        checkers: what must hold after every call that changed something.
    """

    rng: random.Random
    caps: Caps = field(default_factory=Caps)
    lags: float = 0.0
    nodes_asked: int = 2
    checked: tuple = ()
    settings_changes: dict = field(default_factory=dict)
    cloud: FakeCloud = None
    ledger: MemoryLedger = None
    nodes: SimNodes = None
    crashes: int = 0
    notes: list[str] = field(default_factory=list)
    checkers: list = field(default_factory=list)
    ledger_type: type = MemoryLedger
    driver_type: type = FakeDriver
    seams: Seams = SEAMS
    processes: int = 0
    store: MemoryStore = field(default_factory=MemoryStore)
    told: int = 0
    moment: tuple = (0.0, BEGIN)
    weather: object = None
    tells: list[tuple[float, int]] = field(default_factory=list)
    reconciled: list[float] = field(default_factory=list)
    orphans: list = field(default_factory=list)
    foreign: list = field(default_factory=list)
    alive: list = field(default_factory=list)
    power_cuts: list[tuple[float, float]] = field(default_factory=list)
    drivers: list = field(default_factory=list)
    off_until: float = 0.0
    idle_until: float = 0.0
    is_ledger_away: bool = False
    calls_per_s: float | None = None
    calls_burst: int = 20

    def __post_init__(self):
        self.cloud = FakeCloud(clock=self.now)
        self.ledger = self.ledger_type(self.now)
        self.nodes = SimNodes(cloud=self.cloud, seconds=self.seconds)

    def seconds(self):
        try:
            return asyncio.get_running_loop().time()
        except RuntimeError:
            return 0.0

    def now(self):
        seconds = self.seconds()
        if self.moment[0] != seconds:
            self.moment = (seconds, BEGIN + timedelta(seconds=seconds))
        return self.moment[1]

    def log(self, text):
        self.notes.append(f"{self.seconds():9.2f} {text}")

    def latency(self):
        if not self.lags or self.rng.random() < 0.7:
            return 0.0
        return self.rng.random() * self.lags

    def check(self):
        # Reads change nothing: only what wrote an event or called the cloud is checked.
        seen = (len(self.ledger._events), len(self.cloud.calls), len(self.nodes.started))
        if seen != self.checked:
            self.checked = seen
            for checker in self.checkers:
                checker(self)

    def tell(self):
        """Somebody hears of everything that was written until now."""
        self.told = len(self.ledger._events)
        self.tells.append((self.seconds(), self.told))

    async def control_plane(self, *, is_driver=False):
        """Waits while the whole control plane is off; drivers of leases may be away by themselves."""
        while (until := max(self.off_until, self.idle_until if is_driver else 0.0)) > self.seconds():  # noqa: ASYNC110 - another cut may have come
            await asyncio.sleep(until - self.seconds() + self.rng.uniform(0, 300))

    def settings(self):
        values = {
            "deployment": DEPLOYMENT,
            "mode": FleetMode.ENFORCE,
            "tenant_caps": {"default": self.caps, "other": self.caps},
            "destroyed_per_tick": 4,
            "backup_uri": "file:///backup",
            **self.settings_changes,
        }
        return LifecycleSettings(**values)

    def driver(self):
        driver = self.driver_type(deployment=DEPLOYMENT, cloud=self.cloud)
        if self.calls_per_s is not None:
            claim = self.ledger.claim_call
            driver.pace_with(lambda: claim("fake", calls_per_s=self.calls_per_s, burst=self.calls_burst))
        return driver

    def process(self, name=None, **chances):
        self.processes += 1
        return Process(name or f"p{self.processes}", self, **chances)

    def fleet(self, process=None, ledger=None):
        process = process or self.process()
        seen = ledger or (OutageLedger(self) if self.weather is not None and self.weather.ledger_outages else self.ledger)
        return Fleet(
            settings=self.settings(),
            ledger=seen,
            drivers={"fake": self.driver()},
            nodes=self.nodes,
            keys=FakeKeys(),
            identity=FakeIdentity(),
            store=self.store,
            tell=self.tell,
            user_data=lambda intent: f"#cloud-config {intent.intent_id}",
            sleep=process.sleep,
            secret=lambda name: f"value of {name}",
            crash=process.crash,
            offload=process.offload,
            seams=self.seams,
        )

    def conf(self, **changes):
        return {
            "accelerator": "H100",
            "nodes": self.nodes_asked,
            "capacity_types": ["spot", "on-demand"],
            "max_cost_usd": 100000.0,
            **changes,
        }


def run_ref(number=0):
    return RunRef(dag_id="hostler_node_lifecycle", run_id=f"run-{number}")


def make_world(seed=0, **changes):
    return World(rng=random.Random(seed), **changes)

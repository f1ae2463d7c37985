"""Fleets to look at: views as a ledger gives them, without a ledger's work, and a fleet file."""

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from itertools import count

from hostler.config.schema import FleetFile
from hostler.ledger.errors import LeaseNotFoundError
from hostler.ledger.port import Spending
from hostler.model.enums import CapacityType, HealthAction, IntentState, JobState, LeaseState, NodeState, Verdict
from hostler.model.lease import (
    Event,
    Intent,
    Job,
    Lease,
    LeaseView,
    Node,
    client_token_for,
    intent_id_for,
    lease_id_for,
)
from hostler.model.offering import Offering
from hostler.model.request import NodeRequest, RunRef

NOW = datetime(2026, 12, 1, 12, tzinfo=UTC)
DAG = "hostler_node_lifecycle"
SECRET = "made-up-7ab1-must-be-seen-nowhere"


def fleet_file(**changes) -> FleetFile:
    document = {
        "deployment": "acme",
        "limits": {"usd_per_hour": 64_000, "usd_per_run": 5000, "nodes": 2400},
        "ledger": {"url": f"postgresql://hostler:{SECRET}@127.0.0.1/ledger"},
        "backup": {"uri": "s3://acme-backups/hostler"},
        "clouds": {"aws": {"regions": ["us-east-1"]}},
        "tenants": {"vision": {"usd_per_hour": 38_000}, "speech": {"usd_per_hour": 24_000}, "search": {}},
        **changes,
    }
    return FleetFile.model_validate(document)


@dataclass
class ShownLedger:
    """Answers what the page asks. ``reads``: how often it was asked for views. ``fails``: raised instead of an answer."""

    views: list[LeaseView] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    stopped: bool = False
    at: datetime = NOW
    reads: int = 0
    fails: Exception | None = None

    def now(self):
        return self.at

    def list_views(self, *states, newest=None):
        self.reads += 1
        if self.fails:
            raise self.fails
        found = [view for view in self.views if not states or view.lease.state in states]
        return tuple(found if newest is None else found[-newest:])

    def view(self, lease_id):
        for view in self.views:
            if view.lease.lease_id == lease_id:
                return view
        raise LeaseNotFoundError(f"no lease {lease_id!r}")

    def list_events(self, lease_id, after=0, limit=1000):
        return tuple(event for event in self.events if event.lease_id == lease_id)

    def spending(self, tenant=None):
        nodes = [node for view in self.views for node in view.nodes if node.state is not NodeState.GONE]
        mine = [node for node in nodes if tenant in (None, node.tenant)]
        rates = [node.offering.price_usd_per_hour or Decimal(0) for node in mine]
        return Spending(usd_per_hour=sum(rates, Decimal(0)), nodes=len(mine))

    def is_spending_stopped(self):
        return self.stopped


OFFERINGS = (
    ("aws", "us-east-1", "us-east-1a", "p5.48xlarge", "H100", 8, "55.04"),
    ("aws", "eu-west-1", "eu-west-1b", "p4d.24xlarge", "A100", 8, "21.96"),
    ("aws", "us-west-2", "us-west-2c", "g6.12xlarge", "L4", 4, "4.60"),
)


def offering(number: int = 0, *, spot: bool = False, price: str | None = "") -> Offering:
    cloud, region, zone, instance_type, accelerator, accelerators, usd = OFFERINGS[number % len(OFFERINGS)]
    asked = usd if price == "" else price
    return Offering(
        cloud=cloud,
        region=region,
        zone=zone,
        instance_type=instance_type,
        capacity_type=CapacityType.SPOT if spot else CapacityType.ON_DEMAND,
        accelerator=accelerator,
        accelerator_count=accelerators,
        vcpu_count=192,
        memory_mib=2_097_152,
        price_usd_per_hour=None if asked is None else Decimal(asked),
    )


def lease_view(number: int, nodes: int = 1, *, tenant="vision", dag_id=DAG, lease=None, node=None) -> LeaseView:
    """A lease in the middle of its run. ``lease``, ``node``: changes; each node gets those of ``node``."""
    run = RunRef(dag_id=dag_id, run_id=f"manual__2026-12-01T0{number % 10}:00:00+00:00_{number:04d}")
    lease_id = lease_id_for(run)
    bought = offering(number, spot=number % 2 == 1)
    request = NodeRequest(
        tenant=tenant,
        accelerator=bought.accelerator,
        accelerators_per_node=bought.accelerator_count,
        node_count=nodes,
        capacity_types=(bought.capacity_type,),
        max_cost_usd=Decimal(nodes) * 250,
        script=f"echo {SECRET}",
        code_uri=f"s3://code/{SECRET}",
        recipe_options=(("token", SECRET),),
        secrets=(SECRET,),
    )
    made = Lease(
        lease_id=lease_id,
        deployment="acme",
        run=run,
        request=request,
        state=LeaseState.ACTIVE,
        created_at=NOW - timedelta(hours=3, minutes=number % 60),
        reached="validate",
        wrapped_data_key=SECRET,
    )
    job = Job(
        job_id=f"{lease_id}-1",
        lease_id=lease_id,
        attempt=1,
        attempt_token=SECRET,
        node_names=tuple(f"{lease_id}-{slot}" for slot in range(nodes)),
        state=JobState.RUNNING,
        started_at=NOW - timedelta(hours=1),
        step=100 + number,
    )
    return LeaseView(
        lease=replace(made, **(lease or {})),
        intents=tuple(_intent(made, slot, bought) for slot in range(nodes)),
        nodes=tuple(replace(_node(made, slot, bought), **(node or {})) for slot in range(nodes)),
        jobs=(job,),
    )


def _intent(lease: Lease, slot: int, bought: Offering) -> Intent:
    intent_id = intent_id_for(lease.lease_id, slot, 1)
    return Intent(
        intent_id=intent_id,
        lease_id=lease.lease_id,
        slot_index=slot,
        attempt=1,
        tenant=lease.request.tenant,
        offering=bought,
        client_token=client_token_for(intent_id, bought.key),
        state=IntentState.OWNED,
        fence=1,
        written_at=lease.created_at,
        settle_after=lease.created_at,
        provider_id=f"i-{slot:04d}",
    )


def _node(lease: Lease, slot: int, bought: Offering) -> Node:
    return Node(
        node_name=f"{lease.lease_id}-{slot}",
        lease_id=lease.lease_id,
        slot_index=slot,
        intent_id=intent_id_for(lease.lease_id, slot, 1),
        tenant=lease.request.tenant,
        offering=bought,
        provider_id=f"i-0{lease.lease_id[:8]}{slot:03d}",
        state=NodeState.INITIALIZED,
        launched_at=NOW - timedelta(hours=2, minutes=slot % 50),
        host_key=f"ssh-ed25519 {SECRET}",
        health=Verdict.HEALTHY,
        health_memory=SECRET,
        probed_at=NOW,
        last_seen_at=NOW,
    )


TROUBLES = (
    {
        "health": Verdict.FAILED,
        "health_reasons": ("GPU 3 (0000:5d:00.0): Xid 79, it has fallen off the bus; 2 bursts of lines within 24 h",),
        "health_action": HealthAction.DRAIN_AND_REPLACE,
        "is_cordoned": True,
    },
    {
        "health": Verdict.DEGRADED,
        "health_reasons": ("GPU 0: 1,204 corrected memory errors an hour, above the limit of 1,000",),
        "health_action": HealthAction.RECORD,
    },
    {"health": Verdict.UNKNOWN, "health_reasons": ("no answer to the last 2 probes",), "state": NodeState.UNREACHABLE},
    {
        "health": Verdict.FAILED,
        "health_reasons": ("GPU 6: Xid 119, the GSP does not answer",),
        "health_action": HealthAction.RESET_GPU,
        "is_health_proven": False,
    },
)


def big_fleet(nodes: int = 2000, gang: int = 8) -> ShownLedger:
    """Many leases with here and there a trouble, two of the newest in other states, and one with a story."""
    numbers = count()
    views = [
        lease_view(next(numbers), gang, tenant=("vision", "speech", "search")[lease % 3]) for lease in range(nodes // gang)
    ]
    for index, change in enumerate(TROUBLES * 3):
        at = index * 7 % len(views)
        sick = views[at].nodes
        views[at] = replace(views[at], nodes=(replace(sick[0], **change), *sick[1:]))
    views.sort(key=lambda view: view.lease.created_at)
    newest = views[-1]
    waiting = replace(newest.lease, state=LeaseState.GRANTED, reached="plan", wait_since=NOW)
    waiting = replace(waiting, wait_reason="no capacity: p5.48xlarge spot in us-east-1a, us-east-1b; next try in 90 s")
    views[-1] = replace(newest, lease=waiting, nodes=(), jobs=(), intents=())
    failed = replace(
        views[-3].lease, state=LeaseState.DRAINING, failure="node lost for the 4th time: its slot was filled 3 times"
    )
    views[-3] = replace(views[-3], lease=failed)
    events = [
        Event(
            lease_id=view.lease.lease_id, who=f"{DAG}/{view.lease.run.run_id}/launch/1", what=what, why=why, at=NOW, sequence=n
        )
        for view in views[-8:]
        for n, (what, why) in enumerate(STORY, 1)
    ]
    return ShownLedger(views=views, events=events)


STORY = (
    ("lease.admitted", "8 nodes for tenant vision, at most 2,000 USD"),
    ("plan.made", "3 offerings, the cheapest first; 12 refused"),
    ("intent.opened", "aws/us-east-1/us-east-1a/p5.48xlarge/spot"),
    ("node.launched", "the cloud named a machine"),
    ("job.running", "all nodes report the job"),
)

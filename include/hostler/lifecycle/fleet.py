"""What the lifecycle works with. ``wiring`` builds it; nobody else does."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal

from hostler.cloud.driver import CloudDriver
from hostler.ledger.port import Caps, Ledger
from hostler.lifecycle.board import Board
from hostler.lifecycle.policies import ScaleDownPolicy, SweepPolicy
from hostler.lifecycle.seams import Seams
from hostler.lifecycle.threads import Offload, in_thread
from hostler.model.enums import FleetMode
from hostler.model.lease import Intent
from hostler.reach.port import NodeControl
from hostler.vault.port import KeyProvider, NodeIdentity, ObjectStore

NOTHING = Caps(usd_per_hour=Decimal(0), nodes=0, tenant_usd_per_hour=Decimal(0), tenant_nodes=0)
"""Caps under which nothing is bought: where no cap is known, none is assumed to be absent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Login:
    """Who the nodes of a cloud let in, and at which port."""

    user: str = "hostler"
    port: int = 22


@dataclass(frozen=True, slots=True, kw_only=True)
class LifecycleSettings:
    """The knobs of fleet.yaml that the lifecycle needs, resolved.

    Attributes:
        deployment: id of this deployment, immutable. tags: extra tags for machines.
        tenant_caps: by tenant; the ``deployment`` caps are in each of them too.
        usd_per_run: highest ``max_cost_usd`` that a request may name; None: no limit.
        destroyed_per_tick: most machines that one reap may end.
        boot_timeout_s: a machine that does not answer this long after launch is given up.
        setup_timeout_s, setup_attempts: per node. heartbeat_timeout_s: a silent job is checked on after this.
        unattended_grace_s: how long a job goes on without anybody in charge of it.
        orphan_grace_s: how long ``reap`` leaves an unknown machine with our tag alone.
        slot_replacements: most nodes that may be replaced per slot after launch (boot, setup, validate, run).
        run_replacements: most nodes that may be replaced in all slots of a run together.
        reconcile_stale_s: nothing is bought when the last reconcile that was free to act is older than this; 0: never asked.
        logins: how nodes are reached, by cloud; a cloud that is not named has the default ``Login``.
        backup_uri, backup_endpoint_url, backup_region: where the agent ships to.
        scale_down: by tenant; one that is missing is only reported on. cost_sweep: of the deployment.
    """

    deployment: str
    mode: FleetMode
    tenant_caps: Mapping[str, Caps]
    usd_per_run: Decimal | None = None
    destroyed_per_tick: int = 2
    tags: Mapping[str, str] = field(default_factory=dict)
    boot_timeout_s: float = 900
    setup_timeout_s: float = 3600
    setup_attempts: int = 2
    heartbeat_timeout_s: float = 120
    poll_s: float = 10
    unattended_grace_s: float = 1800
    orphan_grace_s: float = 600
    slot_replacements: int = 3
    run_replacements: int = 20
    reconcile_stale_s: float = 3600
    logins: Mapping[str, Login] = field(default_factory=dict)
    backup_uri: str = ""
    backup_endpoint_url: str | None = None
    backup_region: str | None = None
    scale_down: Mapping[str, ScaleDownPolicy] = field(default_factory=dict)
    cost_sweep: SweepPolicy = field(default_factory=SweepPolicy)

    def caps_of(self, tenant: str) -> Caps:
        """Returns the caps in force for a tenant; one that fleet.yaml does not name (any more) may buy nothing."""
        return self.tenant_caps.get(tenant, NOTHING)

    def login_of(self, cloud: str) -> Login:
        """Returns how the nodes of a cloud are reached."""
        return self.logins.get(cloud) or Login()


@dataclass(frozen=True, slots=True, kw_only=True)
class Fleet:
    """All collaborators of the lifecycle.

    Attributes:
        drivers: by cloud name. nodes: how nodes are asked. keys, identity, store: vault pieces.
        user_data: cloud-init text for an intent (``recipes.user_data``).
        sleep: how the lifecycle waits inside one call (the simulator's moves its clock).
        crash: called with a label before and after each effect and ledger write; the simulator raises in it; a no-op otherwise.
        secret: resolves a secret's name to its value, at the last moment; never logged.
        board: what many waiters ask alike.
        tell: tells people, at once, what needs one and was not told yet; never raises, takes seconds at most.
        offload: where synchronous calls run; the simulator's runs them in place. seams: parts of other packages, bound late.
    """

    settings: LifecycleSettings
    ledger: Ledger
    drivers: Mapping[str, CloudDriver]
    nodes: NodeControl
    keys: KeyProvider
    identity: NodeIdentity
    store: ObjectStore
    user_data: Callable[[Intent], str]
    sleep: Callable[[float], Awaitable[None]]
    secret: Callable[[str], str]
    crash: Callable[[str], None] = lambda _label: None
    offload: Offload = in_thread
    seams: Seams = field(default_factory=Seams)
    board: Board = field(default_factory=Board)
    tell: Callable[[], None] = lambda: None

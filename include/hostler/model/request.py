"""What a tenant asks for."""

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from hostler.model.enums import CapacityType

REQUEST_VERSION = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRef:
    """The Dag run a lease belongs to. The lease id is a hash of all three."""

    dag_id: str
    run_id: str
    generation: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeRequest:
    """One gang of equal nodes with the work to run on them.

    Attributes:
        accelerator: short accelerator name, such as ``H100``.
        accelerators_per_node: 1 to 16.
        node_count: 1 or more; the gang is all or nothing.
        capacity_types: in order of preference; not empty.
        clouds, regions: empty means all that the fleet allows.
        recipe: name of a training recipe, or ``script`` with ``script`` set.
        script: the tenant's own command line, run by ``sh -c`` once on each node; only with recipe ``script``.
        code_uri, data_uri: what is staged into ``$HOSTLER_CODE_DIR`` and ``$HOSTLER_DATA_DIR`` (file:// or s3://).
        recipe_options: recipe settings as name and value pairs, sorted by name.
        secrets: names of secrets (Airflow connections or variables) handed to the job by its environment; never values.
        checkpoint_interval_steps: how much work a lost node may cost; 1 or more.
        deadline_at: aware UTC; None means none.
        max_cost_usd: the run is released when its cost reaches this; above zero.
        max_price_usd_per_hour: highest price of one node; None means any. Above zero.
        keep_s: how long nodes are kept after the job's end; 0 releases at once.
    """

    tenant: str
    accelerator: str
    accelerators_per_node: int
    node_count: int
    capacity_types: tuple[CapacityType, ...]
    max_cost_usd: Decimal
    clouds: tuple[str, ...] = ()
    regions: tuple[str, ...] = ()
    recipe: str = "digits"
    script: str | None = None
    code_uri: str | None = None
    data_uri: str | None = None
    recipe_options: tuple[tuple[str, str], ...] = ()
    secrets: tuple[str, ...] = ()
    checkpoint_interval_steps: int = 20
    deadline_at: datetime | None = None
    keep_s: int = 0
    max_price_usd_per_hour: Decimal | None = None
    version: int = REQUEST_VERSION

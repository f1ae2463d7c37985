"""Schema of fleet.yaml."""

from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import AnyUrl, Field, SecretStr, SerializeAsAny, model_validator

from hostler.config.clouds import CloudSettings, StrictModel
from hostler.model.enums import FleetMode

Usd = Annotated[Decimal, Field(gt=0)]
_KMS_ARN = r"^arn:aws[a-z-]*:kms:[a-z0-9-]+:[0-9]{12}:(key|alias)/[A-Za-z0-9/_-]+$"


class Limits(StrictModel):
    """What the whole deployment may spend and end. Checked in ``admit`` and again before every purchase.

    Attributes:
        usd_per_hour: of all machines together. usd_per_run: highest ``max_cost_usd`` of a request.
        destroyed_per_tick: most machines that one reconcile may end on its own judgement.
    """

    usd_per_hour: Usd
    usd_per_run: Usd
    nodes: Annotated[int, Field(ge=1)]
    destroyed_per_tick: Annotated[int, Field(ge=0)] = 2


class TenantLimits(StrictModel):
    """Caps of one tenant; None: only the deployment's. ``retention``: in the place of ``backup.retention``, whole."""

    usd_per_hour: Usd | None = None
    nodes: Annotated[int, Field(ge=1)] | None = None
    retention: "RetentionSettings | None" = None


class LedgerSettings(StrictModel):
    """Where the ledger is.

    Attributes:
        url: ``embedded`` (a PostgreSQL that ``hostler ledger start`` runs in ``folder``) or a ``postgresql://`` address;
            ``${NAME}`` in it is read from the environment, so that no password stands in the file.
    """

    url: SecretStr = SecretStr("embedded")
    folder: Path = Path("~/.hostler/ledger")

    @model_validator(mode="after")
    def _known_kind(self) -> Self:
        text = self.url.get_secret_value()
        if text != "embedded" and not text.startswith(("postgresql://", "postgresql+psycopg://")):
            raise ValueError("url: allowed are 'embedded' and postgresql://...")
        return self


class KeySettings(StrictModel):
    """The key service.

    Attributes:
        folder: holds the master key, mode 0600: nodes' host keys and users' certificates come from it, and without ``kms_key``
            the keys of backups too. Lose it then and no backup can be read.
        kms_key: ARN of a symmetric AWS KMS key (or of its alias) that wraps the keys of backups from now on. What the master
            key wrapped before is still read with it.
    """

    kind: Literal["local"] = "local"
    folder: Path = Path("~/.hostler/keys")
    kms_key: Annotated[str, Field(pattern=_KMS_ARN)] | None = None


class RetentionSettings(StrictModel):
    """Which backups of a tenant are kept; see ``hostler.vault.retention``. Periods are UTC; a week begins on Monday.

    Attributes:
        all_days: everything younger is kept. daily, weekly, monthly, yearly: so many of the newest days, weeks, months and years
            with a good backup keep the newest of it.
    """

    all_days: Annotated[int, Field(ge=0, le=36_500)] = 30
    daily: Annotated[int, Field(ge=0, le=10_000)] = 14
    weekly: Annotated[int, Field(ge=0, le=10_000)] = 8
    monthly: Annotated[int, Field(ge=0, le=10_000)] = 12
    yearly: Annotated[int, Field(ge=0, le=1000)] = 3


class ObjectLockSettings(StrictModel):
    """S3 Object Lock on sealed backups; the bucket must have been made with it.

    Attributes:
        mode: ``governance``: those with a special permission may delete all the same. ``compliance``: nobody, the account's root
            included. days: from the sealing.
    """

    mode: Literal["governance", "compliance"] = "governance"
    days: Annotated[int, Field(ge=1, le=36_500)]


class BackupSettings(StrictModel):
    """Where checkpoints and logs are shipped, and how long they are kept.

    Attributes:
        uri: ``s3://bucket/prefix`` or ``file:///folder`` (shared by all nodes).
        retention: None: no backup is ever deleted. A tenant may have its own. object_lock: None: nothing is locked.
    """

    uri: Annotated[str, Field(pattern=r"^(s3://[^/]+.*|file:///.+)$")]
    region: str | None = None
    endpoint_url: str | None = None
    retention: RetentionSettings | None = None
    object_lock: ObjectLockSettings | None = None

    @model_validator(mode="after")
    def _a_folder_locks_nothing(self) -> Self:
        if self.object_lock is not None and not self.uri.startswith("s3://"):
            raise ValueError("object_lock: only with s3://bucket/prefix; a folder locks nothing")
        return self


class NotifySettings(StrictModel):
    """Who is told of what needs a person: a JSON document is posted to the address.

    Attributes:
        webhook_url: None tells nobody. secret: names the environment variable whose value signs the post (HMAC-SHA256).
    """

    webhook_url: AnyUrl | None = None
    secret: str | None = None


class PriceSourceSettings(StrictModel):
    """One cloud's own price API.

    Attributes:
        regions: whose prices are asked for. connection: Airflow connection id (aws). secret: name of the secret with the key
            (gcp: an API key; alibaba: ``id:secret``). endpoint_url: instead of the cloud's own.
    """

    regions: Annotated[tuple[str, ...], Field(min_length=1)]
    connection: str | None = None
    secret: str | None = None
    endpoint_url: AnyUrl | None = None


class PriceSettings(StrictModel):
    """Prices that the clouds tell themselves; see docs/prices.md.

    Attributes:
        folder: accepted prices and reports; shared by all workers. reports_kept: reports of a cloud, the newest.
        sources: by cloud; empty: prices come from lists only.
    """

    folder: Path = Path("~/.hostler/prices")
    reports_kept: Annotated[int, Field(ge=1, le=10_000)] = 30
    sources: dict[Literal["alibaba", "aws", "azure", "gcp"], PriceSourceSettings] = Field(default_factory=dict)


class Timing(StrictModel):
    """Time limits in seconds. The defaults suit GPU machines of the big clouds."""

    boot_timeout_s: Annotated[float, Field(gt=0)] = 900
    setup_timeout_s: Annotated[float, Field(gt=0)] = 3600
    heartbeat_timeout_s: Annotated[float, Field(gt=0)] = 120
    poll_s: Annotated[float, Field(gt=0)] = 10
    unattended_grace_s: Annotated[float, Field(ge=0)] = 1800
    orphan_grace_s: Annotated[float, Field(ge=0)] = 600
    slot_replacements: Annotated[int, Field(ge=0, le=100)] = 3


class FleetFile(StrictModel):
    """All of fleet.yaml.

    Attributes:
        deployment: id of this deployment, on every machine's tags; never change it while machines live.
        catalog: price lists of one's own (files or folders) in the place of the shipped ones.
        clouds: at least one. tenants: empty means one tenant, ``default``, with the deployment's limits only.
    """

    deployment: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]{0,62}$")]
    mode: FleetMode = FleetMode.ENFORCE
    limits: Limits
    ledger: LedgerSettings = LedgerSettings()
    keys: KeySettings = KeySettings()
    backup: BackupSettings
    notify: NotifySettings = NotifySettings()
    timing: Timing = Timing()
    catalog: tuple[Path, ...] = ()
    prices: PriceSettings = PriceSettings()
    clouds: Annotated[dict[str, SerializeAsAny[CloudSettings]], Field(min_length=1)]
    tenants: dict[str, TenantLimits] = Field(default_factory=lambda: {"default": TenantLimits()})

    @model_validator(mode="before")
    @classmethod
    def _tenants_are_not_empty(cls, data: Any) -> Any:
        if isinstance(data, dict) and data.get("tenants", ...) in ({}, None):
            return {key: value for key, value in data.items() if key != "tenants"}
        return data

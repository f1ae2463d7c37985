"""Schema of fleet.yaml."""

from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import AnyUrl, AwareDatetime, Field, SecretStr, SerializeAsAny, model_validator

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


class ScaleDownSettings(StrictModel):
    """What ``hostler_scale_down`` does with idle nodes of one tenant; see docs/housekeeping.md.

    Attributes:
        mode: ``report``, ``mark``, or ``act``. idle_after_s: the window in which every sample must be idle; the node keeps a
            day. grace_s: how long a lease is marked before it is ended.
    """

    mode: Literal["report", "mark", "act"] = "report"
    idle_after_s: Annotated[float, Field(ge=300, le=86_400)] = 3600
    grace_s: Annotated[float, Field(ge=0)] = 600


class CostSweepSettings(StrictModel):
    """What ``hostler_cost_sweep`` does with what costs and serves nobody; see docs/housekeeping.md.

    Attributes:
        mode: ``report``, ``mark``, or ``act``. grace_s: how long a thing is marked before it is ended.
        stopped_after_s: how long nodes may be stopped before their lease is released.
        folder: reports of the checks of both housekeeping Dags; shared by all workers. reports_kept: the newest of each kind.
    """

    mode: Literal["report", "mark", "act"] = "report"
    grace_s: Annotated[float, Field(ge=3600)] = 7 * 86_400
    stopped_after_s: Annotated[float, Field(ge=3600)] = 3 * 86_400
    folder: Path = Path("~/.hostler/checks")
    reports_kept: Annotated[int, Field(ge=1, le=10_000)] = 30


class LogRotationSettings(StrictModel):
    """What ``hostler_log_rotation`` rotates on the machine of its worker; see docs/housekeeping.md.

    Attributes:
        paths: files of yours, with ``*`` and ``**``; their writers open a new file by themselves (as Python's
            ``WatchedFileHandler``) or are told by ``reopen_signal`` to the process of ``pid_file``.
        airflow: Airflow's own logs too, once they rest for ``airflow_after_s``: the UI does not show them any more then.
        nodes: have nodes ship their jobs' logs. host: names this machine in the archive; None: its host name.
        most_mib, most_age_s: a file that is larger, or first seen longer ago, is rotated. settle_s: how long it then rests.
        full_ratio: below this free share of a disk, all files on it are rotated.
        folder: lock and state of this machine's rotation.
    """

    paths: tuple[str, ...] = ()
    airflow: bool = False
    airflow_after_s: Annotated[float, Field(ge=3600)] = 14 * 86_400
    nodes: bool = True
    host: Annotated[str, Field(pattern=r"^[A-Za-z0-9._-]{1,64}$")] | None = None
    most_mib: Annotated[int, Field(ge=1)] = 64
    most_age_s: Annotated[float, Field(ge=60)] = 86_400
    settle_s: Annotated[float, Field(ge=0)] = 30
    full_ratio: Annotated[float, Field(ge=0, le=0.5)] = 0.05
    pid_file: Path | None = None
    reopen_signal: Literal["SIGHUP", "SIGUSR1", "SIGUSR2"] = "SIGHUP"
    folder: Path = Path("~/.hostler/rotation")

    @model_validator(mode="after")
    def _paths_are_absolute(self) -> Self:
        for pattern in self.paths:
            if not pattern.startswith(("/", "~/")) or pattern.endswith("/"):
                raise ValueError(f"paths: {pattern!r}: absolute paths of files, or such under ~/, are allowed")
        return self


class TenantLimits(StrictModel):
    """Caps of one tenant; None: only the deployment's.

    Attributes:
        scale_down: what is done with its idle nodes. retention: in the place of ``backup.retention``, whole.
    """

    usd_per_hour: Usd | None = None
    nodes: Annotated[int, Field(ge=1)] | None = None
    scale_down: ScaleDownSettings = ScaleDownSettings()
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


SecretName = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_.-]{0,127}$")]
"""A secret's name: an environment variable, or in Airflow a connection with a password or a variable. Never its value."""


class WebhookSettings(StrictModel):
    """A signed post. secret: names the secret that signs it (HMAC-SHA256); None posts it unsigned."""

    kind: Literal["webhook"]
    url: AnyUrl
    secret: SecretName | None = None


class SlackSettings(StrictModel):
    """A Slack incoming webhook. secret: names the secret that holds its address, or what follows ``/services/`` in it."""

    kind: Literal["slack"]
    secret: SecretName


class EmailSettings(StrictModel):
    """Mail by SMTP. user and secret go together; secret names the password."""

    kind: Literal["email"]
    host: str
    port: Annotated[int, Field(ge=1, le=65535)] = 587
    tls: Literal["starttls", "tls", "none"] = "starttls"
    sender: Annotated[str, Field(pattern=r"^[^@\s]+@[^@\s]+$")]
    to: Annotated[tuple[Annotated[str, Field(pattern=r"^[^@\s,]+@[^@\s,]+$")], ...], Field(min_length=1)]
    user: str | None = None
    secret: SecretName | None = None

    @model_validator(mode="after")
    def _login_is_whole_and_hidden(self) -> Self:
        if (self.user is None) != (self.secret is None):
            raise ValueError("user and secret go together")
        if self.secret is not None and self.tls == "none":
            raise ValueError("tls: 'none' would send the password readable by everybody; allowed with it: starttls, tls")
        return self


ChannelSettings = Annotated[WebhookSettings | SlackSettings | EmailSettings, Field(discriminator="kind")]


class NotifySettings(StrictModel):
    """Who is told of what needs a person; see docs/notifications.md.

    Attributes:
        webhook_url: a JSON document is posted to it; None: to none. secret: names the environment variable that signs the post.
        channels: more receivers, by a name of one's own.
    """

    webhook_url: AnyUrl | None = None
    secret: str | None = None
    channels: dict[Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_-]{0,62}$")], ChannelSettings] = Field(default_factory=dict)


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


class SilenceSettings(StrictModel):
    """Maintenance that was announced: what is seen meanwhile asks for nothing and is not held against a node.

    Attributes:
        starts_at, ends_at: with their zone, the end not included. who, why: for the record.
        codes: beginnings of findings' codes, such as ``nvlink.``; empty: all.
    """

    starts_at: AwareDatetime
    ends_at: AwareDatetime
    who: Annotated[str, Field(min_length=1)]
    why: Annotated[str, Field(min_length=1)]
    codes: tuple[Annotated[str, Field(min_length=1)], ...] = ()

    @model_validator(mode="after")
    def _ends_later(self) -> Self:
        if self.ends_at <= self.starts_at:
            raise ValueError("ends_at: must be later than starts_at")
        return self


class HealthSettings(StrictModel):
    """How verdicts on nodes are made; see docs/health.md."""

    silences: tuple[SilenceSettings, ...] = ()


class Timing(StrictModel):
    """Time limits in seconds. The defaults suit GPU machines of the big clouds."""

    boot_timeout_s: Annotated[float, Field(gt=0)] = 900
    setup_timeout_s: Annotated[float, Field(gt=0)] = 3600
    heartbeat_timeout_s: Annotated[float, Field(gt=0)] = 120
    poll_s: Annotated[float, Field(gt=0)] = 10
    unattended_grace_s: Annotated[float, Field(ge=0)] = 1800
    orphan_grace_s: Annotated[float, Field(ge=0)] = 600
    slot_replacements: Annotated[int, Field(ge=0, le=100)] = 3
    run_replacements: Annotated[int, Field(ge=0, le=10000)] = 20
    reconcile_stale_s: Annotated[float, Field(ge=0)] = 3600


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
    health: HealthSettings = HealthSettings()
    cost_sweep: CostSweepSettings = CostSweepSettings()
    log_rotation: LogRotationSettings = LogRotationSettings()
    clouds: Annotated[dict[str, SerializeAsAny[CloudSettings]], Field(min_length=1)]
    tenants: dict[str, TenantLimits] = Field(default_factory=lambda: {"default": TenantLimits()})

    @model_validator(mode="before")
    @classmethod
    def _tenants_are_not_empty(cls, data: Any) -> Any:
        if isinstance(data, dict) and data.get("tenants", ...) in ({}, None):
            return {key: value for key, value in data.items() if key != "tenants"}
        return data

"""Notifiers for callbacks of any Dag: what happened, the evidence, what it costs, and the command to run.

``on_failure_callback=HostlerNotifier()`` tells every channel of ``notify.channels`` in fleet.yaml. A notifier holds names of channels
only: addresses and passwords are looked up when it speaks, from the environment or from Airflow's connections and variables.
"""

import asyncio
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, ClassVar

from airflow.sdk.bases.notifier import BaseNotifier

from hostler.config.schema import FleetFile
from hostler.exporters.notice import Notice, command_for
from hostler.model.lease import lease_id_for
from hostler.model.request import RunRef

_WHY_LENGTH = 500


class HostlerNotifier(BaseNotifier):
    """Tells channels of fleet.yaml about a run or a task.

    Args:
        channels: names of ``notify.channels``; None: all of the notifier's kinds. message: said in the place of the reason that
            Airflow gives; a template. what: the notice's verb.
    """

    template_fields: Sequence[str] = ("message",)
    kinds: ClassVar[tuple[str, ...]] = ("email", "slack", "webhook")

    def __init__(self, *, channels: Sequence[str] | None = None, message: str | None = None, what: str = "dag.failed") -> None:
        super().__init__()
        self.channels = None if channels is None else tuple(channels)
        self.message = message
        self.what = what

    def notify(self, context: Any) -> None:
        """Tells all channels; one that is away is a warning in the log, and fails nothing: a callback must not add a failure."""
        # Imported here: wiring pulls in the database, which a Dag's parsing must not.
        from hostler.connections.airflow_sessions import secret
        from hostler.wiring.notices import tell_now
        from hostler.wiring.settings import read_fleet_file

        try:
            fleet = read_fleet_file()
            notice = self.notice(context, fleet)
            problems = tell_now(fleet, self.names(fleet), notice, secret)
        except Exception as error:  # noqa: BLE001 - see above; the kind of error only, since its text may quote anything
            problems = (type(error).__name__,)
        for problem in problems:
            self.log.warning("somebody could not be told: %s", problem)

    async def async_notify(self, context: Any) -> None:
        """As ``notify``, for the triggerer."""
        await asyncio.to_thread(self.notify, context)

    def names(self, fleet: FleetFile) -> tuple[str, ...]:
        """Returns the channels to tell: those asked for, or all of our kinds."""
        if self.channels is not None:
            return self.channels
        return tuple(name for name, settings in fleet.notify.channels.items() if settings.kind in self.kinds)

    def notice(self, context: Mapping[str, Any], fleet: FleetFile) -> Notice:
        """Returns what is to be told of a callback's context; the lease is the run's, where it has one."""
        instance, run = context.get("ti") or context.get("task_instance"), context.get("dag_run")
        ref = RunRef(dag_id=_first(instance, run, "dag_id"), run_id=_first(instance, run, "run_id"))
        task_id = str(getattr(instance, "task_id", "") or "")
        evidence = {
            "dag": ref.dag_id,
            "run": ref.run_id,
            "task": task_id,
            "try": str(getattr(instance, "try_number", "") or ""),
        }
        lease_id, cost_usd, usd_per_hour = _lease(fleet, ref)
        link = getattr(instance, "log_url", None)
        return Notice(
            deployment=fleet.deployment,
            at=datetime.now(UTC),
            what=self.what,
            why=self.message or _why(context),
            who=f"airflow/{ref.dag_id}",
            command=command_for(self.what, lease_id),
            lease_id=lease_id,
            evidence=tuple((name, value) for name, value in evidence.items() if value),
            cost_usd=cost_usd,
            usd_per_hour=usd_per_hour,
            link=str(link) if link else None,
        )


class HostlerEmailNotifier(HostlerNotifier):
    """Tells the channels of kind ``email``."""

    kinds: ClassVar[tuple[str, ...]] = ("email",)


class HostlerSlackNotifier(HostlerNotifier):
    """Tells the channels of kind ``slack``."""

    kinds: ClassVar[tuple[str, ...]] = ("slack",)


class HostlerWebhookNotifier(HostlerNotifier):
    """Tells the channels of kind ``webhook``."""

    kinds: ClassVar[tuple[str, ...]] = ("webhook",)


def _first(instance: Any, run: Any, name: str) -> str:
    return str(getattr(instance, name, None) or getattr(run, name, None) or "unknown")


def _why(context: Mapping[str, Any]) -> str:
    """Returns Airflow's reason. An exception's text is masked as Airflow's logs are."""
    from airflow.sdk._shared.secrets_masker import redact

    found = context.get("exception") or context.get("reason") or "no reason was given"
    words = f"{type(found).__name__}: {found}" if isinstance(found, BaseException) else str(found)
    return str(redact(words))[:_WHY_LENGTH]


def _lease(fleet: FleetFile, ref: RunRef) -> tuple[str | None, Decimal | None, Decimal | None]:
    """Returns the run's lease with its cost so far and an hour; no lease when the run has none, no cost when nobody tells."""
    from hostler.exporters.notice import cost_of
    from hostler.ledger.errors import LeaseNotFoundError, LedgerError
    from hostler.wiring.settings import open_ledger

    lease_id = lease_id_for(ref)
    try:
        with open_ledger(fleet) as ledger:
            ledger.view(lease_id)
            return lease_id, *cost_of(ledger, lease_id)
    except LeaseNotFoundError:
        return None, None, None
    except LedgerError:
        # Whether it has a lease is not known: the name costs nothing, and a person may need it.
        return lease_id, None, None

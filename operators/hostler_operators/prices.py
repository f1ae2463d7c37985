"""The refresh of prices as a task."""

import asyncio
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseOperator
from airflow.sdk.exceptions import AirflowException, AirflowFailException

from hostler.config.fleet_file import FleetFileError
from hostler.exporters.webhook import NotifyError
from hostler.lifecycle.fleet import Fleet
from hostler_sensors.fleet_access import work
from hostler_sensors.run_identity import StepIdentity

if TYPE_CHECKING:
    from hostler.wiring.prices import PriceOutcome


class RefreshPricesOperator(BaseOperator):
    """Asks the clouds' price APIs, checks each batch, accepts it whole or leaves the prices before it in force.

    A batch that is refused fails the task at once: a retry would find the same prices. Whoever has seen in the report that
    prices have really moved starts a run with the parameter ``accept_jumps``.
    """

    def execute(self, context: Any) -> dict[str, Any]:
        """Returns verdict, rows and report by cloud.

        Raises:
            AirflowException: a cloud did not answer; for a retry. AirflowFailException: a batch was refused.
        """
        step, accepts_jumps = StepIdentity.of(context), bool(context["params"].get("accept_jumps", False))
        outcomes = work(lambda fleet: self._refresh(fleet, step.holder, accepts_jumps=accepts_jumps))
        told = {
            item.cloud: {"verdict": item.verdict, "rows": item.row_count, "report": str(item.report or "")} for item in outcomes
        }
        # Pushed before anything is raised: the link to the report must work just then.
        context["ti"].xcom_push(key="prices", value=told)
        self._log_all(outcomes)
        if refused := [item for item in outcomes if item.verdict == "refused"]:
            raise AirflowFailException("; ".join(f"{item.cloud}: {', '.join(item.problems)}" for item in refused))
        if silent := [item for item in outcomes if item.verdict == "unanswered"]:
            raise AirflowException("; ".join(f"{item.cloud}: {', '.join(item.problems)}" for item in silent))
        return told

    async def _refresh(self, fleet: Fleet, who: str, *, accepts_jumps: bool) -> "tuple[PriceOutcome, ...]":
        """Refreshes, then tells people what was refused; a receiver that is away fails no refresh."""
        # Imported here: wiring pulls in the database, which a Dag's parsing must not.
        from hostler.connections.airflow_sessions import AirflowSessions, secret
        from hostler.wiring.notices import tell_people
        from hostler.wiring.prices import refresh_prices
        from hostler.wiring.settings import read_fleet_file

        def refresh() -> "tuple[PriceOutcome, ...]":
            return refresh_prices(
                read_fleet_file(),
                sessions=AirflowSessions(),
                secret=secret,
                ledger=fleet.ledger,
                who=who,
                accepts_jumps=accepts_jumps,
            )

        outcomes = await asyncio.to_thread(refresh)
        try:
            await asyncio.to_thread(tell_people, fleet.ledger)
        except (NotifyError, FleetFileError) as error:
            self.log.warning("nobody could be told: %s", error)
        return outcomes

    def _log_all(self, outcomes: "tuple[PriceOutcome, ...]") -> None:
        if not outcomes:
            self.log.info("fleet.yaml names no price source (prices.sources): nothing to refresh")
        for item in outcomes:
            words = "; ".join(item.problems)
            self.log.info("%s: %s, %d rows, report %s. %s", item.cloud, item.verdict, item.row_count, item.report, words)

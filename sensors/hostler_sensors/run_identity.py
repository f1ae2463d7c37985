"""Who acts, and on which lease: computed from the run alone, so that cleared XComs change nothing."""

from dataclasses import dataclass
from typing import Any, Self

from hostler.model.lease import lease_id_for
from hostler.model.request import RunRef


@dataclass(frozen=True, slots=True, kw_only=True)
class StepIdentity:
    """One try of one step.

    Attributes:
        run: the Dag run that acts. lease_id: the lease it acts on.
        holder: ``<dag>/<run>/<task>/<try>``, the name under which fences are taken. user: who started the run in Airflow.
    """

    run: RunRef
    lease_id: str
    holder: str
    user: str

    @classmethod
    def of(cls, context: Any, lease_id: str | None = None) -> Self:
        """Reads it from a task's context; ``lease_id`` None means the run's own lease."""
        instance, dag_run = context["ti"], context["dag_run"]
        run = RunRef(dag_id=instance.dag_id, run_id=instance.run_id)
        user = getattr(dag_run, "triggering_user_name", None) or str(getattr(dag_run.run_type, "value", dag_run.run_type))
        holder = holder_of(run, instance.task_id, instance.try_number)
        return cls(run=run, lease_id=lease_id or lease_id_for(run), holder=holder, user=f"airflow/{user}")


def holder_of(run: RunRef, step: str, attempt: object) -> str:
    """Returns the holder's name of one try of a step."""
    return f"{run.dag_id}/{run.run_id}/{step}/{attempt}"

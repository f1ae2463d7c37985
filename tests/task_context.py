"""The part of a task's context that our operators read."""

from dataclasses import dataclass, field
from typing import Any


@dataclass
class _Instance:
    dag_id: str
    run_id: str
    task_id: str
    try_number: int
    pushed: dict[str, Any]

    def xcom_push(self, key: str, value: Any) -> None:
        self.pushed[key] = value


@dataclass
class _Run:
    conf: dict[str, Any] | None
    run_type: str = "manual"
    triggering_user_name: str | None = "ada"


@dataclass
class TaskContext:
    """``context[...]`` of one try; ``pushed``: what it pushed to XCom."""

    task_id: str
    conf: dict[str, Any] = field(default_factory=dict)
    run_id: str = "r1"
    dag_id: str = "hostler_node_lifecycle"
    try_number: int = 1
    params: dict[str, Any] = field(default_factory=dict)
    pushed: dict[str, Any] = field(default_factory=dict)

    def __getitem__(self, name: str) -> Any:
        parts = {
            "ti": _Instance(self.dag_id, self.run_id, self.task_id, self.try_number, self.pushed),
            "dag_run": _Run(self.conf),
            "params": self.params,
        }
        return parts[name]

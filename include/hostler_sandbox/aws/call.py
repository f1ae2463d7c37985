"""One call on the wire, as the overlay hands it to those that answer it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(slots=True, kw_only=True)
class Call:
    """A call of Amazon's API.

    Attributes:
        service, region: from the signature's credential scope. action: as Amazon names it, also for S3.
        form: the query parameters of the query protocols; empty for the others. params: the same, typed (EC2 only).
        resources: ids of instances that the answer is about, for the journal; those who answer add to it.
        error: the code answered; "" for success.
    """

    service: str
    region: str
    action: str
    environ: Mapping[str, Any]
    body: bytes
    form: dict[str, str] = field(default_factory=dict)
    params: dict[str, Any] = field(default_factory=dict)
    resources: list[str] = field(default_factory=list)
    error: str = ""

    @property
    def user_agent(self) -> str:
        """Who called, in its own words."""
        return str(self.environ.get("HTTP_USER_AGENT", ""))

    @property
    def zone(self) -> str | None:
        """The zone named in the request's placement; None without one."""
        found = self.params.get("Placement", {}).get("AvailabilityZone")
        return str(found) if found else None

    @property
    def instance_type(self) -> str | None:
        """The instance type named in the request; None without one."""
        found = self.params.get("InstanceType")
        return found if isinstance(found, str) else None

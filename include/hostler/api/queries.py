"""What a table's route may be asked for; anything else is refused by name."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from hostler.api.paging import MAX_LIMIT, Wish


class TableQuery(BaseModel):
    """What both tables have in common.

    Attributes:
        q: words that must all be found in a row, in any field and any case. sort: a field of the rows.
        ended: also released leases, the newest, and nodes that are gone.
    """

    model_config = ConfigDict(extra="forbid")

    q: Annotated[str, Field(max_length=200)] = ""
    sort: str
    descending: bool
    offset: Annotated[int, Field(ge=0, le=1_000_000)] = 0
    limit: Annotated[int, Field(ge=1, le=MAX_LIMIT)] = 50
    ended: bool = False

    @property
    def wish(self) -> Wish:
        """What ``paging.cut`` takes."""
        words = tuple(self.q.lower().split())
        return Wish(words=words, sort=self.sort, is_descending=self.descending, offset=self.offset, limit=self.limit)


class LeasesQuery(TableQuery):
    """Of leases; the newest first."""

    sort: Literal["lease_id", "tenant", "state", "phase", "nodes", "usd_per_hour", "cost_usd", "created_at", "run_id"] = (
        "created_at"
    )
    descending: bool = True


class NodesQuery(TableQuery):
    """Of nodes; the worst verdict first."""

    sort: Literal[
        "node_name", "lease_id", "tenant", "state", "verdict", "zone", "instance_type", "provider_id", "up_s", "usd_per_hour",
        "cost_usd",
    ] = "verdict"  # fmt: skip
    descending: bool = False

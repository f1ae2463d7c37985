"""What every cloud's part of fleet.yaml has. A driver adds its own fields in ``drivers/<name>/settings.py`` and names that
model by entry point ``hostler.driver_settings``; so a cloud is added with no edit here.
"""

from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from hostler.model.enums import CapacityType

Tags = dict[Annotated[str, Field(min_length=1, max_length=128)], Annotated[str, Field(max_length=256)]]


class StrictModel(BaseModel):
    """Unknown keys are refused; values do not change after loading."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class ReachSettings(StrictModel):
    """How nodes of a cloud are reached by SSH.

    Attributes:
        address: which of the machine's addresses to use. user: made on the node by its user data.
        jump_host: ``user@host:port`` of a bastion; None goes straight. jump_host_key: its public SSH host key, pinned.
    """

    address: Literal["private", "public"] = "private"
    user: str = Field("hostler", pattern=r"^[a-z_][a-z0-9_-]{0,31}$")
    port: int = Field(22, ge=1, le=65535)
    jump_host: str | None = Field(None, pattern=r"^[^@\s]+@[^@:\s]+:\d{1,5}$")
    jump_host_key: str | None = Field(None, pattern=r"^(ssh-|ecdsa-)\S+ \S+")

    @model_validator(mode="after")
    def _jump_host_is_pinned(self) -> Self:
        if (self.jump_host is None) != (self.jump_host_key is None):
            raise ValueError("jump_host and jump_host_key go together")
        return self


class CloudSettings(StrictModel):
    """Common part of one cloud.

    Attributes:
        connection: Airflow connection id; the command line uses the SDK's own default credentials instead.
        regions: where machines may be bought; not empty. capacity_types: what may be bought.
        tags: put on every machine beside our own.
        calls_per_s: API calls to the account that all processes together may make in the long run. calls_burst: after a rest.
    """

    connection: str | None = None
    regions: Annotated[tuple[str, ...], Field(min_length=1)]
    capacity_types: Annotated[tuple[CapacityType, ...], Field(min_length=1)] = (CapacityType.SPOT, CapacityType.ON_DEMAND)
    reach: ReachSettings = ReachSettings()
    tags: Tags = Field(default_factory=dict)
    calls_per_s: Annotated[float, Field(gt=0, le=1000)] = 10
    calls_burst: Annotated[int, Field(ge=1, le=10000)] = 50

"""An offering with what plans ask of it again and again. Pure."""

from typing import NamedTuple

from hostler.model.offering import Offering

Cell = tuple[str, int, str, str, str]
"""(accelerator, count, cloud, region, capacity type): what most checks of an offering are decided by."""


class Known(NamedTuple):
    """An offering with what is asked of it again and again."""

    key: str
    offering: Offering
    cell: Cell


def known_of(offering: Offering) -> Known:
    """Returns the offering with its key and cell."""
    kind = offering.capacity_type.value
    cell = (offering.accelerator, offering.accelerator_count, offering.cloud, offering.region, kind)
    return Known(offering.key, offering, cell)

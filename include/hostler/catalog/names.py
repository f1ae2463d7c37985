"""One short name for an accelerator, however a price list spells it."""

from functools import lru_cache
from typing import Final

from hostler.model.accelerators import ACCELERATORS

_BY_SPELLING: Final = {
    **{name.lower(): name for name in ACCELERATORS},
    **{spelling: name for name, spellings in ACCELERATORS.items() for spelling in spellings},
}

_LARGER_MODEL: Final = {"A100": (60_000, "A100-80GB"), "V100": (30_000, "V100-32GB")}
"""Short name -> from how many MiB on it is the larger model of the chip. Source: NVIDIA's data sheets, 40/80 GB and 16/32 GB."""


@lru_cache(maxsize=4096)
def short_name(word: str, memory_mib: int = 0) -> str:
    """Returns the short name for a price list's word; a word that is not known comes back as it is.

    Args:
        word: as the list has it, in any case.
        memory_mib: of one accelerator, which tells two models of one chip apart; 0 when it is not told.
    """
    name = _BY_SPELLING.get(word.lower(), word)
    least_mib, larger = _LARGER_MODEL.get(name, (0, ""))
    return larger if larger and memory_mib >= least_mib else name

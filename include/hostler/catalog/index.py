"""A catalog by accelerator and count: what a plan looks at, made ready once and kept."""

from collections.abc import Callable, Iterable, Mapping
from operator import itemgetter

from hostler.catalog.compiled import CompiledCatalog, CompiledError
from hostler.catalog.known import Known, known_of


class CatalogIndex:
    """Reads of a compiled catalog only what is asked for, and keeps it. Not for several threads at once.

    Args:
        remake: makes the catalog from its price lists, for when the bytes turn out to be damaged.
    """

    def __init__(self, compiled: CompiledCatalog, remake: Callable[[], CompiledCatalog]) -> None:
        self._compiled, self._remake = compiled, remake
        self._blocks: dict[tuple[str, int], list[Known]] = {}

    @property
    def sizes(self) -> Mapping[str, Mapping[int, int]]:
        """Accelerator -> its count in a machine -> number of offerings."""
        return self._compiled.sizes

    @property
    def catalog(self) -> CompiledCatalog:
        """What the catalog says of itself: its sources with their days, its faults and remarks."""
        return self._compiled

    def known(self, accelerators: Iterable[str], count: int) -> list[Known]:
        """Returns the offerings with so many of any of the accelerators in a machine, by key, each key once."""
        blocks = [self._block(name, count) for name in dict.fromkeys(accelerators)]
        if len(blocks) == 1:
            return blocks[0]
        return sorted((item for block in blocks for item in block), key=itemgetter(0))

    def _block(self, accelerator: str, count: int) -> list[Known]:
        block = self._blocks.get((accelerator, count))
        if block is None:
            try:
                rows = self._compiled.offerings(accelerator, count)
            except CompiledError:
                self._compiled = self._remake()
                rows = self._compiled.offerings(accelerator, count)
            block = sorted((known_of(offering) for _, offering in rows), key=itemgetter(0))
            self._blocks[accelerator, count] = block
        return block

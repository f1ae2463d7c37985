"""The memory of stock-outs: what was empty a while ago is not forgotten, and not believed for ever."""

from collections.abc import Iterable
from datetime import datetime
from typing import TYPE_CHECKING

from hostler.model.offering import Offering

if TYPE_CHECKING:  # the ledger's records cost a tenth of a second to import, and nothing here makes one
    from hostler.ledger.port import StockOut


class StockMemory:
    """The stock-outs in force at one moment, by subject."""

    def __init__(self, stock_outs: Iterable["StockOut"], now: datetime) -> None:
        self._by_subject: dict[str, StockOut] = {}
        for memory in stock_outs:
            rival = self._by_subject.get(memory.subject)
            if memory.until > now and (rival is None or _weight(memory) > _weight(rival)):
                self._by_subject[memory.subject] = memory

    def __bool__(self) -> bool:
        return bool(self._by_subject)

    def against(self, offering: Offering, key: str) -> "StockOut | None":
        """Returns what speaks longest against the offering; None when nothing does."""
        if not self._by_subject:
            return None
        where = f"{offering.cloud}/{offering.region}"
        subjects = (key, where, f"{where}//{offering.instance_type}")
        found = [memory for subject in subjects if (memory := self._by_subject.get(subject)) is not None]
        return max(found, key=_weight, default=None)


def stock_out_of(offering: Offering, stock_outs: Iterable["StockOut"], now: datetime) -> "StockOut | None":
    """Returns the memory in force that speaks against the offering, the longest-lasting of several; None when there is none.

    A memory's subject is the offering's key, its ``cloud/region``, or its ``cloud/region//instance type``.
    """
    return StockMemory(stock_outs, now).against(offering, offering.key)


def _weight(memory: "StockOut") -> tuple[datetime, str, int, str]:
    return (memory.until, memory.subject, memory.count, memory.reason)

"""Capacity pools: how many machines a zone still has of a type, by capacity type. Stock-out is an empty pool."""

import hashlib
import random
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

ANY: Final = "*"
Key = tuple[str, str, str]
"""Zone, instance type, capacity type."""


@dataclass(frozen=True, slots=True)
class StockRule:
    """What pools hold when first asked: ``*`` matches all. ``count``: machines; None means without limit."""

    zone: str
    instance_type: str
    capacity_type: str
    count: int | None

    def matches(self, key: Key) -> bool:
        """True if the rule speaks of the pool."""
        return all(
            mine in {ANY, asked} for mine, asked in zip((self.zone, self.instance_type, self.capacity_type), key, strict=True)
        )


class Pools:
    """Counts of machines still to be had. Thread-safe.

    Args:
        zones_of: returns the zones of a region that offer a type, in order.
        seed: None: pools hold without limit until told otherwise. A number picks for each region, type and capacity type which
            of its zones are out of stock: at least half of them, never all.
    """

    def __init__(self, zones_of: Callable[[str, str], Sequence[str]], seed: int | None = None) -> None:
        self._zones_of = zones_of
        self._seed = seed
        self._lock = threading.Lock()
        self._rules: list[StockRule] = []
        self._left: dict[Key, int | None] = {}

    def set(self, rule: StockRule) -> None:
        """Makes a rule: it holds from now on for all pools it matches, whatever they held. Raises ValueError below 0."""
        if rule.count is not None and rule.count < 0:
            raise ValueError(f"count: {rule.count}: must be 0 or more, or null for no limit")
        with self._lock:
            self._rules.append(rule)
            for key in [key for key in self._left if rule.matches(key)]:
                del self._left[key]

    def left(self, region: str, key: Key) -> int | None:
        """Returns how many machines the pool still has; None without limit."""
        with self._lock:
            return self._found(region, key)

    def take(self, region: str, key: Key) -> bool:
        """Takes one machine out of the pool; False when it is empty."""
        with self._lock:
            left = self._found(region, key)
            if left is None:
                return True
            if left < 1:
                return False
            self._left[key] = left - 1
            return True

    def give_back(self, region: str, key: Key) -> None:
        """Puts one machine back."""
        with self._lock:
            left = self._found(region, key)
            if left is not None:
                self._left[key] = left + 1

    def stocked_zones(self, region: str, instance_type: str, capacity_type: str) -> tuple[str, ...]:
        """Returns the zones of the region that have at least one, by name."""
        zones = self._zones_of(region, instance_type)
        return tuple(sorted(zone for zone in zones if self.left(region, (zone, instance_type, capacity_type)) != 0))

    def shown(self) -> list[dict[str, object]]:
        """Returns the pools that were asked for and have a limit, for reports."""
        with self._lock:
            found = sorted((key, left) for key, left in self._left.items() if left is not None)
        return [{"zone": z, "instance_type": t, "capacity_type": c, "left": left} for (z, t, c), left in found]

    def clear(self) -> None:
        """Forgets all rules and counts; the seed stays."""
        with self._lock:
            self._rules.clear()
            self._left.clear()

    def _found(self, region: str, key: Key) -> int | None:
        if key not in self._left:
            rule = next((rule for rule in reversed(self._rules) if rule.matches(key)), None)
            self._left[key] = rule.count if rule else self._seeded(region, key)
        return self._left[key]

    def _seeded(self, region: str, key: Key) -> int | None:
        if self._seed is None:
            return None
        zone, instance_type, capacity_type = key
        zones = sorted(self._zones_of(region, instance_type))
        if len(zones) < 2:  # noqa: PLR2004 - one zone must stay
            return None
        digest = hashlib.sha256(f"{self._seed}/{region}/{instance_type}/{capacity_type}".encode()).digest()
        rng = random.Random(digest)  # noqa: S311 - a replayable choice, no secret
        empty = rng.sample(zones, rng.randint((len(zones) + 1) // 2, len(zones) - 1))
        return 0 if zone in empty else None

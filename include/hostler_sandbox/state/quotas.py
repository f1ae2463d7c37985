"""Quotas in vCPU per region, instance family bucket and capacity type, as EC2 counts them.

Source: EC2 user guide, "Amazon EC2 service quotas" and "Spot Instance quotas": limits are in vCPU of running machines, one bucket
for the standard families (A, C, D, H, I, M, R, T, Z), one for G and VT, one each for the others; on-demand and spot have their own.
"""

import re
import threading
from typing import Final

STANDARD: Final = "Standard"
_BUCKETS: Final = {
    **dict.fromkeys(("a", "c", "d", "h", "i", "m", "r", "t", "z"), STANDARD),
    **dict.fromkeys(("g", "gr", "vt"), "G"),
    "p": "P",
    "f": "F",
    "inf": "Inf",
    "trn": "Trn",
    "dl": "DL",
    "x": "X",
    "u": "HighMemory",
    "hpc": "HPC",
}
BUCKETS: Final = tuple(sorted(set(_BUCKETS.values())))
_LETTERS: Final = re.compile(r"^([a-z]+)")


def bucket_of(instance_type: str) -> str:
    """Returns the quota bucket of a type, ``Standard`` for families that no table names."""
    found = _LETTERS.match(instance_type)
    letters = found.group(1) if found else ""
    while letters:
        if letters in _BUCKETS:
            return _BUCKETS[letters]
        letters = letters[:-1]
    return STANDARD


class Quotas:
    """Limits and use, in vCPU. Without a limit set, everything is allowed. Thread-safe.

    Keys are region, bucket and capacity type (``on-demand`` or ``spot``).
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._limits: dict[tuple[str, str, str], int] = {}
        self._used: dict[tuple[str, str, str], int] = {}

    def set(self, region: str, bucket: str, capacity_type: str, vcpus: int | None) -> None:
        """Sets a limit; None takes it away. Raises ValueError for an unknown bucket or a limit below 0."""
        if bucket not in BUCKETS:
            raise ValueError(f"family: {bucket!r}: allowed: {', '.join(BUCKETS)}")
        if vcpus is not None and vcpus < 0:
            raise ValueError(f"vcpus: {vcpus}: must be 0 or more, or null for no limit")
        with self._lock:
            if vcpus is None:
                self._limits.pop((region, bucket, capacity_type), None)
            else:
                self._limits[region, bucket, capacity_type] = vcpus

    def take(self, region: str, instance_type: str, capacity_type: str, vcpus: int) -> int | None:
        """Counts a machine in. Returns None when it fits, else the limit, and nothing is counted."""
        key = (region, bucket_of(instance_type), capacity_type)
        with self._lock:
            limit = self._limits.get(key)
            used = self._used.get(key, 0)
            if limit is not None and used + vcpus > limit:
                return limit
            self._used[key] = used + vcpus
            return None

    def give_back(self, region: str, instance_type: str, capacity_type: str, vcpus: int) -> None:
        """Counts a machine out."""
        key = (region, bucket_of(instance_type), capacity_type)
        with self._lock:
            self._used[key] = max(0, self._used.get(key, 0) - vcpus)

    def shown(self) -> list[dict[str, object]]:
        """Returns limits and use, for reports."""
        with self._lock:
            keys = sorted({*self._limits, *self._used})
            return [
                {
                    "region": r,
                    "family": b,
                    "capacity_type": c,
                    "limit": self._limits.get((r, b, c)),
                    "used": self._used.get((r, b, c), 0),
                }
                for r, b, c in keys
            ]

    def clear(self) -> None:
        """Forgets all limits; use is counted on."""
        with self._lock:
            self._limits.clear()

"""Client tokens of RunInstances.

Source: "Ensuring idempotency in Amazon EC2 API requests", EC2 developer guide: a request that names its zone is idempotent within
the zone, others within the region; other parameters under the same token are refused. A token stays bound to a dead instance:
boto/boto3#4406.
"""

import hashlib
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

_NOT_COMPARED: Final = frozenset({"ClientToken", "DryRun", "Action", "Version", "Placement.AvailabilityZone"})
Scope = tuple[str, str, str]
"""Region, zone ("" when the request names none), token."""


@dataclass(slots=True, kw_only=True)
class TokenUse:
    """What a token was used for; the ids are empty until the first launch under it has worked."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    fingerprint: str = ""
    instance_ids: tuple[str, ...] = ()


class Tokens:
    """All tokens that were ever used. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._uses: dict[Scope, TokenUse] = {}

    @contextmanager
    def held(self, scope: Scope) -> Iterator[TokenUse]:
        """Holds a token: a second call under it waits until the first is through."""
        with self._lock:
            use = self._uses.setdefault(scope, TokenUse())
        with use.lock:
            yield use

    def clear(self) -> None:
        """Forgets all tokens."""
        with self._lock:
            self._uses.clear()


def fingerprint(form: Mapping[str, str]) -> str:
    """Returns a hash of the parameters that a token is compared by."""
    words = [f"{key}={form[key]}" for key in sorted(form) if key not in _NOT_COMPARED]
    return hashlib.sha256("\n".join(words).encode()).hexdigest()

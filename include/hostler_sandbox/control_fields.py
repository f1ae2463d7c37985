"""Reads the JSON object of a control call; what is wrong is a ValueError that names the field and what is allowed."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, Self

_MISSING = object()


class Fields:
    """The fields of one call. ``done`` refuses what nobody asked for."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._values = values
        self._asked: set[str] = set()

    @classmethod
    def read(cls, text: bytes) -> Self:
        """Reads a JSON object; no text at all is an empty one."""
        try:
            values = json.loads(text or b"{}")
        except ValueError as error:
            raise ValueError(f"body: no JSON: {error}") from None
        if not isinstance(values, dict):
            raise ValueError("body: must be a JSON object")  # noqa: TRY004 - one type of error for all wrong fields
        return cls(values)

    def value(self, name: str, default: Any = _MISSING) -> Any:
        """Returns a field of any type. Raises ValueError when it is missing and has no default."""
        self._asked.add(name)
        found = self._values.get(name, default)
        if found is _MISSING:
            raise ValueError(f"{name}: missing")
        return found

    def text(self, name: str, default: str | None = None, *, allowed: Sequence[str] = ()) -> str:
        """Returns a text field."""
        found = self.value(name, _MISSING if default is None else default)
        if not isinstance(found, str):
            raise ValueError(f"{name}: {found!r}: must be a text")  # noqa: TRY004 - one type of error for all wrong fields
        if allowed and found not in allowed:
            raise ValueError(f"{name}: {found!r}: allowed: {', '.join(allowed)}")
        return found

    def number(self, name: str, default: float) -> float:
        """Returns a number of 0 or more."""
        found = self.value(name, default)
        if isinstance(found, bool) or not isinstance(found, int | float) or not 0 <= found < float("inf"):
            raise ValueError(f"{name}: {found!r}: must be a number of 0 or more")
        return float(found)

    def count(self, name: str) -> int | None:
        """Returns a whole number of 0 or more, or None for null (no limit). The field must be there."""
        found = self.value(name)
        if found is not None and (isinstance(found, bool) or not isinstance(found, int) or found < 0):
            raise ValueError(f"{name}: {found!r}: must be a whole number of 0 or more, or null for no limit")
        return found

    def all(self) -> Mapping[str, Any]:
        """Returns all fields."""
        return self._values

    def rest(self) -> dict[str, Any]:
        """Returns the fields that nobody asked for yet."""
        return {name: value for name, value in self._values.items() if name not in self._asked}

    def done(self) -> None:
        """Refuses fields that nobody asked for."""
        if unknown := sorted(self.rest()):
            raise ValueError(f"{unknown[0]}: unknown; allowed: {', '.join(sorted(self._asked))}")

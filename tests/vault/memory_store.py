"""An object store in memory that tests can harm, and that can end its caller at any call."""

from collections.abc import Iterator
from pathlib import Path


class Killed(BaseException):
    """Not an Exception: as a kill, nothing but ``finally`` sees it."""


class MemoryStore:
    uri = "memory://store"

    def __init__(self, content: dict[str, bytes] | None = None, *, dies_at: int | None = None) -> None:
        self.content = dict(content or {})
        self.calls = 0
        self.dies_at = dies_at

    def _step(self) -> None:
        self.calls += 1
        if self.calls == self.dies_at:
            raise Killed

    def put(self, key: str, content: bytes, *, if_absent: bool = False) -> None:
        self._step()
        if if_absent and key in self.content:
            raise FileExistsError(key)
        self.content[key] = content
        self._step()  # killed after it was written, before the answer came

    def put_file(self, key: str, path: Path) -> None:
        self.put(key, path.read_bytes())

    def get(self, key: str) -> bytes:
        self._step()
        if key not in self.content:
            raise FileNotFoundError(key)
        return self.content[key]

    def read_chunks(self, key: str, chunk_bytes: int = 8 * 1024 * 1024) -> Iterator[bytes]:
        content = self.get(key)
        yield from (content[start : start + chunk_bytes] for start in range(0, len(content), chunk_bytes))

    def list_keys(self, prefix: str) -> tuple[str, ...]:
        self._step()
        return tuple(sorted(key for key in self.content if key.startswith(prefix)))

    def delete(self, key: str) -> None:
        self._step()
        self.content.pop(key, None)
        self._step()

    def abort_uploads(self, prefix: str) -> int:
        return 0

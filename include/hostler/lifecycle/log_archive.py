"""Where rotated logs go: compressed, sealed, in pieces of bounded size, under one manifest a file; and how they are read again."""

import hashlib
import io
import json
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from hostler.vault.envelope import Sealer, open_pieces
from hostler.vault.port import KeyProvider, ObjectStore

PIECE_BYTES: Final = 16 * 1024 * 1024
"""Plain bytes of a piece: it is held in memory, compressed and sealed, and never lies on the disk."""

_LEVEL: Final = 6
_VERSION: Final = 1


class ArchiveError(Exception):
    """What was read back is not what was written: the local file stays."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogArchive:
    """Logs of one host. ``prefix``: their place in the store; letters, digits and ``._=+@-`` joined by ``/``."""

    store: ObjectStore
    keys: KeyProvider
    prefix: str
    piece_bytes: int = PIECE_BYTES

    def keep(self, path: Path, cut: Path, *, crash: Callable[[str], None] = lambda _label: None) -> str:
        """Uploads a closed file and returns its manifest's key, after everything was read back and compared.

        Again for the same file: found there and compared, or uploaded anew under other keys; a manifest is written last, once
        its pieces are proved, and never names a piece of another try.

        Raises:
            ArchiveError, KeyServiceError, OSError: the file must stay.
        """
        base = f"{self.prefix}/{_key_word(path)}/{_key_word(Path(cut.name))}"
        known = self._known(base, cut)
        if known is not None:
            return known
        attempt = os.urandom(6).hex()
        plain, wrapped = self.keys.new_data_key(base)
        pieces = []
        for index, content in enumerate(_pieces(cut, self.piece_bytes)):
            key = f"{base}/{attempt}-{index:06d}.zst.hste"
            crash("piece:before")
            self.store.put(key, _sealed(content, plain, key))
            crash("piece:after")
            pieces.append({"key": key, "size_bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()})
        manifest = {
            "version": _VERSION,
            "path": str(path),
            "base": base,
            "size_bytes": sum(int(str(one["size_bytes"])) for one in pieces),
            "sha256": _sha256(cut),
            "key_id": self.keys.key_id,
            "wrapped_key": wrapped,
            "pieces": pieces,
        }
        self._compare(manifest, cut)
        key, content = f"{base}/{attempt}.json", json.dumps(manifest, sort_keys=True).encode()
        crash("manifest:before")
        self.store.put(key, content)
        crash("manifest:after")
        if self.store.get(key) != content:
            raise ArchiveError(f"{key}: what was read back is not what was written")
        return key

    def manifests(self) -> tuple[Mapping[str, Any], ...]:
        """Returns one manifest a rotated file, by path and time: the longest of several tries."""
        found: dict[str, dict[str, Any]] = {}
        for key in self.store.list_keys(f"{self.prefix}/"):
            if key.endswith(".json"):
                manifest = json.loads(self.store.get(key))
                if manifest["size_bytes"] >= found.get(manifest["base"], {"size_bytes": 0})["size_bytes"]:
                    found[manifest["base"]] = manifest
        return tuple(found[base] for base in sorted(found))

    def read(self, manifest: Mapping[str, Any]) -> Iterator[bytes]:
        """Yields a file's plain bytes. Raises EnvelopeError, ArchiveError: refuse it; KeyServiceError."""
        plain = self.keys.unwrap(manifest["wrapped_key"], manifest["base"])
        digest = hashlib.sha256()
        for one in manifest["pieces"]:
            for content in self._piece(one["key"], plain):
                digest.update(content)
                yield content
        if digest.hexdigest() != manifest["sha256"]:
            raise ArchiveError(f"{manifest['base']}: its pieces do not make up the file")

    def _known(self, base: str, cut: Path) -> str | None:
        """Returns the key of a manifest that holds the very file; None when there is none."""
        for key in self.store.list_keys(f"{base}/"):
            if key.endswith(".json"):
                try:
                    self._compare(json.loads(self.store.get(key)), cut)
                except Exception:  # noqa: BLE001, S112 - what cannot be read back is no proof: it is uploaded anew
                    continue
                return key
        return None

    def _compare(self, manifest: Mapping[str, Any], cut: Path) -> None:
        """Reads everything back and compares it with the file, byte for byte. Raises ArchiveError."""
        with cut.open("rb") as source:
            for content in self.read(manifest):
                if source.read(len(content)) != content:
                    raise ArchiveError(f"{manifest['base']}: what was read back is not the file")
            if source.read(1):
                raise ArchiveError(f"{manifest['base']}: the file has grown")

    def _piece(self, key: str, plain: bytes) -> Iterator[bytes]:
        import zstandard

        opened = b"".join(open_pieces(self.store.read_chunks(key), plain, key))
        yield zstandard.ZstdDecompressor().decompress(opened, max_output_size=self.piece_bytes)


def _sealed(content: bytes, key: bytes, object_id: str) -> bytes:
    import zstandard

    sink = io.BytesIO()
    sealer = Sealer(sink, key, object_id)
    sealer.write(zstandard.ZstdCompressor(level=_LEVEL, write_content_size=True).compress(content))
    sealer.close()
    return sink.getvalue()


def _pieces(path: Path, size: int) -> Iterator[bytes]:
    with path.open("rb") as source:
        while content := source.read(size):
            yield content


def _sha256(path: Path) -> str:
    with path.open("rb") as source:
        return hashlib.file_digest(source, "sha256").hexdigest()


def _key_word(path: Path) -> str:
    """Returns a path as words that a store's keys may hold; unlike for unlike paths."""
    text = "/".join(part for part in path.parts if part not in {"/", ".", ".."})
    plain = "".join(letter if letter.isascii() and (letter.isalnum() or letter in "._=+@-/") else "_" for letter in text)
    return plain if plain == text else f"{plain}-{hashlib.sha256(text.encode()).hexdigest()[:8]}"

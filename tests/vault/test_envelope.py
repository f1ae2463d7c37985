import io
import itertools
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hostler.vault.envelope import FRAME_BYTES, HEADER_BYTES, EnvelopeError, PieceReader, Sealer, open_pieces

KEY = bytes(range(32))
TAG = 16


def sealed(plain: bytes, object_id: str = "lease/node/a", *, key: bytes = KEY, frame_bytes: int = 16) -> bytes:
    sink = io.BytesIO()
    sealer = Sealer(sink, key, object_id, frame_bytes=frame_bytes)
    sealer.write(plain)
    sealer.close()
    return sink.getvalue()


def opened(content: bytes, object_id: str = "lease/node/a", *, key: bytes = KEY, piece_bytes: int = 7) -> bytes:
    pieces = (content[start : start + piece_bytes] for start in range(0, len(content), piece_bytes))
    return b"".join(open_pieces(pieces, key, object_id))


@given(plain=st.binary(max_size=200), frame=st.integers(1, 64), cut=st.integers(1, 90), piece=st.integers(1, 300))
def test_envelope_when_opened_then_gives_what_was_sealed(plain, frame, cut, piece):
    sink = io.BytesIO()
    sealer = Sealer(sink, KEY, "x", frame_bytes=frame)
    for start in range(0, len(plain), cut):
        sealer.write(plain[start : start + cut])
    done = sealer.close()
    assert opened(sink.getvalue(), "x", piece_bytes=piece) == plain
    assert (done.size_bytes, done.plain_bytes) == (len(sink.getvalue()), len(plain))


@given(plain=st.binary(min_size=1, max_size=80), where=st.integers(min_value=0), bit=st.integers(0, 7))
def test_envelope_when_any_bit_is_flipped_then_refuses(plain, where, bit):
    content = bytearray(sealed(plain))
    content[where % len(content)] ^= 1 << bit
    with pytest.raises(EnvelopeError, match="lease/node/a"):
        opened(bytes(content))


@given(plain=st.binary(max_size=80), kept=st.integers(min_value=0))
def test_envelope_when_cut_anywhere_then_refuses(plain, kept):
    content = sealed(plain)
    with pytest.raises(EnvelopeError):
        opened(content[: kept % len(content)])


@given(plain=st.binary(max_size=80), extra=st.binary(min_size=1, max_size=40))
def test_envelope_when_bytes_are_added_then_refuses(plain, extra):
    with pytest.raises(EnvelopeError):
        opened(sealed(plain) + extra)


def test_envelope_when_frames_change_places_then_refuses():
    content = sealed(bytes(64))
    head, frames = content[:HEADER_BYTES], [content[s : s + 16 + TAG] for s in range(HEADER_BYTES, len(content), 16 + TAG)]
    assert len(frames) == 4
    for order in itertools.permutations(frames):
        if list(order) != frames:
            with pytest.raises(EnvelopeError):
                opened(head + b"".join(order))
    for dropped in range(4):
        with pytest.raises(EnvelopeError):
            opened(head + b"".join(frames[:dropped] + frames[dropped + 1 :]))


def test_envelope_when_cut_at_a_frame_then_refuses():
    content = sealed(bytes(64))
    with pytest.raises(EnvelopeError):
        opened(content[: -(16 + TAG)])


def test_envelope_when_under_another_name_or_key_then_refuses():
    content = sealed(b"weights", "lease/node/step-1")
    with pytest.raises(EnvelopeError):
        opened(content, "lease/node/step-2")
    with pytest.raises(EnvelopeError):
        opened(content, "lease/node/step-1", key=bytes(32))


def test_envelope_when_header_asks_for_huge_frames_then_refuses_without_reading_on():
    content = bytearray(sealed(b"x"))
    content[5:9] = b"\xff\xff\xff\xff"
    with pytest.raises(EnvelopeError, match="damaged header"):
        opened(bytes(content))


def test_envelope_when_sealed_twice_then_no_bytes_are_shared():
    first, second = sealed(bytes(64)), sealed(bytes(64))
    assert first[HEADER_BYTES:] != second[HEADER_BYTES:]


def test_envelope_when_object_is_large_then_memory_stays_small():
    class Counting:
        size = 0

        def write(self, data: bytes) -> None:
            self.size += len(data)

    def pieces():
        sink = io.BytesIO()
        sealer = Sealer(sink, KEY, "big")
        for _ in range(40):
            sealer.write(bytes(FRAME_BYTES))
            yield sink.getvalue()
            sink.seek(0)
            sink.truncate()
        sealer.close()
        yield sink.getvalue()

    tracemalloc.start()
    target = Counting()
    for piece in open_pieces(pieces(), KEY, "big"):
        target.write(piece)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert target.size == 40 * FRAME_BYTES
    assert peak < 12 * FRAME_BYTES


def test_envelope_when_key_is_short_then_says_so():
    with pytest.raises(ValueError, match="32 bytes"):
        Sealer(io.BytesIO(), b"short", "x")


@given(pieces=st.lists(st.binary(max_size=20)), sizes=st.lists(st.integers(1, 30), max_size=10))
def test_piece_reader_when_read_in_any_sizes_then_gives_all_bytes_in_order(pieces, sizes):
    reader = PieceReader(pieces)
    got = b"".join(reader.read(size) for size in sizes) + reader.read()
    assert got == b"".join(pieces)

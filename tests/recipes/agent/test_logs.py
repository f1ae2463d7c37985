from hypothesis import given
from hypothesis import strategies as st

from hostler.recipes.agent import logs
from hostler.recipes.agent.logs import LogWriter


@given(writes=st.lists(st.binary(max_size=30), max_size=20), rotate=st.sets(st.integers(0, 20)), step=st.integers(1, 50))
def test_log_when_rotated_anywhere_then_no_byte_is_lost_or_doubled(tmp_path_factory, writes, rotate, step):
    folder = tmp_path_factory.mktemp("logs")
    writer = LogWriter(folder)
    for number, data in enumerate(writes):
        if number in rotate:
            writer.rotate()
        writer.write(data)
    writer.close()
    got, offset = b"", 0
    while True:
        data, offset = logs.read(folder, offset, step)
        if not data:
            break
        got += data
    assert got == b"".join(writes)
    assert b"".join(path.read_bytes() for _, path in logs.pieces(folder)) == got


def test_log_when_opened_again_then_goes_on_where_it_was(tmp_path):
    for text in (b"one\n", b"two\n"):
        writer = LogWriter(tmp_path)
        writer.write(text)
        writer.close()
    assert logs.read(tmp_path, 0, 100) == (b"one\ntwo\n", 8)


def test_log_when_disk_is_full_then_says_how_much_was_lost_and_goes_on(tmp_path, monkeypatch):
    writer = LogWriter(tmp_path)
    writer.write(b"before\n")

    def full(_data):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(writer, "_append", full)
        writer.write(b"lost!\n")
    writer.write(b"after\n")
    writer.close()
    text = logs.tail(tmp_path)
    assert text.startswith("before\n")
    assert "6 bytes of log lost" in text
    assert text.endswith("after\n")


def test_log_when_it_grows_without_end_then_old_pieces_go(tmp_path, monkeypatch):
    monkeypatch.setattr(logs, "PIECE_BYTES", 100)
    monkeypatch.setattr(logs, "KEPT_BYTES", 500)
    writer = LogWriter(tmp_path)
    for _ in range(100):
        writer.write(b"x" * 50)
    writer.close()
    assert sum(path.stat().st_size for _, path in logs.pieces(tmp_path)) <= 700
    assert logs.read(tmp_path, 0, 10**6)[1] == 5000

import io

import pytest

from hostler.recipes.agent.places import FilePlace
from hostler.recipes.agent.spool import Spool
from hostler.vault.envelope import open_pieces

KEY = bytes(32)
NAME = "node-0/j1/step-5.tar.hste"


@pytest.fixture
def spool(tmp_path):
    return Spool(tmp_path / "spool", "lease1", KEY)


def test_spool_when_sealed_in_an_earlier_round_then_the_same_bytes_are_sent_again(spool, tmp_path):
    path, first = spool.seal(NAME, lambda sealer: sealer.write(b"weights"))
    content = path.read_bytes()
    again, second = Spool(tmp_path / "spool", "lease1", KEY).seal(NAME, lambda _: pytest.fail("it is sealed already"))
    assert (again.read_bytes(), second) == (content, first)
    assert b"".join(open_pieces([content], KEY, f"lease1/{NAME}")) == b"weights"


@pytest.mark.parametrize("harm", ["cut", "no facts", "another lease"])
def test_spool_when_what_lies_there_is_not_whole_or_not_ours_then_seals_anew(spool, tmp_path, harm):
    path, _ = spool.seal(NAME, lambda sealer: sealer.write(b"weights"))
    if harm == "cut":
        path.write_bytes(path.read_bytes()[:-1])
    elif harm == "no facts":
        path.with_suffix(".json").unlink()
    other = Spool(tmp_path / "spool", "lease2" if harm == "another lease" else "lease1", KEY)
    path, sealed = other.seal(NAME, lambda sealer: sealer.write(b"anew"))
    lease_id = "lease2" if harm == "another lease" else "lease1"
    assert b"".join(open_pieces(io.BytesIO(path.read_bytes()), KEY, f"{lease_id}/{NAME}")) == b"anew"
    assert sealed.plain_bytes == 4


def test_spool_when_writing_fails_midway_then_the_next_round_seals_anew(spool):
    def _fail(sealer):
        sealer.write(b"half")
        raise OSError("disk")

    with pytest.raises(OSError, match="disk"):
        spool.seal(NAME, _fail)
    assert spool.seal(NAME, lambda sealer: sealer.write(b"whole"))[1].plain_bytes == 5


def test_spool_when_swept_then_only_what_is_wanted_stays(spool, tmp_path):
    kept, _ = spool.seal(NAME, lambda sealer: sealer.write(b"1"))
    spool.seal("node-0/j1/step-6.tar.hste", lambda sealer: sealer.write(b"2"))
    spool.sweep(lambda key: key == NAME, FilePlace(tmp_path))
    assert {path.suffix for path in (tmp_path / "spool").iterdir()} == {".sealed", ".json"}
    assert kept.exists()
    spool.remove(NAME)
    assert not list((tmp_path / "spool").iterdir())

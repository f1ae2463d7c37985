"""Rotation of a file that somebody writes to (bug report B39 and its kind)."""

import logging.handlers
import os
import signal
import subprocess
import sys
import textwrap
import time
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from hostler.lifecycle.log_archive import ArchiveError, LogArchive
from hostler.lifecycle.open_files import writers_of
from hostler.lifecycle.rotate import RotationRule, Rotator, cuts_of
from hostler.lifecycle.rotation import files_of
from hostler.vault.envelope import EnvelopeError
from hostler.vault.local import LocalKeys
from hostler.vault.port import KeyServiceError
from hostler.vault.stores import FileStore


class CrashError(BaseException):
    """The process is gone."""


@pytest.fixture
def archive(tmp_path):
    return LogArchive(
        store=FileStore("file:///x", tmp_path / "store"),
        keys=LocalKeys(tmp_path / "keys"),
        prefix="logs/host",
        piece_bytes=4096,
    )


def rotator(archive, **changes):
    values = {"rule": RotationRule(settle_s=0), "holders": writers_of, "free_ratio": lambda _path: 1.0}
    return Rotator(archive=archive, now=lambda: datetime.now(UTC), **{**values, **changes})


def archived(archive):
    return b"".join(b"".join(archive.read(one)) for one in archive.manifests())


def actions(found):
    return [one.action for one in found]


def test_b39_when_a_writer_never_pauses_through_50_rotations_then_no_line_is_lost_and_none_is_doubled(archive, tmp_path):
    """The writer is a process of its own that watches its file's name, as Python's WatchedFileHandler does."""
    log, stop = tmp_path / "app.log", tmp_path / "stop"
    archive = replace(archive, piece_bytes=2**20)
    program = f"""\
        import logging.handlers, os, time
        handler = logging.handlers.WatchedFileHandler({str(log)!r})
        number = 0
        while not os.path.exists({str(stop)!r}):
            for _ in range(20):
                handler.emit(logging.LogRecord("x", 20, "", 0, f"line {{number:08d}} " + "x" * 60, None, None))
                number += 1
            time.sleep(0.002)  # the pace of a busy log, some 10,000 lines a second
        handler.close()
        print(number)
        """
    writer = subprocess.Popen([sys.executable, "-c", textwrap.dedent(program)], stdout=subprocess.PIPE, text=True)
    try:
        mine, shipped, deadline = rotator(archive), 0, time.monotonic() + 60
        cuts = 0
        while (cuts < 50 or shipped < 50) and time.monotonic() < deadline:
            found = actions(mine.rotate(log, is_forced=cuts < 50))
            cuts += found.count("cut")
            shipped += found.count("shipped")
    finally:
        stop.touch()
        written = int(writer.communicate(timeout=30)[0])
    list(mine.rotate(log, is_forced=True))
    assert cuts >= 50
    assert cuts_of(log) == []
    lines = archived(archive).decode().splitlines()
    assert [line.split()[1] for line in lines] == [f"{number:08d}" for number in range(written)]
    assert written > 1000


def test_rotate_when_the_writer_holds_the_old_file_then_it_is_not_shipped_before_it_lets_go(archive, tmp_path):
    log = tmp_path / "app.log"
    with log.open("ab", buffering=0) as writer:
        writer.write(b"one\n")
        assert actions(rotator(archive).rotate(log, is_forced=True)) == ["cut", "held"]
        writer.write(b"two\n")
        assert actions(rotator(archive).rotate(log)) == ["held"]
    assert actions(rotator(archive).rotate(log)) == ["shipped"]
    assert archived(archive) == b"one\ntwo\n"
    assert list(tmp_path.glob("app.log*")) == []


def test_rotate_when_the_writer_is_told_by_a_signal_then_it_opens_a_new_file(archive, tmp_path):
    log, pid_file = tmp_path / "app.log", tmp_path / "pid"
    handler = logging.handlers.WatchedFileHandler(log)
    record = logging.LogRecord("x", 20, "", 0, "a line", None, None)
    handler.emit(record)
    pid_file.write_text(f"{os.getpid()}\n")
    before = signal.signal(signal.SIGUSR1, lambda *_: handler.reopenIfNeeded())
    try:
        rule = RotationRule(settle_s=0, pid_file=pid_file, reopen_signal=signal.SIGUSR1)
        assert actions(rotator(archive, rule=rule).rotate(log, is_forced=True)) == ["cut", "shipped"]
    finally:
        signal.signal(signal.SIGUSR1, before)
        handler.close()
    assert archived(archive) == b"a line\n"


STEPS = ["cut:before", "cut:after", "ship:before", "piece:before", "piece:after", "manifest:before", "manifest:after"]


@pytest.mark.parametrize("label", [*STEPS, "remove:before", "remove:after"])
@pytest.mark.parametrize("nth", [1, 2])
def test_rotate_when_the_process_ends_anywhere_then_the_next_run_loses_and_doubles_nothing(archive, tmp_path, label, nth):
    log = tmp_path / "app.log"
    content = os.urandom(10_000) + b"end\n"
    log.write_bytes(content)
    seen = []

    def crash(step):
        seen.append(step)
        if step == label and seen.count(step) == nth:
            raise CrashError

    try:
        list(rotator(archive, crash=crash).rotate(log, is_forced=True))
    except CrashError:
        assert label in seen
    log.open("ab").close()
    with log.open("ab") as writer:
        writer.write(b"later\n")
    list(rotator(archive).rotate(log, is_forced=True))
    assert archived(archive) == content + b"later\n"
    assert list(tmp_path.glob("app.log*")) == []


class BrokenStore(FileStore):
    """Flips a bit of what it stores, or refuses, or loses the end."""

    def __init__(self, folder, how):
        super().__init__("file:///x", folder)
        self.how = how

    def put(self, key, content, *, if_absent=False):
        if self.how == "refuses":
            raise OSError("no store")
        if self.how == "flips" and key.endswith(".hste"):
            content = content[:60] + bytes([content[60] ^ 1]) + content[61:]
        if self.how == "cuts" and key.endswith(".hste"):
            content = content[:-20]
        if self.how == "forgets" and key.endswith("-000001.zst.hste"):
            return
        super().put(key, content, if_absent=if_absent)


@pytest.mark.parametrize("how", ["refuses", "flips", "cuts", "forgets"])
def test_rotate_when_the_store_lies_then_the_file_stays_and_goes_once_the_store_is_well(archive, tmp_path, how):
    log = tmp_path / "app.log"
    log.write_bytes(b"x" * 9000)
    bad = LogArchive(store=BrokenStore(tmp_path / "store", how), keys=archive.keys, prefix=archive.prefix, piece_bytes=4096)
    assert actions(rotator(bad).rotate(log, is_forced=True)) == ["cut", "failed"]
    assert cuts_of(log)[0].read_bytes() == b"x" * 9000
    assert actions(rotator(archive).rotate(log)) == ["shipped"]
    assert cuts_of(log) == []
    manifest = archive.manifests()[-1]
    assert b"".join(archive.read(manifest)) == b"x" * 9000 or how in {"flips", "cuts", "forgets"}


def test_rotate_when_it_is_written_to_during_the_upload_then_not_removed(archive, tmp_path):
    log = tmp_path / "app.log"
    log.write_bytes(b"one\n")

    def late(step):
        if step == "remove:before":
            with cuts_of(log)[0].open("ab") as writer:
                writer.write(b"two\n")

    assert actions(rotator(archive, crash=late).rotate(log, is_forced=True)) == ["cut", "held"]
    assert actions(rotator(archive).rotate(log)) == ["shipped"]
    assert archived(archive) == b"one\ntwo\n"


def test_rule_when_small_young_or_empty_then_not_due_and_everything_is_on_a_full_disk(archive, tmp_path):
    log = tmp_path / "app.log"
    rule = RotationRule(most_bytes=100, most_age_s=3600, settle_s=0)
    mine = rotator(archive, rule=rule)
    assert mine.why_due(log) is None
    log.write_bytes(b"")
    assert mine.why_due(log) is None
    log.write_bytes(b"x" * 99)
    assert mine.why_due(log) is None
    assert "nearly full" in rotator(archive, rule=rule, free_ratio=lambda _path: 0.01).why_due(log)
    mine.began = {key: value - 3601 for key, value in mine.began.items()}
    assert "s old" in mine.why_due(log)
    log.write_bytes(b"x" * 100)
    assert mine.why_due(log) == "100 bytes"


def test_archive_when_its_objects_are_swapped_or_its_key_is_another_then_refused(archive, tmp_path):
    log = tmp_path / "app.log"
    log.write_bytes(b"a" * 5000 + b"b" * 3000)
    list(rotator(archive).rotate(log, is_forced=True))
    (manifest,) = archive.manifests()
    pieces = manifest["pieces"]
    with pytest.raises(ArchiveError):
        list(archive.read({**manifest, "pieces": pieces[::-1]}))
    swapped = [{**pieces[0], "key": pieces[1]["key"]}, pieces[1]]
    with pytest.raises((ArchiveError, EnvelopeError)):
        list(archive.read({**manifest, "pieces": swapped}))
    other = LogArchive(store=archive.store, keys=LocalKeys(tmp_path / "other"), prefix=archive.prefix)
    with pytest.raises(KeyServiceError):
        list(other.read(manifest))
    stored = b"".join(path.read_bytes() for path in (tmp_path / "store").rglob("*.hste"))
    assert b"aaaa" not in stored
    assert len(stored) < 1000  # compressed


def test_files_when_named_by_patterns_then_the_largest_first_and_what_was_cut_off_is_not_forgotten(tmp_path):
    (tmp_path / "small.log").write_bytes(b"x")
    (tmp_path / "large.log").write_bytes(b"x" * 10)
    (tmp_path / "gone.log.20261201T120000.000000Z").write_bytes(b"x" * 5)
    (tmp_path / "link.log").symlink_to(tmp_path / "large.log")
    names = [path.name for path in files_of([f"{tmp_path}/*.log"])]
    assert names == ["large.log", "gone.log", "small.log"]


def test_cuts_when_another_file_begins_alike_then_not_taken_for_one(tmp_path):
    (tmp_path / "app.log.1.20261201T120000.000000Z").touch()
    (tmp_path / "app.log.20261201T120000.000000Z").touch()
    (tmp_path / "app.log.old").touch()
    assert [path.name for path in cuts_of(tmp_path / "app.log")] == ["app.log.20261201T120000.000000Z"]

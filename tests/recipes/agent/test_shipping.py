import io
import json
import os
import shutil
import signal
import tarfile
from pathlib import Path

import pytest
from tests.recipes.agent.bench import DATA_KEY, LEASE, TRAIN, until

from hostler.vault.envelope import PieceReader, open_pieces


def opened(agent, entry) -> bytes:
    name = f"{LEASE}/{entry['key']}"
    return b"".join(open_pieces([(agent.store / name).read_bytes()], DATA_KEY, name))


def test_checkpoints_when_complete_then_are_shipped_while_the_job_runs(agent):
    agent.configure(backup=agent.backup())
    agent.start_python("j1", TRAIN, env={"EVERY": "5"})
    until(lambda: len(agent.shipped_steps()) >= 2)
    assert agent.written("j1", "state")["state"] == "running"
    assert agent.status("j1")["shipped_step"] >= 10
    entry = next(one for one in agent.shipped() if one["kind"] == "checkpoint")
    with tarfile.open(fileobj=io.BytesIO(opened(agent, entry))) as archive:
        names = archive.getnames()
        assert names == [f"step-{entry['step']}", f"step-{entry['step']}/weights-0"]
        assert archive.extractfile(names[1]).read() == b"w%d" % entry["step"]


def test_index_when_shipped_then_lies_in_the_store_and_names_every_object(agent):
    agent.configure(backup=agent.backup())
    agent.start_python("j1", TRAIN, env={"EVERY": "5", "LAST": "12"})
    agent.until_state("j1", "succeeded")
    told = agent.ask("flush")
    assert told["error"] is None
    document = json.loads((agent.store / LEASE / "node-0" / "index.json").read_bytes())
    assert document["objects"] == told["objects"]
    assert {entry["kind"] for entry in told["objects"]} == {"checkpoint", "log", "metrics"}
    there = {path.relative_to(agent.store / LEASE).as_posix() for path in agent.store.rglob("*.hste")}
    assert there == {entry["key"] for entry in told["objects"]}
    for entry in told["objects"]:
        assert (agent.store / LEASE / entry["key"]).stat().st_size == entry["size_bytes"]
    log = b"".join(opened(agent, entry) for entry in told["objects"] if entry["kind"] == "log")
    assert log == b"begins at 0\nends at 12\n"


def test_store_when_looked_into_then_holds_no_plain_content(agent):
    agent.configure(backup=agent.backup())
    agent.start("j1", 'mkdir $HOSTLER_CHECKPOINT_DIR/step-1; echo PLAINTEXT-marker | tee "$HOSTLER_CHECKPOINT_DIR/step-1/w"')
    agent.until_state("j1", "succeeded")
    assert len(agent.ask("flush")["objects"]) == 2
    for path in agent.store.rglob("*"):
        if path.is_file():
            assert b"PLAINTEXT" not in path.read_bytes()
            assert DATA_KEY not in path.read_bytes()


def test_output_when_job_has_ended_then_is_shipped(agent):
    agent.configure(backup=agent.backup())
    agent.start("j1", "echo result >$HOSTLER_OUTPUT_DIR/r; mkdir $HOSTLER_OUTPUT_DIR/d; echo x >$HOSTLER_OUTPUT_DIR/d/x")
    agent.until_state("j1", "succeeded")
    entry = next(one for one in agent.ask("flush")["objects"] if one["kind"] == "output")
    with tarfile.open(fileobj=io.BytesIO(opened(agent, entry))) as archive:
        assert archive.getnames() == ["output", "output/d", "output/d/x", "output/r"]


def test_flush_when_job_runs_then_ships_the_log_so_far_and_loses_no_line(agent):
    agent.configure(backup=agent.backup())
    agent.start("j1", "i=0; while [ $i -lt 400 ]; do echo line $i; i=$((i+1)); sleep 0.01; done")
    until(lambda: list((agent.job("j1") / "logs").glob("*.log")))
    for _ in range(3):
        agent.ask("flush")
    agent.until_state("j1", "succeeded")
    told = agent.ask("flush")["objects"]
    entries = sorted((one for one in told if one["kind"] == "log"), key=lambda one: one["key"])
    assert len(entries) > 1
    text = b"".join(opened(agent, entry) for entry in entries).decode()
    assert text.splitlines() == [f"line {number}" for number in range(400)]


def test_old_checkpoints_when_there_are_many_then_only_the_newest_stay_on_the_node(agent):
    agent.configure(backup=agent.backup())
    agent.start_python("j1", TRAIN, env={"EVERY": "2", "LAST": "24"})
    agent.until_state("j1", "succeeded")
    agent.ask("flush")
    left = sorted(int(path.name[5:]) for path in (agent.job("j1") / "checkpoints").iterdir())
    assert left == [20, 22, 24]
    assert agent.shipped_steps() == list(range(2, 25, 2))


def test_unfinished_checkpoint_when_flushed_then_is_not_shipped(agent):
    agent.configure(backup=agent.backup())
    script = "cd $HOSTLER_CHECKPOINT_DIR; mkdir step-1 step-2.tmp .step-3 step-x; echo 1 >step-1/w; echo file >step-9"
    agent.start("j1", script)
    agent.until_state("j1", "succeeded")
    agent.ask("flush")
    assert agent.shipped_steps() == [1]


def test_checkpoint_when_it_can_not_be_packed_then_is_named_and_the_others_are_shipped(agent):
    agent.configure(backup=agent.backup())
    agent.start("j1", "cd $HOSTLER_CHECKPOINT_DIR; mkdir step-1 step-2; echo w >step-1/w; ln -s /etc/hosts step-2/w; echo hi")
    agent.until_state("j1", "succeeded")
    assert "step-2/w" in agent.ask("flush")["error"]
    assert {entry["kind"] for entry in agent.shipped()} == {"checkpoint", "log"}
    assert agent.shipped_steps() == [1]


def test_shipping_when_store_is_away_then_says_so_and_catches_up(agent):
    agent.store.write_text("in the way")
    agent.configure(backup=agent.backup())
    agent.start("j1", "mkdir $HOSTLER_CHECKPOINT_DIR/step-1; sleep 300")
    until(lambda: list((agent.job("j1") / "checkpoints").glob("step-*")))
    assert "Error" in agent.ask("flush")["error"]
    assert agent.status("j1")["state"] == "running"
    assert agent.status("j1")["shipping_error"]
    agent.store.unlink()
    until(lambda: agent.shipped_steps() == [1])
    until(lambda: agent.status("j1")["shipping_error"] is None)


def test_flush_when_no_target_is_configured_then_has_nothing_to_ship(agent):
    agent.start("j1", "true")
    agent.until_state("j1", "succeeded")
    assert agent.ask("flush") == {"objects": [], "error": None}


def test_flush_when_cryptography_is_missing_then_says_so(agent):
    agent.program.parent.joinpath("cryptography.py").write_text("raise ImportError('not here')")
    agent.environment["PYTHONPATH"] = str(agent.program.parent)
    agent.configure(backup=agent.backup())
    agent.start("j1", "echo something to ship")
    agent.until_state("j1", "succeeded")
    assert "cryptography package is missing" in agent.ask("flush")["error"]


def test_daemon_when_killed_or_started_twice_then_there_is_one(agent):
    agent.configure(backup=agent.backup())
    first = agent.daemon()
    agent.configure()
    assert agent.daemon() == first
    assert agent.processes() == {first}
    os.kill(first, signal.SIGKILL)
    agent.start("j1", "sleep 0.1")
    agent.until_state("j1", "succeeded")
    second = agent.daemon()
    assert second != first
    until(lambda: agent.processes() == {second})
    assert agent.ask("quit") == {"is_gone": True}
    assert agent.processes() == set()


def test_daemon_when_its_folder_is_gone_then_ends(agent):
    agent.configure()
    shutil.rmtree(agent.home)
    until(lambda: not agent.processes())


def test_configure_when_target_is_bad_then_is_refused(agent):
    assert "data_key" in agent.refused("configure", lease_id="l", node_name="n", backup=agent.backup(data_key="AAAA"))
    assert "uri" in agent.refused("configure", lease_id="l", node_name="n", backup=agent.backup(uri="ftp://x"))
    assert "node_name" in agent.refused("configure", lease_id="l", node_name="../n")


def train_and_ship(agent, **order) -> None:
    agent.configure(backup=agent.backup())
    agent.start_python("j1", TRAIN, **order)
    agent.until_state("j1", "succeeded")
    assert agent.ask("flush")["error"] is None


def test_restore_when_other_nodes_shipped_the_step_then_all_ranks_files_are_there(make_agent):
    for rank in (0, 1):
        order = {"env": {"EVERY": "5", "LAST": "10"}, "rank": rank, "world_size": 2}
        train_and_ship(make_agent(f"node-{rank}"), **order)
    third = make_agent("node-2")
    third.configure(backup=third.backup())
    third.start_python("j2", TRAIN, env={"EVERY": "5", "LAST": "15"}, rank=1, world_size=2, restore_step=10)
    told = third.until_state("j2", "succeeded")
    assert (told["resumed_from_step"], told["step"]) == (10, 15)
    assert "begins at 10" in told["log_tail"]
    restored = third.job("j2") / "checkpoints" / "step-10"
    assert sorted(path.name for path in restored.iterdir()) == ["weights-0", "weights-1"]
    assert third.ask("flush")["error"] is None
    assert third.shipped_steps() == [15]


def test_restore_when_step_is_not_there_then_job_fails_with_words(agent):
    train_and_ship(agent, env={"EVERY": "5", "LAST": "10"})
    agent.start_python("j2", TRAIN, restore_step=7)
    told = agent.until_state("j2", "failed")
    assert "step 7" in told["error"]
    assert told["exit_code"] is None


@pytest.mark.parametrize("harm", ["flip", "cut", "swap"])
def test_restore_when_object_was_tampered_with_then_job_is_not_started(agent, harm):
    train_and_ship(agent, env={"EVERY": "5", "LAST": "10"})
    paths = [agent.store / LEASE / "node-0" / "j1" / f"step-{step}.tar.hste" for step in (5, 10)]
    content = bytearray(paths[1].read_bytes())
    if harm == "flip":
        content[len(content) // 2] ^= 1
    paths[1].write_bytes({"flip": bytes(content), "cut": bytes(content[:-20]), "swap": paths[0].read_bytes()}[harm])
    agent.start_python("j2", TRAIN, restore_step=10)
    told = agent.until_state("j2", "failed")
    assert "EnvelopeError" in told["error"]
    assert "begins at" not in told["log_tail"]


def test_restore_when_archive_would_leave_its_folder_then_writes_nothing_outside(agent):
    from hostler.recipes.agent.folders import FolderError, unpack

    for bad in ("../evil", "/evil", "step-1/../../evil", "step-1/./x"):
        buffer = io.BytesIO()
        with tarfile.open(fileobj=buffer, mode="w") as archive:
            entry = tarfile.TarInfo(bad)
            entry.size = 1
            archive.addfile(entry, io.BytesIO(b"x"))
        with pytest.raises(FolderError):
            unpack(PieceReader([buffer.getvalue()]), agent.folder)
    for kind in (tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.FIFOTYPE):
        buffer = io.BytesIO()
        with tarfile.open(fileobj=buffer, mode="w") as archive:
            entry = tarfile.TarInfo("step-1")
            entry.type, entry.linkname = kind, "/etc"
            archive.addfile(entry)
        with pytest.raises(FolderError):
            unpack(PieceReader([buffer.getvalue()]), agent.folder)
    assert not Path("/evil").exists()
    assert not (agent.folder.parent / "evil").exists()

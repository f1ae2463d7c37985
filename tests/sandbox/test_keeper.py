"""The keeper: starts, starts again, and leaves nobody behind, however it or its owner ends."""

import os
import signal
import subprocess
import sys
import time

import pytest

from hostler_sandbox.keeper import MARK, KeeperSpec, ProcessSpec
from hostler_sandbox.kept import Kept, KeptProcessesError
from hostler_sandbox.processes import descendants, is_alive, marked

SLEEPER = (sys.executable, "-c", "import time; time.sleep(600)")
DEAF = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)"
STUBBORN_CODE = f"""
import signal, subprocess, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
subprocess.Popen([sys.executable, "-c", {DEAF!r}], start_new_session=True)
time.sleep(600)
"""
STUBBORN = (sys.executable, "-c", STUBBORN_CODE)
"""Ignores SIGTERM, and has a child in a session of its own that does so too."""


def until(check, timeout_s=20.0):
    end = time.monotonic() + timeout_s
    while not check():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.02)


def spec_of(folder, **programs):
    return KeeperSpec(
        mark=f"test-{os.getpid()}-{folder.name}",
        status=str(folder / "running.json"),
        cwd=str(folder),
        processes=tuple(ProcessSpec(name=name, argv=argv, log=str(folder / f"{name}.log")) for name, argv in programs.items()),
        term_s=0.5,
    )


@pytest.fixture
def keep(tmp_path):
    kept = []

    def start(**programs):
        kept.append(Kept(spec_of(tmp_path, **programs), tmp_path))
        until(lambda: len(kept[-1].pids()) == len(programs))
        return kept[-1]

    yield start
    for one in kept:
        one.stop()


def test_spec_when_dumped_then_loads_the_same(tmp_path):
    spec = spec_of(tmp_path, one=SLEEPER)
    assert KeeperSpec.load(spec.dump()) == spec


def test_keeper_when_a_process_dies_then_started_again(keep):
    kept = keep(one=SLEEPER, two=SLEEPER)
    first = kept.pids()
    os.kill(first["one"], signal.SIGKILL)
    until(lambda: kept.pids().get("one", first["one"]) != first["one"])
    assert kept.pids()["two"] == first["two"]
    assert kept.restarts() == {"one": 1}


def test_stop_when_processes_ignore_sigterm_and_leave_their_group_then_all_are_gone(keep):
    kept = keep(one=STUBBORN)
    until(lambda: len(kept.everyone()) >= 2)
    everyone = kept.everyone()
    kept.stop()
    assert not any(is_alive(pid) for pid in everyone)
    kept.stop()


def test_keeper_when_its_owner_is_killed_then_everything_ends(tmp_path):
    spec = spec_of(tmp_path, one=STUBBORN)
    code = (
        "import sys, time; from pathlib import Path\n"
        "from hostler_sandbox.kept import Kept; from hostler_sandbox.keeper import KeeperSpec\n"
        "kept = Kept(KeeperSpec.load(Path(sys.argv[1]).read_text()), Path(sys.argv[2])); time.sleep(600)\n"
    )
    (tmp_path / "spec.json").write_text(spec.dump())
    path = os.pathsep.join(sys.path)
    owner = subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path / "spec.json"), str(tmp_path)], env={**os.environ, "PYTHONPATH": path}
    )
    until(lambda: len(marked(MARK, spec.mark)) >= 2)
    owner.kill()
    owner.wait()
    until(lambda: not marked(MARK, spec.mark))


def test_keeper_when_it_is_killed_itself_then_the_owner_notices_and_can_still_end_all(keep):
    kept = keep(one=STUBBORN)
    until(lambda: len(kept.everyone()) >= 2)
    kept._keeper.kill()
    kept._keeper.wait()
    with pytest.raises(KeptProcessesError, match="ended"):
        kept.pids()
    kept.stop()
    assert kept.everyone() == ()


def test_descendants_when_a_child_runs_then_found():
    child = subprocess.Popen(SLEEPER)
    try:
        assert child.pid in descendants(os.getpid())
    finally:
        child.kill()
        child.wait()
    assert not is_alive(child.pid)

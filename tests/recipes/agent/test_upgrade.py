"""A node's agent is changed while its job runs: the new one knows what the old one left."""

import io
import json
import os
import signal
import zipfile

from tests.recipes.agent.bench import TRAIN, until

from hostler.recipes.agent.build import build_agent


def older_agent() -> bytes:
    """The same program under other bytes, as an earlier release's would be."""
    source = zipfile.ZipFile(io.BytesIO(build_agent()))
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as target:
        for name in source.namelist():
            target.writestr(name, source.read(name))
        target.writestr("older.txt", "an earlier release")
    return buffer.getvalue()


def test_agent_when_changed_in_mid_job_then_the_job_goes_on_is_told_of_stopped_and_shipped(agent):
    newer = agent.program
    agent.program = newer.with_name("agent-older.pyz")
    agent.program.write_bytes(older_agent())
    agent.configure(backup=agent.backup())
    agent.start_python("j1", TRAIN)
    until(lambda: agent.written("j1", "report").get("step", 0) > 2)
    old_daemon, supervisor = agent.daemon(), agent.supervisor("j1")
    agent.program = newer
    assert agent.status("j1")["state"] == "running"
    until(lambda: agent.daemon() != old_daemon)
    assert agent.supervisor("j1") == supervisor
    again = agent.start_python("j1", TRAIN)
    assert again["state"] == "running"
    assert agent.supervisor("j1") == supervisor, "started twice"
    told = agent.ask("stop", job_id="j1", attempt_token="t1", checkpoint=True, checkpoint_wait_s=20, term_wait_s=10)
    assert told["state"] == "stopped"
    agent.ask("flush", lease_id="lease1")
    assert agent.shipped_steps()


def test_agent_when_the_older_one_called_a_cut_off_job_failed_then_it_is_told_as_stopped(agent):
    agent.start("j1", "sleep 300")
    agent.until_state("j1", "running")
    os.kill(agent.supervisor("j1"), signal.SIGKILL)
    agent.status("j1")
    state = json.loads((agent.job("j1") / "state.json").read_text())
    assert state["state"] == "failed", "what is written stays as earlier releases wrote it: either may read it"
    assert agent.status("j1")["state"] == "stopped"

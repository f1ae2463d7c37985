import json
import os
import signal
import time
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from tests import samples
from tests.reach.loopback_node import USER, LoopbackNode, until
from tests.recipes.agent.bench import SHUTDOWN, TRAIN, AgentBench

from hostler.model.enums import JobState, NodeState
from hostler.model.lease import Node
from hostler.reach.port import BackupTarget, JobOrder, JobStatus, ReachError
from hostler.reach.ssh import SshTransport
from hostler.recipes.agent.build import agent_name, build_agent
from hostler.recipes.control import ControlTimes, SshNodeControl
from hostler.vault.local import LocalKeys

SETUP = b"import sys, json\nprint('set up', json.load(open('options.json'))['torch'])\n"
PROBE = b"import json\nprint(json.dumps({'version': 1, 'accelerators': [], 'errors': [], 'driver_version': None}))\n"
TIMES = ControlTimes(checkpoint_wait_s=10, term_wait_s=2)


def setup_files(options):
    return {"setup.py": SETUP, "options.json": json.dumps(dict(options)).encode()}


@pytest.fixture
def keys(tmp_path):
    return LocalKeys(tmp_path / "keys")


@pytest.fixture
async def machine(tmp_path, keys):
    made = LoopbackNode(tmp_path / "machine", keys, name="lease1-0-1")
    for name in ("shutdown", "sudo"):
        made.tool(name, SHUTDOWN)
    await made.start()
    yield made
    await made.close()
    bench = AgentBench.__new__(AgentBench)
    bench.home = made.home / "opt"
    bench.close()


@pytest.fixture
async def control(keys):
    transport = SshTransport(lambda: keys.user_certificate("hostler", 7200))
    made = SshNodeControl(transport, setup_files=setup_files, probe_file=lambda: PROBE, times=TIMES)
    yield made
    await made.close()


@pytest.fixture
def node(machine):
    return Node(
        node_name="lease1-0-1",
        lease_id="lease1",
        slot_index=0,
        intent_id="lease1-0-1",
        tenant="t",
        offering=samples.offering(),
        provider_id="i-1",
        state=NodeState.REGISTERED,
        launched_at=datetime(2030, 1, 1, tzinfo=UTC),
        address=machine.address,
        port=machine.port,
        user=USER,
        host_key=machine.public,
    )


def order(**more) -> JobOrder:
    return JobOrder(**{"job_id": "lease1-1", "attempt_token": "t1", "argv": ("sh", "-c", "true"), **more})


async def until_ended(control, node, job_id) -> JobStatus:
    found = []

    async def _poll():
        found.append(await control.poll_job(node, job_id))
        return found[-1].state

    for _ in range(200):
        if await _poll() not in {JobState.STARTING, JobState.RUNNING}:
            return found[-1]
    raise AssertionError(found[-1])


async def test_is_up_when_node_answers_or_not_then_says_so(control, node, machine, keys):
    assert await control.is_up(node) is True
    assert await control.is_up(replace(node, host_key=keys.host_key_pair("x")[1])) is False
    assert await control.is_up(replace(node, address=None)) is False
    await machine.close()
    assert await control.is_up(node) is False


async def test_setup_when_started_twice_then_runs_once_and_succeeds(control, node, machine):
    first = await control.start_setup(node, "lease1-0-1-setup-1", {"torch": "false"})
    assert first.state in {JobState.STARTING, JobState.RUNNING}
    await control.start_setup(node, "lease1-0-1-setup-1", {"torch": "false"})
    told = await until_ended(control, node, "lease1-0-1-setup-1")
    assert (told.state, told.log_tail) == (JobState.SUCCEEDED, "set up false\n")
    assert (machine.home / "opt/agent" / agent_name()).read_bytes() == build_agent()
    expiry = json.loads((machine.home / "opt/agent/expiry.json").read_text())
    assert expiry["renewed_for_s"] == TIMES.first_expiry_s


async def test_setup_when_it_asks_to_be_started_again_then_poll_goes_on(machine, node, keys):
    again = b"import os, sys\nfirst = not os.path.exists('seen')\nopen('seen', 'w')\nsys.exit(75 if first else 0)\n"
    transport = SshTransport(lambda: keys.user_certificate("hostler", 7200))
    control = SshNodeControl(transport, setup_files=lambda _: {"setup.py": again}, probe_file=lambda: PROBE)
    await control.start_setup(node, "s1", {})
    states = set()
    for _ in range(200):
        states.add((await control.poll_setup(node, "s1")).state)
        if JobState.SUCCEEDED in states:
            break
    assert JobState.SUCCEEDED in states
    assert JobState.FAILED not in states
    await control.close()


async def test_poll_when_job_is_unknown_then_is_missing(control, node):
    assert (await control.poll_job(node, "nothing")).state is JobState.MISSING


async def test_job_when_it_runs_its_life_then_all_is_told_and_shipped(control, node, machine, tmp_path):
    target = BackupTarget(uri=f"file://{tmp_path}/store", data_key=bytes(32), key_id="k")
    more = {
        "files": {"train.py": TRAIN.encode()},
        "env": {"EVERY": "5"},
        "secrets": {"TOKEN": "hush-4711"},
        "expires_in_s": 3600,
    }
    started = await control.start_job(node, order(argv=("python3", "-u", "train.py"), **more), target)
    assert started.state in {JobState.STARTING, JobState.RUNNING}
    index = machine.home / "opt/agent/index-lease1.json"
    await until(lambda: index.exists() and '"step": 10' in index.read_text())
    end = time.monotonic() + 30
    while "loss" not in dict((told := await control.poll_job(node, "lease1-1")).metrics):
        assert time.monotonic() < end, "no loss was told"
    assert told.state is JobState.RUNNING
    assert told.shipped_step >= 10
    assert dict(told.metrics)["loss"] < 1
    await control.renew(node, 7200)
    unchanged = await control.stop_job(node, "lease1-1", "another", checkpoint=True)
    assert unchanged.state is JobState.RUNNING
    stopped = await control.stop_job(node, "lease1-1", "t1", checkpoint=True)
    assert stopped.state is JobState.STOPPED
    objects = await control.flush(node, "lease1")
    assert [one.key for one in objects] == sorted(one.key for one in objects)
    assert max(one.step or 0 for one in objects) > 10
    data, offset = await control.read_log(node, "lease1-1", 0)
    assert data.startswith(b"begins at 0\n")
    assert offset == len(data)
    assert await control.read_log(node, "lease1-1", offset) == (b"", offset)
    assert not any("hush-4711" in command or "AAAA" in command for command in machine.commands)


async def test_job_when_connection_is_cut_after_the_start_then_goes_on(control, node, machine):
    await control.start_job(node, order(argv=("sh", "-c", "sleep 1; echo on")), None)
    for connection in tuple(machine.open_now):
        connection.abort()
    told = await until_ended(control, node, "lease1-1")
    assert (told.state, told.log_tail) == (JobState.SUCCEEDED, "on\n")


async def test_job_when_supervisor_was_killed_then_is_stopped_not_failed(control, node, machine):
    await control.start_job(node, order(argv=("sleep", "300")), None)
    path = machine.home / "opt/jobs/lease1-1/supervisor.json"
    os.kill(json.loads(path.read_text())["pid"], signal.SIGKILL)
    told = await until_ended(control, node, "lease1-1")
    assert told.state is JobState.STOPPED
    assert "supervisor" in (told.error or "")


async def test_flush_when_store_is_away_then_raises_with_words(control, node, tmp_path):
    (tmp_path / "store").write_text("in the way")
    target = BackupTarget(uri=f"file://{tmp_path}/store", data_key=bytes(32), key_id="k")
    await control.start_job(node, order(argv=("sh", "-c", "echo hi")), target)
    await until_ended(control, node, "lease1-1")
    with pytest.raises(ReachError, match="not all was shipped"):
        await control.flush(node, "lease1")


async def test_probe_when_asked_then_gives_its_document_and_is_put_once(control, node, machine):
    for _ in range(2):
        assert (await control.probe(node))["accelerators"] == []
    assert len(list((machine.home / "opt/agent").glob("probe-*.py"))) == 1


@pytest.mark.parametrize(
    "program", [b"print('no json')", b"import sys; sys.exit('broken')", b"print('[1]')", b"print('{\"version\": 2}')"]
)
async def test_probe_when_it_gives_no_document_then_is_unknown_with_the_reason(machine, node, keys, program):
    transport = SshTransport(lambda: keys.user_certificate("hostler", 7200))
    control = SshNodeControl(transport, setup_files=setup_files, probe_file=lambda: program)
    document = await control.probe(node)
    assert document["state"] == "unknown"
    assert "no document" in document["reason"]
    assert document["accelerators"] == []
    await control.close()


async def test_ask_when_order_is_refused_then_raises_the_agent_s_words(control, node):
    with pytest.raises(ReachError, match="rank"):
        await control.start_job(node, order(rank=-1), None)


async def test_ask_when_node_has_no_python_then_raises_with_words(control, node, machine):
    machine.tool("python3", "#!/bin/sh\necho no python here >&2\nexit 127\n")
    with pytest.raises(ReachError, match="no python here"):
        await control.poll_job(node, "j")


async def test_ask_when_node_is_gone_then_raises(control, node, machine):
    await machine.close()
    with pytest.raises(ReachError):
        await control.poll_job(node, "j")


async def test_nodes_when_their_cloud_has_a_jump_host_then_reached_through_it_and_others_directly(
    keys, machine, node, tmp_path
):
    gate = LoopbackNode(tmp_path / "gate", keys, name="gate")
    await gate.start()
    transport = SshTransport(lambda: keys.user_certificate("hostler", 7200))
    made = SshNodeControl(transport, jumps={"aws": gate.target()})
    assert await made.is_up(node)
    assert gate.tunnels == [(machine.address, machine.port)]
    elsewhere = replace(node, offering=replace(node.offering, cloud="other"))
    assert await made.is_up(elsewhere)
    assert len(gate.tunnels) == 1
    await made.close()
    await gate.close()

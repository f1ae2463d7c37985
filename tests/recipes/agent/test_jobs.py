import base64
import json
import os
import signal
import stat
from concurrent import futures
from pathlib import Path

import pytest
from tests.recipes.agent.bench import TRAIN, until


def test_start_when_starter_has_ended_then_job_goes_on_and_is_told_of(agent):
    first = agent.start("j1", "sleep 0.5; echo done; exit 0")
    assert first["state"] in {"starting", "running"}
    told = agent.until_state("j1", "succeeded")
    assert (told["exit_code"], told["log_tail"]) == (0, "done\n")


def test_start_when_asked_again_then_attaches_and_runs_once(agent):
    for _ in range(3):
        agent.start("j1", 'echo run >>"$HOSTLER_OUTPUT_DIR/runs"; sleep 0.3')
    agent.until_state("j1", "succeeded")
    agent.start("j1", 'echo run >>"$HOSTLER_OUTPUT_DIR/runs"')
    assert (agent.job("j1") / "output/runs").read_text() == "run\n"


def test_start_when_asked_by_many_at_once_then_runs_once(agent):
    with futures.ThreadPoolExecutor(6) as pool:
        script = 'echo run >>"$HOSTLER_OUTPUT_DIR/runs"; sleep 1'
        told = list(pool.map(lambda _: agent.start("j1", script), range(6)))
    assert {one["job_id"] for one in told} == {"j1"}
    agent.until_state("j1", "succeeded")
    assert (agent.job("j1") / "output/runs").read_text() == "run\n"


def test_job_when_started_then_has_the_contract_s_environment(agent):
    agent.start("j1", "env; pwd; id -u", rank=1, world_size=2, master_host="127.1.0.9", master_port=4000, env={"A": "b c"})
    agent.until_state("j1", "succeeded")
    lines = agent.status("j1")["log_tail"].splitlines()
    job = agent.job("j1")
    for wanted in (
        f"HOSTLER_CODE_DIR={job}/code",
        f"HOSTLER_CHECKPOINT_DIR={job}/checkpoints",
        f"HOSTLER_OUTPUT_DIR={job}/output",
        f"HOSTLER_METRICS_FILE={job}/metrics.jsonl",
        f"HOSTLER_DATA_DIR={agent.home}/data/lease1",
        "HOSTLER_JOB_ID=j1",
        "HOSTLER_LEASE_ID=lease1",
        "RANK=1",
        "NODE_RANK=1",
        "LOCAL_RANK=0",
        "WORLD_SIZE=2",
        "NNODES=2",
        "MASTER_ADDR=127.1.0.9",
        "MASTER_PORT=4000",
        "A=b c",
        f"{job}/code",
    ):
        assert wanted in lines


def test_job_when_it_fails_then_says_how(agent):
    agent.start("j1", "echo before; exit 9")
    told = agent.until_state("j1", "failed")
    assert (told["exit_code"], told["error"]) == (9, "ended with exit code 9")
    agent.start("j2", "kill -SEGV $$")
    assert agent.until_state("j2", "failed")["error"] == "ended by signal SIGSEGV"
    agent.start("j3", "true", argv=["/no/such/program"])
    assert "No such file" in agent.until_state("j3", "failed")["error"]


def test_status_when_job_is_unknown_then_is_missing(agent):
    assert agent.status("nothing") == {"job_id": "nothing", "state": "missing"}


def test_status_when_asked_by_a_person_then_needs_no_input(agent):
    agent.start("j1", "true")
    agent.until_state("j1", "succeeded")
    assert json.loads(agent.raw("status", "j1").stdout)["result"]["state"] == "succeeded"


def test_status_when_workload_reports_then_has_its_last_values(agent):
    lines = [
        '{"step": 1, "loss": 3, "resumed_from_step": 0}',
        "no json",
        '{"step": 7, "loss": 0.5, "accuracy": 0.97, "note": "x", "flag": true, "bad": NaN}',
        json.dumps({"weights_sha256": "ab" * 32}),
    ]
    agent.start("j1", "cat >$HOSTLER_METRICS_FILE <<'EOF'\n" + "\n".join(lines) + "\nEOF")
    told = agent.until_state("j1", "succeeded")
    assert (told["step"], told["weights_sha256"]) == (7, "ab" * 32)
    assert told["metrics"] == {"loss": 0.5, "accuracy": 0.97}
    assert told["heartbeat_age_s"] < 60


def test_heartbeat_when_a_reporting_job_falls_silent_then_grows_old(agent):
    agent.start("j1", "echo '{\"step\": 1}' >>$HOSTLER_METRICS_FILE; sleep 60")
    until(lambda: agent.status("j1")["step"] == 1)
    until(lambda: (agent.status("j1")["heartbeat_age_s"] or 0) > 3)
    agent.start("j2", "sleep 60")
    until(lambda: agent.status("j2")["heartbeat_age_s"] is not None)
    assert agent.status("j2")["heartbeat_age_s"] < 3


def test_stop_when_token_is_another_attempt_s_then_changes_nothing(agent):
    agent.start("j1", "sleep 60")
    agent.until_state("j1", "running")
    assert agent.ask("stop", job_id="j1", attempt_token="t2")["state"] == "running"
    assert agent.ask("stop", job_id="j1")["state"] == "running"
    assert agent.ask("stop", job_id="j1", attempt_token="t1", term_wait_s=1)["state"] == "stopped"


def test_stop_when_checkpoint_is_wanted_then_waits_for_it_before_the_end(agent):
    agent.start_python("j1", TRAIN)
    until(lambda: agent.written("j1", "report").get("step", 0) > 3)
    told = agent.ask("stop", job_id="j1", attempt_token="t1", checkpoint=True)
    assert told["state"] == "stopped"
    saved = [path.name for path in (agent.job("j1") / "checkpoints").iterdir()]
    assert len(saved) == 1
    assert int(saved[0].removeprefix("step-")) > 3
    assert "ends at" in told["log_tail"]


def test_stop_when_job_ignores_sigterm_then_kills_all_its_processes(agent):
    agent.start("j1", "trap '' TERM; (trap '' TERM; setsid sleep 60) & sleep 60 & while :; do sleep 0.1; done")
    until(lambda: len(agent.processes()) >= 5)
    told = agent.ask("stop", job_id="j1", attempt_token="t1", checkpoint=True, checkpoint_wait_s=1, term_wait_s=0.5)
    assert told["state"] == "stopped"
    job_processes = agent.processes() - {agent.daemon()}
    until(lambda: not (agent.processes() - {agent.daemon()}))
    assert job_processes is not None


def test_stop_when_already_ended_then_keeps_how_it_ended(agent):
    agent.start("j1", "exit 4")
    agent.until_state("j1", "failed")
    assert agent.ask("stop", job_id="j1", attempt_token="t1")["exit_code"] == 4


def test_checkpoint_when_asked_then_only_listeners_are_signalled(agent):
    agent.start("j1", f"sleep 60 & {os.environ.get('PYTHON', 'python3')} -u train.py; wait",
                files={"train.py": base64.b64encode(TRAIN.encode()).decode()})  # fmt: skip
    until(lambda: agent.written("j1", "report").get("step", 0) > 1)
    agent.ask("checkpoint", job_id="j1")
    until(lambda: list((agent.job("j1") / "checkpoints").glob("step-*")))
    assert agent.status("j1")["state"] == "running"


def test_job_when_its_main_process_ends_then_its_children_end_too(agent):
    agent.start("j1", "sleep 300 & setsid sleep 300 & exit 0")
    agent.until_state("j1", "succeeded")
    until(lambda: agent.processes() == {agent.daemon()})


def test_job_when_its_supervisor_is_killed_then_is_stopped_not_failed_with_words_and_ended(agent):
    agent.start("j1", "sleep 300")
    agent.until_state("j1", "running")
    os.kill(agent.supervisor("j1"), signal.SIGKILL)
    told = agent.status("j1")
    assert told["state"] == "stopped"
    assert "supervisor" in told["error"]
    until(lambda: agent.processes() == {agent.daemon()})
    assert agent.start("j1", "true")["state"] == "stopped"


def test_job_when_node_was_rebooted_then_says_so_and_resumes_only_when_it_may(agent):
    for job_id, may_resume in (("j1", False), ("j2", True)):
        script = 'echo run >>"$HOSTLER_OUTPUT_DIR/runs"; [ "$(wc -l <"$HOSTLER_OUTPUT_DIR/runs")" -ge 2 ] || sleep 60'
        agent.start(job_id, script, may_resume=may_resume)
        until((agent.job(job_id) / "output/runs").exists)
        os.kill(agent.supervisor(job_id), signal.SIGKILL)
        path = agent.job(job_id) / "supervisor.json"
        path.write_text(json.dumps({**json.loads(path.read_text()), "boot_id": "an earlier one"}))
    assert "started anew" in agent.status("j1")["error"]
    assert agent.ask("resume", job_id="j1")["state"] == "stopped"
    assert agent.status("j2")["may_resume"] is True
    assert agent.ask("resume", job_id="j2")["state"] in {"starting", "running"}
    agent.until_state("j2", "succeeded")
    assert (agent.job("j2") / "output/runs").read_text() == "run\nrun\n"


def test_job_when_node_is_shut_down_then_saves_and_is_not_taken_for_done(agent):
    agent.start_python("j1", TRAIN)
    until(lambda: agent.written("j1", "report").get("step", 0) > 3)
    os.kill(agent.supervisor("j1"), signal.SIGTERM)
    told = agent.until_state("j1", "failed", "succeeded", "stopped")
    assert (told["state"], told["exit_code"]) == ("stopped", 0)
    assert "shut down" in told["error"]
    assert list((agent.job("j1") / "checkpoints").glob("step-*"))


def test_job_when_it_asks_to_be_started_again_then_resume_does(agent):
    script = 'echo run >>"$HOSTLER_OUTPUT_DIR/runs"; [ "$(wc -l <"$HOSTLER_OUTPUT_DIR/runs")" -ge 2 ] || exit 75'
    agent.start("j1", script, may_resume=True)
    agent.until_state("j1", "failed")
    agent.ask("resume", job_id="j1")
    agent.until_state("j1", "succeeded")


def test_start_when_power_was_cut_before_the_supervisor_then_starts_now(agent):
    folder = agent.job("j1")
    folder.mkdir(parents=True)
    (folder / "order.json").write_text("{}")
    assert agent.status("j1")["state"] == "missing", "nothing runs, and nobody would start it: the order has to come again"
    agent.start("j1", "true")
    agent.until_state("j1", "succeeded")


def test_start_when_files_are_given_then_they_are_staged(agent):
    content = bytes(range(256))
    agent.start("j1", "wc -c <deep/er/file", files={"deep/er/file": base64.b64encode(content).decode()})
    assert agent.until_state("j1", "succeeded")["log_tail"].strip() == "256"


@pytest.mark.parametrize(
    ("order", "words"),
    [
        ({"job_id": "../x"}, "job_id"),
        ({"job_id": ""}, "job_id"),
        ({"job_id": ".hidden"}, "job_id"),
        ({"argv": []}, "argv"),
        ({"argv": "sh"}, "argv"),
        ({"files": {"../x": ""}}, "files"),
        ({"files": {"/etc/x": ""}}, "files"),
        ({"files": {"x": "no base64!"}}, "files"),
        ({"env": {"A": 1}}, "env"),
        ({"attempt_token": ""}, "attempt_token"),
        ({"lease_id": "a/b"}, "lease_id"),
        ({"rank": -1}, "rank"),
        ({"world_size": 0}, "world_size"),
        ({"restore_step": True}, "restore_step"),
    ],
)
def test_start_when_order_is_bad_then_is_refused_by_field_and_nothing_starts(agent, order, words):
    good = {"job_id": "j1", "lease_id": "lease1", "attempt_token": "t", "argv": ["true"]}
    told = agent.refused("start", **{**good, **order})
    assert told.startswith("refused: ")
    assert words in told
    assert not (agent.home / "jobs").exists()


def test_command_when_unknown_or_input_is_no_json_then_is_refused(agent):
    assert "command" in agent.refused("explode")
    done = agent.raw("status", order=[1])
    assert json.loads(done.stdout)["kind"] == "refused"


def test_secrets_when_given_then_reach_the_job_and_nothing_else(agent):
    secret = "s3cr3t-value-4711"
    agent.configure(backup=agent.backup())
    agent.start("j1", 'test "$TOKEN" = s3cr3t-value-"4711" && echo same; sleep 3', secrets={"TOKEN": secret})
    until(lambda: agent.status("j1")["log_tail"] == "same\n")
    job_only = {pid for pid in agent.processes() if secret.encode() in Path(f"/proc/{pid}/environ").read_bytes()}
    assert agent.supervisor("j1") not in job_only
    assert agent.daemon() not in job_only
    assert job_only
    for pid in agent.processes():
        assert secret.encode() not in Path(f"/proc/{pid}/cmdline").read_bytes()
    agent.until_state("j1", "succeeded")
    agent.ask("flush")
    for path in (*agent.home.rglob("*"), *agent.store.rglob("*")):
        if path.is_file():
            assert secret.encode() not in path.read_bytes(), path


def test_files_when_written_then_nobody_else_may_read_them(agent):
    agent.configure(backup=agent.backup())
    agent.start("j1", "echo hi; touch $HOSTLER_OUTPUT_DIR/x", files={"a": ""})
    agent.until_state("j1", "succeeded")
    agent.ask("flush")
    for path in (agent.home / "agent", agent.home / "jobs"):
        assert stat.S_IMODE(path.stat().st_mode) == 0o700
        for entry in path.rglob("*"):
            assert not stat.S_IMODE(entry.stat().st_mode) & 0o077, entry


def test_log_when_read_from_offsets_then_gives_all_bytes_once(agent):
    agent.start("j1", "i=0; while [ $i -lt 3000 ]; do echo line $i; i=$((i+1)); done")
    got, offset = b"", 0
    agent.until_state("j1", "succeeded")
    while piece := agent.ask("log", job_id="j1", offset=offset):
        data = base64.b64decode(piece["data"])
        if not data:
            break
        got, offset = got + data, piece["next_offset"]
    assert got.decode().splitlines() == [f"line {number}" for number in range(3000)]

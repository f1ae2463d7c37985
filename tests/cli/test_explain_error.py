"""``hostler explain-error`` as a process: lines in, lines out, whatever they hold."""

import json
import resource
import subprocess
import sys

from hostler.cli.explain_error import explained

KEYS = {"action", "error", "scope", "hints", "unknown"}
STOCK = {"cloud": "aws", "call": "RunInstances", "raw": "InsufficientInstanceCapacity: choosing us-east-1a, us-east-1b."}


def hostler(text: bytes, *more: str) -> subprocess.CompletedProcess:
    command = [sys.executable, *more, "-m", "hostler.cli.main", "explain-error"]
    return subprocess.run(command, input=text, capture_output=True, check=False)


def test_explain_error_when_lines_are_good_then_one_answer_each_and_status_0():
    second = {"cloud": "azure", "call": "vm create", "raw": {"error": {"code": "ZonalAllocationFailed"}}}
    done = hostler(f"{json.dumps(STOCK)}\n\n{json.dumps(second)}\n".encode())
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert [set(answer) for answer in answers] == [KEYS, KEYS]
    assert [answer["action"] for answer in answers] == ["next_zone", "next_zone"]
    assert answers[0]["hints"]["suggested_zones"] == ["us-east-1a", "us-east-1b"]
    assert (answers[0]["error"], answers[0]["scope"], answers[0]["unknown"]) == (
        "InsufficientCapacityError",
        "zone+type",
        False,
    )
    assert (done.returncode, done.stderr) == (0, b"")


def test_explain_error_when_lines_are_broken_then_each_is_named_and_the_rest_is_answered():
    deep = b'{"raw": ' + b"[" * 100_000 + b"]" * 100_000 + b"}"
    broken = [
        b'{"cloud": aws}',
        b"[1]",
        b'"text"',
        b'{"cloud": "aws"}',
        deep,
        b"\xff\xfe{",
        b'{"raw": 1' + b"1" * 10_000 + b"}",
    ]
    done = hostler(b"\n".join([*broken, json.dumps(STOCK).encode()]))
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert [answer.get("problem", "")[:7] for answer in answers] == [*(f"line {n}:" for n in range(1, 8)), ""]
    assert all(set(answer) >= KEYS for answer in answers)
    assert answers[-1]["action"] == "next_zone"
    assert done.returncode == 1
    assert b"Traceback" not in done.stderr


def test_explain_error_when_an_error_is_unknown_then_said_so_on_standard_error_too():
    done = hostler(b'{"cloud": "aws", "call": "RunInstances", "raw": "zorp"}')
    assert json.loads(done.stdout)["unknown"] is True
    assert b"unknown error of aws in RunInstances: zorp" in done.stderr
    assert done.returncode == 0


def test_explain_error_when_nothing_comes_then_nothing_is_printed():
    done = hostler(b"")
    assert (done.returncode, done.stdout) == (0, b"")


def test_explain_error_when_started_then_in_less_than_half_a_second_of_cpu_and_without_slow_modules():
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = hostler(json.dumps(STOCK).encode(), "-X", "importtime")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert done.returncode == 0
    assert (after.ru_utime + after.ru_stime) - (before.ru_utime + before.ru_stime) < 0.5
    loaded = {
        line.split(b"|")[-1].strip().split(b".")[0] for line in done.stderr.splitlines() if line.startswith(b"import time:")
    }
    assert loaded.isdisjoint({b"airflow", b"boto3", b"botocore", b"sqlalchemy", b"pydantic", b"asyncssh", b"yaml"})


def test_explained_when_names_are_missing_or_odd_then_answered_by_shape():
    lines = [b'{"raw": "out of host capacity"}', b'{"cloud": 7, "call": null, "raw": "out of host capacity"}']
    assert [answer["action"] for answer in explained(lines)] == ["next_zone", "next_zone"]

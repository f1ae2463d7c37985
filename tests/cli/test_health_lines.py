import json
import os
import subprocess
import sys
import time

import pytest

from hostler.cli.health_lines import MAX_LINE_BYTES, LineSplitter

COMMAND = [sys.executable, "-m", "hostler.cli.main", "explain-health", "--lines"]
KEYS = ["kind", "code", "pci", "pid", "process", "nvidia_action", "action", "fatal", "what"]


def run(content: bytes) -> list[dict]:
    done = subprocess.run(COMMAND, input=content, capture_output=True, timeout=60, check=True)
    return [json.loads(line) for line in done.stdout.decode().splitlines()]


def test_lines_when_bytes_are_broken_then_one_json_line_each():
    content = (
        b"NVRM: Xid (PCI:0000:04:00): 31, pid=7, name=a, Ch 1\r\n\xff\xfe\x00\xc3(\n\nNVRM: Xid (PCI:0000:04:00): 79, \xe9"
    )
    shown = run(content)
    assert [line["code"] for line in shown] == [31, None, None, 79]
    assert all(list(line) == KEYS for line in shown)


def test_lines_when_nothing_comes_then_nothing_is_shown():
    assert run(b"") == []


def test_lines_when_the_input_rests_then_a_held_line_is_decided():
    with subprocess.Popen(COMMAND, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin
        assert process.stdout
        process.stdin.write(b"[   10.000000] NVRM: Xid (PCI:0000:04:00): 48, pid=7, name=a, DBE\n")
        process.stdin.flush()
        began = time.monotonic()
        shown = json.loads(process.stdout.readline())  # comes while the input is still open
        assert time.monotonic() - began < 30
        assert shown["nvidia_action"] == "RESET_GPU"
        process.stdin.close()
        assert process.wait(timeout=30) == os.EX_OK


@pytest.mark.parametrize("size", [1, 7, 64 * 1024])
def test_splitter_when_cut_anywhere_then_the_same_lines(size):
    content = "Xid \u00e9 one\n\ntwo\nlast".encode()
    splitter = LineSplitter()
    lines = [line for at in range(0, len(content), size) for line in splitter.feed(content[at : at + size])]
    assert [*lines, *splitter.close()] == ["Xid \u00e9 one", "", "two", "last"]


def test_splitter_when_a_line_has_no_end_then_its_rest_is_dropped_and_the_next_is_read():
    splitter = LineSplitter()
    lines = [line for _ in range(20) for line in splitter.feed(b"x" * (MAX_LINE_BYTES // 4))]
    lines += list(splitter.feed(b"yy\nnext\n"))
    assert len(lines) == 2
    assert len(lines[0]) == MAX_LINE_BYTES
    assert lines[1] == "next"

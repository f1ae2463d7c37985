"""The stage's PostgreSQL ends with its owner, however that ends."""

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from hostler.stores.embedded import EmbeddedPostgres
from hostler_sandbox.demo.watcher import watched
from hostler_sandbox.processes import is_alive

OWNER = """
import sys, time
from pathlib import Path
from hostler_sandbox.demo.watcher import watched
with watched(Path(sys.argv[1])) as server:
    server.start()
    print(server.pid, flush=True)
    time.sleep(600)
"""


def until(check, timeout_s=60.0):
    end = time.monotonic() + timeout_s
    while not check():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.05)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_server_when_its_owner_is_killed_then_it_ends_too(tmp_path, number):
    tmp_path.chmod(0o711)
    owner = subprocess.Popen([sys.executable, "-c", OWNER, str(tmp_path / "ledger")], stdout=subprocess.PIPE, text=True)
    with owner:
        pid = int(owner.stdout.readline())
        assert is_alive(pid)
        owner.send_signal(number)
        owner.wait(30)
    until(lambda: not is_alive(pid))
    until(lambda: not _watchers(tmp_path))
    EmbeddedPostgres(tmp_path / "ledger").remove()


def test_server_when_its_owner_goes_in_order_then_server_and_watcher_are_gone_at_once(tmp_path):
    tmp_path.chmod(0o711)
    with watched(tmp_path / "ledger") as server:
        server.start()
        pid = server.pid
        assert _watchers(tmp_path)
    assert not is_alive(pid)
    assert not _watchers(tmp_path)
    server.remove()


def _watchers(folder):
    """Processes other than this one that were given the ledger's folder as a word of their command line."""
    found = []
    for words in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            if f"{folder}/ledger".encode() in words.read_bytes().split(b"\0") and words.parent.name != str(os.getpid()):
                found.append(words.parent.name)
    return found

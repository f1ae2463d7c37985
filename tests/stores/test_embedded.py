import multiprocessing
import os
import signal
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import psycopg
import pytest
from tests.stores import racers
from tests.stores.scratch import run_sql

from hostler.ledger.errors import LedgerUnavailableError
from hostler.stores import migrate, server_account
from hostler.stores.embedded import EmbeddedPostgres
from hostler.stores.postgres import PostgresLedger


@pytest.fixture
def folder():
    """A folder that every account may pass through, with a space and a letter that is not ASCII in its name."""
    with tempfile.TemporaryDirectory(prefix="hostler é ") as name:
        Path(name).chmod(0o711)
        yield Path(name) / "ledger"


@pytest.fixture
def server(folder):
    made = EmbeddedPostgres(folder, is_durable=False)
    yield made
    made.remove()


@pytest.fixture(scope="module")
def calm():
    """A running server that tests may stop, kill and start; they leave it able to start."""
    with tempfile.TemporaryDirectory(prefix="hostler-calm-") as name:
        Path(name).chmod(0o711)
        made = EmbeddedPostgres(Path(name) / "ledger", is_durable=False)
        made.start()
        yield made
        made.remove()


@pytest.fixture
def running(calm):
    calm.start()
    return calm


def plain(url):
    return url.replace("+psycopg", "", 1)


def test_server_when_started_and_stopped_then_it_keeps_address_and_data(server):
    assert not server.is_running()
    assert server.pid is None
    server.start()
    first, pid = server.url(), server.pid
    server.start()
    assert (server.url(), server.pid) == (first, pid)
    run_sql(first, "CREATE TABLE kept (x int)")
    server.stop()
    server.stop()
    assert not server.is_running()
    with pytest.raises(LedgerUnavailableError, match="not running"):
        server.url()
    server.start()
    assert server.url() == first
    assert run_sql(first, "SELECT count(*) FROM kept") == [(0,)]


def test_server_when_killed_then_start_brings_it_back(running):
    url = running.url()
    os.kill(running.pid, signal.SIGKILL)
    running.start()
    assert run_sql(running.url(), "SELECT 1") == [(1,)]
    assert running.url() == url


def test_server_when_a_stale_pid_file_names_a_process_then_it_starts(running):
    pid_file = running._data / "postmaster.pid"
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    for number in (gone.pid, os.getpid()):
        lines = pid_file.read_text().splitlines()
        running.stop()
        pid_file.write_text("\n".join([str(number), *lines[1:]]))
        assert not running.is_running()
        running.start()
        assert run_sql(running.url(), "SELECT 1") == [(1,)]


def test_server_when_its_pid_file_is_empty_then_it_starts(running):
    pid_file = running._data / "postmaster.pid"
    running.stop()
    pid_file.write_text("")
    assert not running.is_running()
    running.start()
    assert running.is_running()


def test_password_when_made_then_only_its_owner_reads_it_and_only_it_opens(running):
    password = running.folder / "password"
    assert stat.S_IMODE(password.stat().st_mode) == 0o600
    assert password.read_text() in running.url()
    assert stat.S_IMODE(running._data.stat().st_mode) == 0o700
    assert list(running.folder.rglob("password.part")) == []
    for wrong in ("geheim", ""):
        with pytest.raises(psycopg.OperationalError):
            psycopg.connect(plain(running.url()).replace(password.read_text(), wrong))
    methods = run_sql(running.url(), "SELECT DISTINCT auth_method FROM pg_hba_file_rules")
    assert methods == [("scram-sha-256",)]
    assert run_sql(running.url(), "SELECT rolpassword LIKE 'SCRAM-%' FROM pg_authid WHERE rolname = 'hostler'") == [(True,)]


def test_server_when_up_then_it_listens_on_loopback_alone_and_has_room(running):
    settings = dict(run_sql(running.url(), "SELECT name, setting FROM pg_settings"))
    assert settings["listen_addresses"] == "127.0.0.1"
    assert settings["unix_socket_directories"] == ""
    assert int(settings["max_connections"]) >= 200
    assert settings["TimeZone"] == "UTC"
    assert settings["fsync"] == "off"


def test_database_when_ensured_twice_then_it_is_one(running):
    url = running.ensure_database("airflow")
    assert running.ensure_database("airflow") == url == running.url("airflow")
    assert running.url("airflow", driver="psycopg2").startswith("postgresql+psycopg2://")
    assert run_sql(url, "SELECT current_database()") == [("airflow",)]


@pytest.mark.parametrize("name", ["", "Airflow", 'a"b', "a b", "1a", "x" * 64])
def test_database_when_its_name_is_odd_then_it_is_refused(folder, name):
    with pytest.raises(ValueError, match="lower-case"):
        EmbeddedPostgres(folder).ensure_database(name)


def test_server_when_four_processes_start_it_at_once_then_it_is_one(server):
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.stores.racers"])
    answers = context.Queue()
    processes = [context.Process(target=racers.start_server, args=(str(server.folder), answers)) for _ in range(4)]
    for process in processes:
        process.start()
    told = {answers.get(timeout=120) for _ in processes}
    for process in processes:
        process.join(timeout=60)
    assert told == {(server.url(), server.pid)}


def test_ledger_when_the_server_goes_and_comes_then_it_says_so_and_goes_on(running):
    migrate.upgrade(running.url())
    ledger = PostgresLedger(running.url())
    assert ledger.list_leases() == ()
    running.stop()
    with pytest.raises(LedgerUnavailableError, match="cannot be reached"):
        ledger.list_leases()
    running.start()
    assert ledger.list_leases() == ()
    ledger.close()


def test_start_when_the_data_are_damaged_then_the_servers_own_words_are_told(server):
    server.start()
    server.stop()
    (server._data / "global" / "pg_control").write_bytes(b"\0" * 8192)
    with pytest.raises(LedgerUnavailableError, match=r"does not start: .*(PANIC|FATAL)"):
        server.start()


def test_server_when_it_is_durable_and_in_a_used_folder_then_commits_reach_the_disk_and_files_stay(folder):
    folder.mkdir(mode=0o755)
    (folder / "mine").write_text("kept")
    server = EmbeddedPostgres(folder)
    server.start()
    settings = dict(run_sql(server.url(), "SELECT name, setting FROM pg_settings"))
    assert [settings[name] for name in ("fsync", "synchronous_commit", "full_page_writes")] == ["on"] * 3
    assert stat.S_IMODE(folder.stat().st_mode) == 0o755
    server.remove()
    assert [path.name for path in folder.iterdir()] == ["mine"]
    (folder / "mine").unlink()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root runs the server under another account")
def test_root_when_the_folder_is_closed_to_others_then_it_still_works_and_nothing_is_opened(tmp_path):
    tmp_path.chmod(0o700)
    server = EmbeddedPostgres(tmp_path / "ledger", is_durable=False)
    server.start()
    try:
        assert run_sql(server.url(), "SELECT 1") == [(1,)]
        assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o700
        data = server._data
        assert data.is_relative_to(server_account.ROOT_HOME)
        assert EmbeddedPostgres(tmp_path / "ledger").is_running()
    finally:
        server.remove()
    assert not data.parent.exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root runs the server under another account")
def test_root_when_the_wheel_lies_where_others_cannot_go_then_a_copy_serves(server, tmp_path, monkeypatch):
    tmp_path.chmod(0o711)
    monkeypatch.setattr(server_account, "ROOT_HOME", server.folder.parent / "home")
    is_reachable = server_account.is_reachable
    monkeypatch.setattr(server_account, "is_reachable", lambda path: "pginstall" not in str(path) and is_reachable(path))
    server.start()
    assert (server_account.find_programs()).is_relative_to(server_account.ROOT_HOME)
    assert Path(f"/proc/{server.pid}/exe").readlink().is_relative_to(server_account.ROOT_HOME)


@pytest.mark.skipif(os.geteuid() != 0, reason="as another user this is what all other tests show")
def test_normal_user_when_it_starts_the_server_then_it_runs_under_that_user(folder):
    folder.parent.chmod(0o777)
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.stores.racers"])
    answers = context.Queue()
    process = context.Process(target=racers.serve_as_nobody, args=(str(folder), answers))
    process.start()
    told = answers.get(timeout=120)
    process.join(timeout=60)
    assert told == (0o600, True, False)

"""The database is away, full, locked, at another schema or damaged: the ledger says so, and gives nothing away."""

import socket
import traceback
from dataclasses import replace

import pytest
from sqlalchemy import event as hooks
from sqlalchemy import make_url
from tests import samples
from tests.samples import AT, NO_CAPS
from tests.stores.cutting_proxy import CuttingProxy
from tests.stores.scratch import run_sql

from hostler.ledger.errors import LedgerError, LedgerUnavailableError
from hostler.ledger.port import StockOut
from hostler.model.enums import LeaseState
from hostler.model.lease import Fence
from hostler.stores import database, migrate
from hostler.stores.postgres import PostgresLedger

LEASE = samples.lease()
FENCE = Fence(lease_id=LEASE.lease_id, token=1, holder="x")
CHANGES = {
    "admit": lambda ledger: ledger.admit(samples.lease("new"), [samples.event(None)]),
    "take_fence": lambda ledger: ledger.take_fence(LEASE.lease_id, "x"),
    "insert_intent": lambda ledger: ledger.insert_intent(samples.intent(LEASE), FENCE, NO_CAPS, []),
    "write": lambda ledger: ledger.write(LEASE.lease_id, [samples.job(LEASE)], []),
    "append_events": lambda ledger: ledger.append_events([samples.event(None)]),
    "set_spending_stopped": lambda ledger: ledger.set_spending_stopped(stopped=True, events=[]),
    "remember_stock_out": lambda ledger: ledger.remember_stock_out(
        StockOut(subject="aws/x", until=AT, count=1, reason="empty")
    ),
    "set_meta": lambda ledger: ledger.set_meta("epoch", "1"),
}
LOOKS = {
    "now": lambda ledger: ledger.now(),
    "view": lambda ledger: ledger.view(LEASE.lease_id),
    "list_leases": lambda ledger: ledger.list_leases(),
    "list_events": lambda ledger: ledger.list_events(None),
    "spending": lambda ledger: ledger.spending(),
    "is_spending_stopped": lambda ledger: ledger.is_spending_stopped(),
    "stock_outs": lambda ledger: ledger.stock_outs(),
    "get_meta": lambda ledger: ledger.get_meta("epoch"),
}


@pytest.fixture
def stocked(ledger_url):
    """Address of a ledger with one lease under fence 1."""
    ledger = PostgresLedger(ledger_url)
    ledger.admit(LEASE, [])
    ledger.take_fence(LEASE.lease_id, "x")
    ledger.close()
    return ledger_url


@pytest.fixture
def open_ledger():
    """Opens ledgers, and closes them at the end."""
    opened = []

    def open_(url):
        opened.append(PostgresLedger(url))
        return opened[-1]

    yield open_
    for ledger in opened:
        ledger.close()


def refusal(call, *args):
    """The ledger's words; checks that neither they nor the traceback name the login or the statement."""
    with pytest.raises(LedgerUnavailableError) as caught:
        call(*args)
    error = caught.value
    assert error.__cause__ is None
    assert error.__context__ is None
    shown = "".join(traceback.format_exception(error))
    for secret in ("geheim", "psycopg.", "INSERT", "SELECT "):
        assert secret not in shown
    return str(error)


@pytest.fixture
def closed_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        yield probe.getsockname()[1]


@pytest.mark.parametrize("call", [*CHANGES.values(), *LOOKS.values()], ids=[*CHANGES, *LOOKS])
def test_call_when_nothing_answers_then_it_is_unavailable(open_ledger, closed_port, call):
    ledger = open_ledger(f"postgresql://hostler:geheim@127.0.0.1:{closed_port}/hostler")
    assert refusal(call, ledger) == f"ledger at 127.0.0.1:{closed_port}/hostler cannot be reached (is it running?)"


def test_migration_when_nothing_answers_then_it_is_unavailable(closed_port):
    url = f"postgresql://hostler:geheim@127.0.0.1:{closed_port}/hostler"
    for call in (migrate.upgrade, migrate.downgrade, migrate.current, migrate.is_current):
        assert "cannot be reached" in refusal(call, url)


@pytest.mark.parametrize(
    "url",
    [
        "",
        "geheim",
        "mysql://hostler:geheim@127.0.0.1/hostler",
        "sqlite:///geheim.db",
        "postgresql://hostler:geheim@127.0.0.1:geheim/hostler",
        "postgresql://hostler:geheim@127.0.0.1:5432",
        "postgresql://hostler:geheim@[::1/hostler",
    ],
)
def test_address_when_it_is_no_postgresql_address_then_that_is_said(url):
    assert "postgresql://USER:PASSWORD@HOST" in refusal(PostgresLedger, url)


def test_login_when_the_password_is_wrong_then_it_is_unavailable(open_ledger, ledger_url):
    head, tail = ledger_url.split("hostler:", 1)
    ledger = open_ledger(f"{head}hostler:geheim@{tail.split('@', 1)[1]}")
    assert "refuses the login" in refusal(ledger.now)


def test_database_when_it_does_not_exist_then_it_is_unavailable(open_ledger, ledger_url):
    ledger = open_ledger(ledger_url.rsplit("/", 1)[0] + "/nowhere")
    assert refusal(ledger.now).endswith("/nowhere: it has no such database")


@pytest.mark.parametrize("call", CHANGES.values(), ids=CHANGES)
def test_change_when_the_database_is_read_only_then_it_is_unavailable(open_ledger, stocked, call):
    name = stocked.rsplit("/", 1)[1]
    run_sql(stocked, f"ALTER DATABASE {name} SET default_transaction_read_only = on")
    try:
        ledger = open_ledger(stocked)
        before = ledger.view(LEASE.lease_id), ledger.list_events(None)
        assert "read-only" in refusal(call, ledger)
        assert (ledger.view(LEASE.lease_id), ledger.list_events(None)) == before
    finally:
        run_sql(
            stocked, "SET default_transaction_read_only = off", f"ALTER DATABASE {name} RESET default_transaction_read_only"
        )


@pytest.mark.parametrize("call", [*CHANGES.values(), *LOOKS.values()], ids=[*CHANGES, *LOOKS])
def test_call_when_there_are_no_tables_then_it_says_how_to_make_them(open_ledger, bare_url, call):
    words = refusal(call, open_ledger(bare_url))
    assert "schema none" in words
    assert "hostler ledger upgrade" in words


@pytest.mark.parametrize(("version", "remedy"), [("0000", "hostler ledger upgrade"), ("9999", "update this program")])
def test_call_when_the_schema_is_behind_or_ahead_then_it_says_what_to_do(open_ledger, bare_url, version, remedy):
    migrate.upgrade(bare_url)
    run_sql(bare_url, f"UPDATE hostler.schema_version SET version_num = '{version}'")  # noqa: S608 - a constant
    for call in (LOOKS["view"], CHANGES["admit"]):
        words = refusal(call, open_ledger(bare_url))
        assert f"schema {version}" in words
        assert remedy in words


def test_call_when_the_schema_is_mended_meanwhile_then_the_same_ledger_goes_on(open_ledger, bare_url):
    ledger = open_ledger(bare_url)
    refusal(ledger.list_leases)
    migrate.upgrade(bare_url)
    assert ledger.list_leases() == ()


def test_change_when_the_disk_is_full_then_nothing_is_written(open_ledger, bare_url):
    """The server's own code for a full disk, raised where events are kept, so late in the transaction."""
    migrate.upgrade(bare_url)
    ledger = open_ledger(bare_url)
    lease = ledger.admit(LEASE, []).lease
    run_sql(
        bare_url,
        "CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS "
        "$$ BEGIN RAISE 'could not extend file' USING ERRCODE = 'disk_full'; END $$",
        "CREATE TRIGGER fail BEFORE INSERT ON hostler.events FOR EACH ROW EXECUTE FUNCTION fail()",
    )
    words = refusal(ledger.write, LEASE.lease_id, [replace(lease, state=LeaseState.GRANTED)], [samples.event(None)])
    assert "disk is full" in words
    assert "disk is full" in refusal(ledger.take_fence, LEASE.lease_id, "x")
    assert ledger.view(LEASE.lease_id).lease == lease


def test_change_when_another_holds_the_row_for_long_then_it_is_unavailable(open_ledger, stocked, monkeypatch):
    monkeypatch.setitem(database._SESSION, "lock_timeout", "100ms")
    ledger = open_ledger(stocked)
    blocker = database.make_engine(database.read_url(stocked), pool_size=1)
    with blocker.begin() as connection:
        connection.exec_driver_sql("SELECT 1 FROM hostler.leases FOR UPDATE")
        assert "locked by another writer" in refusal(ledger.write, LEASE.lease_id, [samples.job(LEASE)], [])
        assert ledger.view(LEASE.lease_id).jobs == ()
    blocker.dispose()
    ledger.write(LEASE.lease_id, [samples.job(LEASE)], [])


def test_statement_when_it_takes_too_long_then_it_is_unavailable(open_ledger, stocked, monkeypatch):
    monkeypatch.setitem(database._SESSION, "statement_timeout", "100ms")
    ledger = open_ledger(stocked)
    blocker = database.make_engine(database.read_url(stocked), pool_size=1)
    with blocker.begin() as connection:
        connection.exec_driver_sql("LOCK TABLE hostler.leases")
        assert "did not answer" in refusal(ledger.view, LEASE.lease_id)
    blocker.dispose()


def test_connections_when_the_server_cuts_them_then_the_next_call_works(open_ledger, stocked):
    ledger = open_ledger(stocked)
    ledger.view(LEASE.lease_id)
    cut = "SELECT count(pg_terminate_backend(pid, 5000)) FROM pg_stat_activity WHERE application_name = 'hostler'"
    assert run_sql(stocked, f"{cut} AND datname = current_database()")[0][0] == 1
    assert ledger.view(LEASE.lease_id).lease.lease_id == LEASE.lease_id


@pytest.fixture
def cut_ledger(open_ledger, stocked):
    """Opens a ledger whose next change loses its connection at the commit."""
    proxies = []

    def open_(**how):
        url = make_url(stocked)
        proxies.append(CuttingProxy(url.port, **how))
        return open_ledger(url.set(port=proxies[-1].port).render_as_string(hide_password=False))

    yield open_
    for proxy in proxies:
        assert proxy.has_cut.is_set()
        proxy.close()


def test_change_when_the_answer_to_its_commit_is_lost_then_it_is_found_to_be_kept(cut_ledger):
    ledger = cut_ledger(cut_after=True)
    stored = ledger.write(LEASE.lease_id, [samples.job(LEASE)], [samples.event(LEASE.lease_id)])
    assert ledger.view(LEASE.lease_id).jobs == stored


def test_change_when_its_commit_never_arrives_then_it_is_unavailable_and_nothing_is_written(cut_ledger):
    ledger = cut_ledger(cut_after=False)
    assert "cannot be reached" in refusal(ledger.write, LEASE.lease_id, [samples.job(LEASE)], [])
    assert ledger.view(LEASE.lease_id).jobs == ()


def test_change_when_nobody_can_say_what_became_of_it_then_that_is_said(cut_ledger, open_ledger, stocked):
    ledger = cut_ledger(cut_after=True, is_closed_after=True)
    assert "may or may not be kept" in refusal(ledger.write, LEASE.lease_id, [samples.job(LEASE)], [])
    assert "cannot be reached" in refusal(ledger.view, LEASE.lease_id)


def test_row_when_an_older_program_wrote_it_then_it_loads(open_ledger, stocked):
    run_sql(stocked, "UPDATE hostler.leases SET body = body - 'wait_since' - 'wait_reason' - 'keep_until' - 'version'")
    view = open_ledger(stocked).view(LEASE.lease_id)
    assert view.lease == replace(LEASE, row_version=1, fence=1)


def test_row_when_a_newer_program_wrote_it_then_it_is_unavailable(open_ledger, stocked):
    run_sql(stocked, """UPDATE hostler.leases SET body = body || '{"format": 99}'""")
    assert "update the program" in refusal(open_ledger(stocked).view, LEASE.lease_id)


def test_change_when_the_database_refuses_for_a_defect_then_it_is_a_ledger_error_without_values(open_ledger, stocked):
    run_sql(stocked, "ALTER TABLE hostler.jobs ADD CONSTRAINT never CHECK (attempt < 0) NOT VALID")
    job = samples.job(LEASE, error="geheim")
    try:
        with pytest.raises(LedgerError, match="23514") as caught:
            open_ledger(stocked).write(LEASE.lease_id, [job], [])
    finally:
        run_sql(stocked, "ALTER TABLE hostler.jobs DROP CONSTRAINT never")
    assert "geheim" not in "".join(traceback.format_exception(caught.value))


def test_view_when_the_connection_is_warm_then_it_is_one_statement(open_ledger, stocked):
    ledger = open_ledger(stocked)
    ledger.view(LEASE.lease_id)
    seen = []
    hooks.listen(ledger._database._engine, "before_cursor_execute", lambda *args: seen.append(args[2]))
    ledger.view(LEASE.lease_id)
    assert len(seen) == 1


@pytest.mark.parametrize("table", ["intents", "nodes", "jobs", "backups", "receipts", "leases"])
def test_view_when_there_are_many_leases_then_indexes_serve_it(stocked, table):
    explain = f"EXPLAIN SELECT body FROM hostler.{table} WHERE lease_id = 'x'"  # noqa: S608 - constants
    plan = run_sql(stocked, "SET enable_seqscan = off", explain)
    assert "Index" in str(plan)
    assert "Seq Scan" not in str(plan)

"""The ledger's backups on a real PostgreSQL, both ways of dumping."""

import json
import secrets
import tempfile
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from tests import samples
from tests.stores.scratch import run_sql
from tests.vault.memory_store import Killed, MemoryStore

from hostler.ledger.errors import LedgerUnavailableError
from hostler.ledger.port import StockOut
from hostler.lifecycle.backup_notes import RESTORED
from hostler.model.enums import LeaseState
from hostler.recipes.manifest import BackupError
from hostler.stores import dump, migrate
from hostler.stores.postgres import PostgresLedger
from hostler.vault.local import LocalKeys
from hostler.vault.port import KeyServiceError
from hostler.wiring.ledger_backup import back_up_ledger, list_ledger_backups, read_ledger_backup, restore_ledger

METHODS = ("pg_dump", "rows")


@pytest.fixture
def keys(tmp_path):
    return LocalKeys(tmp_path / "keys")


@pytest.fixture
def filled(postgres, ledger_url):
    """A ledger with many kinds of rows, and odd texts."""
    odd = 'quote \' backslash \\ newline \n tab \t ü 漢 {"at": 1}'
    events = [samples.event(samples.lease().lease_id, why=odd)]
    view = postgres.admit(samples.lease(), events)
    fence = postgres.take_fence(view.lease.lease_id, "dag/run/launch/1")
    lease = replace(view.lease, state=LeaseState.GRANTED)
    postgres.write(lease.lease_id, [lease, samples.job(lease), samples.backup(lease)], [], fence)
    postgres.remember_stock_out(StockOut(subject="s", until=samples.AT + timedelta(days=9999), count=1, reason="r"))
    postgres.set_meta("at", json.dumps({"at": "x"}))
    postgres.set_meta("odd", "a\\nb\t'ü漢")
    postgres.set_spending_stopped(False, [])
    return view.lease.lease_id


@pytest.fixture(scope="module")
def empty_url(postgres_server):
    """A migrated database of its own, emptied for each use by ``target``."""
    name = f"restored_{secrets.token_hex(6)}"
    url = postgres_server.ensure_database(name)
    migrate.upgrade(url)
    yield url
    run_sql(postgres_server.url("postgres"), f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture
def target(empty_url):
    from tests.stores.scratch import empty

    empty(empty_url)
    return empty_url


@pytest.mark.parametrize("method", METHODS)
def test_ledger_backup_when_restored_then_every_row_is_back_and_it_only_reports(filled, ledger_url, target, keys, method):
    postgres = PostgresLedger(ledger_url)
    store = MemoryStore()
    made = back_up_ledger(ledger_url, "lab", store, keys, method=method)
    assert (made.method, made.counts["leases"], made.counts["meta"]) == (method, 1, 2)
    before, events = postgres.view(filled), postgres.list_events(None)
    assert all(b"hostler_node_lifecycle" not in content for content in store.content.values()), "nothing is in the clear"
    assert restore_ledger(target, "lab", store, keys, who="test") == made
    copy = PostgresLedger(target)
    try:
        assert copy.view(filled) == before
        assert copy.list_events(None)[: len(events)] == events
        assert copy.list_events(None)[-1].what == "ledger.restored"
        assert copy.get_meta("odd") == "a\\nb\t'ü漢"
        assert made.name in copy.get_meta(RESTORED)
        assert copy.is_spending_stopped()
        assert copy.take_fence(filled, "x").token == before.lease.fence + 1
    finally:
        copy.close()
        postgres.close()


def test_ledger_backup_when_the_ledger_is_not_empty_then_nothing_is_changed(filled, ledger_url, keys):
    store = MemoryStore()
    back_up_ledger(ledger_url, "lab", store, keys)
    before = dump.row_counts(ledger_url)
    with pytest.raises(LedgerUnavailableError, match="not empty"):
        restore_ledger(ledger_url, "lab", store, keys, who="test")
    assert dump.row_counts(ledger_url) == before


@pytest.mark.parametrize("method", METHODS)
def test_ledger_backup_when_tampered_with_then_refused_and_no_row_is_written(filled, ledger_url, target, keys, method):
    store = MemoryStore()
    older = back_up_ledger(ledger_url, "lab", store, keys, method=method)
    made = back_up_ledger(ledger_url, "lab", store, keys, method=method)
    content, manifest = f"ledger/lab/{made.name}.hste", f"ledger/lab/{made.name}.json"
    good = dict(store.content)

    def _flipped(data: bytes, at: int) -> bytes:
        return data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]

    harms = [{content: _flipped(good[content], at)} for at in range(0, len(good[content]), max(1, len(good[content]) // 9))]
    harms += [{manifest: _flipped(good[manifest], at)} for at in range(0, len(good[manifest]), 61)]
    harms += [
        {content: good[content][:-1]},
        {content: good[content] + b"x"},
        {content: good[f"ledger/lab/{older.name}.hste"]},
        {manifest: good[f"ledger/lab/{older.name}.json"]},
        {manifest: good[manifest][:50]},
    ]
    for harm in harms:
        store.content = {**good, **harm}
        with pytest.raises((BackupError, KeyServiceError)):
            restore_ledger(target, "lab", store, keys, who="test", name=made.name)
    store.content = good
    with pytest.raises(KeyServiceError):
        restore_ledger(target, "lab", store, LocalKeys(Path(tempfile.mkdtemp())), who="test")
    assert sum(dump.row_counts(target).values()) == 0


def test_ledger_backup_when_killed_at_any_step_then_the_one_before_is_the_newest_and_restores(filled, ledger_url, keys):
    store = MemoryStore()
    good = back_up_ledger(ledger_url, "lab", store, keys, method="rows")
    start = dict(store.content)
    for step in range(1, 9):
        store.content, store.calls, store.dies_at = dict(start), 0, step
        try:
            back_up_ledger(ledger_url, "lab", store, keys, method="rows")
        except Killed:
            store.dies_at = None
            names = list_ledger_backups(store, "lab")
            assert names[0] == good.name
            assert read_ledger_backup(store, keys, "lab", names[-1])[0].counts == good.counts
        else:
            break
    assert step > 3


def test_ledger_backup_when_the_stream_breaks_off_midway_then_no_row_is_kept(filled, ledger_url, target, keys):
    for method in METHODS:
        pieces = []

        class _Sink:
            def write(self, data, pieces=pieces):
                pieces.append(data)

        dump.dump(ledger_url, _Sink(), method)
        whole = b"".join(pieces)

        def _broken(whole=whole):
            yield whole[: len(whole) // 2]
            raise BackupError("cut")

        with pytest.raises(BackupError, match="cut"):
            dump.restore(target, _broken(), method)
        assert sum(dump.row_counts(target).values()) == 0


def test_method_when_the_wheel_is_there_then_pg_dump_else_rows(ledger_url, monkeypatch):
    assert dump.choose_method(ledger_url) == "pg_dump"
    monkeypatch.setattr(dump, "server_version", lambda _: 99)
    assert dump.choose_method(ledger_url) == "rows", "an older pg_dump refuses a newer server"
    monkeypatch.setattr(dump, "program", lambda _: None)
    assert dump.choose_method(ledger_url) == "rows"


def test_dump_when_the_database_is_away_then_says_so_without_the_password():
    with pytest.raises(LedgerUnavailableError) as caught:
        dump.row_counts("postgresql://hostler:geheim@127.0.0.1:9/x")
    assert "geheim" not in str(caught.value)

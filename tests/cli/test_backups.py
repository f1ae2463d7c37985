"""Backups from the command line, on a real ledger and a folder as the store."""

import json
from dataclasses import replace

import pytest
import yaml
from tests.stores.scratch import empty

from hostler.model.enums import LeaseState
from hostler.recipes.backup import seal
from hostler.vault.local import LocalKeys
from hostler.vault.stores import open_store


@pytest.fixture
def sealed(fleet_file, tmp_path, ledger, lease):
    """The lease, released, with a sealed backup of nothing."""
    keys = LocalKeys(tmp_path / "keys")
    _, wrapped = keys.new_data_key(lease)
    ledger.write(lease, [replace(ledger.view(lease).lease, wrapped_data_key=wrapped)], [])
    store = open_store(f"file://{tmp_path}/store", client_factory=lambda: None)
    found = ledger.view(lease).lease
    ledger.write(lease, [seal(store, found, (), ledger.now(), keys=keys)], [])
    for state in (LeaseState.DRAINING, LeaseState.RELEASED):
        ledger.write(lease, [replace(ledger.view(lease).lease, state=state)], [])
    return lease


def test_backups_when_shown_checked_and_held_then_each_says_so(hostler, sealed):
    status, out, _ = hostler("backups", "--json")
    assert (status, json.loads(out)[0]["lease"], json.loads(out)[0]["condition"]) == (0, sealed, "good")
    assert hostler("backups", "check")[:2] == (0, f"{sealed}: good\n")
    assert hostler("backups", "hold", sealed, "--reason", "audit")[0] == 0
    assert hostler("backups", "unhold", sealed, "--reason", "over")[0] == 0
    status, out, _ = hostler("backups", "drill")
    assert (status, json.loads(out)["not_shown"]) == (0, "the backup holds no checkpoint")


def test_ledger_when_backed_up_and_restored_then_it_says_what_to_do_next(hostler, sealed, ledger, ledger_url, tmp_path):
    assert hostler("ledger", "backups", "--from", str(tmp_path / "away"))[0] == 1
    status, out, _ = hostler("ledger", "backup", "--into", str(tmp_path / "away"))
    assert (status, "read back" in out) == (0, True)
    assert "manifest is proved" in hostler("ledger", "backups", "--from", str(tmp_path / "away"))[1]
    assert "not empty" in hostler("ledger", "restore", "--from", str(tmp_path / "away"))[2]
    empty(ledger_url)
    status, out, _ = hostler("ledger", "restore", "--from", str(tmp_path / "away"))
    assert (status, "hostler reap --confirm" in out) == (0, True)
    assert ledger.view(sealed).lease.state is LeaseState.RELEASED
    assert ledger.is_spending_stopped()


def test_rebuild_when_not_dry_then_refused(hostler, capsys):
    with pytest.raises(SystemExit):
        hostler("ledger", "rebuild")
    assert "--dry-run" in capsys.readouterr().err


def test_rebuild_when_a_cloud_cannot_be_asked_then_says_so_and_nothing_is_complete(hostler, fleet_file, monkeypatch, tmp_path):
    document = yaml.safe_load(fleet_file.read_text())
    fleet_file.write_text(yaml.safe_dump(document))
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "a")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "b")
    status, out, _ = hostler("ledger", "rebuild", "--dry-run", "--json")
    assert status == 1
    assert json.loads(out)["errors"][0].startswith("aws/us-east-1")

"""Checking, re-sealing and giving up backups of runs that are over."""

import json
from dataclasses import replace
from datetime import timedelta

import pytest
from tests.lifecycle.keeping_site import KeepingSite
from tests.vault.memory_store import Killed

from hostler.lifecycle.backup_check import check_backups
from hostler.lifecycle.backup_notes import RESTORED, read_note
from hostler.lifecycle.backup_retention import retain_backups, set_hold
from hostler.model.enums import FleetMode
from hostler.recipes.restoring import restore
from hostler.vault.port import KeyServiceError, ObjectLock
from hostler.vault.retention import Retention

NEWEST = Retention(all_days=0, daily=0, weekly=0, monthly=0, yearly=0)


@pytest.fixture
def site(tmp_path):
    return KeepingSite(tmp_path)


def check(site, **more):
    return check_backups(site.fleet, who="test", **more)


def retain(site, rule=NEWEST, **more):
    return retain_backups(site.fleet, lambda _: rule, who="test", **{"dry_run": False, **more})


def test_check_when_all_is_well_then_every_backup_is_good_and_remembered(site):
    ids = {site.run("a"), site.run("b", tenant="vision")}
    report = check(site)
    assert {(one.lease_id, one.found) for one in report.findings} == {(lease_id, "good") for lease_id in ids}
    assert {read_note(site.ledger, lease_id).found for lease_id in ids} == {"good"}
    assert report.left_count == 0


def test_check_when_a_bit_was_flipped_then_damaged_and_told_once(site):
    lease_id = site.run("a")
    site.flip(lease_id)
    assert [(one.found, "step-10" in one.why) for one in check(site).findings] == [("damaged", True)]
    check(site)
    assert site.events("backup.damaged") == [lease_id]


def test_check_when_the_store_or_the_keys_are_away_then_unknown_and_never_damaged(site, tmp_path):
    lease_id = site.run("a")

    class Away:
        key_id = "away"

        def unwrap(self, wrapped, context):
            raise KeyServiceError("KMS is away")

    site.fleet = replace(site.fleet, keys=Away())
    assert [one.found for one in check(site).findings] == ["unknown"]
    assert site.events("backup.unknown") == [lease_id]
    assert site.events("backup.damaged") == []


def test_check_when_a_run_never_sealed_then_sealed_now(site):
    lease_id = site.run("a", is_sealed=False)
    assert [one.found for one in check(site).findings] == ["sealed"]
    assert site.ledger.view(lease_id).backups[-1].is_verified
    assert [one.found for one in check(site).findings] == ["good"]


def test_check_when_a_process_died_between_store_and_ledger_then_the_ledger_learns_of_the_sealing(site, tmp_path):
    lease_id = site.run("a", is_sealed=False)
    lease = site.ledger.view(lease_id).lease
    site.fleet.seams.seal(site.store, lease, (), site.ledger.now(), keys=site.keys)
    assert site.ledger.view(lease_id).backups == ()
    check(site)
    assert len(site.ledger.view(lease_id).backups) == 1


def test_check_when_a_lease_is_not_over_or_another_deployment_s_then_it_is_not_looked_at(site):
    site.run("a", is_released=False)
    site.run("b", deployment="another")
    assert check(site).findings == ()


def test_check_when_bytes_are_few_then_the_longest_unproved_come_first_and_all_in_turn(site):
    ids = {site.run(name) for name in "abc"}
    seen = []
    for _ in ids:
        report = check(site, most_bytes=1)
        site.world.clock.at += timedelta(minutes=1)
        seen += [one.lease_id for one in report.findings]
        assert report.left_count == 2
    assert set(seen) == ids


def test_retention_when_old_ones_are_not_kept_then_deleted_and_the_newest_restores(site, tmp_path):
    old, new = site.run("old", days_ago=9), site.run("new", days_ago=1)
    other = site.run("other", tenant="vision", days_ago=99)
    assert retain(site).deleted == [old]
    assert {key.split("/")[0] for key in site.store.content} == {new, other}
    assert restore(site.store, site.keys, new, tmp_path / "out").files == 1
    assert site.events("backup.deleting") == [old]
    assert retain(site).deleted == []
    assert [one.lease_id for one in check(site).findings if one.lease_id == old] == [], "a deleted one is not damaged"


def test_retention_when_only_reporting_then_nothing_goes(site):
    old = site.run("old", days_ago=9)
    site.run("new")
    before = dict(site.store.content)
    assert retain(site, dry_run=True).left == [old]
    site.fleet = replace(site.fleet, settings=replace(site.fleet.settings, mode=FleetMode.OBSERVE))
    assert retain(site).report_only == "mode: observe in fleet.yaml"
    site.fleet = replace(site.fleet, settings=replace(site.fleet.settings, mode=FleetMode.ENFORCE))
    site.ledger.set_meta(RESTORED, "from somewhere")
    assert "restored" in retain(site).report_only
    assert site.store.content == before


def test_retention_when_the_newest_good_one_cannot_be_proved_then_nothing_of_its_tenant_goes(site):
    site.run("old", days_ago=9)
    new = site.run("new", days_ago=1)
    gone = site.run("old-2", tenant="vision", days_ago=9)
    site.run("new-2", tenant="vision", days_ago=1)
    site.flip(new)
    report = retain(site)
    assert report.deleted == [gone]
    assert [new in error for error in report.errors] == [True]


def test_retention_when_the_newest_is_known_as_damaged_then_the_good_one_before_it_stays(site):
    site.run("older", days_ago=20)
    old, new = site.run("old", days_ago=9), site.run("new", days_ago=1)
    site.flip(new)
    check(site)
    assert len(retain(site).deleted) == 1
    assert {key.split("/")[0] for key in site.store.content} == {old, new}


def test_retention_when_a_signal_is_missing_then_the_backup_counts_as_neither_good_nor_free_to_go(site):
    """B40's kind: what could not be read stands for nothing, and nothing of it is given up."""
    old, new = site.run("old", days_ago=9), site.run("new", days_ago=1)
    for lease_id in (old, new):
        content = site.store.content.pop(f"{lease_id}/manifest-000001.json")
        site.store.content[f"{lease_id}/manifest-000001.json.away"] = content
    check(site)
    assert retain(site).deleted == []


def test_retention_when_others_share_the_store_then_only_ours_goes(site):
    """B14's kind: another deployment's, one that the ledger does not know, and a look-alike stay."""
    old = site.run("old", days_ago=9)
    site.run("new")
    theirs = site.run("theirs", deployment="another", days_ago=900)
    unknown = {f"{old}x/manifest-000001.json": b"{}", "abcdefghij234567abcd/n0/j1/log.hste": b"x", "photos/cat": b"x"}
    site.store.content |= unknown
    assert retain(site).deleted == [old]
    assert unknown.items() <= site.store.content.items()
    assert any(key.startswith(theirs) for key in site.store.content)


def test_retention_when_a_person_holds_a_backup_then_it_stays_until_he_lets_go(site):
    old = site.run("old", days_ago=9)
    site.run("new")
    set_hold(site.fleet, old, who="person", reason="audit", is_held=True)
    assert json.loads(site.store.content[f"{old}/hold.json"])["reason"] == "audit"
    assert (retain(site).deleted, retain(site).left) == ([], [old])
    set_hold(site.fleet, old, who="person", reason="audit is over", is_held=False)
    assert retain(site).deleted == [old]
    assert (site.events("backup.held"), site.events("backup.unheld")) == ([old], [old])


def test_retention_when_the_store_locks_an_object_then_nothing_of_that_backup_goes(site):
    old = site.run("old", days_ago=9)
    site.run("new")
    until = site.world.clock.at + timedelta(days=1)

    class Locking(type(site.store)):
        locks_objects = True

        def lock(self, key, since):
            raise AssertionError

        def lock_of(self, key):
            return ObjectLock(until if key.endswith(".tar.hste") else None, is_held=False)

    site.store.__class__ = Locking
    before = dict(site.store.content)
    assert (retain(site).deleted, site.store.content) == ([], before)
    site.world.clock.at += timedelta(days=2)
    assert retain(site).deleted == [old]


def test_retention_when_a_rule_would_take_very_many_then_a_few_at_a_time(site):
    for number in range(6):
        site.run(f"r{number}", days_ago=number)
    report = retain(site, most=2)
    assert (len(report.deleted), len(report.left)) == (2, 3)


def test_retention_when_killed_at_any_step_then_the_newest_restores_and_the_next_run_finishes(site, tmp_path):
    old, new = site.run("old", days_ago=9), site.run("new", days_ago=1)
    start = dict(site.store.content)
    notes = dict(site.ledger._meta)
    for step in range(1, 60):
        site.store.content, site.store.calls, site.store.dies_at = dict(start), 0, step
        site.ledger._meta = dict(notes)
        try:
            retain(site)
        except Killed:
            site.store.dies_at = None
            assert restore(site.store, site.keys, new, tmp_path / f"out-{step}").files == 1
            assert [one.found for one in check(site).findings if one.lease_id == new] == ["good"]
            assert site.events("backup.damaged") == [], "half deleted is not damaged"
            retain(site)
            assert {key.split("/")[0] for key in site.store.content} == {new}
        else:
            break
    assert step > 10
    assert read_note(site.ledger, old).found == "deleted"

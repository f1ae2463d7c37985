"""A restored ledger only reports until a person confirms it."""

import asyncio

from tests.fake_world import DEPLOYMENT, make_world

from hostler.cloud.tags import DEPLOYMENT as TAG
from hostler.lifecycle.backup_notes import RESTORED
from hostler.lifecycle.reap import confirm_epoch, reconcile


def test_reconcile_when_the_ledger_was_restored_then_nothing_is_ended_before_a_person_confirms():
    world = make_world()
    confirm_epoch(world.fleet, who="test")
    orphan = world.cloud.put_machine({TAG: DEPLOYMENT}, age_s=86_400)
    world.ledger.set_meta(RESTORED, "from backup x")

    def reap():
        return asyncio.run(reconcile(world.fleet, who="reap", dry_run=False))

    def later():
        asyncio.run(world.clock.sleep(world.fleet.settings.orphan_grace_s + 60))

    for _ in range(3):
        assert "restored (from backup x)" in reap().report_only
        later()
    assert orphan.order_at is None
    confirm_epoch(world.fleet, who="person")
    reap()
    later()
    assert reap().report_only is None
    assert orphan.order_at is not None

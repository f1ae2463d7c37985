from datetime import UTC, datetime

import pytest

from hostler.cloud.registry import settings_models
from hostler.config.fleet_file import parse_fleet
from hostler.exporters.webhook import NotifyError
from hostler.model.lease import Event
from hostler.stores.memory import MemoryLedger
from hostler.wiring.notices import tell_people

NOW = datetime(2026, 12, 1, tzinfo=UTC)
FLEET = """\
deployment: acme
limits: {usd_per_hour: 1, usd_per_run: 1, nodes: 1}
backup: {uri: s3://b/p}
clouds: {aws: {regions: [us-east-1], image: ami-1}}
"""


@pytest.fixture
def ledger():
    made = MemoryLedger(lambda: NOW)
    made.append_events([Event(lease_id=None, who="x", what="lease.failed", why="y", at=NOW)])
    return made


def fleet(notify=""):
    return parse_fleet(FLEET + notify, "fleet.yaml", settings_models())


def test_notices_when_no_receiver_is_named_then_nobody_is_called(ledger):
    assert tell_people(ledger, fleet()) == 0


def test_notices_when_the_secret_is_not_set_then_the_variable_is_named_and_nothing_is_posted(ledger, monkeypatch):
    monkeypatch.delenv("HOOK_SECRET", raising=False)
    with pytest.raises(NotifyError, match="HOOK_SECRET"):
        tell_people(ledger, fleet("notify: {webhook_url: 'http://127.0.0.1:1/x', secret: HOOK_SECRET}\n"))


def test_notices_when_the_receiver_is_away_then_they_are_kept_for_the_next_time(ledger):
    with pytest.raises(NotifyError, match="webhook_url"):
        tell_people(ledger, fleet("notify: {webhook_url: 'http://127.0.0.1:1/x'}\n"))
    assert ledger.get_meta("notified_sequence") is None

from datetime import UTC, datetime

import pytest
from tests.exporters.receivers import HttpReceiver, SmtpReceiver

from hostler.cloud.registry import settings_models
from hostler.config.fleet_file import FleetFileError, parse_fleet
from hostler.exporters.webhook import NotifyError
from hostler.model.lease import Event
from hostler.stores.memory import MemoryLedger
from hostler.wiring.notices import channel, tell_people

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


CHANNELS = """\
notify:
  channels:
    hook: {{kind: webhook, url: '{hook}', secret: HOOK_WORD}}
    chat: {{kind: slack, secret: CHAT_ADDRESS}}
    ops: {{kind: email, host: 127.0.0.1, port: {port}, tls: none, sender: h@x.org, to: [a@x.org]}}
"""


@pytest.fixture
def receivers():
    made = HttpReceiver(), HttpReceiver(), SmtpReceiver()
    yield made
    for one in made:
        one.close()


def test_channels_when_one_is_away_then_the_others_are_told_once_and_it_is_told_later(ledger, receivers, monkeypatch):
    hook, chat, smtp = receivers
    monkeypatch.setenv("HOOK_WORD", "word")
    monkeypatch.setenv("HOSTLER_SECRET_CHAT_ADDRESS", chat.url)
    document = fleet(CHANNELS.format(hook=hook.url, port=smtp.port))
    chat.status = 500
    with pytest.raises(NotifyError, match=r"^notify\.channels\.chat: HTTP status 500$"):
        tell_people(ledger, document)
    chat.status = 200
    assert tell_people(ledger, document) == 1
    assert tell_people(ledger, document) == 0
    assert (len(hook.posts), len(chat.posts), len(smtp.mails)) == (1, 2, 1)


def test_channels_when_a_secret_is_nowhere_then_its_name_is_told(ledger, receivers):
    hook, _, smtp = receivers
    with pytest.raises(NotifyError, match="HOOK_WORD is not set"):
        tell_people(ledger, fleet(CHANNELS.format(hook=hook.url, port=smtp.port)))


def test_channels_when_airflow_holds_a_slack_token_alone_then_slacks_address_is_put_before_it():
    document = fleet("notify: {channels: {chat: {kind: slack, secret: slack_conn}}}\n")
    assert channel(document, "chat", {"slack_conn": "T0/B0/x"}.__getitem__).url == "https://hooks.slack.com/services/T0/B0/x"


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ("{kind: pigeon}", "pigeon"),
        ("{kind: slack, secret: 'https://hooks.slack.com/services/hidden'}", "secret"),
        ("{kind: email, host: h, sender: a@x.org, to: []}", "to"),
        ("{kind: email, host: h, sender: a@x.org, to: [b@x.org], user: u}", "user and secret go together"),
        ("{kind: email, host: h, tls: none, sender: a@x.org, to: [b@x.org], user: u, secret: S}", "password readable"),
        ('{kind: email, host: h, sender: "a@x.org\\nBcc: c@x.org", to: [b@x.org]}', "sender"),
        ("{kind: webhook}", "url"),
    ],
)
def test_channels_when_fleet_yaml_is_wrong_then_line_and_field_are_named_and_no_value(settings, words):
    with pytest.raises(FleetFileError, match=words) as error:
        fleet(f"notify: {{channels: {{x: {settings}}}}}\n")
    assert "fleet.yaml:5" in str(error.value)
    assert "hidden" not in str(error.value)

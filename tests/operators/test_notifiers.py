"""Notifiers, called as Airflow calls a callback."""

import json
import logging
from types import SimpleNamespace

import pytest
import yaml
from tests.exporters.receivers import HttpReceiver

from hostler_operators.notifiers import HostlerNotifier, HostlerSlackNotifier, HostlerWebhookNotifier


@pytest.fixture
def web():
    made = HttpReceiver()
    yield made
    made.close()


@pytest.fixture
def fleet_file(tmp_path, web, monkeypatch):
    path = tmp_path / "fleet.yaml"
    document = {
        "deployment": "acme",
        "limits": {"usd_per_hour": 1, "usd_per_run": 1, "nodes": 1},
        "ledger": {"url": "postgresql://u:hidden-word@127.0.0.1:9/x"},
        "backup": {"uri": "file:///x"},
        "clouds": {"aws": {"regions": ["us-east-1"], "image": "ami-1"}},
        "notify": {
            "channels": {
                "hook": {"kind": "webhook", "url": web.url, "secret": "HOOK"},
                "chat": {"kind": "slack", "secret": "CHAT"},
            }
        },
    }
    path.write_text(yaml.safe_dump(document))
    for name, value in (("HOSTLER_FLEET", str(path)), ("HOOK", "signing-word"), ("CHAT", web.url + "/hidden-token")):
        monkeypatch.setenv(name, value)
    return path


def context(**more):
    instance = SimpleNamespace(dag_id="train", run_id="r1", task_id="fit", try_number=2, log_url="http://airflow/log")
    return {"ti": instance, "dag_run": SimpleNamespace(dag_id="train", run_id="r1"), "exception": ValueError("bad"), **more}


def test_notifier_when_a_task_failed_then_every_channel_is_told_what_where_cost_and_command(fleet_file, web):
    HostlerNotifier(channels=["hook", "chat"])(context())
    row = json.loads(web.posts[0][1])["events"][0]
    assert (row["what"], row["why"], row["link"]) == ("dag.failed", "ValueError: bad", "http://airflow/log")
    assert row["evidence"] == {"dag": "train", "run": "r1", "task": "fit", "try": "2"}
    assert row["command"].startswith("hostler why ")
    assert row["cost_usd"] is None, "the ledger is away: unknown, not 0"
    assert len(web.posts) == 2


@pytest.mark.parametrize(("made", "kind"), [(HostlerSlackNotifier(), "blocks"), (HostlerWebhookNotifier(), "events")])
def test_notifier_when_of_one_kind_then_only_those_channels(fleet_file, web, made, kind):
    made(context())
    assert [kind in json.loads(body) for _, body in web.posts] == [True]


def test_notifier_when_a_message_is_a_template_then_rendered_and_no_secret_is_in_its_fields(fleet_file, web):
    made = HostlerNotifier(channels=["hook"], message="run {{ ti.run_id }} broke")
    made(context())
    assert json.loads(web.posts[0][1])["events"][0]["why"] == "run r1 broke"
    assert "word" not in str(vars(made))
    assert set(made.template_fields) == {"message"}


def test_notifier_when_a_channel_is_away_or_unknown_then_a_warning_without_secrets_and_no_failure(fleet_file, web, caplog):
    web.status = 500
    with caplog.at_level(logging.DEBUG):
        HostlerNotifier(channels=["hook", "chat", "pigeon"])(context())
    assert len(web.posts) == 2
    assert not any(word in caplog.text for word in ("hidden", "signing-word"))


def test_notifier_when_the_dag_failed_without_a_task_then_the_run_is_named(fleet_file, web):
    HostlerNotifier(channels=["hook"])({"dag_run": SimpleNamespace(dag_id="train", run_id="r1"), "reason": "timed_out"})
    assert json.loads(web.posts[0][1])["events"][0]["why"] == "timed_out"


def test_notifier_when_there_is_no_fleet_file_then_the_callback_fails_nothing(tmp_path, monkeypatch):
    monkeypatch.setenv("HOSTLER_FLEET", str(tmp_path / "none"))
    HostlerNotifier()(context())


async def test_notifier_when_awaited_then_told_as_well(fleet_file, web):
    made = HostlerNotifier(channels=["hook"])
    made.context = context()
    await made
    assert len(web.posts) == 1

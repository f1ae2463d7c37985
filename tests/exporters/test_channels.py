import json
from datetime import UTC, datetime
from decimal import Decimal

import pytest
from tests.exporters.receivers import HttpReceiver, SmtpReceiver

from hostler.exporters.channels import EmailChannel, NotifyError, SlackChannel, WebhookChannel, signature
from hostler.exporters.notice import Notice, command_for, text, title

NOTICE = Notice(
    deployment="acme",
    at=datetime(2026, 12, 1, tzinfo=UTC),
    what="lease.failed",
    why="no stock & <no> spot",
    who="airflow",
    command="hostler why abc",
    lease_id="abc",
    evidence=(("zone", "us-east-1a"),),
    cost_usd=Decimal("12.5"),
    usd_per_hour=Decimal(3),
)


@pytest.fixture
def web():
    made = HttpReceiver()
    yield made
    made.close()


@pytest.fixture
def smtp():
    made = SmtpReceiver()
    yield made
    made.close()


def mail(smtp, **changes):
    values = {
        "name": "ops",
        "host": "127.0.0.1",
        "port": smtp.port,
        "sender": "h@x.org",
        "to": ("a@x.org", "b@x.org"),
        "tls": "none",
    }
    return EmailChannel(**{**values, **changes})


def test_text_when_written_then_what_evidence_cost_and_command_are_in_it():
    assert text(NOTICE).splitlines() == [
        "lease.failed: no stock & <no> spot",
        "when: 2026-12-01T00:00:00+00:00  by: airflow",
        "lease: abc",
        "evidence: zone=us-east-1a",
        "cost: 12.50 USD so far, 3.00 USD an hour now",
        "run: hostler why abc",
    ]


def test_text_when_the_ledger_did_not_tell_then_the_cost_is_unknown_not_nothing():
    from dataclasses import replace

    assert "cost: unknown" in text(replace(NOTICE, cost_usd=None, usd_per_hour=None))


@pytest.mark.parametrize(
    ("what", "lease_id", "command"),
    [
        ("lease.failed", "abc", "hostler why abc"),
        ("reap.ending", "abc", "hostler reap --dry-run"),
        ("spending.stopped", None, "hostler resume"),
        ("prices.refused", None, "hostler prices"),
        ("other", None, "hostler status"),
    ],
)
def test_command_when_something_happened_then_the_first_thing_to_run_is_named(what, lease_id, command):
    assert command_for(what, lease_id) == command


def test_title_when_a_reason_has_lines_then_no_header_can_be_put_into_a_mail():
    from dataclasses import replace

    assert "\n" not in title([replace(NOTICE, why="x\r\nBcc: evil@x.org")])


def test_webhook_when_told_then_signed_and_with_cost_and_command(web):
    WebhookChannel(name="w", url=web.url, secret="word").send([NOTICE])
    ((headers, body),) = web.posts
    assert headers["X-Hostler-Signature"] == signature(body, "word")
    row = json.loads(body)["events"][0]
    assert (row["cost_usd"], row["usd_per_hour"], row["command"]) == ("12.50", "3.00", "hostler why abc")


def test_slack_when_told_then_markup_is_escaped_and_many_are_summed_up(web):
    SlackChannel(name="s", url=web.url).send([NOTICE] * 45)
    sent = json.loads(web.posts[0][1])
    assert "&amp; &lt;no&gt;" in sent["blocks"][0]["text"]["text"]
    assert len(sent["blocks"]) == 41
    assert sent["blocks"][-1]["text"]["text"] == "5 more: hostler status"


def test_email_when_told_then_every_receiver_gets_it(smtp):
    mail(smtp).send([NOTICE])
    ((sender, to, data),) = smtp.mails
    assert (sender, to) == ("h@x.org", ["a@x.org", "b@x.org"])
    assert "Subject: [hostler acme] lease.failed" in data
    assert "run: hostler why abc" in data


def test_email_when_one_receiver_is_refused_then_an_error(smtp):
    smtp.refuses.add("b@x.org")
    with pytest.raises(NotifyError, match=r"notify\.channels\.ops: 1 of 2"):
        mail(smtp).send([NOTICE])


def test_email_when_the_server_refuses_then_its_words_are_not_repeated(smtp):
    smtp.answer = "554 secret words"
    with pytest.raises(NotifyError, match="SMTP status 554") as error:
        mail(smtp).send([NOTICE])
    assert "secret words" not in str(error.value)


def test_email_when_the_server_offers_no_encryption_then_no_password_is_sent(smtp):
    with pytest.raises(NotifyError, match="SMTPNotSupportedError"):
        mail(smtp, tls="starttls", user="u", password="hidden").send([NOTICE])
    assert smtp.mails == []


@pytest.mark.parametrize("status", [302, 403, 500])
def test_slack_when_refused_or_sent_elsewhere_then_an_error_without_the_address(web, status):
    web.status, web.location = status, web.url + "/elsewhere"
    with pytest.raises(NotifyError, match=f"notify.channels.s: HTTP status {status}") as error:
        SlackChannel(name="s", url=web.url).send([NOTICE])
    assert "/hook" not in str(error.value)
    assert len(web.posts) == 1


@pytest.mark.parametrize(
    "url", ["file:///etc/passwd", "http://127.0.0.1:1/T0/hidden", "http://[hidden/", "http://host hidden/"]
)
def test_channel_when_the_address_is_no_good_then_an_error_without_it(url):
    with pytest.raises(NotifyError) as error:
        SlackChannel(name="s", url=url).send([NOTICE])
    assert "hidden" not in str(error.value)


def test_channel_when_shown_then_without_its_secrets():
    shown = repr(SlackChannel(name="s", url="https://hidden")) + repr(WebhookChannel(name="w", url="u", secret="hidden"))
    assert "hidden" not in shown + repr(EmailChannel(name="m", host="h", port=1, sender="s", to=("t",), password="hidden"))

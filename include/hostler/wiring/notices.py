"""From fleet.yaml's ``notify`` block to channels, and the bell: what happened since the last time goes to each of them."""

import logging
import os
from collections.abc import Callable, Iterable

from hostler.config.schema import EmailSettings, FleetFile, SlackSettings, WebhookSettings
from hostler.exporters.channels import Channel, EmailChannel, NotifyError, SlackChannel, WebhookChannel
from hostler.exporters.notice import Notice
from hostler.exporters.webhook import notify, ring
from hostler.ledger.errors import LedgerError
from hostler.ledger.port import Ledger
from hostler.wiring.settings import read_fleet_file

_log = logging.getLogger(__name__)

SLACK_SERVICES = "https://hooks.slack.com/services/"
"""What stands before a token, where a Slack connection holds the token alone."""

Secret = Callable[[str], str]


def tell_quietly(ledger: Ledger, fleet_file: FleetFile) -> None:
    """As ``tell_people``, in the midst of other work: what goes wrong is logged, and the next call tells again."""
    try:
        tell_people(ledger, fleet_file)
    except (NotifyError, LedgerError) as error:
        _log.warning("nobody could be told: %s", error)


def tell_people(ledger: Ledger, fleet_file: FleetFile | None = None, *, secret: Secret | None = None) -> int:
    """Tells every receiver of fleet.yaml what needs a person since the last time it was told.

    A receiver that is away keeps no other from being told, and is told all of it the next time.

    Args:
        secret: looks up a secret by its name where the environment has none; None: the environment only.

    Returns:
        How many events were told, summed over receivers; 0 when there is nothing new or no receiver.

    Raises:
        NotifyError: some receiver was not told; nothing was lost; the next call tells again. Names all of them.
    """
    fleet = fleet_file or read_fleet_file()
    told, problems = 0, []
    for tell in _bells(ledger, fleet, secret):
        try:
            told += tell()
        except NotifyError as error:
            problems.append(str(error))
    if problems:
        raise NotifyError("; ".join(problems))
    return told


def _bells(ledger: Ledger, fleet: FleetFile, secret: Secret | None) -> Iterable[Callable[[], int]]:
    if fleet.notify.webhook_url is not None:
        yield lambda: _old_webhook(ledger, fleet)
    for name in fleet.notify.channels:
        yield lambda name=name: ring(ledger, channel(fleet, name, secret), deployment=fleet.deployment)  # type: ignore[misc]


def _old_webhook(ledger: Ledger, fleet: FleetFile) -> int:
    """Rings ``notify.webhook_url``."""
    word = None
    if fleet.notify.secret is not None:
        word = os.environ.get(fleet.notify.secret)
        if not word:
            raise NotifyError(f"notify.secret: environment variable {fleet.notify.secret} is not set")
    return notify(ledger, deployment=fleet.deployment, url=str(fleet.notify.webhook_url), secret=word)


def channel(fleet: FleetFile, name: str, secret: Secret | None = None) -> Channel:
    """Returns a channel of ``notify.channels``, its secrets looked up now.

    Raises:
        NotifyError: fleet.yaml has no such channel, or its secret is nowhere; the text names it, and never its value.
    """
    settings = fleet.notify.channels.get(name)
    if settings is None:
        known = ", ".join(fleet.notify.channels) or "none"
        raise NotifyError(f"notify.channels.{name}: fleet.yaml has {known}")
    where = f"notify.channels.{name}"
    if isinstance(settings, WebhookSettings):
        word = _value(settings.secret, where, secret) if settings.secret else None
        return WebhookChannel(name=name, url=str(settings.url), secret=word, called=where)
    if isinstance(settings, SlackSettings):
        address = _value(settings.secret, where, secret)
        return SlackChannel(name=name, url=address if "://" in address else SLACK_SERVICES + address.lstrip("/"))
    assert isinstance(settings, EmailSettings)  # noqa: S101 - the schema knows three kinds
    return EmailChannel(
        name=name,
        host=settings.host,
        port=settings.port,
        sender=settings.sender,
        to=settings.to,
        tls=settings.tls,
        user=settings.user,
        password=_value(settings.secret, where, secret) if settings.secret else None,
    )


def tell_now(fleet: FleetFile, names: Iterable[str], notice: Notice, secret: Secret | None = None) -> tuple[str, ...]:
    """Tells channels one notice, now and once. Returns what went wrong, a line a channel; empty when all were told."""
    problems = []
    for name in names:
        try:
            channel(fleet, name, secret).send([notice])
        except NotifyError as error:
            problems.append(str(error))
    return tuple(problems)


def _value(name: str, where: str, secret: Secret | None) -> str:
    """Returns a secret: the environment variable of its name, ``HOSTLER_SECRET_<NAME>``, or what ``secret`` finds."""
    long_name = f"HOSTLER_SECRET_{name.upper().replace('-', '_').replace('.', '_')}"
    found = os.environ.get(name) or os.environ.get(long_name)
    if found:
        return found
    if secret is not None:
        try:
            return secret(name)
        except KeyError:
            pass
        except ConnectionError as error:
            raise NotifyError(f"{where}.secret: {error}") from None
    raise NotifyError(f"{where}.secret: {name} is not set: an environment variable, or in Airflow a connection or a variable")

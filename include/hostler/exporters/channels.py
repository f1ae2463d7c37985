"""Ways to tell a person: email by SMTP, a Slack incoming webhook, a plain signed webhook. One port, standard library only.

Addresses and passwords that are secret are in no error and no log: an error names the channel and the kind of failure.
"""

import hashlib
import hmac
import http.client
import json
import smtplib
import ssl
import urllib.error
import urllib.request
from collections.abc import Sequence
from dataclasses import dataclass, field
from email.message import EmailMessage
from typing import Final, Literal, Protocol

from hostler.exporters.notice import Notice, document, text, title

TIMEOUT_S: Final = 10.0
_SLACK_TEXT: Final = 2900
"""Letters of a section's text; Slack takes 3000. Source: Slack Block Kit reference, section block."""

_SLACK_BLOCKS: Final = 40
"""Slack takes 50 blocks a message. Source: as above."""


class NotifyError(Exception):
    """The receiver could not be reached or refused: the watermark stays, the next call tells again."""


class Channel(Protocol):
    """One receiver."""

    @property
    def name(self) -> str:
        """As fleet.yaml calls it."""
        ...

    def send(self, notices: Sequence[Notice]) -> None:
        """Tells all of them, at least one, in one message. Raises NotifyError: none was told, as far as we know."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookChannel:
    """Posts a JSON document. ``secret``: signs it; None posts it unsigned. ``called``: what errors call it."""

    name: str
    url: str = field(repr=False)
    secret: str | None = field(default=None, repr=False)
    called: str = "url"

    def send(self, notices: Sequence[Notice]) -> None:
        """See ``Channel``."""
        body = document(notices)
        headers = {"Content-Type": "application/json", "User-Agent": "hostler"}
        if self.secret is not None:
            headers["X-Hostler-Signature"] = signature(body, self.secret)
        post(self.url, body, headers, what=self.called)


@dataclass(frozen=True, slots=True, kw_only=True)
class SlackChannel:
    """Posts to a Slack incoming webhook, whose address is a secret."""

    name: str
    url: str = field(repr=False)

    def send(self, notices: Sequence[Notice]) -> None:
        """See ``Channel``."""
        shown = [_section(text(item)) for item in notices[:_SLACK_BLOCKS]]
        left = len(notices) - len(shown)
        more = [_section(f"{left} more: hostler status")] if left else []
        body = json.dumps({"text": _escaped(title(notices)), "blocks": [*shown, *more]}).encode()
        post(self.url, body, {"Content-Type": "application/json", "User-Agent": "hostler"}, what=f"notify.channels.{self.name}")


@dataclass(frozen=True, slots=True, kw_only=True)
class EmailChannel:
    """Sends plain mail. ``tls``: ``starttls``, ``tls`` from the first byte, or ``none`` (then no password is sent).

    Attributes:
        user, password: None logs in nowhere.
    """

    name: str
    host: str
    port: int
    sender: str
    to: tuple[str, ...]
    tls: Literal["starttls", "tls", "none"] = "starttls"
    user: str | None = None
    password: str | None = field(default=None, repr=False)

    def send(self, notices: Sequence[Notice]) -> None:
        """See ``Channel``. All receivers, or an error: who got it twice was told once too often, nobody too little."""
        mail = EmailMessage()
        mail["Subject"], mail["From"], mail["To"] = title(notices), self.sender, ", ".join(self.to)
        mail.set_content("\n\n".join(text(item) for item in notices) + "\n")
        where = f"notify.channels.{self.name}"
        try:
            with self._server() as server:
                refused = server.send_message(mail)
        except smtplib.SMTPResponseException as error:
            # The server's words may quote what was sent to it.
            raise NotifyError(f"{where}: {type(error).__name__}, SMTP status {error.smtp_code}") from None
        except (smtplib.SMTPException, OSError) as error:
            raise NotifyError(f"{where}: {type(error).__name__}") from None
        if refused:
            raise NotifyError(f"{where}: {len(refused)} of {len(self.to)} receivers were refused")

    def _server(self) -> smtplib.SMTP:
        context = ssl.create_default_context()
        if self.tls == "tls":
            server: smtplib.SMTP = smtplib.SMTP_SSL(self.host, self.port, timeout=TIMEOUT_S, context=context)
        else:
            server = smtplib.SMTP(self.host, self.port, timeout=TIMEOUT_S)
        try:
            if self.tls == "starttls":
                server.starttls(context=context)
            if self.user is not None and self.password is not None:
                server.login(self.user, self.password)
        except BaseException:
            server.close()
            raise
        return server


def signature(body: bytes, secret: str) -> str:
    """Returns the value of ``X-Hostler-Signature`` for a body."""
    return "sha256=" + hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()


def post(url: str, body: bytes, headers: dict[str, str], *, what: str) -> None:
    """Posts; ``what`` names the receiver in errors, and its address is never in them. Raises NotifyError."""
    if not url.startswith(("http://", "https://")):
        raise NotifyError(f"{what}: allowed are http:// and https://")
    try:
        request = urllib.request.Request(url, data=body, headers=headers, method="POST")  # noqa: S310  # checked above
        with urllib.request.build_opener(_NoRedirect).open(request, timeout=TIMEOUT_S) as answer:
            answer.read(1)
    except urllib.error.HTTPError as error:
        with error:
            raise NotifyError(f"{what}: HTTP status {error.code}") from None
    except (OSError, ValueError, http.client.HTTPException) as error:
        reason = getattr(error, "reason", None)
        raise NotifyError(f"{what}: {type(reason or error).__name__}") from None


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """A signed document goes where fleet.yaml says and nowhere else."""

    def redirect_request(self, *_arguments: object) -> None:
        """Follows none: the answer is then an error."""


def _section(words: str) -> dict[str, object]:
    return {"type": "section", "text": {"type": "mrkdwn", "text": _escaped(words)[:_SLACK_TEXT]}}


def _escaped(words: str) -> str:
    """Escapes what Slack reads as markup. Source: Slack, "Formatting text for app surfaces", escaping text."""
    return words.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")

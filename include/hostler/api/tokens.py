"""The door of the page that runs by itself: one token from a file that only its owner can read."""

import base64
import binascii
import os
import secrets
import stat
from pathlib import Path
from typing import Final

from starlette.requests import Request

from hostler.api.callers import Caller, NotSignedInError, read_all

MIN_LENGTH: Final = 24
"""Characters of the shortest token that is taken."""


class TokenFileError(Exception):
    """The token file cannot be used; the text names the file and what is allowed, never what is in it."""


def read_token(path: Path) -> str:
    """Returns the token of a file; a file that is not there is made, with a new token and mode 0600.

    Raises:
        TokenFileError: others may read it, it is no file, or what it holds is too short.
    """
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return _token_of(path)
    except OSError as error:
        raise TokenFileError(f"token file {path}: cannot be made: {error.strerror}") from None
    token = secrets.token_urlsafe(32)
    with os.fdopen(descriptor, "w") as file:
        file.write(token + "\n")
    return token


def _token_of(path: Path) -> str:
    try:
        mode = path.stat().st_mode
        if not stat.S_ISREG(mode) or mode & 0o077:
            raise TokenFileError(f"token file {path}: allowed is a file of mode 0600, found {stat.filemode(mode)}")
        token = path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError as error:
        raise TokenFileError(f"token file {path}: cannot be read: {error.strerror}") from None
    if len(token) < MIN_LENGTH or not token.isascii() or not token.isprintable() or " " in token:
        raise TokenFileError(f"token file {path}: allowed is one line of {MIN_LENGTH} or more printable characters, no space")
    return token


class TokenDoor:
    """Takes the token as ``Authorization: Bearer``, or as the password of HTTP Basic, which a browser asks for by itself.

    Args:
        token: what must be shown.
    """

    challenge = 'Basic realm="Hostler: any user name, the page\'s token as password", charset="UTF-8"'

    def __init__(self, token: str) -> None:
        self._token = token.encode()

    async def admit(self, request: Request) -> Caller:
        """See ``Door``; whoever has the token may see everything."""
        shown = _shown(request.headers.get("authorization", ""))
        if not secrets.compare_digest(shown, self._token):
            raise NotSignedInError("no valid token: send it as a bearer token, or as the password of HTTP Basic")
        return Caller(name="token", readable=read_all)


def _shown(header: str) -> bytes:
    """Returns the token in the header; empty when there is none."""
    kind, _, value = header.partition(" ")
    if kind.lower() == "bearer":
        return value.strip().encode()
    if kind.lower() != "basic":
        return b""
    try:
        return base64.b64decode(value, validate=True).partition(b":")[2]
    except (binascii.Error, ValueError):
        return b""

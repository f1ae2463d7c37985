"""Pages of lists. A token is opaque to callers; it holds a place, so that a list that grows in between loses nothing."""

import base64
import binascii
from collections.abc import Sequence
from typing import Any, TypeVar

from hostler_sandbox.aws.errors import Ec2Error

T = TypeVar("T")


def write_token(place: int) -> str:
    """Returns the token of a place."""
    return base64.urlsafe_b64encode(f"place:{place}".encode()).decode()


def read_token(token: str) -> int:
    """Returns the place of a token. Raises Ec2Error for anything that is not ours."""
    try:
        word, _, place = base64.urlsafe_b64decode(token.encode()).decode().partition(":")
        if word != "place":
            raise ValueError(word)
        return int(place)
    except (ValueError, binascii.Error):
        raise Ec2Error("InvalidNextToken", f"The token '{token}' is invalid") from None


def page(items: Sequence[Any], size: int | None, token: str | None) -> tuple[Sequence[Any], str | None]:
    """Returns the page that a token asks for, and the next token; a size of None or 0 means everything."""
    start = read_token(token) if token else 0
    if not size:
        return items[start:], None
    return items[start : start + size], write_token(start + size) if start + size < len(items) else None

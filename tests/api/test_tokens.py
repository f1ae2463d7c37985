import base64
import stat

import pytest
from starlette.requests import Request

from hostler.api.callers import NotSignedInError
from hostler.api.tokens import TokenDoor, TokenFileError, read_token

TOKEN = "made-up-token-of-enough-length"


def basic(text):
    return "Basic " + base64.b64encode(text.encode()).decode()


async def admit(header):
    headers = [] if header is None else [(b"authorization", header.encode("latin-1"))]
    return await TokenDoor(TOKEN).admit(Request({"type": "http", "headers": headers}))


@pytest.mark.parametrize("header", [f"Bearer {TOKEN}", f"bearer {TOKEN}", basic(f"x:{TOKEN}"), basic(f":{TOKEN}")])
async def test_door_when_the_token_is_shown_then_the_caller_sees_all(header):
    caller = await admit(header)
    assert caller.readable(frozenset({"a", "b"})) == {"a", "b"}


@pytest.mark.parametrize(
    "header",
    [None, "", "Bearer", "Bearer ", f"Bearer {TOKEN}x", f"Bearer {TOKEN[:-1]}", TOKEN, f"Digest {TOKEN}", "Basic", "Basic ###",
     "Basic é", basic(TOKEN), basic(f"{TOKEN}:"), basic("x:"), f"Bearer {TOKEN}\u00e9"],
)  # fmt: skip
async def test_door_when_the_token_is_not_shown_then_refused_without_a_word_of_it(header):
    with pytest.raises(NotSignedInError) as error:
        await admit(header)
    assert TOKEN not in str(error.value)


def test_token_when_there_is_no_file_then_one_is_made_for_its_owner_only(tmp_path):
    path = tmp_path / "token"
    token = read_token(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert len(token) >= 40
    assert read_token(path) == token
    assert read_token(tmp_path / "other") != token


@pytest.mark.parametrize(("mode", "text"), [(0o640, TOKEN), (0o604, TOKEN), (0o600, "short"), (0o600, ""), (0o600, "a b" * 20)])
def test_token_when_the_file_is_open_or_empty_then_refused_by_name(tmp_path, mode, text):
    path = tmp_path / "token"
    path.write_text(text)
    path.chmod(mode)
    with pytest.raises(TokenFileError, match=str(path)) as error:
        read_token(path)
    assert not text or text not in str(error.value)


def test_token_when_its_folder_is_not_there_then_refused_by_name(tmp_path):
    with pytest.raises(TokenFileError, match="cannot be made"):
        read_token(tmp_path / "no" / "token")

"""Turns whatever a cloud, an SDK, a command or a log gave into evidence: one flat text, its codes, its HTTP status.

Nested JSON strings, quoting, line breaks and log stamps differ by wrapper and say nothing about the error, so they are taken away:
after that, one pattern meets the code at any depth. Everything here is linear in the text, whose length is bounded.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from hostler.catalog.error_rules.words import Effect, either

_HEAD: Final = 20_480
_TAIL: Final = 12_288
"""Characters kept of a longer text: wrappers put the cause first (codes) or last (a traceback's last line)."""

_VALUES: Final = 20_000
"""Values that are read of a document given as such."""

_ESCAPED_CHAR: Final = re.compile(r"(?<!\\)\\+u([0-9a-fA-F]{4})")
_ESCAPED_LINE: Final = re.compile(r"(?<!\\)\\+[nr]")
_ESCAPED_TAB: Final = re.compile(r"(?<!\\)\\+t")
"""Each starts at the first of a row of backslashes, however long: searching from every one of them would take for ever."""
_STAMP: Final = re.compile(
    r"(?m)^[ \t]*(?:[IWEFD] ?)?"
    r"(?:\[?\d{4}[-/]\d\d[-/]\d\d[T ][\d:.,]{5,20}(?:Z|[+-]\d\d:?\d\d)?\]?|\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d{1,9})?)[ \t]+"
    r"(?:\[?(?:DEBUG|INFO|WARN(?:ING)?|ERROR|FATAL|CRITICAL)\]?[ \t]*)?"
    r"(?:[\w./-]{1,80}\.(?:py|go|java|rs|ts):\d+[\])]?[ \t]*)?(?:--?[ \t]+)?(?=\S)"
)
_FRAMES: Final = str.maketrans({"\\": "", "│": "", "╷": "", "╵": "", "’": "'"})  # noqa: RUF001 - as portals set it
"""Backslashes that are left, the frames that Terraform draws, and typographic quotes."""
_URL: Final = re.compile(r"(?i)\b[a-z][a-z0-9+.-]{1,10}://[^\s\"'<>)\]]+")
_RETRIES_SPENT: Final = re.compile(
    r"(?i)(?:failed to get rate limit token,? ?)?retry quota exceeded(?:, \d+ available, \d+ requested)?"
)
_MAX_ATTEMPTS: Final = re.compile(r"(?i)exceeded maximum number of attempts, \d+,?|\(reached max retries: \d+\)")

TOKEN: Final = r"[A-Za-z][A-Za-z0-9]*(?:[._-][A-Za-z0-9]+)*"  # noqa: S105 - a pattern of words, no secret
_TOKENS: Final = re.compile(rf"(?<![A-Za-z0-9]){TOKEN}")
_BEFORE_CODE: Final = either(
    r"\b(?:error)?[ _-]?(?:code|reason|status|type)s?['\"]?\s*[:=]\s*['\"(]?",
    r"\bapi error ",
    r"\(",
    r"^",
    r": ",
    r"- ",
    r"[\"']",
)
_AFTER_CODE: Final = r"(?=['\")]|\s*[:,}]|\s-\s|$)"
_IN_CODE_PLACE: Final = re.compile(
    rf"(?i){_BEFORE_CODE}({TOKEN}){_AFTER_CODE}|\b(?:error|err)?[ _-]?code['\"]?\s*[:=]\s*['\"(]?({TOKEN})"
)

_STATUS_NAME: Final = either(
    r"\bstatus[ _-]?code['\"]?",
    r"\bhttp(?:[ _-]?(?:status|error|response)){0,3}(?:[ _-]?code)?['\"]?",
    r"\bstatus['\"]?",
    r"\bcode['\"]?",
    r"\berror",
    r"\bresponse",
    r"\bexception",
    r"\bfailed with code",
    r"(?:exhausted|forbidden|conflict|notfound|unauthorized|requests|badrequest|unavailable)",
)
_STATUS_WORDS: Final = either(
    r"client error",
    r"server error",
    r"too many",
    r"forbidden",
    r"unauthorized",
    r"conflict",
    r"not found",
    r"bad request",
    r"internal",
    r"service unavailable",
    r"bad gateway",
    r"gateway",
    r"quota exceeded",
)
_STATUS: Final = re.compile(
    rf"(?i){_STATUS_NAME}\s*[:=]?\s*['\"(]?([1-5]\d\d)\b(?!\.\d)|<\w{{1,40}} ([45]\d\d) |\b([45]\d\d) {_STATUS_WORDS}"
)

_DELETES: Final = either(
    r"delete",
    r"terminate(?!_on)",
    r"destroy",
    r"release",
    r"remov",
    r"deallocat",
    r"discontinue",
    r"tear.?down",
    r"undeploy",
    r"\bstop",
    r"\brm\b",
    r"detach",
    r"cancel",
)
_STARTS: Final = either(
    r"startinstance",
    r"(?:instance|machine|vm|node)s?[./_ -]start",
    r"vm start",
    r"start ?(?:vm|node|virtual|instance)",
    r"\bstart$",
    r"resume",
    r"power ?on",
)
_READS: Final = either(
    r"describe",
    r"\bget|[._]get",
    r"list",
    r"metadata|imds|scheduledevents",
    r"\bread|\bpoll|\bwait|\bshow",
    r"status|audit|event",
)
_CREATES: Final = either(
    r"create|insert|launch|deploy|provision", r"run", r"scale|fleet|allocat", r"put|write", r"request|rent|purchase|order"
)
_EFFECTS: Final[tuple[tuple[re.Pattern[str], Effect], ...]] = (
    (re.compile(_DELETES, re.IGNORECASE), "delete"),
    (re.compile(_STARTS, re.IGNORECASE), "start"),
    (re.compile(_READS, re.IGNORECASE), "read"),
    (re.compile(_CREATES, re.IGNORECASE), "create"),
)
_CALLED: Final = re.compile(
    r"(?i)when calling the (\w{1,60}) operation|operation error [\w ]{1,60}: (\w{1,60})"
    r"|\(gcloud(?:\.[\w-]{1,40}){1,6}?\.([\w-]{1,40})\)"
    r"|client#(\w{1,60}):|performing (\w{1,60}):"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """What is known of one error.

    Attributes:
        text: flat, without web addresses. full: flat, with them. codes: words that stand where a code stands, in order.
        tokens: every word that may be a code, lower case, in order. status: of HTTP; 0 when none is told.
        has_spent_retries: the SDK gave up trying again, which hides or adds nothing about the cause.
    """

    cloud: str
    call: str
    effect: Effect
    text: str
    full: str
    codes: tuple[str, ...]
    tokens: tuple[str, ...]
    status: int
    has_spent_retries: bool = False


def read(cloud: str, call: str, raw: object) -> Evidence:
    """Returns the evidence in a text (or bytes, or a document) of any shape and length."""
    full = flatten(text_of(raw))
    text = _URL.sub(" ", full)
    bare = _MAX_ATTEMPTS.sub(" ", _RETRIES_SPENT.sub(" ", text))
    found = _STATUS.search(text)
    return Evidence(
        cloud=cloud,
        call=call,
        effect=effect_of(call, full),
        text=bare,
        full=full,
        codes=tuple(first or second for first, second in _IN_CODE_PLACE.findall(bare)),
        tokens=tuple(word.lower() for word in _TOKENS.findall(bare)),
        status=int(next(group for group in found.groups() if group)) if found else 0,
        has_spent_retries=bool(_RETRIES_SPENT.search(text)),
    )


def effect_of(call: str, text: str = "") -> Effect:
    """Returns what a call does to the cloud, from its name, else from the operation that the text names."""
    called = _CALLED.search(text)
    for name in (call, next((group for group in called.groups() if group), "") if called else ""):
        for pattern, effect in _EFFECTS:
            if pattern.search(name):
                return effect
    return "unknown"


def flatten(text: str) -> str:
    """Returns the text on one line, without escapes, log stamps and repeated blanks."""
    if len(text) > _HEAD + _TAIL:
        text = f"{text[:_HEAD]} {text[-_TAIL:]}"
    text = _ESCAPED_CHAR.sub(lambda found: chr(int(found.group(1), 16)), text)
    text = _ESCAPED_TAB.sub(" ", _ESCAPED_LINE.sub("\n", text))
    text = _STAMP.sub("", text.translate(_FRAMES))
    for entity, char in (
        ("&quot;", '"'),
        ("&#34;", '"'),
        ("&apos;", "'"),
        ("&#39;", "'"),
        ("&lt;", "<"),
        ("&gt;", ">"),
        ("&amp;", "&"),
    ):
        text = text.replace(entity, char)
    return " ".join(text.split())


def told(text: str) -> str:
    """Returns a text as it may be shown: flat, without what must not be told, cut to a bearable length."""
    return " ".join(_NOT_TOLD.sub("", " ".join(text.split())).split())[:_TOLD]


_NOT_TOLD: Final = re.compile(r"\s*Encoded authorization failure message:.*|\b(?:AKIA|ASIA|AROA|LTAI)[A-Za-z0-9]{12,}\b")
"""Amazon's encoded message is long and of use to nobody here; access key ids of Amazon and Alibaba stay out of logs."""

_TOLD: Final = 600


def text_of(raw: object) -> str:
    """Returns any value as text; of a document, its keys and values."""
    if isinstance(raw, str):
        return raw
    if isinstance(raw, (bytes, bytearray)):
        return bytes(raw).decode("utf-8", "replace")
    if isinstance(raw, (Mapping, list, tuple)):
        return _document(raw)
    return "" if raw is None else str(raw)[: _HEAD + _TAIL]


def _document(raw: object) -> str:
    """Returns a document as text like JSON's. Not by json.dumps: a deep one would exhaust the stack."""
    said: list[str] = []
    todo: list[object] = [raw]
    while todo and len(said) < _VALUES:
        value = todo.pop()
        if isinstance(value, _Said):
            said.append(value.text)
        elif isinstance(value, Mapping):
            todo.append(_Said("}"))
            for key, item in reversed(list(value.items())):
                todo += [_Said(","), item, _Said(f'"{key}":')]
            todo.append(_Said("{"))
        elif isinstance(value, (list, tuple)):
            todo.append(_Said("]"))
            for item in reversed(value):
                todo += [_Said(","), item]
            todo.append(_Said("["))
        else:
            said.append(f'"{value}"' if isinstance(value, str) else str(value))
    return " ".join(said)


@dataclass(frozen=True, slots=True)
class _Said:
    """A mark between values, already text."""

    text: str

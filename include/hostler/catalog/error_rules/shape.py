"""Rules of shape that hold at every cloud, ours or not: how codes of one kind are spelled, what a rate is. Texts: ``texts``.

They meet a new spelling of a known error, and the errors of clouds that we have no table for.
"""

import re
from typing import Final

from hostler.catalog.error_rules.words import Meaning, Rule, Source, either, row
from hostler.cloud.errors import AnswerLostError, NodeNotFoundError, SpotUnavailableError

_READ_ON: Final = "2026-12-01"
_SHAPE: Final = Source("shape of the codes and texts in this package's tables", _READ_ON)
_GO_SDK: Final = Source("aws-sdk-go-v2 aws/ratelimit, QuotaExceededError; treeverse/lakeFS#6621", _READ_ON)

RATE: Final = row("throttle_backoff", "account+region", _SHAPE)
QUOTA: Final = row("fatal_quota", "region", _SHAPE)
STOCK: Final = row("next_zone", "zone+type", _SHAPE)
DENIED: Final = row("fatal_auth", "account", _SHAPE)
WRONG: Final = row("fatal_config", "request", _SHAPE)
LOST: Final = row("retry_same_zone_later", "region", _SHAPE, error=AnswerLostError)
NOT_FOUND: Final = row("retry_same_zone_later", "instance", _SHAPE, error=NodeNotFoundError)
BUSY: Final = row("teardown_retry", "instance", _SHAPE)
ADOPT: Final = row("adopt_existing", "instance", _SHAPE)
OWN_RETRIES: Final = row("throttle_backoff", "client", _GO_SDK, hints={"own_retries_spent": True})

CODE_FAMILIES: Final = (
    # Order counts: a quota's text speaks of capacity ("more vCPU capacity than your current limit").
    (re.compile(r"(?i)throttl|rate_?limit|request_?limit|request_?rate|too_?many_?requests|rate_?exceeded"), RATE),
    (
        re.compile(
            r"(?i)^(?:un)?auth|access_?denied|permission_?denied|not_?authori[sz]ed|not_?authenticated|expired_?token|credential|signature"
            r"|balance|arrear|insufficient_?funds|payment|account_?status|invalid[-_]?api[-_]?key"
        ),
        DENIED,
    ),
    (re.compile(r"(?i)(?:limit|quota|count)[._-]?(?:exceed|reached|failure)"), QUOTA),
    (
        re.compile(
            r"(?i)capacity|out[._-]?of[._-]?(?:resource|stock)|pool_?exhausted|no_?stock|stock_?out|sold_?out|allocation_?failed"
            r"|not_?enough_?resource|lack_?resource|resource_?unavailable"
        ),
        STOCK,
    ),
    (re.compile(r"(?i)already_?exists?"), ADOPT),
)
"""How codes of one kind are spelled, where a code stands; met in order."""

WRONG_FAMILY: Final = re.compile(r"^(?:Invalid|Malformed|Missing|Unknown|Unsupported)(?![a-z])")
"""Codes of wrong orders: believed when nothing else in the answer says more ("InvalidAccount.InsufficientBalance")."""

WORD_FAMILIES: Final = (
    (
        re.compile(r"throttling|ratelimitexceeded|requestlimitexceeded|toomanyrequests|rate_limit_exceeded|too_many_requests"),
        RATE,
    ),
    (re.compile(r"spot\w*(?:limit|count|quota)_?exceeded"), QUOTA.with_(scope="region+spot", error=SpotUnavailableError)),
    (re.compile(r"(?:limit|quota)[._-]?exceed(?:ed)?(?![a-z])|countlimitreached|quotafailure"), QUOTA),
    (
        re.compile(
            r"insufficient[-_]?\w*capacity|resource_pool_exhausted|allocation_?failed|\.nostock|_stockout|out\.of\.resources"
            r"|notenoughresource|lackresource|no_?capacity"
        ),
        STOCK,
    ),
    (
        re.compile(r"unauthori[sz]ed_?operation|access_?denied(?:exception)?|authori[sz]ation_?failed|authentication_?failed"),
        DENIED,
    ),
)
"""As above for words anywhere in the text, which must therefore be unmistakable; in lower case."""

_UNITS: Final = r"(?:second|sec|minute|min|hour|day|\d+ seconds)s?"
_RATE_TEXT: Final = either(
    r"throttl",
    r"too many requests",
    r"(?:request|call|api) ?rate",
    r"rate (?:limit )?(?:is |was |has been )?exceeded",
    r"rate[ -]?limit",
    r"requests? limit exceeded",
    r"slow ?down",
    r"flow control",
    rf"(?:requests?|queries|calls|operations|mutations|reads|writes)(?: \w{{1,20}}){{0,3}} per (?:\w{{1,20}} ){{0,3}}?{_UNITS}",
    r"requests? per \d+ seconds",
    r"number of ['\w]{0,20} ?requests .{0,300}exceeded",
    r"concurrent operations? (?:limit|quota)",
    r"qps (?:limit|quota)",
    r"requests? (?:limit|quota) (?:has been |is )?(?:exceeded|reached)",
)
_LIMIT_ZERO: Final = (
    r"(?:quota_limit_value['\"]?[,:]? ?(?:value: ?)?|\blimit['\"]?[:=]? |\blimit['\"]?[:=]|\blimit of )"
    r"['\"]?0(?:\.0+)?(?![\d.]*\d)"
)

FIRST: Final = (
    Rule(
        text=_RATE_TEXT,
        also=_LIMIT_ZERO,
        then=row("fatal_quota", "project", Source("google-gemini/deprecated-generative-ai-python#206", _READ_ON)),
    ),
    Rule(text=_RATE_TEXT, then=RATE),
)
"""Before any table. A rate with a limit of 0 never lets a call through: that is a quota."""

_ZONELESS: Final = frozenset(
    {
        "lambda",
        "runpod",
        "fluidstack",
        "verda",
        "datacrunch",
        "paperspace",
        "cudo",
        "nebius",
        "hyperstack",
        "scaleway",
        "digitalocean",
        "vultr",
    }
)
"""Clouds whose finest place is a region or data centre: there is no other zone to try. Source: their public API references."""


def without_zones(cloud: str, meaning: Meaning) -> Meaning:
    """Returns the meaning with the next place that the cloud has: a region where there are no zones."""
    if meaning.action == "next_zone" and cloud in _ZONELESS:
        return meaning.with_(action="next_region", scope="region+type")
    return meaning

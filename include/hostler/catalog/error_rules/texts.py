"""What texts of one kind say, at any cloud: the last resort before the HTTP status, met in order."""

from typing import Final

from hostler.catalog.error_rules.shape import ADOPT, BUSY, DENIED, LOST, NOT_FOUND, QUOTA, STOCK, WRONG
from hostler.catalog.error_rules.words import Effect, Rule, either
from hostler.cloud.errors import SpotUnavailableError

_MAY_CREATE: Final[frozenset[Effect]] = frozenset({"create", "start", "unknown"})
_DELETE: Final[frozenset[Effect]] = frozenset({"delete"})
_UNKNOWN: Final[frozenset[Effect]] = frozenset({"unknown"})
_LOOKS: Final[frozenset[Effect]] = frozenset({"read", "delete"})

_ENDED: Final = either(
    r"deleted?",
    r"terminated?",
    r"discontinued?",
    r"destroy(?:ed)?",
    r"removed?",
    r"released?",
    r"stop(?:ped)?",
    r"detach(?:ed)?",
    r"deallocated?",
    r"shut ?down",
)
_CANNOT: Final = r"(?:can ?not|can't|could not|couldn't|unable to|refus\w{1,4} to|not allowed to|may not)(?: be)?"
_NO: Final = either(
    r"not (?:have )?(?:enough|sufficient)",
    r"insufficient",
    r"no",
    r"no more",
    r"no(?: more)? available",
    r"do(?:es)? not have",
    r"lack of",
    r"out of",
    r"zero",
    r"exhausted",
)
_GOODS: Final = (
    r"(?:[\w.-]{1,30} ){0,4}?"
    r"(?:capacity|gpus?|instances?|machines?|hosts?|nodes?|resources|offers?|inventory|stock|accelerators?|hardware|vms?|servers?)\b"
)
_PLACE: Final = r"(?:region|location|data ?cent(?:er|re))"
_ALL_GONE: Final = r"(?:no longer|not currently|currently not|not|un) ?available"

TEXTS: Final = (
    Rule(text=rf"{_CANNOT} {_ENDED}|failed to {_ENDED}", effects=_DELETE, then=BUSY),
    Rule(
        text=either(
            r"\bin use\b",
            r"still (?:attached|allocated|being|in|provisioning|starting|creating)",
            r"being (?:created|provisioned|deleted|updated|used)",
            r"\bbusy\b",
            r"\bdepend(?:s|ent|ency|encies)\b",
            r"protect(?:ed|ion)",
            r"\block(?:ed|s)?\b",
            r"conflict",
            r"forbidden_?action",
            r"try again",
            r"(?:incorrect|invalid|wrong) (?:instance )?stat(?:e|us)",
            r"not in (?:a )?(?:valid |the right )?state",
            r"in progress",
        ),
        effects=_DELETE,
        then=BUSY,
    ),
    Rule(text=rf"{_CANNOT} {_ENDED} .{{0,40}}(?:provision|creat|start|pending|instance)", effects=_UNKNOWN, then=BUSY),
    Rule(
        text=either(
            r"already exists?\b",
            r"already (?:been )?(?:created|taken)",
            r"already in use by (?:another|an existing)",
            r"duplicate (?:name|request|entry)",
            r"\bname .{0,60}is (?:already )?taken",
        ),
        then=ADOPT,
    ),
    Rule(
        text=either(
            r"(?:insufficient|not (?:have )?enough|low|no|negative|lack of) ?(?:account )?(?:balance|funds?|credits?|money|payment)",
            r"payment (?:required|method|failed)",
            r"balance .{0,40}(?:not enough|too low|insufficient)",
            r"lack of balance|lacks? (?:credits?|funds?|balance)",
            r"\bbilling\b",
            r"past due|overdue",
            r"account .{0,40}(?:suspended|blocked|banned|disabled)",
        ),
        then=DENIED,
    ),
    Rule(
        text=r"\bspot (?:instance |vm )?(?:quota|limit|count).{0,40}(?:exceed|reach)|(?:exceed|reach).{0,40}\bspot (?:quota|limit)",
        then=QUOTA.with_(scope="region+spot", error=SpotUnavailableError),
    ),
    Rule(
        text=either(
            r"(?:quota|\blimits?)\b.{0,80}(?:exceed|exhausted|reached|allows|insufficient|not enough)",
            r"(?:exceed|exhaust|reach|\bhit)\w{0,6}\b.{0,60}(?:quota|\blimits?)\b",
            r"maximum (?:number|amount|count) of",
            r"\blimit of \d+",
            r"insufficient .{0,40}quota",
            r"over (?:your |the )?quota",
        ),
        unless=r"(?:time|character|size|length|price|name) limit",
        then=QUOTA,
    ),
    Rule(
        text=r"(?:\bbid|price).{0,60}(?:too low|lower than|below|less than)|\boutbid\b",
        then=QUOTA.with_(action="switch_capacity_type", scope="zone+type+spot"),
    ),
    Rule(
        text=r"(?:service|server|api|endpoint|system|backend)s? (?:is |are )?(?:currently |temporarily )?unavailable",
        then=LOST,
    ),
    Rule(
        text=r"\bno (?:matching |suitable )?(?:instance|machine|vm|node) ?types? .{0,40}(?:satisf|match|fulfil|meet|met\b)",
        effects=_MAY_CREATE,
        then=STOCK.with_(action="next_instance_type", scope="region+type"),
    ),
    Rule(
        text=either(
            rf"\b{_NO} {_GOODS}.{{0,120}}\b(?:in|for) (?:the |this |any |your |that )?(?:[\w-]{{1,20}} )?{_PLACE}",
            rf"(?:un|not )available in (?:the |this |any )?{_PLACE}",
            r"\ball (?:availability )?zones\b",
        ),
        effects=_MAY_CREATE,
        then=STOCK.with_(action="next_region", scope="region+type"),
    ),
    Rule(
        text=either(
            rf"\b{_NO} {_GOODS}",
            r"no longer any (?:instances|machines|gpus)",
            r"out of (?:host )?capacity",
            r"sold out|out of stock|stock-?out",
            r"(?:resource|capacity) pool",
            r"currently unavailable|resources? (?:is |are )?(?:temporarily )?unavailable",
            r"insufficient [\w./-]{0,40}gpu",
            r"insufficient[-_ ]capacity|capacity[-_ ](?:error|constraint)",
            r"capacity (?:is |was )?(?:not available|unavailable|exhausted|limited)",
            r"can ?not (?:provision|allocate|launch) any more",
            r"unable to (?:allocate|provision|place|fulfill)",
            r"no suitable|none available|capacity issue|due to (?:a )?(?:lack of )?capacity|having enough capacity",
            r"fully (?:booked|occupied|rented)|already rented|no_such_ask",
            rf"\b(?:instance|offer|machine|ask|gpu|node|host|server)s?\b.{{0,60}}(?:is|are) {_ALL_GONE}",
        ),
        effects=_MAY_CREATE,
        then=STOCK,
    ),
    Rule(
        text=either(
            r"not authori[sz]ed|unauthori[sz]ed|not authenticated|no permission|login required",
            r"access (?:is )?denied|authori[sz]ation failed",
            r"permissions? (?:denied|error|required)",
            r"\bforbidden\b",
            r"(?:invalid|bad|wrong|missing|expired) (?:api[ -_]?)?(?:key|token|credentials?)",
            r"authenticat\w{1,4} (?:failed|error|required|credentials)",
            r"credentials? .{0,40}(?:expired|invalid|not found|missing)",
            r"\b(?:api[ -_]?)?(?:key|token) .{0,40}(?:expired|invalid|revoked|deleted)",
            r"failed to authenticate|complete authentication was not provided",
            r"account .{0,20}(?:inactive|not active)",
            r"(?:could not|unable to) (?:find|locate|load) .{0,30}credentials",
            r"insufficient (?:permission|privilege|authentication)",
            r"signature .{0,30}not match|invalid jwt signature",
            r"\binvalid_(?:grant|client|rapt)\b|refresh ?error\b",
        ),
        then=DENIED,
    ),
    Rule(
        text=either(
            r"internal (?:server |service )?error",
            r"service (?:is )?(?:temporarily )?unavailable|temporarily unavailable",
            r"bad gateway|gateway time-?out",
            r"timed? ?out|deadline exceeded",
            r"connection (?:was |has been )?(?:reset|refused|aborted|closed|error)",
            r"remote end closed|broken pipe|unexpected eof",
            r"name resolution|temporary failure|no such host|network is unreachable",
            r"(?:try|retry)(?: the request)? again later|please retry",
        ),
        then=LOST,
    ),
    Rule(
        text=r"(?:does not|doesn't|do not) exist|not found|no such|unknown (?:instance|node|vm|machine)|\b404\b",
        effects=_LOOKS,
        then=NOT_FOUND,
    ),
    Rule(
        text=either(
            r"\binvalid\b|malformed|not (?:a )?valid\b|unrecogni[sz]ed|bad request",
            r"is required|must (?:be|have|match|not)\b|missing (?:required )?\w",
            r"unsupported|not supported|incompatible|not compatible",
            r"can ?not be (?:applied|changed|combined)|only be set on|supported only (?:on|for|with)|change (?:is )?not allowed",
            r"validation|should be (?:less|greater|one of|a valid)",
            r"(?:does not|doesn't) exist|not found|unknown (?:parameter|image|type|field)",
        ),
        effects=_MAY_CREATE,
        then=WRONG,
    ),
)

"""Notices: what metadata services, event buses and audit logs say of a machine that goes, or may go. Records, not errors."""

from typing import Final

from hostler.catalog.error_rules.times import TIME
from hostler.catalog.error_rules.words import Rule, Source, either, row

_READ_ON: Final = "2026-12-01"
_EC2: Final = Source("EC2 user guide, Spot interruption notices, rebalance recommendations, scheduled events", _READ_ON)
_HEALTH: Final = Source("AWS Health docs, EC2 event types", _READ_ON)
_GCE: Final = Source("Compute Engine docs, maintenance events, preemption and audit logs of system events", _READ_ON)
_TPU: Final = Source("Cloud TPU docs, states of nodes and queued resources", _READ_ON)
_AZURE: Final = Source("Azure docs, Scheduled Events for VMs; Resource Health", _READ_ON)
_ALIBABA: Final = Source("Alibaba Cloud ECS user guide, system events and spot instances", _READ_ON)

GOES: Final = row("replace_node", "instance", _EC2)
STAYS: Final = row("no_action", "instance", _EC2)


def _says(key: str, *values: str) -> str:
    """Returns a pattern for a key of a document with one of these values, in any quoting."""
    return rf"\b{key}['\"]? ?[:=] ?['\"]?{either(*values)}(?![\w-])"


_OVER: Final = _says("(?:event)?(?:state|status)", "completed", "canceled", "cancelled", "executed", "avoided")
_FAULT: Final = r"\berror ?code|\berror['\"]? ?: ?\{ ?['\"]?code|failed|exhausted|quota|denied|no more capacity|insufficient"
_ENDS: Final = ("terminate", "stop", "hibernate")
_SCHEDULED: Final = r"(?:instance|system)-(?:reboot|stop|retirement|maintenance)"
_HEALTH_EVENT: Final = r"aws_ec2_\w{0,60}(?:retirement|maintenance|reboot|stop|failure|termination)"
_ALIBABA_EVENT: Final = r"(?:systemmaintenance|systemfailure|instancefailure|instanceexpiration)\.\w+"
_AZURE_ENDS: Final = ("preempt", "reboot", "redeploy", "terminate")

NOTICES: Final = (
    # Nothing is announced.
    Rule(text=r"['\"]events['\"] ?: ?\[ ?\]", then=STAYS),
    Rule(text=r"no notifications have been received", then=STAYS.with_(source=_GCE)),
    # Amazon.
    Rule(text=_says("action", *_ENDS), also=r"\btime['\"]? ?[:=]", then=GOES),
    Rule(text=r"rebalance recommendation|\bnoticetime['\"]? ?:", then=STAYS),
    Rule(text=r"spot instance interruption warning|capacity block (?:reservation )?expiration warning", then=GOES),
    Rule(text=_says("instance-action", *_ENDS), then=GOES),
    Rule(text=r"instance state-change notification", also=_says("state", "pending", "running"), then=STAYS),
    Rule(text=r"instance state-change notification", then=GOES),
    Rule(text=_HEALTH_EVENT, also=_OVER, then=STAYS.with_(source=_HEALTH)),
    Rule(text=_HEALTH_EVENT, then=GOES.with_(source=_HEALTH)),
    Rule(text=_says("code", _SCHEDULED), also=rf"{_OVER}|\[(?:completed|canceled)\]", then=STAYS),
    Rule(text=_says("code", _SCHEDULED), then=GOES),
    Rule(text=r"spot instance request fulfillment", then=STAYS),
    # Google.
    Rule(
        text=r"compute\.instances\.(?:preempted|hosterror|terminateonhostmaintenance)|instance was preempted",
        then=GOES.with_(source=_GCE),
    ),
    Rule(
        text=r"compute\.instances\.(?:migrateonhostmaintenance|automaticrestart|guestterminate)",
        then=STAYS.with_(source=_GCE),
    ),
    Rule(
        text=r"methodname['\"]? ?: ?['\"]?\w{1,10}\.compute\.instances\.(?:stop|delete|reset|suspend)",
        unless=_FAULT,
        then=STAYS.with_(source=_GCE),
    ),
    Rule(text=r"\bwindow_?starttime\b", then=GOES.with_(source=_GCE)),
    Rule(text=_says("maintenance_?status", "pending", "ongoing"), then=GOES.with_(source=_GCE)),
    Rule(
        text=_says("state", "preempted", "terminated", "suspended", "suspending"), unless=_FAULT, then=GOES.with_(source=_TPU)
    ),
    Rule(text=r"unhealthy_maintenance", then=GOES.with_(source=_TPU)),
    Rule(
        text=_says("state", "waiting_for_resources", "accepted", "provisioning", "creating", "active", "ready"),
        unless=_FAULT,
        then=STAYS.with_(source=_TPU),
    ),
    # Azure. A freeze is a pause of seconds.
    Rule(text=_says("eventtype", *_AZURE_ENDS), unless=_OVER, then=GOES.with_(source=_AZURE)),
    Rule(text=_says("eventtype", "freeze", *_AZURE_ENDS), then=STAYS.with_(source=_AZURE)),
    # Alibaba.
    Rule(text=rf"{_ALIBABA_EVENT}|preemptibleinstanceinterruption", also=_OVER, then=STAYS.with_(source=_ALIBABA)),
    Rule(text=rf"{_ALIBABA_EVENT}|preemptibleinstanceinterruption", then=GOES.with_(source=_ALIBABA)),
    Rule(text=r"accountunbalanced\.\w+", then=row("fatal_auth", "account", _ALIBABA)),
    Rule(text=_says("lockreason", "financial"), then=row("fatal_auth", "account", _ALIBABA)),
    Rule(text=_says("lockreason", "recycling"), then=GOES.with_(source=_ALIBABA)),
)
"""Met in order, for calls that read (or are not known); the text alone decides."""

METADATA: Final = r"imds|metadata|termination-time|instance-action|maintenance|scheduledevents|lifecycle-state"
"""Calls that read a machine's own notices: there, a path that is not found, an empty list or a bare word is an answer."""

BARE: Final = (
    # The metadata service's own token has run out: that says nothing of the machine.
    Rule(text=r"\b401\b|unauthori[sz]ed", then=row("retry_same_zone_later", "instance", _EC2)),
    Rule(text=r"\b404\b|not found|^$", then=STAYS),
    Rule(text=rf"\b(?:true|terminat(?:ed|ing))\b|(?<!\w){TIME}", then=GOES),
    Rule(text=r"\b(?:none|false|null|inservice)\b|\[ ?\]|\{ ?\}", then=STAYS),
)
"""Met after ``NOTICES``, in order."""

ANYWHERE: Final = (
    Rule(text=r"server\.spotinstance(?:termination|shutdown)|\binterrupted_by_no_capacity\b", then=GOES),
    Rule(
        text=r"\b(?:instance|node|vm|vmss|machine|pod|spot)s?\b.{0,60}"
        r"(?:was|has been|have been|is being|will be|were) (?:preempted|evicted|reclaimed|interrupted|outbid)",
        then=GOES,
    ),
    Rule(text=r"(?:preemption|eviction|interruption) notice|preempted due to spot|\bevicted\b.{0,80}\bspot\b", then=GOES),
    Rule(
        text=r"(?:terminated|stopped|shut ?down|lost|interrupted) (?:due to|by|because of) (?:a )?(?:spot )?"
        r"(?:preemption|eviction|interruption|reclaim)",
        then=GOES,
    ),
)
"""Unmistakable whatever the call was."""

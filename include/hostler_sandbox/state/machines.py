"""One simulated machine and its times. States follow from times, so nothing has to run for them to change."""

from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal


def at(seconds: float) -> datetime:
    """Returns the moment of epoch seconds, aware UTC, in whole seconds as EC2 tells times."""
    return datetime.fromtimestamp(int(seconds), UTC)


@dataclass(slots=True, kw_only=True)
class Machine:
    """A machine from launch to the day it is forgotten. Times are epoch seconds.

    Attributes:
        token: the client token, None when none was sent. fingerprint: its launch parameters.
        running_at: when ``pending`` ends. ended_at: when it stopped being paid for; None while it is.
        terminated_at: when ``shutting-down`` ends. stopped_at, started_again_at: of stop and start.
        end_code, end_text: reason as EC2 tells it.
        visible_at: before this, get and list do not show it.
    """

    machine_id: str
    reservation_id: str
    region: str
    zone: str
    instance_type: str
    capacity_type: str
    usd_per_hour: Decimal
    address: str
    tags: dict[str, str]
    launched_at: float
    running_at: float
    visible_at: float
    token: str | None = None
    fingerprint: str = ""
    image_id: str = ""
    subnet_id: str = ""
    group_ids: tuple[str, ...] = ()
    profile_arn: str | None = None
    shutdown_behaviour: str = "stop"
    spot_request_id: str | None = None
    is_protected: bool = False
    is_encrypted: bool = False
    kms_key_id: str | None = None
    http_tokens: str = "optional"
    ended_at: float | None = None
    terminated_at: float | None = None
    stopped_at: float | None = None
    stop_done_at: float | None = None
    end_code: str = ""
    end_text: str = ""
    paid_before_s: float = 0.0
    reclaim_at: float | None = None
    user_data: str = field(default="", repr=False)

    def state(self, now: float) -> str:
        """Returns EC2's word for the state: pending, running, shutting-down, terminated, stopping, stopped."""
        if self.terminated_at is not None:
            return "terminated" if now >= self.terminated_at else "shutting-down"
        if self.stopped_at is not None:
            return "stopped" if now >= (self.stop_done_at or 0) else "stopping"
        return "running" if now >= self.running_at else "pending"

    def is_live(self) -> bool:
        """True while it is paid for or may be again: neither terminated nor on its way there."""
        return self.terminated_at is None

    def paid_s(self, now: float) -> float:
        """Returns the seconds it was or is paid for, in whole seconds as EC2 bills them."""
        running = 0.0 if self.stopped_at is not None else (self.ended_at or now) - int(self.launched_at)
        return self.paid_before_s + max(0.0, float(int(running)))

    def cost_usd(self, now: float) -> Decimal:
        """Returns price times paid time."""
        return self.usd_per_hour * Decimal(self.paid_s(now)) / 3600

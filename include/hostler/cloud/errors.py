"""The drawn error tree: each type says what the caller does next.

::

    CloudError                     what the caller does next
      + CloudUnavailableError      same call again, with backoff
      + CloudThrottledError        same target, after .retry_after_s; never changes a verdict
      + AnswerLostError            the intent is unknown: look up by tag and token
      + InsufficientCapacityError  next offering (.scope), remembered with decay
      + SpotUnavailableError       other capacity type
      + QuotaExceededError         stop this offering; tell the tenant which quota
      + CloudAuthError             stop; page an operator; nothing is called gone
      + CloudConfigError           stop; page an operator; nothing is called gone
      + AlreadyExistsError         look up by tag and adopt
      + TeardownRefusedError       again later, without end, visible
      + NodeNotFoundError          success when releasing; else re-plan
          + NodeNotOursError       it is there without our tag: not gone, not touched, visible
"""

from typing import Literal

Scope = Literal["zone", "region", "type"]


class CloudError(Exception):
    """Base of all that leaves a driver. ``__cause__`` is the SDK's error. The text carries no secret.

    Attributes:
        code: the cloud's own code, such as ``InsufficientInstanceCapacity``; empty when it gave none.
    """

    def __init__(self, message: str, *, code: str = "") -> None:
        super().__init__(message)
        self.code = code


class CloudUnavailableError(CloudError):
    """The cloud could not serve the call and it had no effect: make the same call again, with backoff."""


class CloudThrottledError(CloudError):
    """Too many calls: same target again after ``retry_after_s`` (None: the caller's own backoff). Never changes a verdict."""

    def __init__(self, message: str, *, code: str = "", retry_after_s: float | None = None) -> None:
        super().__init__(message, code=code)
        self.retry_after_s = retry_after_s


class AnswerLostError(CloudError):
    """The call may have had its effect (time-out, cut connection, 5xx after sending): look up by tag and token."""


class InsufficientCapacityError(CloudError):
    """No stock: try the next offering. ``scope`` is what to avoid; ``suggested_zones`` are zones that the text named."""

    def __init__(self, message: str, *, code: str = "", scope: Scope = "zone", suggested_zones: tuple[str, ...] = ()) -> None:
        super().__init__(message, code=code)
        self.scope = scope
        self.suggested_zones = suggested_zones


class SpotUnavailableError(CloudError):
    """Spot cannot be had (price, spot stock or spot quota): try another capacity type."""


class QuotaExceededError(CloudError):
    """Our own limit at the cloud: stop this offering; tell the tenant which quota, in the cloud's unit."""

    def __init__(self, message: str, *, code: str = "", quota: str = "", unit: str = "") -> None:
        super().__init__(message, code=code)
        self.quota = quota
        self.unit = unit


class CloudAuthError(CloudError):
    """Credentials or permissions: stop; page an operator; nothing is called gone."""


class CloudConfigError(CloudError):
    """The order itself is wrong (image, subnet, key, type): stop; page an operator; nothing is called gone."""


class AlreadyExistsError(CloudError):
    """Something with our name is there: look up by tag and adopt it."""


class TeardownRefusedError(CloudError):
    """The cloud will not delete now: again later, without end, and visible."""


class NodeNotFoundError(CloudError):
    """No such machine of ours: success when releasing; otherwise re-plan."""


class NodeNotOursError(NodeNotFoundError):
    """The cloud shows a machine of this id that does not carry our tag (any more), and it is not terminated.

    Whoever knows it from an own launch must not call it gone: it runs, it costs, and a person has to look at its tags.
    """

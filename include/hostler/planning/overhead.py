"""How much longer work takes when nodes are lost: checkpoints, work done twice, restarts.

Sources: J. W. Young, "A first order approximation to the optimum checkpoint interval", Communications of the ACM 17(9), 1974;
J. T. Daly, "A higher order estimate of the optimum checkpoint interval for restart dumps", Future Generation Computer Systems
22(3), 2006: equation 37 for the interval, equation 20 for the expected time. Both take losses to be independent and equally
likely at any moment (an exponential law), and any loss stops the whole gang.
Everything is Decimal: its ``exp`` and ``sqrt`` are rounded exactly, so a plan is the same to the byte on every machine.
"""

from dataclasses import dataclass
from decimal import Decimal, localcontext
from functools import lru_cache
from typing import Final

HOPELESS_RATIO: Final = Decimal(20)
"""Work that takes more than twenty times its length by losses alone is not started: the estimate says that it never ends."""

_DIGITS: Final = 12
_HOUR_S: Final = Decimal(3600)
_PLACES: Final = Decimal("0.000001")


@dataclass(frozen=True, slots=True, kw_only=True)
class Overhead:
    """What losses do to the work.

    Attributes:
        ratio: expected hours for one useful hour; 1 when nothing is ever lost. None when there is no progress to speak of.
        checkpoint_interval_s: useful seconds between checkpoints that keep the ratio least; None when none are needed.
    """

    ratio: Decimal | None
    checkpoint_interval_s: Decimal | None


@lru_cache(maxsize=4096)
def overhead(losses_per_hour: Decimal, checkpoint_s: Decimal, restore_s: Decimal) -> Overhead:
    """Returns what a gang pays for losses when it writes checkpoints at the best interval.

    Args:
        losses_per_hour: of the whole gang; 0 or more.
        checkpoint_s: time that writing one stops the work; 0 or more. restore_s: from a loss until the work goes on.
    """
    if losses_per_hour == 0:
        return Overhead(ratio=Decimal(1), checkpoint_interval_s=None)
    with localcontext() as context:
        context.prec = _DIGITS
        between = 1 / losses_per_hour
        writing = checkpoint_s / _HOUR_S
        interval = best_interval_h(between, writing)
        exponent = (restore_s / _HOUR_S + interval + writing) / between
        if exponent > HOPELESS_RATIO:
            return Overhead(ratio=None, checkpoint_interval_s=None)
        # Daly, equation 20, for a long work: M e^(R/M) (e^((tau + delta)/M) - 1) / tau.
        ratio = between * (restore_s / _HOUR_S / between).exp() * (((interval + writing) / between).exp() - 1) / interval
        seconds = (interval * _HOUR_S).quantize(Decimal(1))
        return Overhead(
            ratio=ratio.quantize(_PLACES) if ratio <= HOPELESS_RATIO else None,
            checkpoint_interval_s=seconds if checkpoint_s else None,
        )


def best_interval_h(between_losses_h: Decimal, checkpoint_h: Decimal) -> Decimal:
    """Returns the useful time between two checkpoints that wastes least, in hours.

    Daly, equation 37; his first term is Young's sqrt(2 delta M). Where writing takes longer than twice the time between losses,
    the interval is that time. A checkpoint that costs nothing is written every minute.
    """
    if checkpoint_h == 0:
        return min(between_losses_h, 1 / Decimal(60))
    if checkpoint_h >= 2 * between_losses_h:
        return between_losses_h
    part = checkpoint_h / (2 * between_losses_h)
    return (2 * checkpoint_h * between_losses_h).sqrt() * (1 + part.sqrt() / 3 + part / 9) - checkpoint_h

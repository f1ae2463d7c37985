from datetime import UTC, datetime, timedelta

import pytest

from hostler.health.load import Load, Sample, load_of

NOW = datetime(2026, 12, 1, 12, tzinfo=UTC)


def window(*ratios, host=(), in_use=False, minutes=10):
    each = {"host_ratios": host, "is_in_use": in_use}
    return [Sample(at=NOW - timedelta(minutes=ago), utilisation_ratios=ratios, **each) for ago in range(minutes + 1)]


def load(samples):
    return load_of(samples, now=NOW, window_s=600, every_s=60)


def changed(samples, **what):
    middle = samples[5]
    values = {
        "at": middle.at,
        "utilisation_ratios": middle.utilisation_ratios,
        "host_ratios": middle.host_ratios,
        "is_in_use": middle.is_in_use,
        **what,
    }
    return [*samples[:5], Sample(**values), *samples[6:]]


@pytest.mark.parametrize(
    ("samples", "expected"),
    [
        (window(0.0, 0.01), Load.IDLE),
        (window(0.9, 0.9), Load.BUSY),
        (changed(window(0.0, 0.0), utilisation_ratios=(0.0, 0.06)), Load.BUSY),  # one sample of one accelerator is enough
        (changed(window(0.0, 0.0), utilisation_ratios=(0.0, None)), Load.UNKNOWN),  # MIG, or one bad answer
        (changed(window(0.0, 0.0), utilisation_ratios=()), Load.UNKNOWN),
        (changed(window(0.0, 0.0), utilisation_ratios=(float("nan"), 0.0)), Load.BUSY),
        (changed(window(0.0, 0.0), utilisation_ratios=(-1.0, 0.0)), Load.UNKNOWN),
        (changed(window(0.0, 0.0), is_in_use=True), Load.BUSY),
        (changed(window(0.0, 0.0), is_in_use=None), Load.UNKNOWN),
        (window(None), Load.UNKNOWN),
        (window(0.0, minutes=4), Load.UNKNOWN),  # the window is not covered
        ([], Load.UNKNOWN),
        ([one for number, one in enumerate(window(0.0)) if number not in {3, 4}], Load.UNKNOWN),
        (window(0.5, host=(0.2, 0.99)), Load.OVERLOADED),
        (changed(window(0.5, host=(0.2, 0.99)), host_ratios=(0.2, 0.5)), Load.BUSY),
    ],
)
def test_load_when_samples_are_given_then_idle_needs_all_of_them(samples, expected):
    assert load(samples) is expected

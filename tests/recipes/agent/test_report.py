import json

from hypothesis import given
from hypothesis import strategies as st

from hostler.recipes.agent.report import LINE_BYTES, MetricsFollower, empty, take_line


@given(line=st.binary(max_size=200))
def test_take_line_when_line_is_anything_then_never_raises(line):
    report = empty()
    take_line(report, line)
    assert report["step"] >= 0


@given(cuts=st.lists(st.integers(1, 60), max_size=30), values=st.lists(st.integers(0, 10**6), min_size=1, max_size=20))
def test_follower_when_file_grows_in_any_pieces_then_has_the_last_values(tmp_path_factory, cuts, values):
    path = tmp_path_factory.mktemp("m") / "metrics.jsonl"
    text = "".join(json.dumps({"step": value, "loss": value / 2}) + "\n" for value in values).encode()
    follower, start = MetricsFollower(path), 0
    for cut in [*cuts, len(text)]:
        with path.open("ab") as target:
            target.write(text[start : start + cut])
        start += cut
        follower.follow()
    assert follower.report["step"] == values[-1]
    assert follower.report["metrics"] == {"loss": values[-1] / 2}
    assert follower.report["lines"] == len(values)


def test_follower_when_last_line_has_no_end_then_counts_at_the_end(tmp_path):
    path = tmp_path / "m"
    path.write_text('{"step": 1}\n{"step": 2}')
    follower = MetricsFollower(path)
    follower.follow()
    assert follower.report["step"] == 1
    follower.follow(at_end=True)
    assert follower.report["step"] == 2


def test_follower_when_a_line_is_huge_then_skips_it_and_keeps_nothing(tmp_path):
    path = tmp_path / "m"
    path.write_bytes(b'{"step": 1}\n{"x": "' + b"a" * (5 * LINE_BYTES) + b'"}\n{"step": 3}\n')
    follower = MetricsFollower(path)
    while follower.follow():
        assert len(follower._waiting) <= LINE_BYTES
    assert (follower.report["step"], follower.report["lines"]) == (3, 2)


def test_take_line_when_there_are_very_many_metrics_then_keeps_a_bounded_number():
    report = empty()
    take_line(report, json.dumps({f"m{number}": number for number in range(5000)}).encode())
    assert len(report["metrics"]) == 128

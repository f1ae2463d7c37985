import pytest
from hypothesis import given
from hypothesis import strategies as st

from hostler.catalog.error_rules.times import utc


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2017-09-18T08:22:00Z", "2017-09-18T08:22:00Z"),
        ("2017-09-18T08:22:00", "2017-09-18T08:22:00Z"),
        ("2017-09-18 08:22:00", "2017-09-18T08:22:00Z"),
        ("2017-09-18t08:22:00z", "2017-09-18T08:22:00Z"),
        ("2018-10-31T07:32Z", "2018-10-31T07:32:00Z"),
        ("2023-09-16T10:42:31.325309Z", "2023-09-16T10:42:31Z"),
        ("2024-05-01T12:00:00+08:00", "2024-05-01T04:00:00Z"),
        ("2024-05-01T12:00:00-0330", "2024-05-01T15:30:00Z"),
        ("Tue, 09 Aug 2022 17:07:32 GMT", "2022-08-09T17:07:32Z"),
        ("21 Jan 2019 09:00:43 GMT", "2019-01-21T09:00:43Z"),
        ("Mon, 19 Sep 2016 18:29:47", "2016-09-19T18:29:47Z"),
        ("2024-13-01T00:00:00Z", None),
        ("soon", None),
        ("", None),
        ("0001-01-01T00:00:00+14:00", None),
    ],
)
def test_utc_when_a_form_is_met_then_the_time_is_in_utc(text, expected):
    assert utc(text) == expected


@given(st.text(max_size=40))
def test_utc_when_anything_comes_then_it_is_a_time_or_none(text):
    assert utc(text) is None or len(utc(text)) == 20

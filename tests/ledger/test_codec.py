import dataclasses
import enum
import json
import math
import types
import typing
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests import samples

from hostler.ledger import codec
from hostler.ledger.errors import LedgerUnavailableError
from hostler.model.lease import Job, Lease, Node, Record

TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=8)
ZONES = st.sampled_from([UTC, timezone(timedelta(hours=5, minutes=45)), timezone(-timedelta(hours=11))])
LEAVES = {
    str: TEXTS,
    int: st.integers(-(2**62), 2**62),
    bool: st.booleans(),
    float: st.floats(allow_nan=False),
    Decimal: st.decimals(allow_nan=False, allow_infinity=False),
    datetime: st.datetimes(datetime(1970, 1, 3), datetime(9999, 12, 29), timezones=ZONES),  # noqa: DTZ001 - zones are drawn
    type(None): st.none(),
}


def values_of(hint):
    """Any value that a field's annotation allows."""
    if hint in LEAVES:
        return LEAVES[hint]
    if isinstance(hint, type) and issubclass(hint, enum.Enum):
        return st.sampled_from(list(hint))
    parts = typing.get_args(hint)
    if isinstance(hint, types.UnionType):
        return st.one_of([values_of(part) for part in parts])
    if typing.get_origin(hint) is tuple:
        if parts[-1] is Ellipsis:
            return st.lists(values_of(parts[0]), max_size=2).map(tuple)
        return st.tuples(*[values_of(part) for part in parts])
    return records_of(hint)


def records_of(type_):
    hints = typing.get_type_hints(type_)
    return st.builds(type_, **{field.name: values_of(hints[field.name]) for field in dataclasses.fields(type_)})


ANY_RECORD = st.one_of([records_of(type_) for type_ in codec.KINDS.values()])


def test_kinds_when_a_record_type_is_added_then_the_codec_knows_it():
    assert set(typing.get_args(Record)) < set(codec.KINDS.values())


@given(ANY_RECORD)
def test_record_when_written_and_read_then_it_is_the_same(record):
    assert codec.from_json(codec.to_json(record)) == record


@given(ANY_RECORD)
def test_document_when_made_then_it_is_plain_json_that_stays_itself(record):
    document = codec.encode(record)
    assert json.loads(json.dumps(document, allow_nan=False)) == document
    assert codec.encode(codec.decode(document)) == document


def test_document_when_made_then_types_are_as_promised():
    document = codec.encode(samples.lease())
    assert (document["kind"], document["format"], document["version"]) == ("lease", 1, 1)
    assert document["created_at"] == "2026-12-01T09:30:00+00:00"
    assert document["request"]["max_cost_usd"] == "100.50"
    assert document["request"]["capacity_types"] == ["spot"]
    assert document["state"] == "requested"


@given(st.decimals(allow_nan=False, allow_infinity=False))
def test_money_when_written_and_read_then_every_digit_stays(amount):
    read = codec.decode(codec.encode(samples.receipt(samples.lease(), cost_usd=amount)))
    assert str(read.cost_usd) == str(amount)


def test_time_when_it_is_of_another_zone_then_utc_is_written():
    kathmandu = timezone(timedelta(hours=5, minutes=45))
    lease = samples.lease(created_at=datetime(2026, 1, 1, 5, 45, tzinfo=kathmandu))
    assert codec.encode(lease)["created_at"] == "2026-01-01T00:00:00+00:00"


def test_time_when_it_has_no_zone_then_it_is_refused():
    with pytest.raises(ValueError, match="no time zone"):
        codec.encode(samples.lease(created_at=datetime(2026, 1, 1)))  # noqa: DTZ001 - the case


def test_metric_when_it_is_no_number_then_it_comes_back_as_such():
    job = samples.job(samples.lease(), metrics=(("loss", math.nan), ("accuracy", -math.inf)))
    read = codec.from_json(codec.to_json(job))
    assert math.isnan(read.metrics[0][1])
    assert read.metrics[1] == ("accuracy", -math.inf)


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("a\0b", "a\ufffdb"),
        ("a\ud800b", "a\ufffdb"),
        ("\ud83d\ude00", "\U0001f600"),
        ("\udcff", "\ufffd"),
        ("é\u2028", "é\u2028"),
    ],
)
def test_text_when_a_machine_wrote_rubbish_then_it_is_storable(text, kept):
    read = codec.from_json(codec.to_json(samples.job(samples.lease(), error=text)))
    assert read.error == kept
    codec.to_json(read).encode()


def test_row_when_it_is_older_and_lacks_newer_fields_then_defaults_fill_them():
    intent = samples.intent(samples.lease())
    for record, newer in (
        (samples.lease(), ("wait_since", "wait_reason", "wrapped_data_key", "version")),
        (samples.node(intent), ("is_leak_suspected", "heartbeat_at", "health")),
        (samples.job(samples.lease()), ("metrics", "weights_sha256")),
    ):
        document = codec.encode(record)
        for name in newer:
            del document[name]
        assert codec.decode(document) == record


def test_row_when_it_has_a_field_that_was_dropped_then_it_loads():
    document = codec.encode(samples.lease()) | {"was_here_once": 1}
    assert codec.decode(document) == samples.lease()


def test_row_when_its_format_is_newer_then_it_is_refused():
    document = codec.encode(samples.lease()) | {"format": codec.FORMAT + 1}
    with pytest.raises(LedgerUnavailableError, match="update the program"):
        codec.decode(document)


@pytest.mark.parametrize("damage", [{"kind": "horse"}, {"kind": None}, {"format": None}, {"format": "1"}])
def test_row_when_its_head_is_damaged_then_it_is_refused(damage):
    with pytest.raises(LedgerUnavailableError, match="damaged"):
        codec.decode(codec.encode(samples.lease()) | damage)


def test_row_when_fields_are_damaged_then_they_are_named_and_not_quoted():
    document = codec.encode(samples.lease()) | {"state": "geheim", "created_at": "geheim"}
    with pytest.raises(LedgerUnavailableError, match="state") as caught:
        codec.decode(document)
    assert "created_at" in str(caught.value)
    assert "geheim" not in str(caught.value)
    assert caught.value.__context__ is None


@pytest.mark.parametrize("text", ["", "[]", "{", "null", '{"kind": "lease"'])
def test_text_when_it_is_no_object_then_it_is_refused(text):
    with pytest.raises(LedgerUnavailableError, match="damaged"):
        codec.from_json(text)


@pytest.mark.parametrize("type_", [Lease, Node, Job])
def test_kind_when_asked_then_it_names_the_type(type_):
    assert codec.KINDS[type_.__name__.lower()] is type_

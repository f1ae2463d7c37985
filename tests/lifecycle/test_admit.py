"""Bad input is refused before anything is bought, naming the field and what is allowed."""

import contextlib
import math
from dataclasses import replace
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.sim.world import make_world, run_ref

from hostler.ledger.port import Caps
from hostler.lifecycle.admit import RequestRefusedError, admit
from hostler.lifecycle.conf import read_conf
from hostler.lifecycle.release import begin_release
from hostler.model.enums import CapacityType, LeaseState
from hostler.model.request_schema import MAX_CONF_BYTES, REQUEST_FIELDS
from hostler.stores.postgres import PostgresLedger

BAD = [
    ({"accelerator": "H9000"}, "accelerator", "A100"),
    ({"nodes": 0}, "nodes", "from 1"),
    ({"nodes": -3}, "nodes", "from 1"),
    ({"nodes": 1.5}, "nodes", "integer"),
    ({"nodes": True}, "nodes", "integer"),
    ({"nodes": "2"}, "nodes", "integer"),
    ({"nodes": None}, "nodes", "integer"),
    ({"accelerators_per_node": 17}, "accelerators_per_node", "up to 16"),
    ({"max_price_usd_per_hour": -1}, "max_price_usd_per_hour", "above 0"),
    ({"max_price_usd_per_hour": math.nan}, "max_price_usd_per_hour", "above 0"),
    ({"max_cost_usd": math.inf}, "max_cost_usd", "above 0"),
    ({"max_cost_usd": 0}, "max_cost_usd", "above 0"),
    ({"max_cost_usd": False}, "max_cost_usd", "above 0"),
    ({"capacity_types": []}, "capacity_types", "spot"),
    ({"capacity_types": ["cheap"]}, "capacity_types", "spot"),
    ({"capacity_types": "spot"}, "capacity_types", "array"),
    ({"regions": ["mars-north-1"]}, "regions", "fake-north"),
    ({"clouds": ["aws"]}, "clouds", "fake"),
    ({"tenant": "nobody"}, "tenant", "default, other"),
    ({"tenant": "No Body"}, "tenant", "matching"),
    ({"deadline": "2026-01-01T00:00:00+00:00"}, "deadline", "has passed"),
    ({"deadline": "tomorrow"}, "deadline", "date-time"),
    ({"deadline": "2030-01-01T00:00:00"}, "deadline", "time"),
    ({"recipe": "script"}, "script", "exactly when"),
    ({"script": "echo"}, "script", "exactly when"),
    ({"code_uri": "http://example.com/x"}, "code_uri", "s3"),
    ({"acelerator": "H100"}, "acelerator", "accelerator, "),
    ({"keep_s": -1}, "keep_s", "from 0"),
    ({"secrets": ["path"]}, "secrets", "PATH"),
    ({"secrets": ["world-size"]}, "secrets", "WORLD_SIZE"),
    ({"secrets": ["hostler.code.dir"]}, "secrets", "HOSTLER_CODE_DIR"),
    ({"secrets": ["hub-token", "hub_token"]}, "secrets", "both set HUB_TOKEN"),
    ({"secrets": ["1token"]}, "secrets", "no digit first"),
    ({"secrets": ["sch\u00fc"]}, "secrets", "ASCII"),
]


@pytest.mark.parametrize(("change", "field", "allowed"), BAD)
def test_admit_when_a_field_is_wrong_then_it_is_refused_by_name_with_what_is_allowed(change, field, allowed):
    world = make_world()
    with pytest.raises(RequestRefusedError) as caught:
        admit(world.fleet(), run_ref(), world.conf(**change), who="test")
    messages = dict(caught.value.problems)
    assert field in messages
    assert allowed in messages[field]
    (event,) = world.ledger.list_events(None)
    assert event.what == "request.refused"
    assert field in event.why
    assert world.ledger.list_leases() == ()
    assert world.cloud.calls == []


def test_admit_when_conf_is_ten_megabytes_then_it_is_refused_and_not_kept():
    world = make_world()
    with pytest.raises(RequestRefusedError, match=f"up to {MAX_CONF_BYTES} bytes"):
        admit(world.fleet(), run_ref(), world.conf(script="x" * 10_000_000), who="test")
    assert sum(len(event.why) for event in world.ledger.list_events(None)) < 1000


def test_admit_when_several_fields_are_wrong_then_all_are_named():
    with pytest.raises(RequestRefusedError) as caught:
        read_conf({"nodes": 0, "accelerator": "x", "typo": 1})
    assert {field for field, _message in caught.value.problems} == {"nodes", "accelerator", "typo"}


def test_admit_when_limits_forbid_it_then_the_limit_is_named():
    world = make_world(
        caps=Caps(nodes=8, tenant_nodes=4, usd_per_hour=Decimal(10)), settings_changes={"usd_per_run": Decimal(50)}
    )
    with pytest.raises(RequestRefusedError) as caught:
        admit(world.fleet(), run_ref(), world.conf(nodes=5, max_cost_usd=51, max_price_usd_per_hour=11.0), who="test")
    messages = dict(caught.value.problems)
    assert "1 to 4" in messages["nodes"]
    assert "up to 50" in messages["max_cost_usd"]
    assert "up to 10" in messages["max_price_usd_per_hour"]


def test_admit_when_the_recipe_is_not_there_then_the_workloads_own_words_are_shown():
    world = make_world()
    with pytest.raises(RequestRefusedError, match="allowed: digits"):
        admit(
            world.fleet(),
            run_ref(),
            world.conf(recipe="nope"),
            who="test",
            check_workload=lambda request: [("recipe", "unknown; allowed: digits")],
        )


def test_admit_when_called_twice_then_the_same_lease_and_an_ended_one_stays_ended():
    world = make_world()
    first = admit(world.fleet(), run_ref(), world.conf(), who="test")
    assert first.state is LeaseState.REQUESTED
    assert first.wrapped_data_key
    begin_release(world.fleet(), first.lease_id, who="test", reason="over")
    again = admit(world.fleet(), run_ref(), {"nodes": "broken"}, who="test")
    assert again.lease_id == first.lease_id
    assert again.state is LeaseState.DRAINING
    assert len(world.ledger.list_leases()) == 1
    assert admit(world.fleet(), run_ref(1), world.conf(), who="test").lease_id != first.lease_id


def test_conf_when_whole_numbers_come_as_floats_then_they_are_integers():
    request = read_conf({"nodes": 2.0, "max_cost_usd": 12.5, "keep_s": 0.0})
    assert (request.node_count, type(request.node_count)) == (2, int)
    assert request.max_cost_usd == Decimal("12.5")
    assert request.capacity_types == (CapacityType.SPOT, CapacityType.ON_DEMAND)


def test_conf_when_a_deadline_has_another_zone_then_it_is_kept_in_utc():
    assert read_conf({"deadline": "2030-06-01T12:00:00+09:00"}).deadline_at.isoformat() == "2030-06-01T03:00:00+00:00"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


@given(st.dictionaries(st.sampled_from([*REQUEST_FIELDS, "typo"]), JSON, max_size=4))
def test_conf_when_it_is_any_json_then_it_is_a_request_or_a_refusal(conf):
    with contextlib.suppress(RequestRefusedError):
        request = read_conf(conf)
        assert type(request.node_count) is int
        assert request.node_count >= 1
        assert request.max_cost_usd > 0


HUGE = st.sampled_from([10**400, -(10**400), 2**63, 1e308, -1e308, 5e-324, math.nan, math.inf, -math.inf, -0.0])
WORDS = st.sampled_from(
    [
        "",
        " ",
        "H100\n",
        "\ud800",
        "\x00",
        "H\u0661\u0660\u0660",
        "\uff2e\uff2f",
        "'; drop table leases",
        "9" * 300,
        "NaN",
        "1e999",
    ]
)
ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | HUGE | st.floats() | WORDS | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS | st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
ADMITTED = {"accelerator": "H100", "nodes": 2, "capacity_types": ["spot"], "max_cost_usd": 100.0}


def _fits(name, value):
    """An independent, plain reading of the table for the fields that decide what is bought."""
    is_whole = type(value) is int or (type(value) is float and value.is_integer())
    is_number = is_whole or (type(value) is float and math.isfinite(value))
    allowed = {
        "accelerator": lambda: isinstance(value, str) and value in REQUEST_FIELDS["accelerator"]["schema"]["enum"],
        "accelerators_per_node": lambda: is_whole and 1 <= value <= 16,
        "nodes": lambda: is_whole and 1 <= value <= 1024,
        "max_cost_usd": lambda: is_number and 0 < value <= 10_000_000,
        "max_price_usd_per_hour": lambda: value is None or (is_number and 0 < value <= 10_000_000),
        "regions": lambda: isinstance(value, list) and all(one == "fake-north" for one in value) and len(value) < 2,
        "clouds": lambda: isinstance(value, list) and all(one == "fake" for one in value) and len(value) < 2,
        "tenant": lambda: value in ("default", "other"),
        "keep_s": lambda: is_whole and 0 <= value <= 604800,
    }
    return allowed[name]()


DECIDING = (
    "accelerator",
    "accelerators_per_node",
    "nodes",
    "max_cost_usd",
    "max_price_usd_per_hour",
    "regions",
    "clouds",
    "tenant",
    "keep_s",
)


@given(st.sampled_from(DECIDING), ANY)
def test_admit_when_one_field_holds_anything_then_taken_if_it_fits_else_refused_by_name_and_nothing_is_written_or_bought(
    name, value
):
    world = make_world()
    conf = {**ADMITTED, name: value}
    if _fits(name, value):
        assert admit(world.fleet(), run_ref(), conf, who="test").state is LeaseState.REQUESTED
        return
    with pytest.raises(RequestRefusedError) as caught:
        admit(world.fleet(), run_ref(), conf, who="test")
    assert {field for field, _ in caught.value.problems} <= {name, "conf"}
    assert all("allowed: " in message and len(message) < 2000 for _, message in caught.value.problems)
    assert world.ledger.list_leases() == ()
    assert [event.what for event in world.ledger.list_events(None)] == ["request.refused"]
    assert world.cloud.calls == []


@given(st.text().filter(lambda name: name not in REQUEST_FIELDS), ANY)
def test_admit_when_there_is_a_key_that_is_no_field_then_refused_with_all_that_are(name, value):
    world = make_world()
    with pytest.raises(RequestRefusedError) as caught:
        admit(world.fleet(), run_ref(), {**ADMITTED, name: value}, who="test")
    problems = caught.value.problems
    assert any("unknown field; allowed: tenant, accelerator" in words or field == "conf" for field, words in problems)
    assert all(field.isprintable() for field, _ in problems)
    assert world.ledger.list_leases() == ()
    assert world.cloud.calls == []


@pytest.mark.parametrize("text", ["a\x00b", "\ud800"], ids=["NUL", "half a character"])
@pytest.mark.parametrize(
    "change",
    [
        lambda text: {"recipe": "script", "script": text},
        lambda text: {"recipe_options": {"seed": text}},
        lambda text: {"recipe_options": {text: "1"}},
        lambda text: {"code_uri": f"s3://bucket/{text}"},
        lambda text: {"regions": [text]},
        lambda text: {text: 1},
    ],
    ids=["script", "option", "option's name", "uri", "list", "key"],
)
def test_admit_when_text_cannot_be_stored_or_given_to_a_process_then_refused_and_the_database_takes_the_refusal(
    text, change, ledger_url
):
    ledger = PostgresLedger(ledger_url)
    world = make_world()
    with pytest.raises(RequestRefusedError, match="allowed: "):
        admit(replace(world.fleet(), ledger=ledger), run_ref(), world.conf(**change(text)), who="test")
    assert [event.what for event in ledger.list_events(None)] == ["request.refused"]
    assert ledger.list_leases() == ()
    ledger.close()

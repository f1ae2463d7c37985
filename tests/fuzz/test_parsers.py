"""Every parser of what others write, and conf: any input gives an answer or the parser's own error; none crashes or hangs.

``HYPOTHESIS_PROFILE=soak`` plays more of them (``make soak``).
"""

import contextlib
import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from tests.sim.world import MemoryStore

from hostler.cloud.tags import is_foreign
from hostler.config.clouds import CloudSettings
from hostler.config.fleet_file import FleetFileError, parse_fleet
from hostler.drivers.aws import notices
from hostler.ledger import codec
from hostler.ledger.errors import LedgerUnavailableError
from hostler.lifecycle.conf import read_conf
from hostler.lifecycle.events import shorten
from hostler.lifecycle.refusal import RequestRefusedError
from hostler.model.request_schema import REQUEST_FIELDS
from hostler.reach.port import CommandResult
from hostler.recipes import answers
from hostler.recipes.agent import report
from hostler.recipes.answers import NodeAgentError

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=12), inner, max_size=4),
    max_leaves=12,
)
DEEP = "[" * 100_000
STATUS = (
    "job_id",
    "state",
    "exit_code",
    "heartbeat_age_s",
    "step",
    "metrics",
    "weights_sha256",
    "shipped_step",
    "notice",
    "error",
)
OBJECT = ("key", "kind", "sha256", "plain_sha256", "size_bytes", "step")


def documents(*names: str) -> st.SearchStrategy[dict[str, Any]]:
    """Objects that have some of the names, with anything in them, and others."""
    return st.dictionaries(st.sampled_from(names) | st.text(max_size=8), JSON, max_size=len(names) + 2)


def holds(parse: Callable[[], object], *errors: type[Exception]) -> None:
    with contextlib.suppress(*errors):
        parse()


@given(st.text() | JSON.map(json.dumps))
@example(DEEP)
@example("\0" * 10)
def test_agent_answer_when_anything_comes_then_its_own_error(text):
    result = CommandResult(exit_code=0, stdout=text, stderr="")
    holds(lambda: answers.agent_result("node", result), NodeAgentError)
    assert answers.probe_document(result)["version"] == answers.PROBE_VERSION


@given(documents(*STATUS))
def test_job_status_when_anything_comes_then_its_own_error(found):
    holds(lambda: answers.job_status(found), NodeAgentError)


@given(st.fixed_dictionaries({"objects": st.lists(documents(*OBJECT) | JSON, max_size=3)}) | documents("objects"))
def test_shipped_objects_when_anything_comes_then_its_own_error(found):
    holds(lambda: answers.shipped_objects(found), NodeAgentError)


@given(documents("data", "next_offset"))
def test_log_piece_when_anything_comes_then_its_own_error(found):
    holds(lambda: answers.log_piece(found), NodeAgentError)


@given(st.binary() | JSON.map(lambda value: json.dumps(value).encode()))
@example(DEEP.encode())
def test_metrics_line_when_anything_is_reported_then_the_report_stays_sound(line):
    told = report.empty()
    report.take_line(told, line)
    assert set(told) == set(report.empty())
    assert isinstance(told["step"], int)
    json.dumps(told, allow_nan=False)


@given(documents(*REQUEST_FIELDS))
@settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
def test_conf_when_anything_is_sent_then_a_request_or_a_refusal(conf):
    holds(lambda: read_conf(conf), RequestRefusedError)


@given(st.text() | documents("deployment", "limits", "clouds", "backup", "tenants", "timing").map(json.dumps))
@example("deployment: &a [*a]")
@example("{" * 500)
@example("a: b: c")
@example("\0")
def test_fleet_file_when_anything_is_in_it_then_its_own_error(text):
    holds(lambda: parse_fleet(text, "fleet.yaml", {"aws": CloudSettings}), FleetFileError)


@given(st.sampled_from(sorted(codec.KINDS)), documents("lease_id", "state", "run", "request", "created_at", "format"))
def test_row_when_it_is_damaged_then_the_ledger_says_so(kind, document):
    holds(lambda: codec.decode({**document, "kind": kind, "format": 1}), LedgerUnavailableError)


@given(st.text() | JSON.map(json.dumps))
@example(DEEP)
def test_row_text_when_it_is_anything_then_the_ledger_says_so(text):
    holds(lambda: codec.from_json(text), LedgerUnavailableError)


@given(st.dictionaries(st.text(max_size=20), st.text(max_size=20)))
def test_tags_when_anything_is_on_a_machine_then_only_ours_is_ours(tags):
    assert is_foreign({**tags, "hostler:deployment": "other"}, "ours")


@given(
    st.lists(st.fixed_dictionaries({"Status": documents("Code", "Message")}, optional={"InstanceId": st.text()}), max_size=3)
)
def test_spot_requests_when_fields_are_missing_then_read_or_left(requests):
    now = datetime(2027, 1, 1, tzinfo=UTC)
    for request in requests:
        code = request["Status"].get("Code")
        if isinstance(code, str):
            notices.of_spot_requests([{**request, "Status": {"Code": code}}], "us-east-1", now)


@given(st.text())
@example("x" * 10**6)
def test_words_when_a_machine_says_anything_then_one_bounded_line(text):
    line = shorten(text)
    assert len(line) <= 500
    assert "\n" not in line


@pytest.mark.parametrize("content", [b"", b"null", b"{}", b'{"mark": []}', DEEP.encode(), b"\xff"])
def test_epoch_object_when_it_is_anything_then_nobody_is_free_to_act(content):
    from tests.sim.stage import fair_world, run_simulated

    from hostler.lifecycle.epoch import epoch_key, standing

    async def play():
        world = fair_world()
        assert isinstance(world.store, MemoryStore)
        world.store.objects[epoch_key("sim")] = content
        assert standing(world.fleet()).refusal

    run_simulated(play())

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hostler.model.enums import JobState
from hostler.reach.port import CommandResult
from hostler.recipes import answers
from hostler.recipes.answers import NodeAgentError

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=10), inner, max_size=4),
    max_leaves=5,
)
FIELDS = [
    *("exit_code", "heartbeat_age_s", "step", "resumed_from_step", "metrics", "weights_sha256"),
    *("shipped_step", "notice", "log_tail", "error", "shipping_error"),
]


@given(text=st.text(max_size=200) | JSON.map(json.dumps), code=st.integers(0, 255))
def test_agent_result_when_answer_is_anything_else_then_raises_its_own_error(text, code):
    with pytest.raises(NodeAgentError):
        answers.agent_result("n", CommandResult(exit_code=code, stdout=text, stderr=""))


def test_agent_result_when_there_are_words_before_it_then_reads_the_last_line():
    text = "motd\nwarning\n" + json.dumps({"protocol": 1, "ok": True, "result": {"a": 1}}) + "\n"
    assert answers.agent_result("n", CommandResult(exit_code=0, stdout=text, stderr="")) == {"a": 1}


@given(fields=st.fixed_dictionaries({}, optional=dict.fromkeys(FIELDS, JSON)), state=st.sampled_from(JobState))
def test_job_status_when_fields_are_of_any_kind_then_reads_or_leaves_them(fields, state):
    read = answers.job_status({"job_id": "j", "state": str(state), **fields})
    assert read.state is state
    assert read.step >= 0 or isinstance(fields.get("step"), int)
    assert all(value == value for _, value in read.metrics)  # noqa: PLR0124 - that is how NaN is told


@given(state=JSON)
def test_job_status_when_state_is_unknown_then_raises(state):
    if state not in list(JobState):
        with pytest.raises(NodeAgentError):
            answers.job_status({"job_id": "j", "state": state})


@given(entries=JSON)
def test_shipped_objects_when_list_is_anything_then_reads_or_raises_its_own_error(entries):
    try:
        read = answers.shipped_objects({"objects": entries})
    except NodeAgentError:
        return
    assert read == ()


def test_job_status_when_shipping_is_behind_then_error_tells_it():
    read = answers.job_status({"job_id": "j", "state": "running", "shipping_error": "no room"})
    assert read.error == "shipping is behind: no room"

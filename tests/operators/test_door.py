"""The door of the REST API: what is gone once JSON is parsed."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hostler.model.request_schema import MAX_CONF_BYTES
from hostler_operators.door import MAX_BODY_BYTES, RequestDoor, fault_of

RUNS = "/api/v2/dags/hostler_node_lifecycle/dagRuns"


async def send(body, path=RUNS, method="POST", piece_bytes=1000):
    """Sends a body in pieces; returns (status, answer, what the app behind the door read or None)."""
    pieces = [body[start : start + piece_bytes] for start in range(0, len(body), piece_bytes)] or [b""]
    sent, read = [], []

    async def app(scope, receive, answer):
        whole = b""
        while True:
            message = await receive()
            whole += message.get("body", b"")
            if not message.get("more_body"):
                break
        read.append(whole)
        await answer({"type": "http.response.start", "status": 200, "headers": []})
        await answer({"type": "http.response.body", "body": b"{}"})

    async def receive():
        return {"type": "http.request", "body": pieces.pop(0), "more_body": bool(pieces)}

    async def collect(message):
        sent.append(message)

    await RequestDoor(app)({"type": "http", "method": method, "path": path}, receive, collect)
    return sent[0]["status"], sent[1]["body"], read[0] if read else None


@pytest.mark.parametrize(
    ("body", "field"),
    [
        (b'{"conf": {"nodes": 1, "nodes": 1000}}', "nodes"),
        (b'{"conf": {}, "conf": {"nodes": 1}}', "conf"),
        (b'{"conf": {"recipe_options": {"seed": "1", "s\\u0065ed": "2"}}}', "seed"),
        (b'{"dag_run_id": "a", "dag_run_id": "b", "conf": {}}', "dag_run_id"),
        (b'{"conf": {"max_cost_usd": NaN}}', "conf: NaN"),
        (b'{"conf": {"max_cost_usd": -Infinity}}', "conf: -Infinity"),
        (json.dumps({"conf": {"script": "x" * 10_000_000}}).encode(), "conf"),
    ],
    ids=["field", "conf", "escaped", "run id", "NaN", "infinity", "ten megabytes"],
)
async def test_post_when_the_text_is_wrong_then_400_names_field_and_what_is_allowed_and_airflow_never_sees_it(body, field):
    status, answer, read = await send(body, piece_bytes=65536)
    assert (status, read) == (400, None)
    detail = json.loads(answer)["detail"]
    assert detail.startswith(field)
    assert "allowed: " in detail


@pytest.mark.parametrize(
    ("path", "method"),
    [("/api/v2/dags/other/dagRuns", "POST"), (RUNS, "PATCH"), (f"{RUNS}/list", "POST"), ("/api/v2/pools", "POST")],
)
async def test_request_when_it_starts_no_run_of_ours_then_it_passes_unread(path, method):
    body = b'{"a": 1, "a": NaN}'
    assert await send(body, path, method) == (200, b"{}", body)


@pytest.mark.parametrize(
    "body", [b"", b"{", b"\xff", b"[" * 100_000, b'{"conf": {"script": "' + b"x" * MAX_CONF_BYTES + b'"}}']
)
async def test_post_when_airflow_or_admit_is_to_judge_then_it_passes_whole(body):
    assert len(body) < MAX_BODY_BYTES
    assert await send(body) == (200, b"{}", body)


@given(
    st.dictionaries(
        st.text(max_size=8), st.none() | st.integers() | st.text(max_size=8) | st.floats(allow_nan=False, allow_infinity=False)
    )
)
def test_fault_when_a_document_is_plain_json_then_there_is_none(document):
    assert fault_of(json.dumps({"conf": document}).encode()) == ""


@given(st.text(max_size=8), st.integers(), st.integers())
def test_fault_when_any_key_stands_twice_then_it_is_named(name, one, other):
    key = json.dumps(name)
    words = fault_of(f'{{"conf": {{"a": [{{{key}: {one}, {key}: {other}}}]}}}}'.encode())
    assert words == f"{name}: stands twice in one object; allowed: each key once"


async def test_post_when_the_client_goes_away_then_the_app_is_told():
    told = []

    async def app(scope, receive, answer):
        told.append((await receive())["type"])

    async def receive():
        return {"type": "http.disconnect"}

    await RequestDoor(app)({"type": "http", "method": "POST", "path": RUNS}, receive, None)
    assert told == ["http.disconnect"]

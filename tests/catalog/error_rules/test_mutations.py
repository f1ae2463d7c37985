"""What a wrapper, a log or a shell does to a text says nothing about the error: the action stays."""

import json
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.catalog.error_rules.texts_of_errors import CASES, VARIANTS, read

from hostler.catalog.error_rules import explain

TEXTS = [*read(CASES), *read(VARIANTS)]


def nested(text: str) -> str:
    return json.dumps({"error": {"details": json.dumps({"inner": json.dumps({"text": text})})}})


def framed(text: str) -> str:
    inside = text.replace("\n", "\n│ ")
    return f'╷\n│ Error: {inside}\n│ \n│   with x.y["3"],\n│   on main.tf line 24, in resource "x" "y":\n╵'


def other_ids(text: str) -> str:
    text = re.sub(r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b", "11111111-2222-3333-4444-555555555555", text)
    text = re.sub(r"(?i)(request ?id['\"]?[:= ]+['\"]?)[\w-]+", r"\g<1>R-42", text)
    return re.sub(r"\bi-[0-9a-f]{8,17}\b", "i-0aaaabbbbccccdddd", text)


CHANGES = {
    "exception": lambda text: f"RuntimeError({text!r})",
    "traceback": lambda text: (
        f'Traceback (most recent call last):\n  File "/app/x.py", line 403, in run\n    raise E\np.E: {text}'
    ),
    "json": lambda text: json.dumps({"message": text}),
    "json three deep": nested,
    "log stamps": lambda text: "\n".join(f"2024-05-01 10:00:00,123 ERROR prov.py:429 -- {line}" for line in text.split("\n")),
    "glog stamps": lambda text: "\n".join(f"E 07-10 16:31:25 backend.py:2011] {line}" for line in text.split("\n")),
    "ISO stamp": lambda text: f"2024-05-01T10:00:00.123Z [ERROR] {text}",
    "lower case": str.lower,
    "upper case": str.upper,
    "blanks": lambda text: text.replace(" ", "  "),
    "line breaks": lambda text: "\n\t " + re.sub(r"([.,;:] )", r"\1\n ", text) + "  \n",
    "retrying": lambda text: f"{text}, retrying.",
    "bytes": lambda text: text.encode(),
    "document": lambda text: {"error": {"message": text}},
    "HTML": lambda text: text.replace('"', "&quot;").replace("'", "&#39;"),
    "quotes": repr,
    "ids": other_ids,
    "Terraform's frame": framed,
    "long log before": lambda text: "a line of a log that says nothing\n" * 150 + text,
    "long log after": lambda text: text + "\na line of a log that says nothing" * 150,
}


@pytest.mark.parametrize("change", CHANGES, ids=lambda name: name.replace(" ", "-"))
def test_explain_when_the_text_is_wrapped_or_rewritten_then_the_action_stays(change):
    changed = [
        (case["id"], case["right"]["action"], found)
        for case in TEXTS
        if (found := explain(case["cloud"], case["call"], CHANGES[change](case["raw"])).action) != case["right"]["action"]
    ]
    assert changed == []


AWS = (
    "An error occurred (InsufficientInstanceCapacity) when calling the RunInstances operation: We currently do not have sufficient "
    "{kind} capacity in the Availability Zone you requested ({failed}). You can currently get {kind} capacity by not specifying an "
    "Availability Zone in your request or choosing {good}."
)
GOOGLE = (
    "code: ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS metadatas: attachment: nvidia-l4:1 vmType: {kind} zone: {failed} "
    "zonesAvailable: {good} reason: resource_availability"
)
REGION = st.sampled_from(["us-east-1", "eu-central-1", "ap-southeast-2", "us-gov-west-1", "me-south-1", "il-central-1"])
GOOGLE_REGION = st.sampled_from(["us-central1", "europe-west12", "northamerica-northeast1", "me-west1", "asia-southeast2"])
LETTERS = st.lists(st.sampled_from("abcdef"), min_size=2, max_size=6, unique=True)


@given(
    region=REGION,
    letters=LETTERS,
    kind=st.sampled_from(["p5.48xlarge", "g6e.12xlarge", "trn1.32xlarge", "u-6tb1.metal", "p3dn.24xlarge"]),
)
def test_explain_when_amazon_names_any_zones_and_type_then_they_are_the_hints(region, letters, kind):
    failed, *good = (region + letter for letter in letters)
    found = explain("aws", "RunInstances", AWS.format(kind=kind, failed=failed, good=", ".join(good)))
    assert (found.action, found.hints["failed_zone"], found.hints["suggested_zones"]) == ("next_zone", failed, good)
    assert found.hints["type"] == kind


@given(
    region=GOOGLE_REGION,
    letters=LETTERS,
    kind=st.sampled_from(["a3-highgpu-8g", "g2-standard-96", "n1-highmem-2", "a2-ultragpu-1g"]),
)
def test_explain_when_google_names_any_zones_and_type_then_they_are_the_hints(region, letters, kind):
    failed, *good = (f"{region}-{letter}" for letter in letters)
    found = explain("gcp", "instances.insert", GOOGLE.format(kind=kind, failed=failed, good=",".join(good)))
    assert (found.action, found.hints["failed_zone"], found.hints["suggested_zones"]) == ("next_zone", failed, good)
    assert found.hints["type"] == kind


@given(limit=st.integers(0, 10**6), usage=st.integers(0, 10**6), needed=st.integers(1, 10**6))
def test_explain_when_azure_tells_any_numbers_then_they_are_the_hints(limit, usage, needed):
    text = (
        "(QuotaExceeded) Operation could not be completed as it results in exceeding approved standardNDSH100v5Family Cores quota. "
        f"Additional details - Location: eastus, Current Limit: {limit}, Current Usage: {usage}, Additional Required: {needed}, "
        f"(Minimum) New Limit Required: {usage + needed}."
    )
    found = explain("azure", "vm create", text)
    assert found.action == "fatal_quota"
    assert (found.hints["limit"], found.hints["usage"], found.hints["needed"]) == (limit, usage, needed)


RATES = [
    "Quota exceeded for quota metric 'Read requests' and limit 'Read requests per minute' of service 'compute.googleapis.com'",
    "Request limit exceeded.",
    "429 Too Many Requests",
    "Request was denied due to user flow control.",
    "Number of requests for action 'x' exceeded the limit of '50' for time interval '00:05:00'.",
]


@pytest.mark.parametrize("cloud", ["aws", "gcp", "azure", "alibaba", "lambda", "nobody"])
@pytest.mark.parametrize("status", [400, 403, 429, 503])
@pytest.mark.parametrize("text", RATES)
def test_explain_when_a_rate_is_told_with_any_status_then_it_is_neither_quota_nor_auth(cloud, status, text):
    found = explain(cloud, "create", f"HTTP {status}: Forbidden. {text}")
    assert (found.action, found.error) == ("throttle_backoff", "CloudThrottledError")


STOCKS = [
    "out of stock",
    "out of host capacity",
    "not enough capacity",
    "no more capacity in the zone",
    "insufficient GPU instances",
]


@pytest.mark.parametrize("cloud", ["aws", "gcp", "azure", "alibaba", "lambda", "nobody"])
@pytest.mark.parametrize("status", [400, 403, 429, 500, 503])
@pytest.mark.parametrize("text", STOCKS)
def test_explain_when_stock_is_told_with_any_status_then_it_is_neither_quota_nor_auth(cloud, status, text):
    found = explain(cloud, "create", f"HTTP {status}: Forbidden. {text}")
    assert found.error == "InsufficientCapacityError"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=30),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=10), inner, max_size=4),
    max_leaves=20,
)
ANY_CLOUD = st.sampled_from(["aws", "gcp", "gcp-tpu", "azure", "alibaba", "lambda", ""]) | st.text(max_size=20)


@settings(deadline=None)
@given(cloud=ANY_CLOUD, call=st.text(max_size=30), raw=st.text() | st.binary() | JSON)
def test_explain_when_anything_at_all_comes_then_it_is_answered(cloud, call, raw):
    found = explain(cloud, call, raw)
    assert found.action
    assert found.scope
    json.dumps(dict(found.hints))


@settings(deadline=None)
@given(st.data())
def test_explain_when_pieces_of_real_texts_are_mixed_then_it_is_answered(data):
    pieces = data.draw(st.lists(st.sampled_from([case["raw"] for case in TEXTS]), min_size=1, max_size=4))
    cut = data.draw(st.integers(0, 400))
    found = explain(data.draw(ANY_CLOUD), data.draw(st.text(max_size=10)), "".join(piece[cut:] for piece in pieces))
    json.dumps(dict(found.hints))

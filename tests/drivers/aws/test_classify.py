import json
import logging
import re
from pathlib import Path

import botocore.exceptions as sdk
import pytest
from botocore.exceptions import ClientError
from botocore.parsers import ResponseParserError

from hostler.catalog.aws_quota import quota_for
from hostler.catalog.error_rules.aws import CODES
from hostler.cloud.errors import (
    AlreadyExistsError,
    AnswerLostError,
    CloudAuthError,
    CloudConfigError,
    CloudError,
    CloudThrottledError,
    CloudUnavailableError,
    InsufficientCapacityError,
    NodeNotFoundError,
    QuotaExceededError,
    SpotUnavailableError,
    TeardownRefusedError,
)
from hostler.drivers.aws.classify import classify, drawn, suggested_zones
from hostler.model.enums import CapacityType

CASES = next(
    (
        found
        for folder in Path(__file__).parents
        if (found := folder / "shared" / "data" / "cloud-errors" / "cases.jsonl").exists()
    ),
    None,
)

CAPACITY_TEXT = (
    "We currently do not have sufficient m6a.24xlarge capacity in the Availability Zone you requested (us-west-2a). Our system "
    "will be working on provisioning additional capacity. You can currently get m6a.24xlarge capacity by not specifying an "
    "Availability Zone in your request or choosing us-west-2b, us-west-2c, us-west-2d."
)
"""The text that EC2 sends; as reported in sourcegraph/sourcegraph-public-snapshot#46617."""


def answer(code: str, text: str = "", status: int = 400, headers: dict | None = None) -> ClientError:
    metadata = {"HTTPStatusCode": status, "HTTPHeaders": headers or {}}
    return ClientError({"Error": {"Code": code, "Message": text}, "ResponseMetadata": metadata}, "RunInstances")


def draw(code: str, text: str = "", status: int = 400, effect="create", **more) -> CloudError:
    return classify(answer(code, text, status, **more), call="run_instances", effect=effect)


def test_classify_when_no_capacity_with_http_500_then_next_zone_with_the_zones_named():
    error = draw("InsufficientInstanceCapacity", CAPACITY_TEXT, 500)
    assert isinstance(error, InsufficientCapacityError)
    assert (error.scope, error.suggested_zones) == ("zone", ("us-west-2b", "us-west-2c", "us-west-2d"))
    assert error.code == "InsufficientInstanceCapacity"


def test_classify_when_capacity_text_names_no_zone_then_still_capacity():
    error = draw("InsufficientInstanceCapacity", "Insufficient capacity.", 500)
    assert isinstance(error, InsufficientCapacityError)
    assert error.suggested_zones == ()


@pytest.mark.parametrize(
    ("text", "zones"),
    [
        ("choosing us-east-2a, us-east-2b", ("us-east-2a", "us-east-2b")),
        ("choosing us-gov-west-1a.", ("us-gov-west-1a",)),
        ("choosing us-west-2-lax-1a, us-west-2b, retrying.", ("us-west-2-lax-1a", "us-west-2b")),
        ("you requested (us-east-1a) or choosing none", ()),
        ("", ()),
    ],
)
def test_suggested_zones_when_text_varies_then_only_those_advised(text, zones):
    assert suggested_zones(text) == zones


@pytest.mark.parametrize(
    ("code", "text", "status", "kind"),
    [
        ("VcpuLimitExceeded", "more vCPU capacity than your current vCPU limit of 0 allows", 400, QuotaExceededError),
        ("SomethingNewLimitExceeded", "", 400, QuotaExceededError),
        ("MaxSpotInstanceCountExceeded", "", 400, SpotUnavailableError),
        ("SpotMaxPriceTooLow", "Your Spot request price of 0.001 is lower than the minimum", 400, SpotUnavailableError),
        ("RequestLimitExceeded", "Request limit exceeded.", 503, CloudThrottledError),
        ("EC2ThrottledException", "", 400, CloudThrottledError),
        ("RequestRateTooHighThrottling", "", 400, CloudThrottledError),
        ("UnauthorizedOperation", "You are not authorized", 403, CloudAuthError),
        ("AuthFailure", "", 401, CloudAuthError),
        ("AccessDeniedByNewRule", "", 403, CloudAuthError),
        ("ExpiredTokenException", "", 400, CloudAuthError),
        ("InsufficientCapacityOnOutpost", "", 500, InsufficientCapacityError),
        ("InsufficientFreeAddressesInSubnet", "", 400, InsufficientCapacityError),
        (
            "Unsupported",
            "type (p3) is not supported in your requested Availability Zone (us-east-2c)",
            400,
            InsufficientCapacityError,
        ),
        ("Unsupported", "The requested configuration is currently not supported.", 400, CloudConfigError),
        ("InvalidAMIID.NotFound", "", 400, CloudConfigError),
        ("InvalidSomethingNew.Malformed", "", 400, CloudConfigError),
        ("ReservationCapacityExceeded", "", 400, CloudConfigError),
        ("IdempotentParameterMismatch", "", 400, AlreadyExistsError),
        ("IdempotentInstanceTerminated", "", 400, AlreadyExistsError),
        ("InternalError", "", 500, AnswerLostError),
        ("Unavailable", "", 503, AnswerLostError),
        ("BrandNew", "", 500, AnswerLostError),
        ("BrandNew", "We do not have sufficient g9 capacity", 500, InsufficientCapacityError),
        ("BrandNew", "You have reached the limit of nodes", 400, QuotaExceededError),
        ("BrandNew", "Rate exceeded", 400, CloudThrottledError),
        ("BrandNew", "", 429, CloudThrottledError),
        ("BrandNew", "", 403, CloudAuthError),
        ("BrandNew", "", 400, InsufficientCapacityError),
    ],
)
def test_classify_when_a_create_is_answered_with_an_error_then_the_caller_knows_what_next(code, text, status, kind):
    assert type(draw(code, text, status)) is kind


@pytest.mark.parametrize(
    ("code", "status", "effect", "kind"),
    [
        ("InternalError", 500, "read", CloudUnavailableError),
        ("InternalError", 500, "delete", CloudUnavailableError),
        ("BrandNew", 500, "delete", CloudUnavailableError),
        ("BrandNew", 400, "delete", TeardownRefusedError),
        ("BrandNew", 400, "read", CloudUnavailableError),
        ("OperationNotPermitted", 400, "delete", TeardownRefusedError),
        ("OperationNotPermitted", 400, "create", CloudConfigError),
        ("IncorrectInstanceState", 400, "delete", TeardownRefusedError),
        ("InvalidInstanceID.NotFound", 400, "delete", NodeNotFoundError),
        ("InvalidInstanceID.NotFound", 400, "read", NodeNotFoundError),
        ("InvalidInstanceID.Malformed", 400, "delete", CloudConfigError),
        ("RequestLimitExceeded", 503, "delete", CloudThrottledError),
        ("UnauthorizedOperation", 403, "delete", CloudAuthError),
    ],
)
def test_classify_when_a_read_or_delete_fails_then_it_is_never_a_lost_answer(code, status, effect, kind):
    assert type(draw(code, status=status, effect=effect)) is kind


def test_classify_when_code_is_unknown_then_logged_as_unknown(caplog):
    with caplog.at_level(logging.WARNING):
        draw("BrandNew", "what is this", 400)
    assert "unknown error code 'BrandNew' (HTTP 400): what is this" in caplog.text


def test_classify_when_throttled_with_retry_after_then_seconds_are_kept():
    assert draw("Throttling", headers={"retry-after": "7"}).retry_after_s == 7
    assert draw("Throttling", headers={"retry-after": "Wed, 21 Oct 2026 07:28:00 GMT"}).retry_after_s is None
    assert draw("Throttling", headers={"retry-after": "-1"}).retry_after_s is None
    assert draw("Throttling").retry_after_s is None


def test_classify_when_quota_is_known_then_its_name_and_unit_are_told():
    quota = quota_for("p5.48xlarge", CapacityType.ON_DEMAND)
    error = classify(answer("VcpuLimitExceeded", "limit of 96"), call="run_instances", effect="create", quota=quota)
    assert isinstance(error, QuotaExceededError)
    assert (error.quota, error.unit) == ("Running On-Demand P instances (L-417A185B)", "vCPU")
    assert "limit of 96" in str(error)


def test_classify_when_quota_is_of_another_kind_then_the_vcpu_quota_is_not_blamed():
    quota = quota_for("p5.48xlarge", CapacityType.ON_DEMAND)
    error = classify(answer("VolumeLimitExceeded"), call="run_instances", effect="create", quota=quota)
    assert (error.quota, error.unit) == ("", "volumes")


def test_classify_when_text_has_keys_or_the_encoded_message_then_they_are_left_out():
    error = draw(
        "UnauthorizedOperation", "No. AKIAIOSFODNN7EXAMPLE Encoded authorization failure message: g4oZPBqZ4Bni8dE5", 403
    )
    assert "AKIA" not in str(error)
    assert "g4oZ" not in str(error)
    assert len(str(draw("BrandNew", "x" * 5000))) < 1000


URL = {"endpoint_url": "http://127.0.0.1:1"}


@pytest.mark.parametrize(
    ("error", "as_create", "as_read"),
    [
        (sdk.EndpointConnectionError(error="refused", **URL), CloudUnavailableError, CloudUnavailableError),
        (sdk.ConnectTimeoutError(error="slow", **URL), CloudUnavailableError, CloudUnavailableError),
        (sdk.ReadTimeoutError(error="slow", **URL), AnswerLostError, CloudUnavailableError),
        (sdk.ConnectionClosedError(error="cut", **URL), AnswerLostError, CloudUnavailableError),
        (sdk.HTTPClientError(error="?"), AnswerLostError, CloudUnavailableError),
        (sdk.SSLError(error="CERTIFICATE_VERIFY_FAILED", **URL), CloudConfigError, CloudConfigError),
        (sdk.SSLError(error="EOF", **URL), AnswerLostError, CloudUnavailableError),
        (ResponseParserError("<html>"), AnswerLostError, CloudUnavailableError),
        (sdk.NoCredentialsError(), CloudAuthError, CloudAuthError),
        (sdk.CredentialRetrievalError(provider="sso", error_msg="x"), CloudAuthError, CloudAuthError),
        (sdk.UnauthorizedSSOTokenError(), CloudAuthError, CloudAuthError),
        (sdk.ParamValidationError(report="x"), CloudConfigError, CloudConfigError),
        (sdk.NoRegionError(), CloudConfigError, CloudConfigError),
        (sdk.EndpointProviderError(msg="x"), CloudConfigError, CloudConfigError),
        (KeyError("InstanceId"), AnswerLostError, CloudUnavailableError),
    ],
)
def test_classify_when_the_sdk_fails_then_what_was_sent_decides(error, as_create, as_read):
    assert type(classify(error, call="c", effect="create")) is as_create
    assert type(classify(error, call="c", effect="read")) is as_read


def test_drawn_when_anything_breaks_then_only_drawn_errors_leave_with_their_cause():
    original = ZeroDivisionError("x")
    with pytest.raises(AnswerLostError) as caught, drawn("c", "create"):
        raise original
    assert caught.value.__cause__ is original


def test_drawn_when_already_drawn_then_untouched():
    original = CloudConfigError("x")
    with pytest.raises(CloudConfigError) as caught, drawn("c", "create"):
        raise original
    assert caught.value is original


def test_codes_when_listed_then_each_has_a_source():
    assert all(meaning.source for meaning in CODES.values())


ON_THE_NODE = {
    "o055": "a notice that the node's own agent reads from its metadata service",
    "o056": "an event of the event bus; the driver polls, the agent reads the node's metadata service",
    "o057": "not an error but a state: see test_notices",
}


def actions_of(error: CloudError) -> set[str]:
    """What a caller does next on each type, in the words of the case file."""
    if isinstance(error, InsufficientCapacityError):
        return {{"zone": "next_zone", "region": "next_region", "type": "next_instance_type"}[error.scope]}
    return {
        SpotUnavailableError: {"switch_capacity_type"},
        QuotaExceededError: {"fatal_quota"},
        CloudThrottledError: {"throttle_backoff"},
        CloudAuthError: {"fatal_auth"},
        CloudConfigError: {"fatal_config"},
    }.get(type(error), set())


def code_in(raw: str) -> str:
    """The code as the report shows it: the SDK would hand it over apart from the text."""
    tokens = re.findall(r"[A-Za-z]+(?:[.-][A-Za-z]+(?:-[a-z]+)*)*", raw)
    known = [token for token in tokens if token in CODES or token == "Unsupported"]
    return known[0] if known else ""


def status_in(raw: str) -> int:
    found = re.search(r"(?i)status ?code: (\d+)|code (\d{3}),", raw)
    return int(found.group(1) or found.group(2)) if found else 400


@pytest.mark.skipif(CASES is None, reason="shared/data/cloud-errors/cases.jsonl is not here; it may not be redistributed")
def test_classify_when_real_texts_are_met_then_each_leads_to_the_right_action():
    wrong = []
    cases = [json.loads(line) for line in CASES.read_text().splitlines()]
    ours = [case for case in cases if case["cloud"] == "aws" and case["id"] not in ON_THE_NODE]
    for case in ours:
        error = draw(code_in(case["raw"]), case["raw"], status_in(case["raw"]))
        right = {case["right"]["action"], *case["right"]["also_acceptable"]}
        if not actions_of(error) & right:
            wrong.append((case["id"], type(error).__name__, right))
        hints = case["right"]["hints"].get("suggested_zones")
        if hints and getattr(error, "suggested_zones", ()) != tuple(hints):
            wrong.append((case["id"], error.suggested_zones, hints))
    assert wrong == []
    assert len(ours) == 22

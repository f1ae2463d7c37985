"""What nobody has seen: the safe default, said aloud. And the kinds of reports B08, B44 and B47."""

import logging

import pytest

from hostler.catalog.error_rules import explain


@pytest.mark.parametrize("cloud", ["aws", "gcp", "azure", "alibaba", "nobody", ""])
@pytest.mark.parametrize("raw", ["zorp", "", None, 17, b"\xff\xfe", "E" * 300_000, {"a": [1, {"b": None}]}])
def test_explain_when_a_create_fails_in_an_unknown_way_then_tried_again_a_few_times_and_then_the_next_zone(cloud, raw):
    found = explain(cloud, "create", raw)
    assert (found.action, found.is_unknown) == ("retry_same_zone_later", True)
    assert (found.hints["attempts"], found.hints["then"]) == (3, "next_zone")


def test_explain_when_a_delete_fails_in_an_unknown_way_then_tried_without_end():
    found = explain("nobody", "delete", "zorp")
    assert (found.action, found.error, found.is_unknown) == ("teardown_retry", "TeardownRefusedError", True)


def test_explain_when_unknown_then_logged_without_keys(caplog):
    with caplog.at_level(logging.WARNING):
        explain("aws", "RunInstances", "zorp AKIAIOSFODNN7EXAMPLE Encoded authorization failure message: g4oZPBqZ")
    assert "unknown error of aws in RunInstances: zorp" in caplog.text
    assert "AKIA" not in caplog.text
    assert "g4oZ" not in caplog.text


def test_explain_when_known_then_not_logged(caplog):
    with caplog.at_level(logging.WARNING):
        explain("aws", "RunInstances", "InsufficientInstanceCapacity: none")
    assert caplog.text == ""


@pytest.mark.parametrize("depth", [10, 100_000])
def test_explain_when_a_document_is_deep_then_it_is_read_all_the_same(depth):
    document: object = {"code": "ZonalAllocationFailed"}
    for _ in range(depth):
        document = {"details": [document]} if depth < 100 else [document]
    found = explain("azure", "vm create", document)
    assert found.action == ("next_zone" if depth < 100 else "retry_same_zone_later")


def test_explain_when_a_document_is_given_then_its_code_is_found():
    document = {"error": {"code": "", "message": None, "n": 1.5}, "status": "SkuNotAvailable", "ok": False}
    assert explain("azure", "vm create", document).action == "next_region"


@pytest.mark.parametrize("spelling", ["", "_WITH_DETAILS", "_V2", "_FOR_RESERVED_GPUS", "_WITH_DETAILS_2"])
def test_explain_when_a_stock_out_is_spelled_in_a_new_way_then_it_is_still_one(spelling):
    found = explain("gcp", "instances.insert", f"Got error code ZONE_RESOURCE_POOL_EXHAUSTED{spelling} in us-west1-b")
    assert (found.action, found.is_unknown) == ("next_zone", False)


@pytest.mark.parametrize(
    ("cloud", "code", "action"),
    [
        ("aws", "InsufficientAcceleratorCapacity", "next_zone"),
        ("aws", "GpuLimitExceeded", "fatal_quota"),
        ("aws", "EC2RequestRateThrottled", "throttle_backoff"),
        ("aws", "AccessDeniedBySomething", "fatal_auth"),
        ("azure", "RegionalAllocationFailedForGpu", "next_zone"),
        ("azure", "SpotQuotaExceededForSubscription", "fatal_quota"),
        ("alibaba", "OperationDenied.NoStockInZone", "next_zone"),
        ("alibaba", "QuotaExceed.SomethingElse", "fatal_quota"),
        ("alibaba", "Throttling.Something", "throttle_backoff"),
        ("nobody", "INSUFFICIENT_GPU_CAPACITY", "next_zone"),
        ("nobody", "too_many_requests", "throttle_backoff"),
        ("nobody", "QUOTA_EXCEEDED_FOR_PROJECT", "fatal_quota"),
    ],
)
def test_explain_when_a_code_of_a_known_kind_is_new_then_its_kind_decides(cloud, code, action):
    found = explain(cloud, "create", f'{{"error": {{"code": "{code}", "message": "no words that help"}}}}')
    assert (found.action, found.is_unknown) == (action, False)


def test_explain_when_a_status_read_is_throttled_and_the_create_collides_then_wait_and_adopt():
    read = "403 Quota exceeded for quota metric 'Read requests' and limit 'Read requests per minute per region' of service 'x'"
    assert explain("gcp", "instances.get", read).action == "throttle_backoff"
    collided = "409 POST https://x/instances: The resource 'projects/p/zones/z/instances/n' already exists"
    found = explain("gcp", "instances.insert", collided)
    assert (found.action, found.error) == ("adopt_existing", "AlreadyExistsError")


@pytest.mark.parametrize(
    "text", ["VcpuLimitExceeded: your current vCPU limit of 96 allows", "InsufficientInstanceCapacity: none"]
)
def test_explain_when_a_stopped_machine_cannot_be_started_then_nothing_is_started_elsewhere(text):
    found = explain("aws", "StartInstances", text)
    assert found.action in {"fatal_quota", "retry_same_zone_later"}
    assert found.hints["no_failover"] is True


@pytest.mark.parametrize(
    ("name", "raw"),
    [
        ("EKS", "InsufficientInstanceCapacity"),
        ("gke", "GCE_STOCKOUT"),
        ("AKS", "SkuNotAvailable"),
        ("aliyun", "OperationDenied.NoStock"),
    ],
)
def test_explain_when_a_cloud_goes_by_another_name_then_its_table_is_used(name, raw):
    assert explain(name, "create", raw).error == "InsufficientCapacityError"

"""The small HTTP client of price APIs; what clouds answer is tested with each cloud."""

import pytest
from tests.clouds.price_apis import PriceApis, Refusal

from hostler.cloud.errors import CloudConfigError, CloudThrottledError, CloudUnavailableError
from hostler.cloud.json_http import ask, same_place


@pytest.fixture
def apis():
    made = PriceApis()
    yield made
    made.stop()


@pytest.mark.parametrize("url", ["file:///etc/passwd", "ftp://example.invalid/x", "no address"])
def test_ask_when_address_is_not_http_then_refused_unread(url):
    with pytest.raises(CloudConfigError, match="allowed are http"):
        ask(url)


@pytest.mark.parametrize(
    "link",
    [
        "http://127.0.0.1:81/x",
        "https://127.0.0.1:80/x",
        "http://127.0.0.2/x",
        "//evil.invalid/x",
        "http://127.0.0.1@evil.invalid/x",
    ],
)
def test_same_place_when_link_leads_elsewhere_then_refused(link):
    with pytest.raises(CloudConfigError, match="not followed"):
        same_place("http://127.0.0.1/list", link)


def test_same_place_when_link_is_of_the_host_then_followed():
    assert (
        same_place("https://prices.invalid/a", "https://prices.invalid:443/a?page=2") == "https://prices.invalid:443/a?page=2"
    )


def test_ask_when_refusal_is_about_the_rate_then_throttled_whatever_its_status(apis):
    apis.refusals.append(Refusal(403, b'{"error": {"details": [{"reason": "RATE_LIMIT_EXCEEDED"}]}}'))
    with pytest.raises(CloudThrottledError):
        ask(f"{apis.url}/api/retail/prices", query={"$filter": "armSkuName eq 'x'"})


def test_ask_when_answer_is_too_large_then_refused(apis, monkeypatch):
    monkeypatch.setattr("hostler.cloud.json_http.MAX_BYTES", 10)
    apis.refusals.append(Refusal(200, b'{"a": "' + b"x" * 100 + b'"}'))
    with pytest.raises(CloudUnavailableError, match="larger than 10 bytes"):
        ask(f"{apis.url}/x")

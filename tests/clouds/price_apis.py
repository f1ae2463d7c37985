"""The price APIs of four clouds on loopback, in the shapes that their makers publish.

Sources: botocore's models of ``pricing`` 2017-10-15 and ``ec2`` 2016-11-15 (whose parser reads what is said here); learn.microsoft.com
rest/api/cost-management/retail-prices; cloud.google.com/billing/docs/reference/rest/v1/services.skus; alibabacloud.com/help/ecs
DescribePrice and DescribeSpotPriceHistory, and its RPC signature.
"""

import base64
import hashlib
import hmac
import json
import re
import threading
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, quote, urlsplit

KEY = "AIza-made-up"
ACCESS_KEY = ("LTAI-made-up", "made-up-secret")
AT = datetime(2026, 11, 30, 12, tzinfo=UTC)


@dataclass
class Refusal:
    """What a call is answered with in the place of prices."""

    status: int
    body: bytes = b"{}"
    headers: dict[str, str] = field(default_factory=dict)


class PriceApis:
    """One server that speaks all four.

    Attributes:
        aws_products, aws_spot, azure_items, skus, alibaba: what is told. page: most items a page.
        refusals: answers for the next calls, in order. calls: (what, arguments) of each call.
    """

    def __init__(self) -> None:
        self.aws_products: list[dict[str, Any]] = []
        self.aws_spot: list[dict[str, str]] = []
        self.azure_items: list[dict[str, Any]] = []
        self.skus: list[dict[str, Any]] = []
        self.alibaba: dict[tuple[str, str], dict[str, Any]] = {}
        self.page = 2
        self.refusals: list[Refusal] = []
        self.calls: list[tuple[str, dict[str, Any]]] = []
        handler = type("Handler", (_Handler,), {"apis": self})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def sell_aws(self, region: str, name: str, price: str, *, currency: str = "USD", **changes: str) -> None:
        """Adds a product with its on-demand term."""
        attributes = {
            "instanceType": name,
            "regionCode": region,
            "locationType": "AWS Region",
            "operatingSystem": "Linux",
            "tenancy": "Shared",
            "preInstalledSw": "NA",
            "capacitystatus": "Used",
            **changes,
        }
        sku = f"SKU{len(self.aws_products)}"
        dimension = {"unit": "Hrs", "beginRange": "0", "endRange": "Inf", "pricePerUnit": {currency: price}, "appliesTo": []}
        term = {"sku": sku, "effectiveDate": "2026-11-01T00:00:00Z", "priceDimensions": {f"{sku}.1": dimension}}
        self.aws_products.append(
            {
                "product": {"productFamily": "Compute Instance", "attributes": attributes, "sku": sku},
                "serviceCode": "AmazonEC2",
                "terms": {"OnDemand": {f"{sku}.JRTCKXETXF": term}},
            }
        )

    def sell_azure(
        self,
        region: str,
        name: str,
        price: float,
        *,
        suffix: str = "",
        product: str = "Virtual Machines NC Series",
        **changes: Any,
    ) -> None:
        """Adds a meter; ``suffix`` is `` Spot`` or `` Low Priority``."""
        self.azure_items.append(
            {
                "currencyCode": "USD",
                "tierMinimumUnits": 0.0,
                "retailPrice": price,
                "unitPrice": price,
                "armRegionName": region,
                "location": region,
                "effectiveStartDate": "2026-11-01T00:00:00Z",
                "meterName": f"{name}{suffix}",
                "productName": product,
                "skuName": f"{name}{suffix}",
                "serviceName": "Virtual Machines",
                "unitOfMeasure": "1 Hour",
                "type": "Consumption",
                "armSkuName": name,
                **changes,
            }
        )

    def sell_google(
        self,
        description: str,
        price: str,
        *,
        group: str,
        unit: str = "h",
        usage: str = "OnDemand",
        regions: tuple[str, ...] = ("us-central1",),
    ) -> None:
        """Adds a line of the price list."""
        units, _, rest = price.partition(".")
        unit_price = {"currencyCode": "USD", "units": units, "nanos": int((rest + "0" * 9)[:9])}
        expression = {"usageUnit": unit, "tieredRates": [{"startUsageAmount": 0, "unitPrice": unit_price}]}
        family = "Storage" if group == "LocalSSD" else "Compute"
        self.skus.append(
            {
                "name": f"services/6F81-5844-456A/skus/{len(self.skus)}",
                "skuId": str(len(self.skus)),
                "description": description,
                "category": {
                    "serviceDisplayName": "Compute Engine",
                    "resourceFamily": family,
                    "resourceGroup": group,
                    "usageType": usage,
                },
                "serviceRegions": list(regions),
                "pricingInfo": [{"effectiveTime": "2026-11-02T00:00:00Z", "pricingExpression": expression}],
            }
        )

    def sell_alibaba(self, region: str, name: str, price: float, *, spot: dict[str, list[float]] | None = None) -> None:
        """Adds a type; ``spot``: zone -> its prices, the newest last."""
        self.alibaba[region, name] = {"price": price, "spot": spot or {}}


class _Handler(BaseHTTPRequestHandler):
    apis: PriceApis

    def log_message(self, *_):
        pass

    def do_GET(self):
        parts = urlsplit(self.path)
        query = {name: values[0] for name, values in parse_qs(parts.query).items()}
        if self._refused():
            return
        if parts.path == "/api/retail/prices":
            self._azure(query)
        elif re.fullmatch(r"/v1/services/[^/]+/skus", parts.path):
            self._google(query)
        else:
            self._say(404, {"error": {"code": 404}})

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        if self._refused():
            return
        if target := self.headers.get("X-Amz-Target"):
            self._aws_products(target, json.loads(body))
            return
        form = {name: values[0] for name, values in parse_qs(body, keep_blank_values=True).items()}
        if form.get("Version") == "2014-05-26":
            self._alibaba(form)
        else:
            self._aws_spot(form)

    def _refused(self) -> bool:
        if not self.apis.refusals:
            return False
        refusal = self.apis.refusals.pop(0)
        self.send_response(refusal.status)
        for name, value in refusal.headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(refusal.body)))
        self.end_headers()
        self.wfile.write(refusal.body)
        return True

    def _say(self, status: int, document: Any, kind: str = "application/json") -> None:
        body = document if isinstance(document, bytes) else json.dumps(document).encode()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _part(self, items: list[Any], start: int) -> tuple[list[Any], int | None]:
        end = start + self.apis.page
        return items[start:end], end if end < len(items) else None

    def _aws_products(self, target: str, asked: dict[str, Any]) -> None:
        self.apis.calls.append((target, asked))
        assert target == "AWSPriceListService.GetProducts"
        assert asked["MaxResults"] <= 100
        wanted = {item["Field"]: item["Value"] for item in asked["Filters"]}
        found = [
            item
            for item in self.apis.aws_products
            if all(item["product"]["attributes"].get(name, value) == value for name, value in wanted.items())
        ]
        part, following = self._part(found, int(asked.get("NextToken") or 0))
        answer: dict[str, Any] = {"FormatVersion": "aws_v1", "PriceList": [json.dumps(item) for item in part]}
        if following:
            answer["NextToken"] = str(following)
        self._say(200, answer, "application/x-amz-json-1.1")

    def _aws_spot(self, form: dict[str, str]) -> None:
        self.apis.calls.append((form["Action"], form))
        names = {value for name, value in form.items() if name.startswith("InstanceType.")}
        region = re.search(r"/([a-z0-9-]+)/ec2/", self.headers["Authorization"])[1]
        found = [
            item for item in self.apis.aws_spot if item["instanceType"] in names and item["availabilityZone"].startswith(region)
        ]
        part, following = self._part(found, int(form.get("NextToken") or 0))
        items = "".join(
            "<item>" + "".join(f"<{name}>{value}</{name}>" for name, value in item.items()) + "</item>" for item in part
        )
        more = f"<nextToken>{following}</nextToken>" if following else "<nextToken/>"
        name = "DescribeSpotPriceHistoryResponse"
        text = f'<{name} xmlns="http://ec2.amazonaws.com/doc/2016-11-15/"><spotPriceHistorySet>{items}</spotPriceHistorySet>{more}</{name}>'
        self._say(200, text.encode(), "text/xml")

    def _azure(self, query: dict[str, str]) -> None:
        self.apis.calls.append(("retail", query))
        name = re.search(r"armSkuName eq '([^']*)'", query["$filter"])[1]
        found = [item for item in self.apis.azure_items if item["armSkuName"] == name]
        part, following = self._part(found, int(query.get("$skip", 0)))
        link = None
        if following:
            link = f"{self.apis.url}/api/retail/prices?$filter={quote(query['$filter'])}&$skip={following}"
        self._say(200, {"BillingCurrency": "USD", "Items": part, "NextPageLink": link, "Count": len(part)})

    def _google(self, query: dict[str, str]) -> None:
        self.apis.calls.append(("skus", query))
        if self.headers.get("X-Goog-Api-Key") != KEY:
            self._say(403, {"error": {"code": 403, "status": "PERMISSION_DENIED"}})
            return
        part, following = self._part(self.apis.skus, int(query.get("pageToken") or 0))
        self._say(200, {"skus": part, "nextPageToken": str(following or "")})

    def _alibaba(self, form: dict[str, str]) -> None:
        self.apis.calls.append((form["Action"], form))
        if form.pop("Signature") != _signature(form):
            self._say(400, {"Code": "SignatureDoesNotMatch", "Message": "Specified signature is not matched."})
            return
        sold = self.apis.alibaba.get((form["RegionId"], form["InstanceType"]))
        if sold is None:
            self._say(403, {"Code": "InvalidInstanceType.NotSupported", "Message": "not here"})
        elif form["Action"] == "DescribePrice":
            machine = {
                "Resource": "instanceType",
                "OriginalPrice": sold["price"],
                "TradePrice": sold["price"],
                "DiscountPrice": 0.0,
            }
            disk = {"Resource": "systemDisk", "OriginalPrice": 0.03, "TradePrice": 0.03, "DiscountPrice": 0.0}
            whole = {"OriginalPrice": sold["price"] + 0.03, "TradePrice": sold["price"] + 0.03, "Currency": "CNY"}
            whole["DetailInfos"] = {"DetailInfo": [disk, machine]}
            self._say(200, {"RequestId": "0", "PriceInfo": {"Price": whole, "Rules": {"Rule": []}}})
        else:
            history = [
                {
                    "ZoneId": zone,
                    "InstanceType": form["InstanceType"],
                    "SpotPrice": price,
                    "OriginPrice": sold["price"],
                    "Timestamp": f"2026-11-30T{hour:02}:00:00Z",
                    "NetworkType": "vpc",
                    "IoOptimized": "optimized",
                }
                for zone, prices in sold["spot"].items()
                for hour, price in enumerate(prices)
            ]
            part, following = self._part(history, int(form["Offset"]))
            answer = {"RequestId": "0", "Currency": "CNY", "SpotPrices": {"SpotPriceType": part}, "NextOffset": following or 0}
            self._say(200, answer)


def _signature(form: dict[str, str]) -> str:
    """As the maker describes it, written without the product's own."""
    pairs = [f"{quote(name, safe='~')}={quote(form[name], safe='~')}" for name in sorted(form)]
    text = "POST&%2F&" + quote("&".join(pairs), safe="~")
    digest = hmac.new((ACCESS_KEY[1] + "&").encode(), text.encode(), hashlib.sha1).digest()
    return base64.b64encode(digest).decode()

"""What moto lacks of the account's own services: EC2's quotas at Service Quotas, IAM's simulation of a policy, a user's ARN.

Sources: Service Quotas API reference (GetServiceQuota, GetAWSDefaultServiceQuota, NoSuchResourceException); IAM API reference,
SimulatePrincipalPolicy.
"""

import json
from typing import Any, Final
from urllib.parse import unquote
from xml.sax.saxutils import escape

from hostler_sandbox.aws.call import Call
from hostler_sandbox.aws.moto_server import ACCOUNT, Answer, MotoServer
from hostler_sandbox.state.faults import Faults
from hostler_sandbox.state.quotas import Quotas

_CODES: Final = {
    "L-DB2E81BA": ("G", "on-demand", "Running On-Demand G and VT instances"),
    "L-417A185B": ("P", "on-demand", "Running On-Demand P instances"),
    "L-1945791B": ("Inf", "on-demand", "Running On-Demand Inf instances"),
    "L-2C3B7624": ("Trn", "on-demand", "Running On-Demand Trn instances"),
    "L-6E869C2A": ("DL", "on-demand", "Running On-Demand DL instances"),
    "L-3819A6DF": ("G", "spot", "All G and VT Spot Instance Requests"),
    "L-7212CCBC": ("P", "spot", "All P4, P3 and P2 Spot Instance Requests"),
    "L-C4BD4855": ("P", "spot", "All P5 Spot Instance Requests"),
    "L-B5D1601B": ("Inf", "spot", "All Inf Spot Instance Requests"),
    "L-6B0D517C": ("Trn", "spot", "All Trn Spot Instance Requests"),
    "L-85EED4F7": ("DL", "spot", "All DL Spot Instance Requests"),
}
"""Code -> bucket of the sandbox, capacity type, name. The sandbox has one spot bucket for all P types."""

_NO_LIMIT: Final = 1_000_000.0
"""Told where the sandbox has no limit."""

_JSON: Final = [("Content-Type", "application/x-amz-json-1.1")]
_XML: Final = [("Content-Type", "text/xml")]


def account_answer(call: Call, quotas: Quotas, faults: Faults, moto: MotoServer) -> Answer | None:
    """Returns the answer to a call that moto does not serve; None for all others."""
    if call.service == "sts" and call.action == "GetCallerIdentity":
        status, headers, body = moto.call(call.environ, call.body)
        # moto names a user as if it belonged to STS. Source: IAM user guide, "IAM ARNs".
        return (
            status,
            headers,
            body.replace(b"arn:aws:sts::" + ACCOUNT.encode() + b":user/", b"arn:aws:iam::" + ACCOUNT.encode() + b":user/"),
        )
    if call.service == "servicequotas" and call.action in {"GetServiceQuota", "GetAWSDefaultServiceQuota"}:
        return _quota(call, quotas)
    if call.service == "iam" and call.action == "SimulatePrincipalPolicy":
        return _simulated(call, faults)
    return None


def _quota(call: Call, quotas: Quotas) -> Answer:
    asked: dict[str, Any] = json.loads(call.body or b"{}")
    known = _CODES.get(str(asked.get("QuotaCode")))
    if asked.get("ServiceCode") != "ec2" or known is None:
        call.error = "NoSuchResourceException"
        text = "The request failed because the specified quota does not exist."
        return 400, [*_JSON, ("x-amzn-ErrorType", call.error)], json.dumps({"__type": call.error, "Message": text}).encode()
    bucket, capacity_type, name = known
    rows = (
        row
        for row in quotas.shown()
        if (row["region"], row["family"], row["capacity_type"]) == (call.region, bucket, capacity_type)
    )
    limit = next((row["limit"] for row in rows), None)
    value = _NO_LIMIT if limit is None else float(str(limit))
    quota = {
        "ServiceCode": "ec2",
        "QuotaCode": asked["QuotaCode"],
        "QuotaName": name,
        "Value": value,
        "Unit": "None",
        "Adjustable": True,
    }
    return 200, list(_JSON), json.dumps({"Quota": quota}).encode()


def _simulated(call: Call, faults: Faults) -> Answer:
    """Everything is allowed but what an ``unauthorized`` fault in force refuses."""
    names = [value for key, value in sorted(call.form.items()) if key.startswith("ActionNames.member.")]
    resources = [unquote(value) for key, value in sorted(call.form.items()) if key.startswith("ResourceArns.member.")] or ["*"]
    results = "".join(_result(name, resource, faults) for name in names for resource in resources)
    body = (
        '<SimulatePrincipalPolicyResponse xmlns="https://iam.amazonaws.com/doc/2010-05-08/"><SimulatePrincipalPolicyResult>'
        f"<IsTruncated>false</IsTruncated><EvaluationResults>{results}</EvaluationResults></SimulatePrincipalPolicyResult>"
        "<ResponseMetadata><RequestId>0</RequestId></ResponseMetadata></SimulatePrincipalPolicyResponse>"
    )
    return 200, list(_XML), body.encode()


def _result(name: str, resource: str, faults: Faults) -> str:
    service, _, action = name.partition(":")
    parts = resource.split(":")
    region = parts[3] if len(parts) > 3 else ""  # noqa: PLR2004 - of an ARN
    facts = {"service": service, "action": action, "region": region, "zone": None, "instance_type": None}
    decision = "implicitDeny" if faults.would_meet("unauthorized", facts) else "allowed"
    return (
        f"<member><EvalActionName>{escape(name)}</EvalActionName><EvalResourceName>{escape(resource)}</EvalResourceName>"
        f"<EvalDecision>{decision}</EvalDecision></member>"
    )

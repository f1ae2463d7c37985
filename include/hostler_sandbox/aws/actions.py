"""Which service, region and action a request is for: from the signature's credential scope, the form, the headers or the path."""

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import parse_qsl

from hostler_sandbox.aws.call import Call

_OBJECT: Final = {"GET": "GetObject", "PUT": "PutObject", "HEAD": "HeadObject", "DELETE": "DeleteObject", "POST": "PostObject"}
_BUCKET: Final = {
    "GET": "ListObjects",
    "PUT": "CreateBucket",
    "HEAD": "HeadBucket",
    "DELETE": "DeleteBucket",
    "POST": "PostBucket",
}
_SCOPE_PARTS: Final = 5


def read_call(environ: Mapping[str, Any], body: bytes) -> Call:
    """Returns the call; service and action are "" when the request does not tell."""
    service, region = _scope(str(environ.get("HTTP_AUTHORIZATION", "")), str(environ.get("QUERY_STRING", "")))
    form: dict[str, str] = {}
    if "x-www-form-urlencoded" in str(environ.get("CONTENT_TYPE", "")) and service != "s3":
        form = dict(parse_qsl(body.decode("utf-8", "replace"), keep_blank_values=True))
    action = form.get("Action") or str(environ.get("HTTP_X_AMZ_TARGET", "")).rpartition(".")[2]
    if not action and service == "s3":
        action = _s3_action(environ)
    return Call(service=service, region=region, action=action, environ=environ, body=body, form=form)


def _scope(authorization: str, query: str) -> tuple[str, str]:
    """Returns service and region. Source: "Signature Version 4": Credential=KEY/DATE/REGION/SERVICE/aws4_request."""
    credential = ""
    if "Credential=" in authorization:
        credential = authorization.split("Credential=", 1)[1].split(",", 1)[0].strip()
    else:
        credential = dict(parse_qsl(query)).get("X-Amz-Credential", "")
    parts = credential.split("/")
    if len(parts) < _SCOPE_PARTS:
        return "", "us-east-1"
    return parts[-2].lower(), parts[-3]


def access_key_id(environ: Mapping[str, Any]) -> str:
    """Returns the id of the key that signed; "" for an unsigned request."""
    authorization = str(environ.get("HTTP_AUTHORIZATION", ""))
    return authorization.split("Credential=", 1)[1].split("/", 1)[0] if "Credential=" in authorization else ""


def _s3_action(environ: Mapping[str, Any]) -> str:
    method, path = str(environ.get("REQUEST_METHOD", "GET")), str(environ.get("PATH_INFO", "/")).strip("/")
    query = dict(parse_qsl(str(environ.get("QUERY_STRING", "")), keep_blank_values=True))
    if not path:
        return "ListBuckets"
    if "/" not in path:
        if method == "GET" and "list-type" in query:
            return "ListObjectsV2"
        return "DeleteObjects" if "delete" in query else _BUCKET.get(method, method)
    if "uploads" in query:
        return "CreateMultipartUpload"
    if "uploadId" in query:
        return {"PUT": "UploadPart", "POST": "CompleteMultipartUpload", "DELETE": "AbortMultipartUpload"}.get(
            method, "ListParts"
        )
    return _OBJECT.get(method, method)

"""The AWS endpoint: a WSGI app that answers EC2 from our state, lets moto answer the rest, injects faults and keeps the journal."""

import contextlib
import io
import json
import re
import socket
import time
import uuid
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import parse_qsl
from xml.sax.saxutils import escape

from moto.core.parse import EC2QueryParser
from moto.core.serialize import EC2Serializer
from moto.core.utils import get_service_model
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from werkzeug.datastructures import MultiDict

from hostler_sandbox.aws.account import Account
from hostler_sandbox.aws.ec2 import Ec2
from hostler_sandbox.aws.mend import refusal_of
from hostler_sandbox.aws.reservations import Reservations
from hostler_sandbox.journal import Journal
from hostler_sandbox.state.cloud import Cloud
from hostler_sandbox.state.errors import RefusedError

Environ = dict[str, Any]
StartResponse = Callable[..., Any]

_SCOPE: Final = re.compile(r"Credential=[^/]+/\d+/([^/]+)/([^/]+)/aws4_request")


@dataclass(slots=True, kw_only=True)
class Call:
    """One request as the journal tells it."""

    service: str
    action: str
    region: str
    body: bytes
    token: str | None = None
    error: str | None = None
    status: int = 200


class AwsWire:
    """The WSGI app."""

    def __init__(self, cloud: Cloud, account: Account, journal: Journal) -> None:
        self._cloud = cloud
        self._account = account
        self._journal = journal
        self._actions = {**Ec2(cloud, account.surroundings()).actions, **Reservations(cloud, account).actions}
        self._moto = DomainDispatcherApplication(create_backend_app)
        self._model = get_service_model("ec2")

    def __call__(self, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        """Answers one request and writes it down."""
        began = time.monotonic()
        call = _read(environ)
        try:
            return self._answer(call, environ, start_response)
        finally:
            self._journal.write(
                "wire",
                service=call.service,
                action=call.action,
                region=call.region,
                host=environ.get("HTTP_HOST", ""),
                token=call.token,
                status=call.status,
                error=call.error,
                latency_ms=round((time.monotonic() - began) * 1000, 1),
                user_agent=environ.get("HTTP_USER_AGENT", "")[:120],
            )

    def _answer(self, call: Call, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        environ["wsgi.input"] = io.BytesIO(call.body)
        if call.service == "ec2" and call.action:
            return self._answer_ec2(call, environ, start_response)
        if call.service == "ssm" and call.action == "GetParameter" and (answer := self._image_parameter(call)):
            return _send(start_response, 200, answer, "application/x-amz-json-1.1")
        if refusal := refusal_of(call.service, call.action, call.region, environ, call.body):
            call.status, call.error = refusal.status, refusal.code
            return _send(start_response, refusal.status, refusal.body, refusal.content_type)
        return self._pass_on(call, environ, start_response)

    def _answer_ec2(self, call: Call, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        faults = self._cloud.faults
        form = MultiDict(parse_qsl(call.body.decode(), keep_blank_values=True))
        zone = form.get("Placement.AvailabilityZone")
        call.token = form.get("ClientToken")
        try:
            if slow := faults.take("slow", call.action, zone):
                time.sleep(slow.seconds)
            if faults.take("throttle", call.action, zone):
                raise RefusedError("RequestLimitExceeded", "Request limit exceeded.", status=503)
            if faults.take("unauthorized", call.action, zone):
                raise RefusedError("UnauthorizedOperation", "You are not authorized to perform this operation.", status=403)
            if ordered := faults.take("error", call.action, zone):
                raise RefusedError(ordered.code, ordered.message, status=ordered.status or 400)
            if call.action in self._actions:
                body = self._own(call, form)
            elif call.action in {"CreateTags", "DeleteTags"} and (own := self._tag_own(call, form)):
                body = own
            else:
                return self._pass_on(call, environ, start_response)
            if faults.take("late_create", call.action, zone):
                raise RefusedError("InternalError", "An internal error has occurred", status=500)
        except RefusedError as error:
            call.error, call.status = error.code, error.status
            return _send(start_response, error.status, _error_body(error), "text/xml;charset=UTF-8")
        if lost := faults.take("answer_lost", call.action, zone):
            return self._lose(call, lost.status, environ, start_response)
        return _send(start_response, 200, body, "text/xml;charset=UTF-8")

    def _own(self, call: Call, form: "MultiDict[str, str]") -> bytes:
        """Runs one of our actions; botocore's model reads the parameters and writes the answer."""
        operation = self._model.operation_model(call.action)
        # The parser uses nothing of the request but its values.
        params = EC2QueryParser(operation).parse({"values": form})
        if params.get("DryRun"):
            raise RefusedError("DryRunOperation", "Request would have succeeded, but DryRun flag is set.", status=412)
        return _serialized(operation, self._actions[call.action](params, call.region))

    def _tag_own(self, call: Call, form: "MultiDict[str, str]") -> bytes | None:
        """Tags our machines; None when the resource is moto's."""
        operation = self._model.operation_model(call.action)
        params = EC2QueryParser(operation).parse({"values": form})
        ids = params.get("Resources") or []
        if not ids or not all(item.startswith("i-") for item in ids):
            return None
        for machine in [self._cloud.get(item, call.region) for item in ids]:
            for tag in params.get("Tags") or ():
                if call.action == "CreateTags":
                    machine.tags[tag["Key"]] = tag.get("Value", "")
                else:
                    machine.tags.pop(tag["Key"], None)
        return _serialized(operation, {})

    def _image_parameter(self, call: Call) -> bytes | None:
        name = json.loads(call.body or b"{}").get("Name", "")
        image = self._account.image_of_parameter(call.region, name)
        if image is None:
            return None
        return json.dumps({"Parameter": {"Name": name, "Type": "String", "Value": image, "Version": 1}}).encode()

    def _pass_on(self, call: Call, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        """Lets moto answer."""

        def note(status: str, headers: list[tuple[str, str]], *rest: Any) -> Any:
            call.status = int(status.split(maxsplit=1)[0])
            return start_response(status, headers, *rest)

        answer: Iterable[bytes] = self._moto(environ, note)
        return answer

    def _lose(self, call: Call, status: int, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        """Loses the answer of a call that had its effect: an empty body with ``status``, or a cut connection."""
        call.error, call.status = "answer lost", status
        if status:
            return _send(start_response, status, b"", "text/xml")
        link: socket.socket | None = environ.get("werkzeug.socket")
        if link is not None:
            with contextlib.suppress(OSError):
                link.shutdown(socket.SHUT_RDWR)
        return _send(start_response, 500, b"", "text/xml")


def _serialized(operation: Any, result: dict[str, Any]) -> bytes:
    """Returns the answer's XML; the service model decides its shape."""
    text: str = EC2Serializer(operation).serialize(result)["body"]
    return text.encode()


def _read(environ: Environ) -> Call:
    """Returns the call; service and region come from the signature's scope, as AWS takes them."""
    length = int(environ.get("CONTENT_LENGTH") or 0)
    stream = environ["wsgi.input"]
    body = stream.read(length) if length else (stream.read() if environ.get("wsgi.input_terminated") else b"")
    if body and not environ.get("CONTENT_LENGTH"):
        environ["CONTENT_LENGTH"] = str(len(body))
    environ.pop("HTTP_TRANSFER_ENCODING", None)
    scope = _SCOPE.search(environ.get("HTTP_AUTHORIZATION", ""))
    region, service = (scope[1], scope[2]) if scope else ("us-east-1", "s3")
    target = environ.get("HTTP_X_AMZ_TARGET", "")
    action = target.rpartition(".")[2]
    if not action and environ.get("CONTENT_TYPE", "").startswith("application/x-www-form-urlencoded"):
        action = dict(parse_qsl(body.decode("utf-8", "replace"))).get("Action", "")
    if not action and service == "s3":
        action = f"{environ['REQUEST_METHOD']} {environ.get('PATH_INFO', '')}"
    return Call(service=service, action=action, region=region, body=body)


def _send(start_response: StartResponse, status: int, body: bytes, content_type: str) -> Iterable[bytes]:
    headers = [("Content-Type", content_type), ("Content-Length", str(len(body))), ("x-amzn-requestid", str(uuid.uuid4()))]
    start_response(f"{status} simulated", headers)
    return [body]


def _error_body(error: RefusedError) -> bytes:
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        f"<Response><Errors><Error><Code>{escape(error.code)}</Code><Message>{escape(error.message)}</Message></Error></Errors>"
        f"<RequestID>{uuid.uuid4()}</RequestID></Response>"
    ).encode()

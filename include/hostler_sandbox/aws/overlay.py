"""The overlay: the WSGI app in front of moto. Reads a call, applies faults, lets the right part answer, writes the journal."""

import json
import re
import socket
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from hostler_sandbox.aws import refusals, wire
from hostler_sandbox.aws.account_calls import account_answer
from hostler_sandbox.aws.actions import read_call
from hostler_sandbox.aws.call import Call
from hostler_sandbox.aws.ec2 import Ec2Front
from hostler_sandbox.aws.errors import Ec2Error
from hostler_sandbox.aws.faults import error_of, facts
from hostler_sandbox.aws.moto_server import Answer, MotoFailedError, MotoServer
from hostler_sandbox.aws.s3_kms_mends import kms_answer, s3_refusal
from hostler_sandbox.journal import Journal
from hostler_sandbox.state.estate import Estate
from hostler_sandbox.state.faults import Fault, Faults

_CODE: Final = re.compile(rb"<Code>([^<]+)</Code>")
_REASONS: Final = {
    200: "OK",
    400: "Bad Request",
    403: "Forbidden",
    404: "Not Found",
    412: "Precondition Failed",
    500: "Internal Server Error",
    503: "Service Unavailable",
}
_ERRORS_FROM: Final = 300
_JSON_CODES: Final = {"RequestLimitExceeded": "ThrottlingException", "UnauthorizedOperation": "AccessDeniedException"}
"""The code that the JSON services use for the same thing. Source: "Common errors", API reference of KMS and Systems Manager."""

_XML_CODES: Final = {"RequestLimitExceeded": "SlowDown", "UnauthorizedOperation": "AccessDenied"}
"""The same for S3. Source: S3 API reference, "Error responses"."""


class Overlay:
    """The WSGI app. Thread-safe."""

    def __init__(self, *, estate: Estate, ec2: Ec2Front, moto: MotoServer, faults: Faults, journal: Journal) -> None:
        self._estate = estate
        self._ec2 = ec2
        self._moto = moto
        self._faults = faults
        self._journal = journal

    def __call__(self, environ: Mapping[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        """Answers one request."""
        began_s = time.monotonic()
        call = read_call(environ, _read_body(environ))
        self._estate.timers.run_due()
        if call.service == "ec2":
            call.params = _typed(call)
        if slow := self._faults.take("slow", facts(call)):
            time.sleep(slow.delay_s)
        status, headers, body = self._refused(call) or self._guarded(call)
        lost = self._faults.take("answer_lost", facts(call)) if status < _ERRORS_FROM else None
        if not call.error and status >= _ERRORS_FROM:
            call.error = _code_of(status, body)
        self._write(call, 0 if lost else status, began_s, lost)
        if lost:
            return _lose(environ, start_response, lost)
        kept = [(name, value) for name, value in headers if name.lower() not in {"content-length", "date", "connection"}]
        is_head = environ.get("REQUEST_METHOD") == "HEAD"
        length = {name.lower(): value for name, value in headers}.get("content-length") if is_head else str(len(body))
        start_response(f"{status} {_REASONS.get(status, 'Status')}", [*kept, ("Content-Length", length or "0")])
        return [] if is_head else [body]

    def _refused(self, call: Call) -> Answer | None:
        """Returns the answer of a fault that refuses the call."""
        known = facts(call)
        if fault := self._faults.take("throttle", known):
            return _with_retry(_error_answer(call, refusals.throttled()), fault)
        if self._faults.take("unauthorized", known):
            return _error_answer(call, refusals.unauthorized(call.action, call.service))
        fault = self._faults.take("error", known)
        return _with_retry(_error_answer(call, error_of(fault)), fault) if fault else None

    def _guarded(self, call: Call) -> Answer:
        try:
            return self._answer(call)
        except MotoFailedError as failure:
            text = f"The sandbox (simulated) cannot serve {call.service}:{call.action}: {failure}"
            return _error_answer(call, Ec2Error("UnsupportedOperation", text))

    def _answer(self, call: Call) -> Answer:
        if call.service == "ec2" and call.action:
            return self._ec2.answer(call)
        if call.service == "kms":
            return kms_answer(call, self._moto)
        if call.service == "s3" and (refusal := s3_refusal(call)):
            return refusal
        own = account_answer(call, self._estate.quotas, self._faults, self._moto)
        return own or self._moto.call(call.environ, call.body)

    def _write(self, call: Call, status: int, began_s: float, lost: Fault | None) -> None:
        self._journal.add(
            "wire",
            cloud="aws",
            service=call.service,
            action=call.action,
            region=call.region,
            zone=call.zone,
            instance_type=call.instance_type,
            host=str(call.environ.get("HTTP_HOST", "")),
            client_token=call.form.get("ClientToken"),
            user_agent=call.user_agent,
            status=status,
            error=call.error or None,
            is_answer_lost=lost is not None,
            machine_ids=call.resources,
            latency_ms=round((time.monotonic() - began_s) * 1000, 1),
        )


def _typed(call: Call) -> dict[str, Any]:
    """Returns the typed parameters for matching faults; a request that cannot be read is refused later, with words."""
    try:
        return wire.parse(call.action, call.form)
    except Ec2Error:
        return {}


def _read_body(environ: Mapping[str, Any]) -> bytes:
    stream = environ["wsgi.input"]
    if environ.get("wsgi.input_terminated"):
        return bytes(stream.read())
    return bytes(stream.read(int(environ.get("CONTENT_LENGTH") or 0)))


def _lose(environ: Mapping[str, Any], start_response: Callable[..., Any], fault: Fault) -> Iterable[bytes]:
    """Lets the answer go astray: the connection is cut, or a server error without a body comes instead."""
    sock = environ.get("werkzeug.socket")
    if fault.mode == "empty" or sock is None:
        start_response("500 Internal Server Error", [("Content-Length", "0")])
        return []
    sock.shutdown(socket.SHUT_RDWR)
    raise ConnectionAbortedError("the answer is lost on purpose")


def _with_retry(answer: Answer, fault: Fault) -> Answer:
    status, headers, body = answer
    asked = [] if fault.retry_after_s is None else [("Retry-After", str(fault.retry_after_s))]
    return status, [*headers, *asked], body


def _error_answer(call: Call, failure: Ec2Error) -> Answer:
    """Puts a fault's error into the protocol of the service."""
    if "json" in str(call.environ.get("CONTENT_TYPE", "")):
        call.error = _JSON_CODES.get(failure.code, failure.code)
        body = json.dumps({"__type": call.error, "message": failure.text}).encode()
        status = 400 if call.error in _JSON_CODES.values() else failure.status
        return status, [("Content-Type", "application/x-amz-json-1.1"), ("x-amzn-ErrorType", call.error)], body
    if call.service == "s3":
        call.error = _XML_CODES.get(failure.code, failure.code)
        text = (
            f'<?xml version="1.0" encoding="UTF-8"?>\n<Error><Code>{call.error}</Code><Message>{failure.text}</Message></Error>'
        )
        return failure.status, [("Content-Type", "application/xml")], text.encode()
    call.error = failure.code
    return failure.status, [("Content-Type", "text/xml;charset=UTF-8")], wire.error(failure)


def _code_of(status: int, body: bytes) -> str:
    found = _CODE.search(body)
    if found:
        return found[1].decode("utf-8", "replace")
    if body[:1] == b"{":
        try:
            return str(json.loads(body).get("__type", "")).rpartition("#")[2] or str(status)
        except ValueError:
            pass
    return str(status)

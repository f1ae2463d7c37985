"""The instance metadata service of one node: IMDSv2 on the node's own address, for that node alone.

Real clouds serve it at 169.254.169.254; here SDKs and programs find it by ``AWS_EC2_METADATA_SERVICE_ENDPOINT``. Version 1
(no token) is answered 401, as with ``HttpTokens=required``.

Source: https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/instancedata-data-categories.html
"""

import asyncio
import contextlib
import json
import secrets
import socket
import time
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime
from typing import Final

from hostler_sandbox.nodes_port import NodeSpec, RoleCredentials

_MAX_TOKEN_S: Final = 21600
_REASONS: Final = {200: "OK", 400: "Bad Request", 401: "Unauthorized", 404: "Not Found", 405: "Method Not Allowed"}


class Metadata:
    """Answers for one node. ``on_power`` is called when a program on the node asks to be powered off or restarted.

    ``extra``: entries below ``latest/meta-data/`` that a front has set: interruption notices, later tags, fresh credentials.
    """

    def __init__(self, spec: NodeSpec, on_power: Callable[[str, float], Awaitable[None]]) -> None:
        self._spec = spec
        self._on_power = on_power
        self._tokens: dict[str, float] = {}
        self._server: asyncio.Server | None = None
        self.extra: dict[str, str] = {}

    async def open(self, sock: socket.socket) -> None:
        """Starts to answer on a bound socket."""
        self._server = await asyncio.start_server(self._talk, sock=sock)

    async def close(self) -> None:
        """Stops to answer."""
        if self._server:
            self._server.close()
            self._server = None

    async def _talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await talk(reader, writer, self.answer)

    async def answer(self, method: str, path: str, headers: Mapping[str, str], body: bytes) -> tuple[int, str]:
        """Returns status and text for one request."""
        if path == "/sandbox/power" and method == "POST":  # no part of the cloud's service: the node's own power button
            asked = json.loads(body)
            await self._on_power(str(asked["action"]), float(asked["delay_s"]))
            return 200, ""
        if path == "/latest/api/token":
            return self._token(method, headers)
        if method not in {"GET", "HEAD"}:
            return 405, ""
        if self._tokens.get(headers.get("x-aws-ec2-metadata-token", ""), 0.0) < time.monotonic():
            return 401, ""
        found = self._document(path.rstrip("/"))
        return (404, "") if found is None else (200, found)

    def _token(self, method: str, headers: Mapping[str, str]) -> tuple[int, str]:
        if method != "PUT":
            return 405, ""
        if "x-forwarded-for" in headers:
            return 400, ""
        try:
            lifetime_s = int(headers.get("x-aws-ec2-metadata-token-ttl-seconds", ""))
        except ValueError:
            return 400, ""
        if not 1 <= lifetime_s <= _MAX_TOKEN_S:
            return 400, ""
        token = secrets.token_urlsafe(42)
        self._tokens[token] = time.monotonic() + lifetime_s
        return 200, token

    def _document(self, path: str) -> str | None:
        if path == "/latest/dynamic/instance-identity/document":
            return json.dumps(dict(self._spec.identity), indent=2)
        if path == "/latest/user-data":
            return self._spec.user_data or None
        prefix = "/latest/meta-data"
        if not path.startswith(prefix):
            return None
        leaves = self._leaves()
        asked = path.removeprefix(prefix).lstrip("/")
        if asked in leaves:
            return leaves[asked]
        below = {
            name.removeprefix(f"{asked}/" if asked else "") for name in leaves if name.startswith(f"{asked}/" if asked else "")
        }
        children = {name.split("/", 1)[0] + ("/" if "/" in name else "") for name in below}
        return "\n".join(sorted(children)) if children else None

    def _leaves(self) -> dict[str, str]:
        spec = self._spec
        leaves = {
            "ami-id": spec.image_id,
            "hostname": spec.hostname,
            "instance-id": spec.node_id,
            "instance-life-cycle": spec.lifecycle,
            "instance-type": spec.instance_type,
            "local-hostname": spec.hostname,
            "local-ipv4": spec.address,
            "placement/availability-zone": spec.zone,
            "placement/region": spec.region,
            "services/domain": "amazonaws.com",
            "services/partition": "aws",
        }
        leaves |= {f"tags/instance/{key}": value for key, value in spec.tags.items()}
        if spec.credentials:
            leaves[f"iam/security-credentials/{spec.credentials.role_name}"] = credentials_document(spec.credentials)
            leaves["iam/info"] = json.dumps({"Code": "Success", "InstanceProfileArn": spec.credentials.role_name})
        return leaves | self.extra


Answer = Callable[[str, str, Mapping[str, str], bytes], Awaitable[tuple[int, str]]]


async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, answer: Answer) -> None:
    """Reads one request, answers it and closes."""
    with contextlib.suppress(
        OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, TimeoutError, ValueError, KeyError
    ):
        async with asyncio.timeout(10):
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
            method, path, _ = head[0].split(" ", 2)
            headers = {key.strip().lower(): value.strip() for key, _, value in (line.partition(":") for line in head[1:])}
            body = await reader.readexactly(min(int(headers.get("content-length", "0")), 4096))
            status, text = await answer(method, path.partition("?")[0], headers, body)
            content = text.encode()
            writer.write(
                f"HTTP/1.1 {status} {_REASONS[status]}\r\nContent-Type: text/plain\r\nServer: EC2ws (simulated)\r\n"
                f"Content-Length: {len(content)}\r\nConnection: close\r\n\r\n".encode()
                + content
            )
            await writer.drain()
    writer.close()


def credentials_document(given: RoleCredentials) -> str:
    """Returns the text below ``iam/security-credentials/<role>``."""
    document = {
        "Code": "Success",
        "LastUpdated": _stamp(datetime.now(UTC)),
        "Type": "AWS-HMAC",
        "AccessKeyId": given.access_key_id,
        "SecretAccessKey": given.secret_access_key,
        "Token": given.session_token,
        "Expiration": _stamp(given.expires_at),
    }
    return json.dumps(document, indent=2)


def _stamp(at: datetime) -> str:
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")

"""S3 over the standard library: signature version 4, one PUT or a multipart upload, listing. Also for S3-compatible stores.

Every body is signed with its own SHA-256, so the store itself refuses one that changed on its way; after each upload the size
is asked for again.

Source: https://docs.aws.amazon.com/AmazonS3/latest/API/sig-v4-header-based-auth.html and .../API/mpu-upload-object
"""

from __future__ import annotations

import base64
import datetime as dt
import hashlib
import hmac
import http.client
import re
import time
from pathlib import Path
from typing import Any, Iterator
from urllib.parse import quote, unquote, urlsplit

from hostler.recipes.agent.metadata import Credentials, find_credentials, find_region
from hostler.recipes.agent.uploads import Upload, UploadGoneError, abandon

PART_BYTES = 64 * 1024 * 1024
_READ_BYTES = 1024 * 1024
_TIMEOUT_S = 60.0
_OK, _NO_CONTENT, _NOT_FOUND = 200, 204, 404
_TRIES = 3
_AGAIN = (429, 500, 502, 503, 504)
_EMPTY = hashlib.sha256(b"").hexdigest()


class StoreError(Exception):
    """The store refused, could not be reached, or does not hold what was put there."""


class S3:
    """One bucket.

    Args:
        endpoint_url: of an S3-compatible store (then with the bucket in the path); None for AWS itself.
    """

    def __init__(self, bucket: str, *, endpoint_url: str | None, region: str | None) -> None:
        self._region = region or find_region()
        self._prefix = ""
        if endpoint_url or "." in bucket:
            self._prefix = "/" + bucket
        host = f"https://s3.{self._region}.amazonaws.com" if self._prefix else self._own_host(bucket)
        parts = urlsplit(endpoint_url or host)
        self._is_tls = parts.scheme != "http"
        self._netloc = parts.netloc
        self._held: Credentials | None = None
        self._connection: http.client.HTTPConnection | None = None

    def _own_host(self, bucket: str) -> str:
        return f"https://{bucket}.s3.{self._region}.amazonaws.com"

    def put(self, key: str, content: bytes) -> None:
        """Writes a small object. Raises StoreError."""
        self.demand("PUT", key, {}, content)

    def put_file(self, key: str, path: Path) -> None:
        """Writes a file, in parts when it is large, and checks that the store has all of it.

        Parts that an earlier try sent are not sent again (``uploads``). Raises StoreError, OSError.
        """
        size = path.stat().st_size
        if size <= PART_BYTES:
            self.put(key, path.read_bytes())
        else:
            Upload(self.demand, key, path, part_bytes=PART_BYTES).send()
        there = self.size(key)
        if there != size:
            raise StoreError(f"{key}: {there} bytes in the store, {size} sent")

    def abandon(self, path: Path) -> None:
        """Gives up the upload of a file that broke off."""
        abandon(self.demand, path)

    def size(self, key: str) -> int | None:
        """Returns an object's size; None when there is none. Raises StoreError."""
        status, headers, _ = self._call("HEAD", key, {}, b"")
        if status == _NOT_FOUND:
            return None
        if status != _OK:
            raise StoreError(f"{key}: status {status}")
        return int(headers.get("content-length", "-1"))

    def get(self, key: str) -> bytes:
        """Reads a small object. Raises FileNotFoundError or StoreError."""
        return b"".join(self.pieces(key))

    def pieces(self, key: str) -> Iterator[bytes]:
        """Reads an object in pieces, by ranges, so that no read is longer than a piece. Raises as ``get``."""
        size = self.size(key)
        if size is None:
            raise FileNotFoundError(key)
        for start in range(0, size, 8 * _READ_BYTES):
            end = min(start + 8 * _READ_BYTES, size) - 1
            status, _, body = self._call("GET", key, {}, b"", {"range": f"bytes={start}-{end}"})
            if status not in (_OK, 206) or len(body) != end - start + 1:
                raise StoreError(f"{key}: status {status}, {len(body)} bytes instead of {end - start + 1}")
            yield body

    def folders(self, prefix: str) -> list[str]:
        """Returns the names directly below a prefix that ends in a slash, sorted. Raises StoreError."""
        return sorted(
            name[len(prefix) :].rstrip("/") for name in self._list(prefix, "/", r"<Prefix>([^<]*)</Prefix>\s*</CommonP")
        )

    def keys(self, prefix: str) -> list[str]:
        """Returns all keys below a prefix, sorted. Raises StoreError."""
        return sorted(self._list(prefix, "", r"<Key>([^<]*)</Key>"))

    def _list(self, prefix: str, delimiter: str, pattern: str) -> Iterator[str]:
        query = {"list-type": "2", "prefix": prefix, "encoding-type": "url"}
        if delimiter:
            query["delimiter"] = delimiter
        while True:
            text = self.demand("GET", "", query, b"")[1].decode()
            for found in re.findall(pattern, text):
                yield unquote(found.replace("+", " "))
            following = re.search(r"<NextContinuationToken>([^<]*)</NextContinuationToken>", text)
            if not following:
                return
            query["continuation-token"] = following.group(1).replace("&amp;", "&")

    def demand(self, method: str, key: str, query: dict[str, str], body: bytes) -> tuple[dict[str, str], bytes]:
        """Makes a call and returns headers and body. Raises StoreError; UploadGoneError for an upload that S3 does not know."""
        status, headers, answer = self._call(method, key, query, body)
        if status not in (_OK, _NO_CONTENT):
            code = re.search(rb"<Code>([A-Za-z0-9]+)</Code>", answer)
            if code and code.group(1) == b"NoSuchUpload":
                raise UploadGoneError(key)
            raise StoreError(f"{method} {key}: status {status} {code.group(1).decode() if code else ''}")
        return headers, answer

    def _call(
        self, method: str, key: str, query: dict[str, str], body: bytes, extra: dict[str, str] | None = None
    ) -> tuple[int, dict[str, str], bytes]:
        """One request, again when the store is busy or the connection broke. All of ours may be sent twice."""
        for attempt in range(1, _TRIES + 1):
            try:
                status, headers, answer = self._once(method, key, query, body, extra or {})
            except (OSError, http.client.HTTPException) as error:
                self._drop()
                if attempt == _TRIES:
                    raise StoreError(f"{method} {key}: {type(error).__name__}") from error
            else:
                if status not in _AGAIN or attempt == _TRIES:
                    return status, headers, answer
            time.sleep(0.5 * 2**attempt)
        raise StoreError(f"{method} {key}: no answer")

    def _once(
        self, method: str, key: str, query: dict[str, str], body: bytes, extra: dict[str, str]
    ) -> tuple[int, dict[str, str], bytes]:
        path = quote(f"{self._prefix}/{key}", safe="/-_.~")
        asked = "&".join("{}={}".format(quote(name, safe="-_.~"), quote(query[name], safe="-_.~")) for name in sorted(query))
        headers = self._signed(method, path, asked, body)
        headers.update(extra)
        if method == "PUT" and body:
            headers.update(_md5(body))
        if self._connection is None:
            made: Any = http.client.HTTPSConnection if self._is_tls else http.client.HTTPConnection
            self._connection = made(self._netloc, timeout=_TIMEOUT_S)
        connection = self._connection
        connection.request(method, path + ("?" + asked if asked else ""), body=body or None, headers=headers)
        answer = connection.getresponse()
        return answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read()

    def close(self) -> None:
        """Closes the connection; the next call opens one."""
        self._drop()

    def _drop(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _signed(self, method: str, path: str, query: str, body: bytes) -> dict[str, str]:
        if self._held is None or time.monotonic() > self._held.good_until:
            self._held = find_credentials()
        now = dt.datetime.now(dt.timezone.utc).strftime("%Y%m%dT%H%M%SZ")
        return sign(
            self._held, region=self._region, host=self._netloc, method=method, path=path, query=query, body=body, now=now
        )


def _md5(body: bytes) -> dict[str, str]:
    """Returns the header that buckets with Object Lock demand; none where the system forbids MD5 (FIPS)."""
    try:
        digest = hashlib.md5(body).digest()  # noqa: S324 - what S3 asks for; the signature holds the body's SHA-256
    except ValueError:
        return {}
    return {"content-md5": base64.b64encode(digest).decode()}


def sign(
    held: Credentials, *, region: str, host: str, method: str, path: str, query: str, body: bytes, now: str
) -> dict[str, str]:
    """Returns the headers of a signed request. ``now``: UTC as ``YYYYMMDDTHHMMSSZ``."""
    digest = hashlib.sha256(body).hexdigest() if body else _EMPTY
    headers = {"host": host, "x-amz-content-sha256": digest, "x-amz-date": now}
    if held.token:
        headers["x-amz-security-token"] = held.token
    names = ";".join(sorted(headers))
    lines = "".join(f"{name}:{headers[name]}\n" for name in sorted(headers))
    request = f"{method}\n{path}\n{query}\n{lines}\n{names}\n{digest}"
    scope = f"{now[:8]}/{region}/s3/aws4_request"
    to_sign = f"AWS4-HMAC-SHA256\n{now}\n{scope}\n{hashlib.sha256(request.encode()).hexdigest()}"
    key = ("AWS4" + held.secret_key).encode()
    for word in (now[:8], region, "s3", "aws4_request"):
        key = hmac.new(key, word.encode(), hashlib.sha256).digest()
    signature = hmac.new(key, to_sign.encode(), hashlib.sha256).hexdigest()
    headers["authorization"] = (
        f"AWS4-HMAC-SHA256 Credential={held.access_key}/{scope}, SignedHeaders={names}, Signature={signature}"
    )
    return headers

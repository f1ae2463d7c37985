import base64
import hashlib
import json

import pytest
from botocore.auth import S3SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials as BotoCredentials
from tests.recipes.agent.bench import LEASE, TRAIN, until

from hostler.recipes.agent import s3 as module
from hostler.recipes.agent.metadata import Credentials
from hostler.recipes.agent.s3 import S3, StoreError, sign


@pytest.fixture
def s3(server, client, monkeypatch):
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "a")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "b")
    made = S3("bucket", endpoint_url=server, region="us-east-1")
    yield made
    made.close()


@pytest.mark.parametrize("token", [None, "session/token+1="])
@pytest.mark.parametrize(
    ("method", "path", "query", "body"),
    [
        ("PUT", "/bucket/a/b-_.~c", "", b"content"),
        ("GET", "/bucket/", "delimiter=%2F&list-type=2&prefix=a%20b%2F", b""),
        ("POST", "/bucket/k", "uploads=", b""),
    ],
)
def test_sign_when_compared_with_the_vendor_s_own_signer_then_is_the_same(token, method, path, query, body):
    now = "20300102T030405Z"
    held = Credentials("AKID", "secret", token, float("inf"))
    ours = sign(held, region="eu-west-1", host="s3.test", method=method, path=path, query=query, body=body, now=now)
    request = AWSRequest(method=method, url=f"https://s3.test{path}" + (f"?{query}" if query else ""), data=body)
    request.context["timestamp"] = now
    request.headers["X-Amz-Content-SHA256"] = hashlib.sha256(body).hexdigest()
    request.headers["X-Amz-Date"] = now
    if token:
        request.headers["X-Amz-Security-Token"] = token
    signer = S3SigV4Auth(BotoCredentials("AKID", "secret", token), "s3", "eu-west-1")
    canonical = signer.canonical_request(request)
    signature = signer.signature(signer.string_to_sign(request, canonical), request)
    assert ours["authorization"].rpartition("=")[2] == signature


def test_credentials_when_shown_then_give_nothing_away():
    assert "secret" not in repr(Credentials("AKID", "secret", "token", 1.0))


def test_put_when_small_then_client_of_the_vendor_reads_it(s3, client):
    s3.put("a b/ü+&.bin", b"0123")
    assert client.get_object(Bucket="bucket", Key="a b/ü+&.bin")["Body"].read() == b"0123"
    assert s3.get("a b/ü+&.bin") == b"0123"
    assert s3.size("a b/ü+&.bin") == 4
    assert s3.size("nothing") is None
    with pytest.raises(FileNotFoundError):
        s3.get("nothing")


def test_put_file_when_large_then_goes_in_parts_and_reads_back(s3, client, tmp_path, monkeypatch):
    monkeypatch.setattr(module, "PART_BYTES", 5 * 1024 * 1024)
    content = bytes(range(256)) * 4096 * 12
    (tmp_path / "f").write_bytes(content)
    s3.put_file("big", tmp_path / "f")
    assert "-3" in client.head_object(Bucket="bucket", Key="big")["ETag"]
    assert b"".join(s3.pieces("big")) == content
    assert client.list_multipart_uploads(Bucket="bucket").get("Uploads", []) == []


def test_list_when_many_pages_then_names_all(s3, client):
    for number in range(12):
        client.put_object(Bucket="bucket", Key=f"lease/n{number % 3}/k{number}", Body=b"")
    assert s3.folders("lease/") == ["n0", "n1", "n2"]
    assert len(s3.keys("lease/")) == 12
    assert s3.keys("none/") == []


def test_put_when_bucket_is_absent_then_raises(server, monkeypatch):
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "a")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "b")
    store = S3("no-such-bucket", endpoint_url=server, region="us-east-1")
    with pytest.raises((FileNotFoundError, StoreError)):
        store.put("k", b"")
    store.close()


def test_put_when_store_does_not_answer_then_raises_in_words(monkeypatch):
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "a")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "b")
    monkeypatch.setattr(module.time, "sleep", lambda _: None)
    with pytest.raises(StoreError, match="ConnectionRefusedError"):
        S3("bucket", endpoint_url="http://127.0.0.1:9", region="us-east-1").put("k", b"")


def test_agent_when_target_is_s3_then_ships_and_restores_from_it(make_agent, server, client):
    first, second = make_agent("node-0"), make_agent("node-1")
    for agent in (first, second):
        agent.environment.update(AWS_ACCESS_KEY_ID="a", AWS_SECRET_ACCESS_KEY="b")
        agent.configure(backup=agent.backup(uri="s3://bucket/some/prefix", endpoint_url=server, region="us-east-1"))
    first.start_python("j1", TRAIN, env={"EVERY": "5", "LAST": "10"})
    first.until_state("j1", "succeeded")
    assert first.ask("flush")["error"] is None
    index = json.loads(client.get_object(Bucket="bucket", Key=f"some/prefix/{LEASE}/node-0/index.json")["Body"].read())
    assert {entry["step"] for entry in index["objects"] if entry["kind"] == "checkpoint"} == {5, 10}
    second.start_python("j2", TRAIN, env={"LAST": "11"}, restore_step=10)
    assert second.until_state("j2", "succeeded")["resumed_from_step"] == 10
    until(lambda: second.ask("flush")["error"] is None)


class Breaking:
    """Stands before ``S3._once``: lets so many calls through, then the line is dead."""

    def __init__(self, s3, monkeypatch, *, after: int) -> None:
        self.calls: list[tuple[str, str]] = []
        self.after = after
        self._once = s3._once
        monkeypatch.setattr(s3, "_once", self)
        monkeypatch.setattr(module.time, "sleep", lambda _: None)

    def __call__(self, method, key, query, body, extra):
        if len(self.calls) >= self.after:
            raise ConnectionResetError
        self.calls.append((method, query.get("partNumber", "")))
        return self._once(method, key, query, body, extra)


@pytest.fixture
def large(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "PART_BYTES", 5 * 1024 * 1024)
    path = tmp_path / "f"
    path.write_bytes(bytes(range(256)) * 4096 * 12)
    return path


def test_put_file_when_it_broke_off_then_goes_on_with_the_part_that_is_missing(s3, client, large, monkeypatch):
    line = Breaking(s3, monkeypatch, after=2)
    with pytest.raises(StoreError, match="ConnectionResetError"):
        s3.put_file("big", large)
    assert line.calls == [("POST", ""), ("PUT", "1")]
    line.after = 99
    s3.put_file("big", large)
    assert line.calls[2:] == [("PUT", "2"), ("PUT", "3"), ("POST", ""), ("HEAD", "")]
    assert client.get_object(Bucket="bucket", Key="big")["Body"].read() == large.read_bytes()
    assert not large.with_name("f.upload").exists()


def test_put_file_when_the_upload_is_gone_then_begins_anew(s3, client, large, monkeypatch):
    line = Breaking(s3, monkeypatch, after=2)
    with pytest.raises(StoreError):
        s3.put_file("big", large)
    line.after = 99
    notes = large.with_name("f.upload")
    gone = json.loads(notes.read_text())["upload"]
    once = line._once

    def _as_s3(method, key, query, body, extra):  # moto answers 500 here; S3: 404 NoSuchUpload
        is_gone = query.get("uploadId") == gone
        return (404, {}, b"<Error><Code>NoSuchUpload</Code></Error>") if is_gone else once(method, key, query, body, extra)

    monkeypatch.setattr(line, "_once", _as_s3)
    s3.put_file("big", large)
    assert not notes.exists()
    assert client.get_object(Bucket="bucket", Key="big")["Body"].read() == large.read_bytes()


def test_put_file_when_the_notes_are_of_another_file_then_begins_anew(s3, client, large, monkeypatch):
    large.with_name("f.upload").write_text(
        json.dumps({"key": "other", "size": 1, "part_bytes": 5, "upload": "x", "tags": ["a"]})
    )
    s3.put_file("big", large)
    assert client.get_object(Bucket="bucket", Key="big")["Body"].read() == large.read_bytes()


def test_abandon_when_an_upload_broke_off_then_nothing_of_it_is_left(s3, client, large, monkeypatch):
    line = Breaking(s3, monkeypatch, after=2)
    with pytest.raises(StoreError):
        s3.put_file("big", large)
    line.after = 99
    upload = json.loads(large.with_name("f.upload").read_text())["upload"]
    s3.abandon(large)
    assert upload not in {one["UploadId"] for one in client.list_multipart_uploads(Bucket="bucket").get("Uploads", [])}
    assert not large.with_name("f.upload").exists()


def test_put_when_a_bucket_keeps_objects_then_the_header_that_it_demands_is_sent(s3, monkeypatch):
    s3.put("k", b"")
    seen, send = [], s3._connection.request
    monkeypatch.setattr(s3._connection, "request", lambda *a, **more: seen.append(more["headers"]) or send(*a, **more))
    s3.put("k", b"content")
    assert base64.b64decode(seen[0]["content-md5"]) == hashlib.md5(b"content", usedforsecurity=False).digest()

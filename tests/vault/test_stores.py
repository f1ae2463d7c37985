import uuid
from datetime import UTC, datetime, timedelta

import boto3
import pytest
from moto.server import ThreadedMotoServer

from hostler.vault.object_lock import LockTerms
from hostler.vault.port import ObjectLock, ObjectLockError
from hostler.vault.stores import FileStore, S3Store, open_store


@pytest.fixture(scope="module")
def s3_client():
    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    client = boto3.client(
        "s3", endpoint_url=f"http://{host}:{port}", region_name="us-east-1", aws_access_key_id="a", aws_secret_access_key="b"
    )
    client.create_bucket(Bucket="backups")
    yield client
    client.close()
    server.stop()


@pytest.fixture(params=["file", "s3", "s3-without-prefix"])
def store(request, tmp_path):
    if request.param == "file":
        return open_store(f"file://{tmp_path}/store%20a", client_factory=lambda: pytest.fail("no client is needed"))
    client = request.getfixturevalue("s3_client")
    for entry in client.list_objects_v2(Bucket="backups").get("Contents", ()):
        client.delete_object(Bucket="backups", Key=entry["Key"])
    return open_store("s3://backups" + ("/some/prefix" if request.param == "s3" else ""), client_factory=lambda: client)


def test_store_when_put_then_reads_back_whole_and_in_pieces(store):
    store.put("lease/node/a", b"0123456789")
    assert store.get("lease/node/a") == b"0123456789"
    assert list(store.read_chunks("lease/node/a", 4)) == [b"0123", b"4567", b"89"]


def test_store_when_put_if_absent_and_there_then_refuses_and_keeps_the_first(store):
    store.put("lease/manifest", b"first", if_absent=True)
    with pytest.raises(FileExistsError):
        store.put("lease/manifest", b"second", if_absent=True)
    assert store.get("lease/manifest") == b"first"
    store.put("lease/manifest", b"third")
    assert store.get("lease/manifest") == b"third"


def test_store_when_absent_then_says_not_found(store):
    with pytest.raises(FileNotFoundError):
        store.get("lease/nothing")
    with pytest.raises(FileNotFoundError):
        next(store.read_chunks("lease/nothing"))


def test_store_when_listed_then_names_all_below_the_prefix_in_order(store):
    for key in ("b/2", "a/2", "a/10", "a/1/x", "ab/1"):
        store.put(key, b"")
    assert store.list_keys("a/") == ("a/1/x", "a/10", "a/2")
    assert store.list_keys("a/1") == ("a/1/x", "a/10")
    assert store.list_keys("none/") == ()


@pytest.mark.parametrize("key", ["../x", "a/../b", "/a", "a//b", "a/.", "", "a\0b", "a/b/"])
def test_store_when_key_could_leave_its_folder_then_refuses(store, key):
    with pytest.raises(ValueError, match="object key"):
        store.put(key, b"")


def test_s3_store_when_opened_then_makes_no_client_before_it_is_used():
    made = []
    open_store("s3://bucket/p", client_factory=lambda: made.append(1))
    assert made == []


@pytest.mark.parametrize("uri", ["", "/tmp/x", "file://host/x", "file:relative", "s3://", "http://x/y", "gs://b/p"])
def test_open_store_when_uri_is_of_no_known_kind_then_names_what_is_allowed(uri):
    with pytest.raises(ValueError, match="file:///folder or s3://bucket/prefix"):
        open_store(uri, client_factory=lambda: None)


def test_open_store_when_uri_is_known_then_gives_its_kind(tmp_path):
    assert isinstance(open_store(f"file://{tmp_path}", client_factory=lambda: None), FileStore)
    assert isinstance(open_store("s3://b", client_factory=lambda: None), S3Store)


def test_store_when_replaced_then_only_what_was_expected(store):
    assert not store.replace("epoch/x.json", b"new", expected=b"old")
    assert store.replace("epoch/x.json", b"first", expected=None)
    assert not store.replace("epoch/x.json", b"second", expected=None)
    assert store.replace("epoch/x.json", b"second", expected=b"first")
    assert not store.replace("epoch/x.json", b"third", expected=b"first")
    assert store.get("epoch/x.json") == b"second"
    assert store.list_keys("epoch/") == ("epoch/x.json",)


def test_store_when_a_file_is_put_then_it_reads_back(store, tmp_path):
    (tmp_path / "file").write_bytes(b"0123456789" * 1000)
    store.put_file("lease/big", tmp_path / "file")
    assert store.get("lease/big") == b"0123456789" * 1000


def test_store_when_deleted_then_gone_and_again_is_fine(store):
    store.put("lease/node/a", b"1")
    store.put("lease/node/ab", b"2")
    store.delete("lease/node/a")
    store.delete("lease/node/a")
    assert store.list_keys("lease/") == ("lease/node/ab",)


SINCE = datetime(2030, 1, 1, 12, 0, 0, 999, tzinfo=UTC)
TERMS = LockTerms(mode="compliance", days=10)


@pytest.fixture
def locked_store(s3_client):
    name = f"locked-{uuid.uuid4().hex[:8]}"
    s3_client.create_bucket(Bucket=name, ObjectLockEnabledForBucket=True)
    return open_store(f"s3://{name}/p", client_factory=lambda: s3_client, lock=TERMS)


def test_lock_when_put_then_kept_until_its_time_and_never_made_shorter(locked_store):
    locked_store.put("l/a", b"1")
    assert locked_store.lock_of("l/a") == ObjectLock(None, is_held=False)
    locked_store.lock("l/a", SINCE)
    until = SINCE.replace(microsecond=0) + timedelta(days=10)
    assert locked_store.lock_of("l/a") == ObjectLock(until, is_held=False)
    locked_store.lock("l/a", SINCE - timedelta(days=5))
    assert locked_store.lock_of("l/a").until == until
    assert locked_store.lock_of("l/a").holds_at(until - timedelta(seconds=1))
    assert not locked_store.lock_of("l/a").holds_at(until)


def test_delete_when_the_store_keeps_the_object_then_says_so_and_it_is_still_read(locked_store):
    locked_store.put("l/a", b"1")
    locked_store.lock("l/a", datetime.now(UTC))
    with pytest.raises(ObjectLockError, match="l/a: S3 refuses to delete it"):
        locked_store.delete("l/a")
    assert locked_store.get("l/a") == b"1"


def test_delete_when_there_are_versions_then_all_of_them_go(locked_store, s3_client):
    for content in (b"1", b"2", b"3"):
        locked_store.put("l/a", content)
    locked_store.delete("l/a")
    bucket = locked_store.uri.split("/")[2]
    assert "Versions" not in s3_client.list_object_versions(Bucket=bucket)


def test_lock_when_someone_holds_the_object_legally_then_it_is_seen(locked_store, s3_client):
    locked_store.put("l/a", b"1")
    s3_client.put_object_legal_hold(Bucket=locked_store.uri.split("/")[2], Key="p/l/a", LegalHold={"Status": "ON"})
    assert locked_store.lock_of("l/a") == ObjectLock(None, is_held=True)
    assert locked_store.lock_of("l/a").holds_at(SINCE + timedelta(days=9999))


def test_lock_when_the_bucket_has_no_object_lock_then_says_what_to_do(s3_client):
    store = open_store("s3://backups/x", client_factory=lambda: s3_client, lock=TERMS)
    store.put("l/a", b"1")
    with pytest.raises(ObjectLockError, match=r"the bucket needs Object Lock.*backup\.object_lock"):
        store.lock("l/a", SINCE)


def test_open_store_when_a_folder_is_to_lock_then_refuses(tmp_path):
    with pytest.raises(ValueError, match="a folder locks nothing"):
        open_store(f"file://{tmp_path}", client_factory=lambda: None, lock=TERMS)

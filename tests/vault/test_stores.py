import boto3
import pytest
from moto.server import ThreadedMotoServer

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

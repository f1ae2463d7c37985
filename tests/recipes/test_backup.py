import base64
import hashlib
import io
import json
import tarfile
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests import samples
from tests.recipes.agent.bench import LEASE, TRAIN

from hostler.model.enums import LeaseState
from hostler.reach.port import ShippedObject
from hostler.recipes import manifest as manifests
from hostler.recipes.backup import restore, seal
from hostler.recipes.manifest import BackupError, Manifest
from hostler.vault.envelope import Sealer
from hostler.vault.local import LocalKeys
from hostler.vault.port import KeyServiceError
from hostler.vault.stores import open_store

NOW = datetime(2030, 1, 1, tzinfo=UTC)


class Site:
    """A deployment with one lease that shipped something."""

    def __init__(self, folder) -> None:
        self.folder = folder
        self.keys = LocalKeys(folder / "keys")
        self.store = open_store(f"file://{folder}/store", client_factory=lambda: pytest.fail("file store"))
        self.data_key, wrapped = self.keys.new_data_key(LEASE)
        self.lease = samples.lease(lease_id=LEASE, state=LeaseState.DRAINING, created_at=NOW, wrapped_data_key=wrapped)
        self.objects: list[ShippedObject] = []

    def ship(self, key: str, plain: bytes, *, kind: str = "log", step: int | None = None, name: str | None = None) -> None:
        sink = io.BytesIO()
        sealer = Sealer(sink, self.data_key, f"{LEASE}/{name or key}")
        sealer.write(plain)
        sealed = sealer.close()
        self.store.put(f"{LEASE}/{key}", sink.getvalue())
        more = {"sha256": sealed.sha256, "plain_sha256": sealed.plain_sha256, "size_bytes": sealed.size_bytes}
        self.objects.append(ShippedObject(key=key, kind=kind, step=step, **more))

    def ship_step(self, step: int, members: dict[str, bytes]) -> None:
        sink = io.BytesIO()
        with tarfile.open(fileobj=sink, mode="w") as archive:
            for member, content in members.items():
                entry = tarfile.TarInfo(member)
                entry.size = len(content)
                archive.addfile(entry, io.BytesIO(content))
        self.ship(f"n0/j1/step-{step}.tar.hste", sink.getvalue(), kind="checkpoint", step=step)

    def seal(self, objects=None):
        return seal(self.store, self.lease, self.objects if objects is None else objects, NOW, keys=self.keys)

    def restore(self, name="out", **more):
        return restore(self.store, self.keys, LEASE, self.folder / name, **more)

    def path(self, key: str):
        return self.folder / "store" / LEASE / key


@pytest.fixture
def site(tmp_path):
    made = Site(tmp_path)
    made.ship_step(10, {"step-10/w": b"ten"})
    made.ship_step(20, {"step-20/w": b"twenty"})
    made.ship("n0/j1/log-00000000000000000000.hste", b"hello\n")
    return made


def test_seal_when_all_is_there_then_is_verified_and_restores(site):
    backup = site.seal()
    assert (backup.is_verified, backup.object_count, backup.sealed_at) == (True, 3, NOW)
    assert backup.size_bytes == sum(entry.size_bytes for entry in site.objects)
    assert backup.manifest_uri == f"file://{site.folder}/store/{LEASE}/manifest-000001.json"
    content = site.path("manifest-000001.json").read_bytes()
    assert hashlib.sha256(content).hexdigest() == backup.manifest_sha256
    report = site.restore(manifest_sha256=backup.manifest_sha256)
    assert (report.object_count, report.files) == (3, 3)
    assert report.steps == (("n0", "j1", 10), ("n0", "j1", 20))
    assert (report.folder / "n0/j1/step-20/w").read_bytes() == b"twenty"
    assert (report.folder / "n0/j1/log-00000000000000000000.log").read_bytes() == b"hello\n"


def test_manifest_when_read_by_anybody_then_holds_no_secret(site):
    site.seal()
    content = site.path("manifest-000001.json").read_bytes()
    assert site.data_key.hex().encode() not in content
    document = json.loads(content)
    facts = {"deployment": "lab", "dag_id": "hostler_node_lifecycle", "run_id": "r1", "tenant": "vision", "recipe": "digits"}
    assert document["facts"] == facts


def test_seal_when_repeated_then_gives_the_same_and_with_news_the_next(site):
    first = site.seal()
    assert site.seal() == first
    site.ship("n0/j1/metrics.hste", b"{}\n", kind="metrics")
    second = site.seal()
    assert second.manifest_uri.endswith("manifest-000002.json")
    assert site.restore().object_count == 4


def test_seal_when_node_is_lost_then_takes_its_own_list_from_the_store(site):
    entry = {name: getattr(site.objects[0], name) for name in ("key", "kind", "sha256", "plain_sha256", "size_bytes", "step")}
    site.store.put(f"{LEASE}/n0/index.json", json.dumps({"version": 1, "objects": [entry]}).encode())
    assert site.seal(objects=[]).object_count == 1


@pytest.mark.parametrize("content", [b"", b"[]", b"{}", b'{"objects": [{}]}', b'{"objects": 1}'])
def test_seal_when_a_node_s_list_is_unreadable_then_refuses_by_name(site, content):
    site.store.put(f"{LEASE}/n0/index.json", content)
    with pytest.raises(BackupError, match=r"n0/index\.json"):
        site.seal()


def test_seal_when_a_list_names_another_node_s_object_then_refuses(site):
    entry = {name: getattr(site.objects[0], name) for name in ("key", "kind", "sha256", "plain_sha256", "size_bytes", "step")}
    site.store.put(f"{LEASE}/n1/index.json", json.dumps({"objects": [entry]}).encode())
    with pytest.raises(BackupError, match="not its node's"):
        site.seal()


@pytest.mark.parametrize("harm", ["missing", "flipped", "cut", "swapped"])
def test_seal_and_restore_when_an_object_was_harmed_then_name_it(site, harm):
    backup = site.seal()
    victim, other = site.objects[0].key, site.objects[1].key
    content = bytearray(site.path(victim).read_bytes())
    content[40] ^= 1
    if harm == "missing":
        site.path(victim).unlink()
    elif harm == "flipped":
        site.path(victim).write_bytes(content)
    elif harm == "cut":
        site.path(victim).write_bytes(content[:-1])
    else:
        kept = site.path(victim).read_bytes()
        site.path(victim).write_bytes(site.path(other).read_bytes())
        site.path(other).write_bytes(kept)
    with pytest.raises(BackupError, match="step-10"):
        site.restore(manifest_sha256=backup.manifest_sha256)
    site.ship("n0/j2/metrics.hste", b"", kind="metrics")
    with pytest.raises(BackupError, match="step-10"):
        site.seal()
    assert not site.path("manifest-000002.json").exists()
    assert not any((site.folder / "out").iterdir()), "nothing of it is left"


def test_seal_when_object_was_sealed_under_another_name_then_refuses(tmp_path):
    site = Site(tmp_path)
    site.ship("n0/j1/step-1.tar.hste", b"", kind="checkpoint", step=1, name="n0/j1/step-2.tar.hste")
    with pytest.raises(BackupError, match="step-1"):
        site.seal()
    assert not site.path("manifest-000001.json").exists()


def test_seal_when_a_node_s_list_lost_an_object_then_the_next_sealing_still_has_it(site):
    site.seal()
    site.ship("n0/j1/metrics.hste", b"{}\n", kind="metrics")
    assert site.seal(objects=site.objects[-1:]).object_count == 4


def test_restore_when_the_ledger_missed_the_last_sealing_then_the_newer_one_is_taken(site):
    known = site.seal().manifest_sha256
    site.ship("n0/j1/metrics.hste", b"{}\n", kind="metrics")
    site.seal()
    assert site.restore(manifest_sha256=known).object_count == 4


def test_restore_when_any_byte_of_the_manifest_was_changed_then_refuses(site):
    site.seal()
    path = site.path("manifest-000001.json")
    content = path.read_bytes()
    for place in range(0, len(content), 13):
        changed = bytearray(content)
        changed[place] ^= 1
        path.write_bytes(changed)
        with pytest.raises((BackupError, KeyServiceError)):
            site.restore(f"out-{place}")


def test_restore_when_manifest_says_the_same_in_another_form_then_refuses(site):
    site.seal()
    path = site.path("manifest-000001.json")
    path.write_text(json.dumps(json.loads(path.read_bytes()), indent=1))
    with pytest.raises(BackupError, match="canonical"):
        site.restore()


def test_restore_when_an_old_manifest_stands_in_place_of_the_new_then_refuses(site):
    site.seal()
    site.ship("n0/j1/metrics.hste", b"{}\n", kind="metrics")
    newest = site.seal()
    old = site.path("manifest-000001.json").read_bytes()
    kept = site.path("manifest-000002.json").read_bytes()
    site.path("manifest-000002.json").write_bytes(old)
    with pytest.raises(BackupError, match="an old one"):
        site.restore("a")
    site.path("manifest-000002.json").unlink()
    with pytest.raises(BackupError, match="not the one that the ledger names"):
        site.restore("b", manifest_sha256=newest.manifest_sha256)
    site.path("manifest-000001.json").unlink()
    site.path("manifest-000002.json").write_bytes(kept)
    with pytest.raises(BackupError, match="missing"):
        site.restore("c")


def test_restore_when_manifest_is_another_lease_s_then_refuses(site):
    site.seal()
    content = site.path("manifest-000001.json").read_bytes()
    site.store.put("lease2/manifest-000001.json", content)
    with pytest.raises(BackupError, match="belongs to lease"):
        restore(site.store, site.keys, "lease2", site.folder / "out")


def test_restore_when_keys_are_another_deployment_s_then_refuses(site):
    site.seal()
    with pytest.raises(KeyServiceError):
        restore(site.store, LocalKeys(site.folder / "other"), LEASE, site.folder / "out")


def test_restore_when_there_is_no_manifest_or_folder_is_full_then_says_so(site):
    with pytest.raises(BackupError, match="no manifest"):
        site.restore()
    (site.folder / "full").mkdir()
    (site.folder / "full" / "x").touch()
    with pytest.raises(BackupError, match="empty folder"):
        site.restore("full")


@pytest.mark.parametrize("member", ["../../../evil", "/evil", "step-1/../../../../evil"])
def test_restore_when_archive_would_leave_its_folder_then_refuses(tmp_path, member):
    site = Site(tmp_path)
    site.ship_step(1, {member: b"x"})
    site.seal()
    with pytest.raises(BackupError, match="leave its folder"):
        site.restore()
    assert not list(tmp_path.rglob("evil"))


@pytest.mark.parametrize("key", ["../x", "n0/../../x", "/x", "n0", "n0//x", ".n/x"])
def test_seal_when_a_key_could_leave_the_lease_then_refuses(site, key):
    bad = ShippedObject(key=key, kind="log", sha256="0" * 64, plain_sha256="0" * 64, size_bytes=0)
    with pytest.raises(BackupError, match="not allowed"):
        site.seal(objects=[bad])


def test_seal_when_another_process_seals_first_then_takes_the_next_number(site):
    real_put, first = site.store.put, []

    def put(key, content, *, if_absent=False):
        if if_absent and not first:
            first.append(key)
            real_put(key, content, if_absent=True)
            raise FileExistsError(key)
        real_put(key, content, if_absent=if_absent)

    site.store.put = put
    assert site.seal().manifest_uri.endswith("manifest-000001.json")


def test_backup_when_agent_shipped_it_then_seals_and_restores(site, make_agent):
    agent = make_agent("node-0")

    agent.store = site.folder / "store"
    agent.configure(backup=agent.backup(data_key=base64.b64encode(site.data_key).decode()))
    agent.start_python("j1", TRAIN, env={"EVERY": "5", "LAST": "10"})
    agent.until_state("j1", "succeeded")
    assert agent.ask("flush")["error"] is None
    assert site.seal(objects=[]).object_count == 4
    report = site.restore()
    assert (report.folder / "node-0/j1/step-10/weights-0").read_text() == "w10"
    assert (report.folder / "node-0/j1/log-00000000000000000000.log").read_text() == "begins at 0\nends at 10\n"
    assert len((report.folder / "node-0/j1/metrics.jsonl").read_text().splitlines()) == 10


@given(facts=st.dictionaries(st.text(max_size=8), st.text(max_size=8), max_size=3), sequence=st.integers(1, 10**6))
def test_manifest_when_written_and_read_then_is_the_same(facts, sequence):
    entry = ShippedObject(key="n/a", kind="log", sha256="a" * 64, plain_sha256="b" * 64, size_bytes=1, step=None)
    made = Manifest(
        lease_id="l",
        sequence=sequence,
        previous_sha256=None,
        sealed_at=NOW,
        key_id="k",
        wrapped_data_key="w",
        facts=facts,
        objects=(entry,),
    )
    assert manifests.read(manifests.write(made, bytes(32)), "l", bytes(32)) == made


@given(content=st.binary(max_size=100))
def test_manifest_when_bytes_are_anything_then_raises_its_own_error(content):
    with pytest.raises(BackupError):
        manifests.read(content, "l", bytes(32))

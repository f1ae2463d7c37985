"""Seeded tamperings with a sealed backup: every one is refused, in words that name what was touched, and leaves nothing."""

import io
import json
import random
from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal

import pytest
from tests.vault.memory_store import Killed, MemoryStore

from hostler.model.enums import CapacityType, LeaseState
from hostler.model.lease import Lease
from hostler.model.request import NodeRequest, RunRef
from hostler.reach.port import ShippedObject
from hostler.recipes.agent.folders import pack
from hostler.recipes.backup import restore, seal
from hostler.recipes.manifest import BackupError
from hostler.vault.envelope import HEADER_BYTES, Sealer
from hostler.vault.local import LocalKeys
from hostler.vault.port import KeyServiceError

NOW = datetime(2030, 1, 1, tzinfo=UTC)
LEASE, OTHER = "lease1", "lease2"
FRAME, TAG = 64, 16
SEEDS = range(12)


class Site:
    """Two leases with a sealed backup each, the first sealed twice; frames are small so that each object has several."""

    def __init__(self, folder) -> None:
        self.keys = LocalKeys(folder / "keys")
        self.stranger = LocalKeys(folder / "other-keys")
        self.store = MemoryStore()
        self.leases: dict[str, Lease] = {}
        self.data_keys: dict[str, bytes] = {}
        self.objects: dict[str, list[ShippedObject]] = {LEASE: [], OTHER: []}
        request = NodeRequest(
            tenant="t",
            accelerator="H100",
            accelerators_per_node=1,
            node_count=1,
            capacity_types=(CapacityType.SPOT,),
            max_cost_usd=Decimal(1),
        )
        run = RunRef(dag_id="dag", run_id="run")
        for lease_id in (LEASE, OTHER):
            self.data_keys[lease_id], wrapped = self.keys.new_data_key(lease_id)
            self.leases[lease_id] = Lease(
                lease_id=lease_id,
                deployment="d",
                run=run,
                request=request,
                state=LeaseState.DRAINING,
                created_at=NOW,
                wrapped_data_key=wrapped,
            )
            for step in (10, 20):
                self.ship_step(folder, lease_id, step)
            self.ship(lease_id, "n0/j1/log-00000000000000000000.hste", "log", b"line\n" * 60)
        self.seal(LEASE)
        self.older = dict(self.store.content)
        self.ship(LEASE, "n0/j1/metrics.hste", "metrics", b'{"loss": 1}\n' * 20)
        self.known = self.seal(LEASE).manifest_sha256
        self.seal(OTHER)

    def ship_step(self, folder, lease_id: str, step: int) -> None:
        source = folder / lease_id / f"step-{step}"
        source.mkdir(parents=True)
        (source / "weights").write_bytes(bytes([step]) * 300)
        tar = io.BytesIO()
        pack(source, tar)
        self.ship(lease_id, f"n0/j1/step-{step}.tar.hste", "checkpoint", tar.getvalue(), step)

    def ship(self, lease_id: str, key: str, kind: str, plain: bytes, step: int | None = None) -> None:
        sink = io.BytesIO()
        sealer = Sealer(sink, self.data_keys[lease_id], f"{lease_id}/{key}", frame_bytes=FRAME)
        sealer.write(plain)
        done = sealer.close()
        self.store.put(f"{lease_id}/{key}", sink.getvalue())
        sizes = {"sha256": done.sha256, "plain_sha256": done.plain_sha256, "size_bytes": done.size_bytes}
        self.objects[lease_id].append(ShippedObject(key=key, kind=kind, step=step, **sizes))

    def seal(self, lease_id: str, store: MemoryStore | None = None, objects=None):
        told = self.objects[lease_id] if objects is None else objects
        return seal(store or self.store, self.leases[lease_id], told, NOW, keys=self.keys)


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    return Site(tmp_path_factory.mktemp("site"))


Content = dict[str, bytes]
Harm = Callable[[Content, random.Random, Site], None]


def _object(content: Content, dice: random.Random, lease_id: str = LEASE) -> str:
    return dice.choice(sorted(key for key in content if key.startswith(f"{lease_id}/n0/")))


def _manifest(content: Content, dice: random.Random) -> str:
    return dice.choice(sorted(key for key in content if key.startswith(f"{LEASE}/manifest-")))


def _parts(sealed: bytes) -> tuple[bytes, list[bytes]]:
    return sealed[:HEADER_BYTES], [sealed[at : at + FRAME + TAG] for at in range(HEADER_BYTES, len(sealed), FRAME + TAG)]


def _flip(content: bytes, dice: random.Random) -> bytes:
    changed = bytearray(content)
    changed[dice.randrange(len(changed))] ^= 1 << dice.randrange(8)
    return bytes(changed)


def flip_a_bit(content, dice, site):
    key = _object(content, dice)
    content[key] = _flip(content[key], dice)


def flip_a_bit_of_a_manifest(content, dice, site):
    key = _manifest(content, dice)
    content[key] = _flip(content[key], dice)


def cut_out_a_frame(content, dice, site):
    key = _object(content, dice)
    head, frames = _parts(content[key])
    del frames[dice.randrange(len(frames))]
    content[key] = head + b"".join(frames)


def swap_frames(content, dice, site):
    key = _object(content, dice)
    head, frames = _parts(content[key])
    one, two = dice.sample(range(len(frames)), 2)
    frames[one], frames[two] = frames[two], frames[one]
    content[key] = head + b"".join(frames)


def double_a_frame(content, dice, site):
    key = _object(content, dice)
    head, frames = _parts(content[key])
    at = dice.randrange(len(frames))
    content[key] = head + b"".join([*frames[:at], frames[at], *frames[at:]])


def take_a_frame_of_another_object(content, dice, site):
    key, other = dice.sample(sorted(key for key in content if key.startswith(f"{LEASE}/n0/")), 2)
    head, frames = _parts(content[key])
    frames[0] = _parts(content[other])[1][0]
    content[key] = head + b"".join(frames)


def swap_objects(content, dice, site):
    one, two = dice.sample(sorted(key for key in content if key.startswith(f"{LEASE}/n0/")), 2)
    content[one], content[two] = content[two], content[one]


def take_the_same_object_of_another_lease(content, dice, site):
    key = _object(content, dice, OTHER)
    content[LEASE + key[len(OTHER) :]] = content[key]


def cut_an_object(content, dice, site):
    key = _object(content, dice)
    content[key] = content[key][: dice.randrange(len(content[key]))]


def append_bytes(content, dice, site):
    content[_object(content, dice)] += dice.randbytes(dice.randint(1, 200))


def append_bytes_to_a_manifest(content, dice, site):
    content[_manifest(content, dice)] += dice.choice([b" ", b"\n", b"{}", b"\0", dice.randbytes(9)])


def rename_an_object(content, dice, site):
    key = _object(content, dice)
    content[f"{key}.old"] = content.pop(key)


def remove_an_object(content, dice, site):
    del content[_object(content, dice)]


def truncate_a_manifest(content, dice, site):
    key = _manifest(content, dice)
    content[key] = content[key][: dice.randrange(len(content[key]))]


def replay_an_old_manifest(content, dice, site):
    newest, old = f"{LEASE}/manifest-000002.json", f"{LEASE}/manifest-000001.json"
    way = dice.randrange(3)
    if way == 0:  # in the newest one's place
        content[newest] = content[old]
    elif way == 1:  # as if the newest had never been
        del content[newest]
    else:  # as a newer one
        content[f"{LEASE}/manifest-{dice.randint(3, 999_999):06d}.json"] = content[old]


def remove_an_old_manifest(content, dice, site):
    del content[f"{LEASE}/manifest-000001.json"]


def take_the_manifest_of_another_lease(content, dice, site):
    content[_manifest(content, dice)] = content[f"{OTHER}/manifest-000001.json"]


def edit_a_manifest(content, dice, site):
    """Its fields say what suits the attacker; the proof stays, is dropped, or is made with another key."""
    key = _manifest(content, dice)
    document = json.loads(content[key])
    entry = dice.choice(document["objects"])
    field, value = dice.choice(
        [("sha256", "0" * 64), ("plain_sha256", "0" * 64), ("size_bytes", 0), ("step", 99), ("key", "n0/j1/step-99.tar.hste")]
    )
    if dice.random() < 0.3:
        document["objects"].remove(entry)
    else:
        entry[field] = value
    if dice.random() < 0.3:
        document["proof"] = dice.choice(["", "0" * 64, None, 1])
    content[key] = json.dumps(document, sort_keys=True, separators=(",", ":")).encode() + b"\n"


def take_the_key_of_another_lease(content, dice, site):
    key = _manifest(content, dice)
    document = json.loads(content[key])
    document["wrapped_data_key"] = site.leases[OTHER].wrapped_data_key
    content[key] = json.dumps(document, sort_keys=True, separators=(",", ":")).encode() + b"\n"


def put_in_an_older_world(content, dice, site):
    """All of the lease's objects as they were when it was sealed first."""
    for key in [key for key in content if key.startswith(LEASE)]:
        del content[key]
    content.update({key: value for key, value in site.older.items() if key.startswith(LEASE)})


HARMS: list[Harm] = [
    flip_a_bit,
    flip_a_bit_of_a_manifest,
    cut_out_a_frame,
    swap_frames,
    double_a_frame,
    take_a_frame_of_another_object,
    swap_objects,
    take_the_same_object_of_another_lease,
    cut_an_object,
    append_bytes,
    append_bytes_to_a_manifest,
    rename_an_object,
    remove_an_object,
    truncate_a_manifest,
    replay_an_old_manifest,
    remove_an_old_manifest,
    take_the_manifest_of_another_lease,
    edit_a_manifest,
    take_the_key_of_another_lease,
    put_in_an_older_world,
]


def test_tampering_when_counted_then_over_two_hundred():
    assert len(HARMS) * len(SEEDS) >= 200


def test_backup_when_untouched_then_restores(site, tmp_path):
    report = restore(MemoryStore(site.store.content), site.keys, LEASE, tmp_path / "out", manifest_sha256=site.known)
    assert (report.object_count, report.steps) == (4, (("n0", "j1", 10), ("n0", "j1", 20)))
    assert (tmp_path / "out/n0/j1/step-20/weights").read_bytes() == bytes([20]) * 300


@pytest.mark.parametrize("harm", HARMS, ids=lambda harm: harm.__name__)
def test_restore_when_tampered_with_then_refused_by_name_and_nothing_is_left(site, tmp_path, harm):
    for seed in SEEDS:
        content = dict(site.store.content)
        harm(content, random.Random(f"{harm.__name__}/{seed}"), site)
        assert content != site.store.content
        into = tmp_path / str(seed)
        with pytest.raises((BackupError, KeyServiceError)) as caught:
            restore(MemoryStore(content), site.keys, LEASE, into, manifest_sha256=site.known)
        words = str(caught.value)
        assert LEASE in words or "n0/j1/" in words, words
        assert len(words) < 400, words
        assert not list(into.iterdir()), (seed, words)


@pytest.mark.parametrize("seed", range(4))
def test_restore_when_the_key_is_another_deployment_s_then_refused(site, tmp_path, seed):
    with pytest.raises(KeyServiceError, match=LEASE):
        restore(MemoryStore(site.store.content), site.stranger, LEASE, tmp_path / "out")


@pytest.mark.parametrize(
    "harm",
    [flip_a_bit, cut_out_a_frame, swap_frames, swap_objects, cut_an_object, append_bytes, rename_an_object],
    ids=lambda harm: harm.__name__,
)
def test_seal_when_a_shipped_object_is_not_whole_then_seals_nothing(site, harm):
    for seed in SEEDS:
        store = MemoryStore(site.store.content)
        before = store.list_keys(f"{LEASE}/manifest-")
        harm(store.content, random.Random(f"{harm.__name__}/{seed}"), site)
        with pytest.raises(BackupError, match="damaged: n0/j1/"):
            site.seal(LEASE, store)
        assert store.list_keys(f"{LEASE}/manifest-") == before


def test_seal_when_killed_at_any_step_then_the_last_good_one_restores_and_the_next_try_seals(site, tmp_path):
    """The process dies before or after every call to the store, with a new object waiting to be sealed."""
    fresh = Site(tmp_path)
    fresh.ship(LEASE, "n0/j2/metrics.hste", "metrics", b"{}\n")
    start, known = dict(fresh.store.content), fresh.known
    counting = MemoryStore(start)
    fresh.seal(LEASE, counting)
    assert counting.calls > 10
    counts = set()
    for step in range(1, counting.calls + 1):
        store = MemoryStore(start, dies_at=step)
        with pytest.raises(Killed):
            fresh.seal(LEASE, store)
        store.dies_at = None
        report = restore(store, fresh.keys, LEASE, tmp_path / f"out-{step}", manifest_sha256=known)
        counts.add(report.object_count)
        assert fresh.seal(LEASE, store).object_count == 5
    assert counts == {4, 5}, "the old one, and the new one once its manifest is there"


def test_restore_when_killed_then_nothing_unproved_shows(site, tmp_path):
    counting = MemoryStore(site.store.content)
    restore(counting, site.keys, LEASE, tmp_path / "whole")
    for step in range(1, counting.calls + 1):
        into = tmp_path / str(step)
        with pytest.raises(Killed):
            restore(MemoryStore(site.store.content, dies_at=step), site.keys, LEASE, into)
        assert not [path for path in into.rglob("*") if ".unproved" not in path.parts]


def test_restore_when_an_earlier_one_was_killed_hard_then_its_leftovers_are_in_nobody_s_way(site, tmp_path):
    (tmp_path / ".unproved" / "n0").mkdir(parents=True)
    restore(MemoryStore(site.store.content), site.keys, LEASE, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["n0"]

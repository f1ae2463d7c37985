import base64
import multiprocessing
import stat
import subprocess
from datetime import UTC, datetime, timedelta

import asyncssh
import pytest

from hostler.vault.local import MASTER_FILE, LocalKeys
from hostler.vault.port import KeyServiceError


def _key_id(folder) -> str:
    return LocalKeys(folder).key_id


def test_local_keys_when_first_used_then_file_is_private(tmp_path):
    LocalKeys(tmp_path / "keys")
    path = tmp_path / "keys" / MASTER_FILE
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert len(path.read_bytes()) == 32


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o660, 0o604])
def test_local_keys_when_file_is_open_to_others_then_refuses_by_name(tmp_path, mode):
    LocalKeys(tmp_path)
    (tmp_path / MASTER_FILE).chmod(mode)
    with pytest.raises(KeyServiceError, match=rf"master\.key.*{mode:04o}.*0600"):
        LocalKeys(tmp_path)


@pytest.mark.parametrize("content", [b"", bytes(31), bytes(33)])
def test_local_keys_when_file_is_no_whole_key_then_refuses_and_leaves_it(tmp_path, content):
    (tmp_path / MASTER_FILE).write_bytes(content)
    (tmp_path / MASTER_FILE).chmod(0o600)
    with pytest.raises(KeyServiceError, match="32 bytes expected"):
        LocalKeys(tmp_path)
    assert (tmp_path / MASTER_FILE).read_bytes() == content


def test_local_keys_when_file_is_a_link_then_refuses(tmp_path):
    (tmp_path / "real").write_bytes(bytes(32))
    (tmp_path / "real").chmod(0o600)
    (tmp_path / MASTER_FILE).symlink_to(tmp_path / "real")
    with pytest.raises(KeyServiceError):
        LocalKeys(tmp_path)


def test_local_keys_when_many_start_at_once_then_all_have_the_same_key(tmp_path):
    with multiprocessing.get_context("spawn").Pool(4) as pool:
        assert len(set(pool.map(_key_id, [tmp_path / "keys"] * 12))) == 1
    assert [path.name for path in (tmp_path / "keys").iterdir()] == [MASTER_FILE]


def test_data_key_when_unwrapped_for_its_lease_then_is_the_same(tmp_path):
    plain, wrapped = LocalKeys(tmp_path).new_data_key("lease-a")
    assert len(plain) == 32
    assert LocalKeys(tmp_path).unwrap(wrapped, "lease-a") == plain


def test_data_key_when_context_or_master_differs_then_refuses(tmp_path):
    keys = LocalKeys(tmp_path / "a")
    _, wrapped = keys.new_data_key("lease-a")
    with pytest.raises(KeyServiceError):
        keys.unwrap(wrapped, "lease-b")
    with pytest.raises(KeyServiceError):
        LocalKeys(tmp_path / "b").unwrap(wrapped, "lease-a")


def test_data_key_when_any_byte_is_changed_then_refuses(tmp_path):
    keys = LocalKeys(tmp_path)
    raw = base64.b64decode(keys.new_data_key("lease-a")[1])
    for place in range(len(raw)):
        changed = raw[:place] + bytes([raw[place] ^ 1]) + raw[place + 1 :]
        with pytest.raises(KeyServiceError):
            keys.unwrap(base64.b64encode(changed).decode(), "lease-a")
    for text in ("", "AA==", "no base64!", base64.b64encode(raw[:20]).decode()):
        with pytest.raises(KeyServiceError):
            keys.unwrap(text, "lease-a")


def test_host_key_when_asked_again_then_has_the_same_bytes_for_the_same_intent_only(tmp_path):
    keys = LocalKeys(tmp_path)
    assert keys.host_key_pair("lease-0-1") == LocalKeys(tmp_path).host_key_pair("lease-0-1")
    assert keys.host_key_pair("lease-0-1") != keys.host_key_pair("lease-0-2")


def test_host_key_when_read_by_openssh_libraries_then_halves_belong_together(tmp_path):
    private, public = LocalKeys(tmp_path).host_key_pair("lease-0-1")
    read = asyncssh.import_private_key(private)
    assert read.export_public_key("openssh").split()[:2] == public.encode().split()[:2]
    assert asyncssh.import_public_key(public).algorithm == b"ssh-ed25519"


@pytest.mark.skipif(
    subprocess.run(["sh", "-c", "command -v ssh-keygen"], check=False, capture_output=True).returncode != 0,
    reason="no ssh-keygen",
)
def test_host_key_when_read_by_ssh_keygen_then_is_accepted(tmp_path):
    private, public = LocalKeys(tmp_path / "keys").host_key_pair("lease-0-1")
    path = tmp_path / "host"
    path.write_text(private)
    path.chmod(0o600)
    told = subprocess.run(["ssh-keygen", "-y", "-f", path], check=True, capture_output=True, text=True).stdout
    assert told.split()[:2] == public.split()[:2]


def test_user_certificate_when_made_then_is_short_and_for_one_principal(tmp_path):
    now = datetime(2030, 1, 1, tzinfo=UTC)
    keys = LocalKeys(tmp_path, clock=lambda: now)
    made = keys.user_certificate("hostler", valid_s=600)
    assert made.expires_at == now + timedelta(seconds=600)
    assert made.certificate.principals == ["hostler"]
    assert made.certificate.signing_key.public_data == asyncssh.import_public_key(keys.user_ca_public_key()).public_data
    assert keys.user_certificate("hostler").key.public_data != made.key.public_data


def test_keys_when_shown_then_give_nothing_away(tmp_path):
    keys = LocalKeys(tmp_path)
    master = (tmp_path / MASTER_FILE).read_bytes()
    for text in (repr(keys), str(keys), keys.key_id, keys.user_ca_public_key()):
        assert master.hex() not in text
        assert repr(master)[2:-1] not in text

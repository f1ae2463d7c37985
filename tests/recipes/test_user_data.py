from dataclasses import replace
from datetime import UTC, datetime

import asyncssh
import pytest
import yaml
from tests import samples

from hostler.model.enums import IntentState
from hostler.model.lease import Intent
from hostler.recipes.user_data import PRINCIPAL, build
from hostler.vault.local import LocalKeys

NOW = datetime(2030, 1, 1, tzinfo=UTC)


@pytest.fixture
def intent():
    return Intent(
        intent_id="lease1-0-1",
        lease_id="lease1",
        slot_index=0,
        attempt=1,
        tenant="t",
        offering=samples.offering(),
        client_token="x",
        state=IntentState.OPEN,
        fence=1,
        written_at=NOW,
        settle_after=NOW,
    )


@pytest.fixture
def keys(tmp_path):
    return LocalKeys(tmp_path)


def test_user_data_when_built_again_then_has_the_same_bytes(intent, keys, tmp_path):
    later = replace(intent, state=IntentState.UNKNOWN, fence=9, row_version=3)
    assert build(intent, keys, user="hostler") == build(later, LocalKeys(tmp_path), user="hostler")
    assert build(replace(intent, intent_id="lease1-0-2"), keys, user="hostler") != build(intent, keys, user="hostler")


def test_user_data_when_read_then_holds_the_pinned_host_key(intent, keys):
    text = build(intent, keys, user="hostler")
    assert text.startswith("#cloud-config\n")
    read = yaml.safe_load(text)
    private = asyncssh.import_private_key(read["ssh_keys"]["ed25519_private"])
    assert private.export_public_key("openssh").split()[:2] == keys.host_key_pair("lease1-0-1")[1].encode().split()[:2]
    assert read["ssh_deletekeys"] is True


def test_user_data_when_read_then_lets_in_the_authority_s_word_only(intent, keys):
    read = yaml.safe_load(build(intent, keys, user="hostler"))
    files = {entry["path"]: entry["content"] for entry in read["write_files"]}
    assert files["/etc/ssh/hostler_user_authority.pub"].strip() == keys.user_ca_public_key()
    assert files["/etc/ssh/hostler_principals/hostler"].split() == [PRINCIPAL]
    sshd = files["/etc/ssh/sshd_config.d/10-hostler.conf"].splitlines()
    for line in ("PasswordAuthentication no", "PermitRootLogin no", "AllowUsers hostler"):
        assert line in sshd
    assert read["ssh_pwauth"] is False
    (user,) = read["users"]
    assert (user["name"], user["lock_passwd"]) == ("hostler", True)
    assert "ssh_authorized_keys" not in user


def test_user_data_when_sized_then_fits_the_smallest_cloud_limit(intent, keys):
    assert len(build(intent, keys, user="hostler").encode()) < 16 * 1024


def test_user_data_when_read_then_holds_no_key_of_the_deployment(intent, keys, tmp_path):
    text = build(intent, keys, user="hostler")
    assert (tmp_path / "master.key").read_bytes().hex() not in text
    assert text.count("PRIVATE KEY-----") == 2

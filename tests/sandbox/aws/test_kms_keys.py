"""The product's KMS key service on the sandbox's KMS, over the real SDK and wire."""

import base64

import pytest

from hostler.vault.kms import KeyRing, KmsKeys
from hostler.vault.local import LocalKeys
from hostler.vault.port import KeyServiceError


@pytest.fixture
def arn(rig):
    return rig.client("kms").create_key()["KeyMetadata"]["Arn"]


@pytest.fixture
def keys(rig, arn):
    return KmsKeys(arn, deployment="lab", client_factory=lambda: rig.client("kms"))


def test_kms_when_a_key_is_made_then_only_its_own_lease_and_deployment_unwrap_it(rig, arn, keys):
    plain, wrapped = keys.new_data_key("lease1")
    assert (len(plain), keys.key_id) == (32, f"kms:{arn}")
    assert keys.unwrap(wrapped, "lease1") == plain
    assert plain not in base64.b64decode(wrapped.removeprefix("kms:"))
    with pytest.raises(KeyServiceError, match=r"not this lease's, or damaged.*'lease2'"):
        keys.unwrap(wrapped, "lease2")
    other = KmsKeys(arn, deployment="other", client_factory=lambda: rig.client("kms"))
    with pytest.raises(KeyServiceError, match="InvalidCiphertextException"):
        other.unwrap(wrapped, "lease1")


def test_kms_when_any_byte_of_a_wrapped_key_was_changed_then_refused(keys):
    _, wrapped = keys.new_data_key("lease1")
    blob = base64.b64decode(wrapped.removeprefix("kms:"))
    for place in range(0, len(blob), 17):
        changed = bytearray(blob)
        changed[place] ^= 1
        with pytest.raises(KeyServiceError, match="lease1"):
            keys.unwrap("kms:" + base64.b64encode(changed).decode(), "lease1")
    for broken in ("kms:", "kms:%%%", "kms:AAAA", wrapped[:-8], wrapped.removeprefix("kms:")):
        with pytest.raises(KeyServiceError, match="lease1"):
            keys.unwrap(broken, "lease1")


def test_kms_when_the_key_is_disabled_gone_or_another_then_says_which(rig, arn, keys):
    _, wrapped = keys.new_data_key("lease1")
    rig.client("kms").disable_key(KeyId=arn)
    with pytest.raises(KeyServiceError, match="it is disabled"):
        keys.unwrap(wrapped, "lease1")
    with pytest.raises(KeyServiceError, match="it is disabled"):
        keys.new_data_key("lease1")
    no_such = KmsKeys(arn[:-12] + "000000000000", deployment="lab", client_factory=lambda: rig.client("kms"))
    with pytest.raises(KeyServiceError, match="there is no such key"):
        no_such.new_data_key("lease1")


def test_kms_when_it_cannot_be_asked_then_words_and_no_sdk_text():
    def _no_client():
        raise RuntimeError("credentials AKIASECRET")

    keys = KmsKeys("arn:aws:kms:us-east-1:123456789012:alias/x", deployment="lab", client_factory=_no_client)
    with pytest.raises(KeyServiceError, match=r"could not be asked \(RuntimeError") as caught:
        keys.new_data_key("lease1")
    assert "AKIASECRET" not in str(caught.value)
    assert caught.value.__context__ is None


def test_key_ring_when_a_deployment_moved_to_kms_then_older_keys_still_open(rig, keys, tmp_path):
    local = LocalKeys(tmp_path / "keys")
    old_plain, old = local.new_data_key("lease1")
    ring = KeyRing(kms=keys, local=local)
    new_plain, new = ring.new_data_key("lease2")
    assert (ring.unwrap(old, "lease1"), ring.unwrap(new, "lease2")) == (old_plain, new_plain)
    assert new.startswith("kms:")
    with pytest.raises(KeyServiceError, match=r"keys\.kms_key"):
        local.unwrap(new, "lease2")


@pytest.mark.parametrize(
    "arn", ["", "alias/x", "arn:aws:s3:::b", "arn:aws:kms:us-east-1:1:key/x", "arn:aws:kms:us-east-1:123456789012:key/"]
)
def test_kms_when_the_arn_is_none_then_names_what_is_allowed(arn):
    with pytest.raises(ValueError, match=r"keys\.kms_key: arn:aws:kms"):
        KmsKeys(arn, deployment="lab", client_factory=lambda: None)

import pytest

from hostler.cloud.registry import settings_models
from hostler.config.fleet_file import FleetFileError, parse_fleet
from hostler.vault.kms import KeyRing
from hostler.vault.local import LocalKeys
from hostler.vault.retention import Retention
from hostler.vault.stores import S3Store
from hostler.wiring.keeping import backup_store, key_service, retention_of

ARN = "arn:aws:kms:eu-west-1:123456789012:key/11111111-2222-3333-4444-555555555555"
FLEET = """\
deployment: acme
limits: {{usd_per_hour: 1, usd_per_run: 1, nodes: 1}}
keys: {{folder: {folder}{keys}}}
backup: {{uri: {uri}{backup}}}
tenants: {{default: {{}}, vision: {{retention: {{all_days: 1, daily: 2}}}}}}
clouds: {{aws: {{regions: [us-east-1], image: ami-1, connection: conn}}}}
"""


class Asked:
    """A session source that notes what it was asked for."""

    def __init__(self):
        self.calls = []

    def client(self, cloud, service, region, connection, options=None):
        self.calls.append((cloud, service, region, connection))
        raise RuntimeError("no cloud here")


def fleet(tmp_path, *, keys="", backup="", uri="s3://b/p"):
    text = FLEET.format(folder=tmp_path / "keys", keys=keys, backup=backup, uri=uri)
    return parse_fleet(text, "fleet.yaml", settings_models())


def test_keys_when_none_is_named_then_the_local_ones(tmp_path):
    assert isinstance(key_service(fleet(tmp_path), Asked()), LocalKeys)


def test_keys_when_a_kms_key_is_named_then_asked_in_its_region_by_the_cloud_s_connection(tmp_path):
    sessions = Asked()
    keys = key_service(fleet(tmp_path, keys=f", kms_key: '{ARN}'"), sessions)
    assert isinstance(keys, KeyRing)
    assert (keys.key_id, sessions.calls) == (f"kms:{ARN}", [])
    with pytest.raises(Exception, match="could not be asked"):
        keys.new_data_key("lease1")
    assert sessions.calls == [("aws", "kms", "eu-west-1", "conn")]


@pytest.mark.parametrize("arn", ["alias/x", "arn:aws:s3:::bucket", "11111111-2222-3333-4444-555555555555"])
def test_keys_when_the_arn_is_none_then_the_file_is_refused_with_its_line(tmp_path, arn):
    with pytest.raises(FleetFileError, match="kms_key"):
        fleet(tmp_path, keys=f", kms_key: '{arn}'")


def test_store_when_a_lock_is_asked_for_then_the_store_locks(tmp_path):
    assert backup_store(fleet(tmp_path, backup=", object_lock: {mode: compliance, days: 30}"), Asked()).locks_objects is True
    made = backup_store(fleet(tmp_path), Asked())
    assert isinstance(made, S3Store)
    assert made.locks_objects is False


def test_store_when_a_folder_is_to_lock_then_the_file_is_refused(tmp_path):
    with pytest.raises(FleetFileError, match="a folder locks nothing"):
        fleet(tmp_path, uri="file:///x", backup=", object_lock: {days: 30}")


def test_retention_when_asked_then_the_tenant_s_own_else_the_deployment_s_and_strangers_keep_all(tmp_path):
    made = fleet(tmp_path, backup=", retention: {daily: 9}")
    assert retention_of(made, "default") == Retention(daily=9)
    assert retention_of(made, "vision") == Retention(all_days=1, daily=2)
    assert retention_of(made, "gone") is None
    assert retention_of(fleet(tmp_path), "default") is None

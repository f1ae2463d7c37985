"""One fleet, several clouds: each with its own way in."""

import asyncio
from dataclasses import replace

import pytest
import yaml
from tests.fake_world import make_world

from hostler.config.clouds import CloudSettings
from hostler.config.fleet_file import parse_fleet
from hostler.drivers.aws.settings import AwsSettings
from hostler.lifecycle.admit import admit
from hostler.lifecycle.converge import converge
from hostler.lifecycle.fleet import Login
from hostler.model.enums import Phase
from hostler.model.request import RunRef
from hostler.wiring import build
from hostler.wiring.settings import lifecycle_settings

KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ0000000000000000000000000000000000000000000"
FLEET = f"""\
deployment: acme
limits: {{usd_per_hour: 1, usd_per_run: 1, nodes: 1}}
backup: {{uri: "s3://b/p"}}
clouds:
  aws: {{regions: [us-east-1], image: ami-1, reach: {{user: ubuntu, port: 2222, jump_host: "gate@10.0.0.1:22", jump_host_key: {KEY}}}}}
  other: {{regions: [north], reach: {{user: worker, port: 2022}}}}
  plain: {{regions: [south]}}
"""
MODELS = {"aws": AwsSettings, "other": CloudSettings, "plain": CloudSettings}


@pytest.fixture
def fleet_file():
    return parse_fleet(FLEET, "fleet.yaml", MODELS)


def test_settings_when_clouds_differ_then_each_has_its_own_login(fleet_file):
    settings = lifecycle_settings(fleet_file)
    assert settings.login_of("aws") == Login(user="ubuntu", port=2222)
    assert settings.login_of("other") == Login(user="worker", port=2022)
    assert settings.login_of("plain") == Login(user="hostler", port=22)
    assert settings.login_of("not in the file") == Login()


def test_jump_hosts_when_one_cloud_has_one_then_the_others_are_reached_directly(fleet_file):
    jumps = build._jumps(fleet_file)
    assert set(jumps) == {"aws"}
    assert (jumps["aws"].user, jumps["aws"].host, jumps["aws"].port, jumps["aws"].host_key) == ("gate", "10.0.0.1", 22, KEY)


def test_launch_when_the_cloud_has_its_own_login_then_the_node_row_and_its_user_data_carry_it():
    world = make_world()
    given = []
    fleet = replace(
        world.fleet,
        settings=replace(world.fleet.settings, logins={"fake": Login(user="worker", port=2022), "aws": Login(user="ubuntu")}),
        user_data=lambda intent: given.append(intent) or "",
    )
    lease = admit(fleet, RunRef(dag_id="d", run_id="r"), {"recipe": "script", "script": "true"}, who="test")
    asyncio.run(converge(fleet, lease.lease_id, Phase.LAUNCH, holder="test", budget_s=600))
    nodes = world.ledger.view(lease.lease_id).nodes
    assert [(node.user, node.port) for node in nodes] == [("worker", 2022)] * 2
    assert {intent.offering.cloud for intent in given} == {"fake"}


def test_fleet_when_built_then_user_data_makes_the_login_of_the_intents_own_cloud(tmp_path, ledger_url, monkeypatch):
    monkeypatch.setattr(build, "_drivers", lambda *_: {})
    monkeypatch.setattr(build, "ledger_url", lambda _: ledger_url)
    text = FLEET.replace("limits:", f"keys: {{folder: {tmp_path}/keys}}\nlimits:")
    fleet = build.build_fleet(sessions=None, secret=str, fleet_file=parse_fleet(text, "fleet.yaml", MODELS))
    world = make_world()
    lease = admit(world.fleet, RunRef(dag_id="d", run_id="r"), {"recipe": "script", "script": "true"}, who="test")
    asyncio.run(converge(world.fleet, lease.lease_id, Phase.LAUNCH, holder="test", budget_s=600))
    intent = world.ledger.view(lease.lease_id).intents[0]
    for cloud, user in (("aws", "ubuntu"), ("other", "worker"), ("plain", "hostler")):
        mine = replace(intent, offering=replace(intent.offering, cloud=cloud))
        assert yaml.safe_load(fleet.user_data(mine))["users"][0]["name"] == user
    fleet.ledger.close()

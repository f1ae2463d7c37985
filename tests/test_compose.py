"""docker-compose.yaml against the Compose specification; there is no engine here to start it."""

import json
from pathlib import Path

import pytest
import yaml
from compose_spec import PyCompose

from hostler.cloud.registry import settings_models
from hostler.config.fleet_file import parse_fleet

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "docker-compose.yaml").read_text()


def parse(text):
    # Through JSON: the schema's reader does not know YAML merge keys.
    return PyCompose.from_json(json.dumps(yaml.safe_load(text)))


def test_compose_file_when_parsed_then_it_is_valid_and_has_every_part():
    services = set(parse(TEXT).service_names())
    assert {"api-server", "scheduler", "dag-processor", "triggerer", "worker"} <= services
    assert {"postgres", "redis", "prometheus", "grafana", "sandbox"} <= services


def test_compose_file_when_a_service_has_an_unknown_shape_then_the_schema_refuses_it():
    with pytest.raises(ValueError, match="expected a set"):
        parse(TEXT.replace('ports: ["127.0.0.1:8080:8080"]', "ports: {a: b}"))


def test_compose_file_when_ports_are_published_then_on_loopback_only():
    services = yaml.safe_load(TEXT)["services"]
    ports = [port for service in services.values() for port in service.get("ports", [])]
    assert ports
    assert all(port.startswith("127.0.0.1:") for port in ports)


def test_compose_file_when_secrets_are_needed_then_none_has_a_default():
    assert "CeleryExecutor" in TEXT
    for name in ("HOSTLER_DB_PASSWORD", "HOSTLER_JWT_SECRET", "HOSTLER_FERNET_KEY", "GRAFANA_PASSWORD"):
        assert f"${{{name}:?" in TEXT


def test_compose_file_when_its_fleet_is_read_then_it_is_a_valid_fleet_file(monkeypatch):
    monkeypatch.setenv("HOSTLER_DB_PASSWORD", "x")
    text = yaml.safe_load(TEXT)["configs"]["fleet"]["content"].replace("$$", "$")
    assert parse_fleet(text, "fleet.yaml", settings_models()).deployment == "compose"

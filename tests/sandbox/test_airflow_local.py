"""How a local Airflow is set up, without starting it; ``tests/live`` starts it."""

import json
import stat

import pytest

from hostler_sandbox.airflow_local import AirflowPlace, LocalAirflow


@pytest.fixture
def place(tmp_path):
    return AirflowPlace(
        folder=tmp_path / "home",
        database_url="postgresql://u:made-up-password@127.0.0.1:1/airflow",
        dags_folder=tmp_path,
        plugins_folder=tmp_path,
        users={"admin": "admin", "eyes": "viewer"},
        python_path=(tmp_path / "include",),
        env={"HOSTLER_FLEET": "fleet.yaml"},
    )


def test_environment_when_made_then_one_airflow_on_loopback_and_no_sqlite(place):
    env = LocalAirflow(place).env
    assert env["AIRFLOW__DATABASE__SQL_ALCHEMY_CONN"].startswith("postgresql+psycopg://u:")
    assert env["AIRFLOW__CORE__EXECUTION_API_SERVER_URL"].startswith("http://127.0.0.1:")
    assert env["AIRFLOW__CORE__LOAD_EXAMPLES"] == "False"
    assert env["HOSTLER_FLEET"] == "fleet.yaml"
    assert env["PYTHONPATH"].startswith(str(place.python_path[0]))


def test_passwords_when_made_then_one_a_user_readable_by_the_owner_only_and_kept(place):
    first = LocalAirflow(place)
    path = place.folder / "passwords.json"
    assert set(json.loads(path.read_text())) == {"admin", "eyes"}
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert LocalAirflow(place).passwords == first.passwords


def test_keys_when_made_then_kept_long_enough_and_private(place):
    first = LocalAirflow(place).env
    again = LocalAirflow(place).env
    for name in ("AIRFLOW__CORE__FERNET_KEY", "AIRFLOW__API_AUTH__JWT_SECRET"):
        assert first[name] == again[name]
    assert len(first["AIRFLOW__API_AUTH__JWT_SECRET"]) >= 64
    assert stat.S_IMODE((place.folder / "jwt.key").stat().st_mode) == 0o600


def test_stop_when_never_started_then_nothing_happens(place):
    airflow = LocalAirflow(place)
    airflow.stop()
    assert airflow.pids() == {}

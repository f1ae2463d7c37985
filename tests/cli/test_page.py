"""``hostler page``, started for real, on loopback."""

import json
import os
import re
import signal
import subprocess
import sys
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest


@pytest.fixture
def served(fleet_file, lease, tmp_path):
    """Address and token of a running page."""
    token_file = tmp_path / "token"
    command = [sys.executable, "-m", "hostler.cli.main", "page", "--port", "0", "--token-file", str(token_file)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        try:
            said = process.stdout.readline() + process.stdout.readline()
            token = token_file.read_text().strip()
            assert token not in said
            yield re.search(r"http://127\.0\.0\.1:\d+/", said)[0], token
        finally:
            process.send_signal(signal.SIGINT)
            process.wait(timeout=30)
    assert process.returncode in {0, 130}


def status_of(address, **headers):
    try:
        with urlopen(Request(address, headers=headers), timeout=30) as answer:
            return answer.status
    except HTTPError as error:
        with error:
            return error.code


def test_page_when_served_then_the_lease_is_shown_to_who_has_the_token_only(served, lease):
    address, token = served
    with urlopen(Request(f"{address}api/nodes", headers={"Authorization": f"Bearer {token}"}), timeout=30) as answer:
        rows = json.load(answer)["rows"]
    assert [(row["lease_id"], row["state"], row["run_url"]) for row in rows] == [(lease, "launched", None)]
    assert float(rows[0]["cost_usd"]) >= 20
    assert status_of(f"{address}api/nodes") == 401
    assert status_of(address) == 401
    assert status_of(address, Authorization=f"Bearer {token}") == 200
    # A foreign name that leads here is not ours.
    assert status_of(address, Authorization=f"Bearer {token}", Host="evil.example.org") == 400


def test_page_when_airflows_address_is_none_for_a_browser_then_one_line_and_status_2(hostler, tmp_path):
    status, _, wrong = hostler("page", "--airflow-url", "javascript:x", "--token-file", str(tmp_path / "token"))
    assert status == 2
    assert wrong.startswith("hostler: --airflow-url: allowed is http")


def test_page_when_the_token_file_is_open_to_others_then_one_line_and_status_2(hostler, tmp_path):
    (tmp_path / "token").write_text("made-up-token-of-enough-length")
    (tmp_path / "token").chmod(0o644)
    status, _, wrong = hostler("page", "--token-file", str(tmp_path / "token"))
    assert status == 2
    assert "0600" in wrong

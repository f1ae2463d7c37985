import json

import pytest

from hostler.cli.main import main


def test_status_when_a_lease_lives_then_its_cost_and_the_limits_are_shown(hostler, lease):
    status, said, _ = hostler("status")
    assert status == 0
    assert lease in said
    assert "granted" in said
    assert "20.00" in said
    assert "1 of 4 nodes, 20.00 of 100.00 USD an hour; mode enforce" in said


def test_status_when_json_is_asked_for_then_one_document(hostler, lease):
    document = json.loads(hostler("status", "--json")[1])
    assert document["leases"][0]["lease_id"] == lease
    assert document["nodes"] == 1


def test_nodes_when_one_lives_then_its_offering_and_price_are_shown(hostler, lease):
    said = hostler("nodes")[1]
    assert "i-0123" in said
    assert "aws/us-east-1/us-east-1a/p5.48xlarge/spot" in said
    assert "1h00m" in said


@pytest.mark.parametrize("name", ["whole", "start", "run"])
def test_why_when_the_lease_is_named_by_id_or_start_or_run_then_it_is_explained(hostler, lease, name):
    named = {"whole": lease, "start": lease[:6], "run": "manual-1"}[name]
    status, said, _ = hostler("why", named)
    assert status == 0
    assert lease in said


def test_why_when_there_is_no_such_lease_then_one_line_and_status_2(hostler):
    status, said, wrong = hostler("why", "nothing")
    assert (status, said) == (2, "")
    assert wrong == "hostler: 'nothing': no such lease; `hostler status --all` lists them\n"


@pytest.mark.parametrize("command", ["why", "logs", "release"])
@pytest.mark.parametrize("name", ["", " "])
def test_command_when_the_leases_name_is_empty_then_it_means_no_lease_not_the_only_one(hostler, ledger, lease, command, name):
    status, said, wrong = hostler(command, name)
    assert (status, said) == (2, "")
    assert "name is empty" in wrong
    assert ledger.view(lease).lease.release_reason is None


def test_logs_when_no_job_has_started_then_it_says_so(hostler, lease):
    status, _, wrong = hostler("logs", lease)
    assert status == 2
    assert "has not started a job yet" in wrong


def test_spending_when_stopped_and_resumed_then_status_shows_it_and_the_record_has_who(hostler, ledger):
    assert hostler("stop-spending", "--reason", "budget")[0] == 0
    assert ledger.is_spending_stopped()
    assert "spending is STOPPED" in hostler("status")[1]
    assert hostler("resume")[0] == 0
    assert not ledger.is_spending_stopped()
    events = [(event.what, event.why) for event in ledger.list_events(None) if event.what.startswith("spending")]
    assert events == [("spending.stopped", "budget"), ("spending.resumed", "asked by a person")]


def test_ledger_when_asked_for_its_status_then_the_schema_is_named(hostler):
    status, said, _ = hostler("ledger", "status")
    assert status == 0
    assert said.startswith("ledger: external, schema ")


def test_restore_when_the_folder_is_not_empty_then_refused_by_name(hostler, lease, tmp_path):
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "x").touch()
    status, _, wrong = hostler("restore", lease, "--into", str(tmp_path / "full"))
    assert status == 2
    assert "--into" in wrong


def test_command_when_the_ledger_cannot_be_reached_then_one_line_without_the_password(fleet_file, monkeypatch, capsys):
    monkeypatch.setenv("TEST_LEDGER_URL", "postgresql+psycopg://u:s3cr3t-word@127.0.0.1:1/none")
    assert main(["status"]) == 2
    wrong = capsys.readouterr().err
    assert wrong.startswith("hostler: ")
    assert "s3cr3t" not in wrong
    assert "Traceback" not in wrong


def test_command_when_the_fleet_file_is_wrong_then_the_line_is_named(fleet_file, capsys):
    fleet_file.write_text(fleet_file.read_text().replace("nodes: 4", "nodes: none"))
    assert main(["status"]) == 2
    assert "limits.nodes" in capsys.readouterr().err

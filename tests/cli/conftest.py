from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
import yaml
from tests import samples

from hostler.cli.main import main
from hostler.ledger.port import Caps
from hostler.model.enums import LeaseState, NodeState
from hostler.model.lease import Event, Intent, IntentState, Lease, Node, client_token_for, intent_id_for, lease_id_for
from hostler.model.request import RunRef
from hostler.stores.postgres import PostgresLedger

OFFERING = samples.offering("20", "us-east-1a")


@pytest.fixture
def fleet_file(tmp_path, ledger_url, monkeypatch):
    """A fleet file whose ledger is the test's own database."""
    path = tmp_path / "fleet.yaml"
    document = {
        "deployment": "acme",
        "limits": {"usd_per_hour": 100, "usd_per_run": 50, "nodes": 4},
        "ledger": {"url": "${TEST_LEDGER_URL}"},
        "keys": {"folder": str(tmp_path / "keys")},
        "backup": {"uri": f"file://{tmp_path}/store"},
        "clouds": {"aws": {"regions": ["us-east-1"], "image": "ami-1"}},
    }
    path.write_text(yaml.safe_dump(document))
    monkeypatch.setenv("HOSTLER_FLEET", str(path))
    monkeypatch.setenv("TEST_LEDGER_URL", ledger_url)
    return path


@pytest.fixture
def ledger(ledger_url):
    store = PostgresLedger(ledger_url)
    yield store
    store.close()


@pytest.fixture
def hostler(fleet_file, capsys):
    """Runs the command and returns (exit status, standard output, standard error)."""

    def run(*arguments):
        status = main(arguments)
        said = capsys.readouterr()
        return status, said.out, said.err

    return run


@pytest.fixture
def lease(ledger):
    """An active lease with one node that has run for an hour."""
    run = RunRef(dag_id="hostler_node_lifecycle", run_id="manual-1")
    lease_id, now = lease_id_for(run), datetime.now(UTC)
    request = samples.request("default", node_count=1, max_cost_usd=Decimal(50))
    made = Lease(lease_id=lease_id, deployment="acme", run=run, request=request, state=LeaseState.REQUESTED, created_at=now)
    event = Event(lease_id=lease_id, who="test", what="lease.admitted", why="asked for", at=now)
    ledger.admit(made, [event])
    fence = ledger.take_fence(lease_id, "test")
    intent_id = intent_id_for(lease_id, 0, 1)
    intent = Intent(
        intent_id=intent_id,
        lease_id=lease_id,
        slot_index=0,
        attempt=1,
        tenant="default",
        offering=OFFERING,
        client_token=client_token_for(intent_id, OFFERING.key),
        state=IntentState.OPEN,
        fence=fence.token,
        written_at=now,
        settle_after=now + timedelta(seconds=60),
    )
    stored = ledger.insert_intent(intent, fence, Caps(), [event])
    node = Node(
        node_name=f"{lease_id}-0",
        lease_id=lease_id,
        slot_index=0,
        intent_id=intent_id,
        tenant="default",
        offering=OFFERING,
        provider_id="i-0123",
        state=NodeState.LAUNCHED,
        launched_at=now - timedelta(hours=1),
        address="127.1.9.9",
    )
    owned = replace(stored, state=IntentState.OWNED, provider_id="i-0123")
    granted = replace(ledger.view(lease_id).lease, state=LeaseState.GRANTED, reached="acquire")
    ledger.write(lease_id, [granted, owned, node], [event], fence)
    return lease_id

import asyncio
from dataclasses import replace

from hostler.lifecycle.admit import admit
from hostler.model.enums import LeaseState
from hostler.model.request import RunRef


def admitted(world, run_id="r1"):
    conf = {"recipe": "script", "script": "true", "nodes": 1}
    return admit(world.fleet, RunRef(dag_id="d", run_id=run_id), conf, who="x")


def test_lateness_when_airflow_rings_then_the_lease_says_so_and_an_ended_one_does_not(world, monkeypatch):
    from hostler_sensors import lateness

    monkeypatch.setattr("hostler.wiring.notices.tell_people", lambda _ledger, *, secret: 0)

    async def ring(run_id):
        async def fleet():
            return world.fleet

        monkeypatch.setattr(lateness, "shared_fleet", fleet)
        return await lateness.tell_late({"dag_run": {"dag_id": "d", "dag_run_id": run_id}})

    lease = admitted(world)
    assert "longer than expected" in asyncio.run(ring("r1"))
    assert [event.who for event in world.fleet.ledger.list_events(lease.lease_id) if event.what == "run.late"] == [
        "airflow/deadline"
    ]
    assert "no lease" in asyncio.run(ring("r9"))
    ended = admitted(world, "r2")
    view = world.fleet.ledger.view
    monkeypatch.setattr(
        world.fleet.ledger, "view", lambda lid: replace(view(lid), lease=replace(view(lid).lease, state=LeaseState.RELEASED))
    )
    assert "nothing of it costs" in asyncio.run(ring("r2"))
    assert all(event.what != "run.late" for event in world.fleet.ledger.list_events(ended.lease_id))

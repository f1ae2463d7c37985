"""The real judge in the lifecycle: proof before harm, and the verdict with its evidence and source in the record."""

import asyncio
from dataclasses import replace
from datetime import UTC, datetime

from tests.health.documents import device, document
from tests.sim.nodes import SimNodes
from tests.sim.stage import TO_RUN, Phase, Reached, admitted, events, fair_world, run_simulated, through, until
from tests.sim.world import SEAMS

from hostler.health.verdict import judge
from hostler.lifecycle.condition import Observer, nodes_healthy
from hostler.lifecycle.converge import converge
from hostler.lifecycle.explain import why
from hostler.model.enums import HealthAction, Verdict

REAL = replace(SEAMS, judge=judge)


class ProbedNodes(SimNodes):
    """The simulation's nodes, whose probe is the bench's."""

    bench = None

    async def probe(self, node):
        return await self.bench.probe(node)


class Bench:
    """A world whose nodes answer with real probe documents, which a test spoils."""

    def __init__(self):
        self.world = fair_world(seams=REAL)
        self.spoilt = {}
        self.asked = {}
        self.world.nodes = ProbedNodes(cloud=self.world.cloud, seconds=self.world.seconds)
        self.world.nodes.bench = self

    async def probe(self, node):
        self.world.nodes._machine(node)
        self.asked[node.provider_id] = self.asked.get(node.provider_id, 0) + 1
        looks = self.spoilt.get(node.provider_id, [])
        changes = looks.pop(0) if looks else {}
        fields = changes.pop("document", {})
        bad = {"nvlink_active_count": 18, **changes}
        devices = [device(0, **bad), *(device(index) for index in range(1, 8))]
        uptime = self.world.seconds()
        return document(*devices, boot_id=f"boot-{node.provider_id}", uptime_s=uptime, **fields)

    async def to_setup(self):
        lease_id = admitted(self.world)
        await through(self.world, lease_id, TO_RUN[:4])
        return lease_id, self.world.ledger.view(lease_id).nodes[0]

    def node(self, lease_id, name):
        return next(node for node in self.world.ledger.view(lease_id).nodes if node.node_name == name)


def xid_line(code, text):
    line = f"NVRM: Xid (PCI:0000:00:09): {code}, {text}"
    return {"code": code, "pci_bus_id": "0000:00:09", "at_uptime_s": 5.0, "line": line}


def looks(count, **changes):
    return [dict(changes) for _ in range(count)]


def test_validate_when_one_look_is_bad_and_the_next_ones_good_then_the_node_works():
    async def play():
        bench = Bench()
        lease_id, node = await bench.to_setup()
        bench.spoilt[node.provider_id] = looks(1, nvlink_active_count=17)
        assert isinstance(await until(bench.world, lease_id, Phase.VALIDATE), Reached)
        after = bench.node(lease_id, node.node_name)
        assert (after.health, after.ending_reason) == (Verdict.HEALTHY, None)
        assert bench.asked[node.provider_id] > 1

    run_simulated(play())


def test_validate_when_a_fault_is_proven_then_the_node_is_replaced_and_the_record_says_who_saw_what_by_which_document():
    async def play():
        bench = Bench()
        lease_id, node = await bench.to_setup()
        bench.spoilt[node.provider_id] = looks(9, has_remap_failed=True)
        assert isinstance(await until(bench.world, lease_id, Phase.VALIDATE), Reached)
        after = bench.node(lease_id, node.node_name)
        assert after.ending_reason.startswith("validate: failed: ")
        assert "a row remap has failed: replace" in after.ending_reason
        assert (after.health_action, after.is_health_proven) == (HealthAction.DRAIN_AND_REPLACE, True)
        assert bench.asked[node.provider_id] == 3
        last = [
            event for event in events(bench.world, lease_id, "node.probed") if ("fault", "rows.remap_failed") in event.evidence
        ][-1]
        told = dict(last.evidence)
        assert told["seen_by"] == "nvml"
        assert told["proof"] == "seen at 3 of 5 looks or more"
        assert told["source"] == "NVIDIA GPU memory error management"
        assert told["action"] == "drain_and_replace"
        assert told["clears_by"] == "another node"

    run_simulated(play())


def test_validate_when_two_sources_agree_then_the_first_look_is_enough():
    async def play():
        bench = Bench()
        lease_id, node = await bench.to_setup()
        line = xid_line(79, "GPU has fallen off the bus.")
        bench.spoilt[node.provider_id] = looks(9, error="GPU is lost", document={"xids": [line]})
        assert isinstance(await until(bench.world, lease_id, Phase.VALIDATE), Reached)
        assert bench.asked[node.provider_id] == 1
        assert "Xid 79" in bench.node(lease_id, node.node_name).ending_reason

    run_simulated(play())


def test_validate_when_a_node_is_never_fit_and_never_proven_then_six_probes_are_enough():
    async def play():
        bench = Bench()
        lease_id, node = await bench.to_setup()
        line = xid_line(62, "x")
        bench.spoilt[node.provider_id] = looks(9, document={"xids": [line]})
        assert isinstance(await until(bench.world, lease_id, Phase.VALIDATE), Reached)
        assert bench.asked[node.provider_id] == 6
        assert "Xid 62" in bench.node(lease_id, node.node_name).ending_reason

    run_simulated(play())


def test_why_when_a_node_is_not_healthy_then_it_says_reason_rung_proof_and_document():
    async def play():
        bench = Bench()
        lease_id, node = await bench.to_setup()
        bench.spoilt[node.provider_id] = looks(1, pcie_width=8, temperature_c=86, is_persistent=False)
        assert isinstance(await until(bench.world, lease_id, Phase.VALIDATE), Reached)
        text = why(bench.world.ledger.view(lease_id), [])
        assert "health degraded" in text
        assert "0000:00:09: persistence mode is off" in text
        assert "asks for: record" in text
        assert "by Azure/azurehpc-health-checks, persistence mode" in text
        assert "ends with 3 good looks in a row" in text

    run_simulated(play())


def test_why_when_failed_is_not_proven_yet_then_it_says_so():
    async def play():
        bench = Bench()
        lease_id, node = await bench.to_setup()
        bench.spoilt[node.provider_id] = looks(9, nvlink_active_count=3)
        await converge(bench.world.fleet(), lease_id, Phase.VALIDATE, holder="x", budget_s=0)
        text = why(bench.world.ledger.view(lease_id), [])
        assert "not proven yet: one look of one source" in text
        assert "3 of 18 NVLinks active" in text

    run_simulated(play())


def test_nodes_healthy_when_one_watcher_looks_again_then_three_looks_prove_what_one_did_not():
    async def play():
        bench = Bench()
        lease_id, node = await bench.to_setup()
        await until(bench.world, lease_id, Phase.VALIDATE)
        bench.spoilt[node.provider_id] = looks(4, has_remap_failed=True)
        fleet, observer = bench.world.fleet(), Observer(who="watcher")
        seen = []
        for _ in range(3):
            await asyncio.sleep(20)
            seen.append(await nodes_healthy(fleet, lease_id, 10.0, observer))
        assert [one.is_hopeless for one in seen] == [False, False, True]
        assert [one.is_doubtful for one in seen] == [True, True, False]
        told = events(bench.world, lease_id, "node.health_seen")
        assert [event.who for event in told] == ["watcher", "watcher"]  # new verdict, then proven: the one between is no news
        assert ("source", dict(told[-1].evidence)["source"]) in told[-1].evidence
        await asyncio.sleep(20)
        alone = await nodes_healthy(fleet, lease_id, 10.0)
        assert (alone.is_hopeless, alone.is_doubtful) == (False, True)
        assert bench.node(lease_id, node.node_name).health is Verdict.HEALTHY

    run_simulated(play())


def test_nodes_healthy_when_a_driver_mismatch_comes_under_a_job_then_the_reboot_waits_for_it():
    async def play():
        bench = Bench()
        lease_id, node = await bench.to_setup()
        await until(bench.world, lease_id, Phase.VALIDATE)
        errors = ["Failed to initialize NVML: Driver/library version mismatch"]
        broken = {"accelerators": [], "source": "none", "driver_version": None, "errors": errors}
        bench.spoilt[node.provider_id] = looks(4, document=broken)
        observer = Observer()
        for _ in range(3):
            await asyncio.sleep(20)
            await nodes_healthy(bench.world.fleet(), lease_id, 10.0, observer)
        report = observer.reports[node.node_name]
        assert (report.action, dict(report.evidence)["when"]) == (HealthAction.REBOOT_NODE, "no job runs")

    run_simulated(play())


def test_judge_when_a_document_is_no_document_then_unknown_and_its_memory_can_be_used():
    now = datetime(2026, 1, 1, tzinfo=UTC)
    first = judge({"accelerators": 5}, accelerator="H100", accelerator_count=8, now=now)
    assert first.verdict is Verdict.UNKNOWN
    good = document(*(device(index) for index in range(8)))
    assert judge(good, accelerator="H100", accelerator_count=8, now=now, memory=first.memory).verdict is Verdict.HEALTHY

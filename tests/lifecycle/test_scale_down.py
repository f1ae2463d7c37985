"""Idle nodes (bug report B40 and its kind)."""

import pytest
from tests.lifecycle.idle_world import ACT, AWAY, good, idle_world, record, twice
from tests.sim.stage import events, run_simulated, until

from hostler.lifecycle.policies import GuardVerdict, Housekeeping, ScaleDownPolicy
from hostler.lifecycle.scale_down import scale_down
from hostler.model.enums import JobState, LeaseState, Phase

IDLE = (0.0,) * 8


def actions(report):
    return {one.lease_id: one.action for one in report.findings}


def test_b40_when_every_sample_is_idle_then_marked_first_and_released_with_its_backup_later():
    async def play():
        world, (lease_id,) = await idle_world()
        first, second = await twice(world)
        assert actions(first) == {lease_id: "mark"}
        assert actions(second) == {lease_id: "ended"}
        view = world.ledger.view(lease_id)
        assert view.lease.state is LeaseState.RELEASED
        assert view.lease.release_reason.startswith("idle: every sample of 8 accelerators in 600 s is idle")
        assert view.backups[-1].is_verified
        assert view.jobs[-1].state is JobState.SUCCEEDED
        assert world.cloud.live() == []
        ending = events(world, lease_id, "scale_down.ending")[0]
        assert dict(ending.evidence)["nodes"] == "1"

    run_simulated(play())


@pytest.mark.parametrize(
    ("told", "words"),
    [
        (AWAY, "unknown: does not answer"),
        (record((None,) * 8), "unknown"),  # MIG: the driver tells no utilisation
        (record(IDLE[:7]), "unknown"),  # one accelerator is not told of
        (record(()), "unknown"),
        (record((0.0,) * 7 + (float("nan"),)), "busy"),
        (record((0.0,) * 7 + (-1.0,)), "unknown"),
        (record(IDLE, changes={20: {"utilisation_ratios": (0.0,) * 7 + (0.3,)}}), "busy"),  # one sample of one of eight
        (record(IDLE, changes={20: {"utilisation_ratios": (0.0,) * 7 + (None,)}}), "unknown"),
        (record(IDLE, window_s=300), "unknown"),  # the window is not covered: just booted, or the daemon was away
        (record(IDLE, process_count=1), "busy"),
        (record(IDLE, process_count=None), "unknown"),
        (record(IDLE, login_count=1), "busy"),
        (record(IDLE, login_count=None), "unknown"),
        (record(IDLE, job_count=1), "busy"),
        (record(IDLE, cpu_ratio=0.5), "busy"),  # loads data
        (record(IDLE, cpu_ratio=None), "unknown"),
    ],
)
def test_b40_when_a_signal_is_missing_or_one_sample_is_busy_then_left_alone(told, words):
    async def play():
        world, (lease_id,) = await idle_world(policy=ACT)
        world.nodes.told[f"{lease_id}-0-1"] = told
        for report in await twice(world):
            (finding,) = report.findings
            assert finding.action == "none"
            assert words in finding.reason
        assert len(world.cloud.live()) == 1

    run_simulated(play())


def test_b40_when_samples_are_stale_or_have_a_gap_then_unknown():
    async def play():
        world, (lease_id,) = await idle_world()
        whole = record(IDLE)
        gap = type(whole)(samples=whole.samples[:10] + whole.samples[14:], every_s=15.0)
        stale = type(whole)(samples=whole.samples[:-4], every_s=15.0)
        for told in (gap, stale):
            world.nodes.told[f"{lease_id}-0-1"] = told
            report = await scale_down(world.fleet(), who="scale", guard=good, dry_run=False)
            assert actions(report) == {lease_id: "none"}

    run_simulated(play())


def test_scale_down_when_one_node_of_a_gang_is_busy_then_the_gang_stays():
    async def play():
        world, (lease_id,) = await idle_world(nodes=2)
        world.nodes.told[f"{lease_id}-1-1"] = record(IDLE, process_count=1)
        _, second = await twice(world)
        assert actions(second) == {lease_id: "none"}
        assert len(world.cloud.live()) == 2

    run_simulated(play())


def test_scale_down_when_its_job_runs_then_not_even_marked_though_all_samples_are_idle():
    async def play():
        world, (done,) = await idle_world()
        from tests.sim.stage import TO_RUN, admitted

        world.nodes.total_steps = 10**6
        running = admitted(world, number=9, nodes=1)
        for phase in TO_RUN[:-1]:
            await until(world, running, phase)
        await until(world, running, Phase.RUN, for_s=60)
        report = await scale_down(world.fleet(), who="scale", guard=good, dry_run=False)
        assert actions(report) == {done: "mark", running: "none"}
        assert "its job is running" in next(one.reason for one in report.findings if one.lease_id == running)

    run_simulated(play())


def test_scale_down_when_it_becomes_busy_at_the_last_look_then_left_alone_and_unmarked():
    async def play():
        world, (lease_id,) = await idle_world()
        name, asked = f"{lease_id}-0-1", []

        def guard(batch):
            asked.append(batch)
            if len(asked) == 2:
                world.nodes.told[name] = record(IDLE, login_count=1)
            return GuardVerdict()

        _, second = await twice(world, guard)
        assert actions(second) == {lease_id: "none"}
        assert "no longer idle at the last look" in second.findings[0].reason
        assert not world.ledger.get_meta(f"idle/{lease_id}")
        assert len(world.cloud.live()) == 1

    run_simulated(play())


def test_scale_down_when_many_are_idle_then_the_blast_radius_holds_and_the_least_valuable_go_first():
    async def play():
        world, ids = await idle_world(leases=4, most=2)
        _, second = await twice(world)
        assert [one.lease_id for one in second.ended] == ids[:2]  # the one whose work ended first goes first
        waits = [one for one in second.findings if one.action == "waits"]
        assert {one.lease_id for one in waits} == set(ids[2:])
        assert "hostler release" in waits[0].reason

    run_simulated(play())


@pytest.mark.parametrize("mode", [Housekeeping.REPORT, Housekeeping.MARK])
def test_scale_down_when_the_policy_does_not_act_then_nothing_ends(mode):
    async def play():
        world, (lease_id,) = await idle_world(policy=ScaleDownPolicy(mode=mode, idle_after_s=600, grace_s=0))
        first, second = await twice(world)
        assert [one.action for one in (*first.findings, *second.findings)] == (
            ["report", "report"] if mode is Housekeeping.REPORT else ["mark", "waits"]
        )
        assert bool(world.ledger.get_meta(f"idle/{lease_id}")) is (mode is Housekeeping.MARK)
        assert len(world.cloud.live()) == 1

    run_simulated(play())


def test_scale_down_when_dry_run_or_ledger_is_not_confirmed_then_nothing_is_written():
    async def play():
        world, (lease_id,) = await idle_world()
        before = len(events(world))
        _, second = await twice(world, dry_run=True)
        assert second.report_only == "dry run"
        world.ledger.set_meta("confirmed_epoch", "")
        _, second = await twice(world)
        assert "not confirmed" in second.report_only
        assert actions(second) == {lease_id: "report"}
        assert len(events(world)) == before
        assert len(world.cloud.live()) == 1

    run_simulated(play())


@pytest.mark.parametrize("guard", [lambda _batch: GuardVerdict(problems=("fresh: 9 rows",), report="/r"), lambda _batch: 1 / 0])
def test_scale_down_when_the_guard_refuses_or_breaks_then_nothing_is_ended_and_somebody_is_told(guard):
    async def play():
        world, _ = await idle_world()
        first, second = await twice(world, guard)
        assert first.ended == second.ended == ()
        assert second.guard.problems
        assert len(events(world, None, "scale_down.checks_failed")) == 2
        assert len(world.cloud.live()) == 1

    run_simulated(play())

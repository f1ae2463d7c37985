from hostler.recipes.agent.restore import choose


def entry(job_id, rank, at, *, step=10, world_size=2, kind="checkpoint"):
    key = f"node-{rank}/{job_id}/step-{step}.tar.hste"
    return {"key": key, "kind": kind, "step": step, "job_id": job_id, "rank": rank, "world_size": world_size, "shipped_at": at}


def test_choose_when_a_newer_attempt_is_not_whole_then_takes_the_whole_one():
    old = [entry("a1", 0, "1"), entry("a1", 1, "2")]
    assert choose([*old, entry("a2", 0, "9")], 10, 0) == old


def test_choose_when_several_are_whole_then_takes_the_newest_with_the_own_rank_first():
    new = [entry("a2", 0, "5"), entry("a2", 1, "6")]
    assert choose([entry("a1", 0, "1"), entry("a1", 1, "2"), *new], 10, 1) == [new[1], new[0]]


def test_choose_when_none_is_whole_then_takes_what_there_is():
    assert choose([entry("a1", 1, "1")], 10, 0) == [entry("a1", 1, "1")]


def test_choose_when_step_or_kind_differs_then_takes_nothing():
    assert choose([entry("a1", 0, "1", step=20), entry("a1", 0, "1", kind="log")], 10, 0) == []

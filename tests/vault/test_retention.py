from dataclasses import replace
from datetime import UTC, datetime, timedelta

from hypothesis import given, settings
from hypothesis import strategies as st

from hostler.vault.retention import BackupAge, Condition, Kept, Retention, judge

NOW = datetime(2030, 7, 1, 12, tzinfo=UTC)
ONLY_NEWEST = Retention(all_days=0, daily=0, weekly=0, monthly=0, yearly=0)

rules = st.builds(
    Retention,
    all_days=st.integers(0, 40),
    daily=st.integers(0, 10),
    weekly=st.integers(0, 6),
    monthly=st.integers(0, 6),
    yearly=st.integers(0, 3),
)


@st.composite
def fleets(draw):
    ages = draw(st.lists(st.floats(0, 1500, allow_nan=False), max_size=25))
    return [
        BackupAge(
            backup_id=f"b{number}",
            tenant=draw(st.sampled_from(["a", "b"])),
            sealed_at=NOW - timedelta(days=age),
            condition=draw(st.sampled_from([Condition.GOOD] * 4 + [Condition.DAMAGED, Condition.UNKNOWN])),
            locked=draw(st.sampled_from([None, None, None, "legal hold"])),
        )
        for number, age in enumerate(ages)
    ]


def gone(judged: tuple[Kept, ...]) -> set[str]:
    return {one.backup.backup_id for one in judged if not one.reasons}


def daily(count: int, every_hours: float = 24) -> list[BackupAge]:
    return [
        BackupAge(backup_id=f"b{n:04d}", tenant="t", sealed_at=NOW - timedelta(hours=n * every_hours), condition=Condition.GOOD)
        for n in range(count)
    ]


@given(fleets(), rules)
def test_retention_when_judged_then_never_gives_up_the_newest_good_nor_locked_nor_unproved_nor_young(backups, rule):
    lost = gone(judge(backups, lambda _: rule, NOW))
    for tenant in ("a", "b"):
        good = [one for one in backups if one.tenant == tenant and one.condition is Condition.GOOD]
        if good:
            assert max(good, key=lambda one: (one.sealed_at, one.backup_id)).backup_id not in lost
    for one in backups:
        is_safe = one.locked or one.condition is not Condition.GOOD or NOW - one.sealed_at < timedelta(days=rule.all_days)
        assert not (is_safe and one.backup_id in lost)


@given(fleets(), rules)
def test_retention_when_applied_again_then_nothing_more_goes(backups, rule):
    lost = gone(judge(backups, lambda _: rule, NOW))
    left = [one for one in backups if one.backup_id not in lost]
    assert gone(judge(left, lambda _: rule, NOW)) == set()


@given(fleets(), rules, st.randoms(use_true_random=False))
def test_retention_when_the_order_differs_then_the_judgement_is_the_same(backups, rule, dice):
    shuffled = list(backups)
    dice.shuffle(shuffled)
    assert judge(shuffled, lambda _: rule, NOW) == judge(backups, lambda _: rule, NOW)


@given(fleets(), rules)
def test_retention_when_a_tenant_is_judged_then_others_do_not_matter(backups, rule):
    mine = [one for one in backups if one.tenant == "a"]
    alone = gone(judge(mine, lambda _: rule, NOW))
    assert alone == gone(judge(backups, lambda _: rule, NOW)) & {one.backup_id for one in mine}


@given(fleets(), rules)
def test_retention_when_more_is_asked_for_then_no_less_is_kept(backups, rule):
    more = replace(rule, daily=rule.daily + 3, monthly=rule.monthly + 1, all_days=rule.all_days + 5)
    assert gone(judge(backups, lambda _: more, NOW)) <= gone(judge(backups, lambda _: rule, NOW))


@given(fleets(), rules)
def test_retention_when_counted_then_no_more_than_asked_for_is_kept_by_age(backups, rule):
    free = [replace(one, locked=None, condition=Condition.GOOD, tenant="a") for one in backups]
    old = [one for one in judge(free, lambda _: rule, NOW) if NOW - one.backup.sealed_at >= timedelta(days=rule.all_days)]
    assert sum(bool(one.reasons) for one in old) <= rule.daily + rule.weekly + rule.monthly + rule.yearly + 1


@given(st.integers(1, 6), st.integers(1, 200))
@settings(max_examples=30)
def test_retention_when_run_every_day_for_long_then_old_months_are_still_there(monthly, days):
    """What goes today must not be what a later day would have kept: monthly backups last as long as they are asked to."""
    rule = Retention(all_days=2, daily=3, weekly=2, monthly=monthly, yearly=0)
    left: list[BackupAge] = []
    for day in range(days):
        now = NOW + timedelta(days=day)
        left.append(BackupAge(backup_id=f"d{day}", tenant="t", sealed_at=now, condition=Condition.GOOD))
        lost = gone(judge(left, lambda _: rule, now))
        left = [one for one in left if one.backup_id not in lost]
    months = sorted({((NOW + timedelta(days=day)).year, (NOW + timedelta(days=day)).month) for day in range(days)})
    kept = {(one.sealed_at.year, one.sealed_at.month) for one in left}
    assert set(months[-monthly:]) <= kept


def test_retention_when_no_rule_is_set_then_all_stay():
    assert gone(judge(daily(500), lambda _: None, NOW)) == set()


def test_retention_when_grandfather_father_and_son_then_days_weeks_months_and_years():
    rule = Retention(all_days=0, daily=3, weekly=2, monthly=2, yearly=2)
    judged = judge(daily(900), lambda _: rule, NOW)
    kept = {one.backup.sealed_at.date().isoformat(): one.reasons for one in judged if one.reasons}
    assert kept == {
        "2030-07-01": ("the newest good one", "daily", "weekly", "monthly", "yearly"),
        "2030-06-30": ("daily", "weekly", "monthly"),
        "2030-06-29": ("daily",),
        "2029-12-31": ("yearly",),
    }


def test_retention_when_the_newest_is_damaged_then_the_newest_good_one_stays_and_fills_the_day():
    backups = daily(3)
    backups[0] = replace(backups[0], condition=Condition.DAMAGED)
    judged = {one.backup.backup_id: one.reasons for one in judge(backups, lambda _: ONLY_NEWEST, NOW)}
    assert judged["b0000"] == ("damaged: a person decides",)
    assert judged["b0001"] == ("the newest good one",)
    assert judged["b0002"] == ()


def test_retention_when_two_runs_are_of_one_day_then_the_newest_stays():
    rule = replace(ONLY_NEWEST, daily=5)
    assert gone(judge(daily(8, every_hours=6), lambda _: rule, NOW)) == {"b0001", "b0002", "b0004", "b0005", "b0006"}

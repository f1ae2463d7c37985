"""The restore drill, with the digits recipe really trained on from a restored checkpoint."""

import random
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.lifecycle.keeping_site import KeepingSite, job

from hostler.lifecycle.drill import drill, measure_rpo
from hostler.model.enums import JobState
from hostler.model.lease import LeaseView

OPTIONS = (("batch_size", "512"), ("hidden_size", "8"))


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
    """A checkpoint of the recipe at step 4."""
    folder = tmp_path_factory.mktemp("trained")
    package = Path(__file__).parents[2] / "include/hostler/recipes/training"
    environment = {
        "HOSTLER_JOB_ID": "j",
        "HOSTLER_CHECKPOINT_DIR": str(folder),
        "HOSTLER_OUTPUT_DIR": str(folder / "output"),
        "HOSTLER_METRICS_FILE": str(folder / "metrics"),
        "HOSTLER_OPTION_STEPS": "4",
        **{f"HOSTLER_OPTION_{name.upper()}": text for name, text in OPTIONS},
    }
    (folder / "output").mkdir()
    subprocess.run([sys.executable, "-m", "digits.train"], cwd=package, env=environment, check=True, capture_output=True)
    return folder / "step-4"


@pytest.fixture
def site(tmp_path):
    return KeepingSite(tmp_path)


def told(site):
    event = site.ledger.list_events(None)[-1]
    return event.what, dict(event.evidence)


def test_drill_when_a_backup_is_good_then_training_goes_on_and_rpo_and_rto_are_told(site, checkpoint, tmp_path):
    lease_id = site.run("a", steps={4: checkpoint}, recipe_options=OPTIONS, job=job(JobState.FAILED, step=7))
    report = drill(site.fleet, who="test", rng=random.Random(1), scratch=tmp_path)
    assert (report.lease_id, report.is_good, report.step, report.not_shown) == (lease_id, True, 4, None)
    assert "training went on from step 4 to 7" in report.why
    assert (report.rpo_steps, report.rpo_s) == (3, 600.0)
    assert report.rto_s > 0
    what, evidence = told(site)
    assert what == "backup.drilled"
    assert (evidence["rpo_s"], evidence["rpo_steps"], float(evidence["rto_s"]) > 0) == ("600.0", "3", True)
    assert not list(tmp_path.glob("hostler-drill-*")), "nothing is left"


def test_drill_when_the_checkpoint_is_not_the_recipe_s_then_failed_with_its_words(site, tmp_path):
    site.run("a", steps={4: b"no state"}, recipe_options=OPTIONS)
    report = drill(site.fleet, who="test", rng=random.Random(1), scratch=tmp_path)
    assert report.is_good is False
    assert "began at step 0 instead of 4" in report.why
    assert told(site)[0] == "backup.drill_failed"


def test_drill_when_a_byte_was_changed_then_failed_by_name(site, tmp_path):
    lease_id = site.run("a")
    site.flip(lease_id)
    report = drill(site.fleet, who="test", rng=random.Random(1), scratch=tmp_path)
    assert (report.is_good, "step-10" in report.why) == (False, True)
    assert not list(tmp_path.glob("hostler-drill-*"))


@pytest.mark.parametrize(
    ("steps", "more", "words"), [({}, {}, "no checkpoint"), (None, {"recipe": "script", "script": "x"}, "tenant's own")]
)
def test_drill_when_training_cannot_run_here_then_hashes_are_proved_and_it_says_so(site, tmp_path, steps, more, words):
    site.run("a", steps=steps, **more)
    report = drill(site.fleet, who="test", rng=random.Random(1), scratch=tmp_path)
    assert report.is_good
    assert words in report.not_shown
    assert words in told(site)[1]["training_not_shown"]


def test_drill_when_there_is_no_backup_then_nothing_is_told(site):
    assert drill(site.fleet, who="test", rng=random.Random(1)) is None
    assert site.ledger.list_events(None) == ()


def test_drill_when_repeated_then_every_backup_has_its_turn(site, tmp_path):
    ids = {site.run(name, recipe="script", script="x") for name in "abc"}
    rng = random.Random(7)
    assert {drill(site.fleet, who="test", rng=rng, scratch=tmp_path).lease_id for _ in range(30)} == ids


def test_rpo_when_the_run_ended_with_its_last_step_shipped_then_zero_else_unknown_without_times(site):
    view = LeaseView(lease=None, jobs=(job(JobState.SUCCEEDED, step=10),))
    assert measure_rpo(view, 10, datetime(2026, 12, 1, tzinfo=UTC)) == (0.0, 0)
    assert measure_rpo(view, 8, None) == (None, 2)
    assert measure_rpo(LeaseView(lease=None), 8, None) == (None, None)

"""What the agent tells of its node's load."""

import json
import os
import struct
import textwrap

import pytest

from hostler.recipes import answers
from hostler.recipes.agent import load
from hostler.recipes.agent.layout import NodeHome


@pytest.fixture
def smi(tmp_path, monkeypatch):
    """A machine with its own root, and an nvidia-smi that prints what the test writes."""
    folder = tmp_path / "bin"
    folder.mkdir()
    program = folder / "nvidia-smi"
    program.write_text(
        textwrap.dedent(f"""\
        #!/bin/sh
        case "$1" in *compute-apps*) cat {tmp_path}/apps; exit 0;; esac
        cat {tmp_path}/gpus
        exit $(cat {tmp_path}/status)
        """)
    )
    program.chmod(0o755)
    (tmp_path / "apps").write_text("")
    (tmp_path / "status").write_text("0")
    (tmp_path / "gpus").write_text("GPU-a, 0\nGPU-b, 37\n")
    root = tmp_path / "root"
    (root / "dev/pts").mkdir(parents=True)
    monkeypatch.setenv("HOSTLER_ROOT", str(root))
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    return tmp_path


@pytest.fixture
def sampler(tmp_path):
    home = NodeHome(tmp_path / "home")
    home.agent.mkdir(parents=True)
    return load.Sampler(home)


def test_sample_when_all_is_told_then_as_it_is(smi, sampler):
    (smi / "apps").write_text("4711\n4712\n")
    (smi / "root/dev/pts/0").touch()
    (smi / "root/dev/pts/ptmx").touch()
    taken = sampler.take()
    assert taken["util"] == [0.0, 0.37]
    assert (taken["processes"], taken["logins"], taken["jobs"], taken["why"]) == (2, 1, 0, None)
    assert 0 <= taken["cpu"] <= 1


@pytest.mark.parametrize(
    ("gpus", "status", "told"),
    [
        ("GPU-a, [N/A]\nGPU-b, 3\n", "0", [None, 0.03]),
        ("GPU-a, 3\n[GPU is lost], [GPU is lost]\n", "15", None),
        ("NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.\n", "9", None),
        ("", "0", None),
    ],
)
def test_sample_when_an_accelerator_is_not_told_then_null_and_never_0(smi, sampler, gpus, status, told):
    (smi / "gpus").write_text(gpus)
    (smi / "status").write_text(status)
    taken = sampler.take()
    assert taken["util"] == told
    assert (taken["why"] is None) is (told is not None)


def test_sample_when_nvidia_smi_hangs_then_not_told_and_no_second_one_is_started(smi, sampler, monkeypatch):
    monkeypatch.setattr(load, "_SMI_S", 0.2)
    (smi / "bin/nvidia-smi").write_text("#!/bin/sh\nexec sleep 30\n")
    first = sampler.take()
    assert first["util"] is None
    assert first["processes"] is None
    sampler._stuck.wait()


def test_logins_when_records_are_in_utmp_then_counted_and_unknown_without_any(smi, monkeypatch):
    user, boot = (struct.pack("<hxxi32s4s32s256s52x", kind, 1, b"pts/0", b"0", b"ada", b"") for kind in (7, 2))
    (smi / "root/run").mkdir()
    (smi / "root/run/utmp").write_bytes(boot + user + user)
    assert load.logins() == 2
    monkeypatch.setenv("HOSTLER_ROOT", str(smi / "nowhere"))
    assert load.logins() is None


def test_samples_when_kept_then_those_of_the_window_and_of_this_boot_and_damaged_lines_are_skipped(smi, sampler, tmp_path):
    sampler.record()
    other = dict(sampler.take(), at={"boot_id": "another", "monotonic_s": 0})
    old = sampler.take()
    old["at"]["monotonic_s"] -= 500
    with (tmp_path / "home/agent/load.jsonl").open("a") as sink:
        sink.write(json.dumps(other) + "\n" + json.dumps(old) + "\n{half a li\n7\n")
    sampler.record()
    assert len(sampler.samples(100)) == 2
    assert len(sampler.samples(1000)) == 3


def test_samples_when_the_file_is_full_then_a_second_one_begins_and_both_are_told(smi, sampler, monkeypatch, tmp_path):
    monkeypatch.setattr(load, "KEPT_SAMPLES", 3)
    for _ in range(6):
        sampler.record()
    assert len(sampler.samples(1000)) >= 4
    for _ in range(12):
        sampler.record()
    assert len(sampler.samples(1000)) <= 10


def test_load_when_the_agent_is_asked_then_samples_up_to_now_with_its_job(smi, agent):
    (smi / "root").rename(smi / "unused")
    agent.configure()
    agent.start("j1", "sleep 20")
    found = answers.load_record(agent.ask("load", window_s=600))
    last = found.samples[-1]
    assert last.age_s < 5
    assert last.job_count == 1
    assert found.every_s == load.SAMPLE_S


@pytest.mark.parametrize(
    "found", [{}, {"samples": [{}], "every_s": 15}, {"samples": [], "every_s": 0}, {"samples": [7], "every_s": 1}]
)
def test_record_when_an_answer_is_not_whole_then_refused(found):
    with pytest.raises(answers.NodeAgentError):
        answers.load_record(found)

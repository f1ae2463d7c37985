import json

import pytest

from hostler.cli.main import main


@pytest.fixture(autouse=True)
def cache_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("HOSTLER_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def advise(capsys):
    def run(*arguments):
        status = main(["advise", *arguments])
        said = capsys.readouterr()
        return status, said.out, said.err

    return run


def test_advise_when_training_then_arithmetic_table_reasons_and_the_next_command(advise):
    status, out, err = advise("--workload", "training", "--parameters", "30b", "--precision", "bf16", "--tokens", "300b")
    assert (status, err) == (0, "")
    assert "16.00 bytes for each of 30,000,000,000 parameters" in out
    assert "ZeRO-3, FSDP" in out
    assert "hostler offers --accelerator" in out
    assert "HOURS" in out


def test_advise_when_json_then_the_same_bytes_each_time(advise):
    arguments = ("--workload", "inference", "--model", "llama-3-8b", "--precision", "fp16", "--json")
    status, out, _ = advise(*arguments)
    document = json.loads(out)
    assert status == 0
    assert document["suggestions"][0]["rank"] == 1
    assert document["suggestions"][0]["usd_per_hour"]
    assert {item["subject"] for item in document["refusals"]} >= {"TPU-v5p", "VU9P"}
    assert advise(*arguments)[1] == out


def test_advise_when_why_not_then_every_reason(advise):
    _, out, _ = advise("--workload", "graphics", "--why-not")
    assert "H100: has no drawing units" in out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--workload", "trainin"), "workload 'trainin' is not one of training, fine-tuning, inference, graphics, streaming"),
        (("--workload", "training"), "training needs parameters"),
        (("--workload", "training", "--parameters", "7x"), "parameters '7x' is not a count"),
        (("--workload", "training", "--model", "gpt-9"), "model 'gpt-9' is not one of"),
        (("--workload", "inference", "--parameters", "7b", "--precision", "bf17"), "precision 'bf17' is not one of fp32"),
        (
            ("--workload", "fine-tuning", "--parameters", "7b", "--method", "lorra"),
            "method 'lorra' is not one of full, lora, qlora",
        ),
        (("--workload", "training", "--parameters", "7b", "--batch", "0"), "batch 0 is not between 1"),
        (("--workload", "graphics", "--memory-gib", "much"), "--memory-gib 'much' is not a number"),
    ],
)
def test_advise_when_an_option_is_wrong_then_named_with_what_is_allowed(advise, arguments, words):
    status, out, err = advise(*arguments)
    assert (status, out) == (2, "")
    assert words in err


def test_advise_when_nothing_fits_then_every_reason_and_status_1(advise):
    status, out, _ = advise("--workload", "training", "--parameters", "7b", "--sequence", "90000000")
    assert status == 1
    assert "nothing fits" in out
    assert "shorter sequence" in out

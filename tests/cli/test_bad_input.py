"""Whatever is typed or stands in fleet.yaml: one clear line (one a problem), exit status 2, no traceback, nothing changed."""

import math

import pytest

from hostler.cli.main import main

GOOD = """\
deployment: acme
limits: {usd_per_hour: 100, usd_per_run: 50, nodes: 4}
ledger: {folder: "@/ledger"}
keys: {folder: "@/keys"}
backup: {uri: "file://@/store"}
clouds: {aws: {regions: [us-east-1], image: ami-1}}
"""
COMMANDS = [
    ("status",),
    ("nodes",),
    ("why", "x"),
    ("logs", "x"),
    ("release", "x"),
    ("reap",),
    ("stop-spending",),
    ("resume",),
    ("restore", "x", "--into", "/nowhere"),
    ("ledger", "upgrade"),
]
FILES = [
    ("", "a fleet file is a mapping"),
    ("[]", "a fleet file is a mapping"),
    ("a: [", "fleet.yaml:1: not YAML"),
    ("a: " + "[" * 5000, "not a fleet file"),
    ("a: 2026-99-99", "not a fleet file"),
    ("? [a, b]\n: 1", "unhashable key"),
    ("a: !!python/object:os.system {}", "could not determine a constructor"),
    ("deployment: {a: 1}", "deployment: Input should be a valid string"),
    ("1: 2", "Keys should be strings"),
    (GOOD.replace("aws", "mars"), "unknown cloud; installed drivers: aws"),
    (GOOD.replace("nodes: 4", "nodes: many"), "fleet.yaml:2: limits.nodes"),
    (GOOD.replace("hour: 100", "hour: .nan"), "limits.usd_per_hour: Input should be a finite number"),
    (GOOD.replace("hour: 100", "hour: .inf"), "limits.usd_per_hour: Input should be a finite number"),
    (GOOD.replace("hour: 100", "hour: -1"), "limits.usd_per_hour: Input should be greater than 0"),
    (GOOD.replace("{aws: {", "{aws: 5, x: {"), "clouds.aws: Input should be a valid dictionary"),
    (GOOD + "tenants: 7", "fleet.yaml:7: tenants"),
    (GOOD + "deployment: twice", "fleet.yaml:7: deployment: stands twice"),
    (GOOD.replace('folder: "@/ledger"', 'url: "${NOT_SET_ANYWHERE}"'), "environment variable NOT_SET_ANYWHERE is not set"),
]


@pytest.fixture
def typed(tmp_path, monkeypatch, capsys):
    """Runs the command with this fleet file; returns what it said on standard error."""
    path = tmp_path / "fleet.yaml"
    monkeypatch.setenv("HOSTLER_FLEET", str(path))
    monkeypatch.delenv("HOSTLER_DEBUG", raising=False)

    def run(text, *arguments):
        path.write_bytes(text if isinstance(text, bytes) else text.replace("@", str(tmp_path)).encode())
        try:
            status = main(arguments)
        except SystemExit as wrong:
            status = wrong.code
        said = capsys.readouterr()
        assert status == 2, said
        assert said.out == ""
        assert "Traceback" not in said.err
        assert "unexpected" not in said.err
        return said.err

    return run


@pytest.mark.parametrize(("text", "words"), FILES, ids=[words for _, words in FILES])
def test_command_when_the_fleet_file_is_wrong_then_the_problem_is_named(typed, text, words):
    assert words in typed(text, "status")


def test_command_when_the_fleet_file_is_not_text_then_it_says_so(typed):
    assert "cannot be read" in typed(b"\xff\xfe\x00", "status")


@pytest.mark.parametrize("arguments", COMMANDS, ids=lambda words: words[0])
def test_command_when_the_ledger_does_not_run_then_one_line_says_how_to_start_it(typed, arguments):
    said = typed(GOOD, *arguments)
    assert said.count("\n") == 1
    assert said.startswith("hostler: the embedded ledger in ")
    assert said.endswith("is not running: hostler ledger start\n")


@pytest.mark.parametrize("arguments", COMMANDS, ids=lambda words: words[0])
def test_command_when_there_is_no_fleet_file_then_one_line_says_where_it_was_looked_for(arguments, tmp_path, capsys):
    assert main(["--fleet", str(tmp_path / "none.yaml"), *arguments]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "none.yaml" in said


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "required: COMMAND"),
        (("bogus",), "invalid choice: 'bogus'"),
        (("why",), "required: lease"),
        (("restore", "x"), "required: --into"),
        (("logs", "x", "--rank", "first"), "invalid int value: 'first'"),
        (("ledger",), "required: ACTION"),
        (("ledger", "mend"), "invalid choice: 'mend'"),
        *((("release", "x", "--wait-s", str(seconds)), "seconds from 0 on") for seconds in (math.nan, math.inf, -1, "soon")),
    ],
)
def test_command_when_its_words_are_wrong_then_the_word_and_what_is_allowed_are_named(typed, arguments, words):
    assert words in typed(GOOD, *arguments)


def test_ledger_when_its_folder_cannot_be_made_then_the_folder_is_named(typed):
    said = typed(GOOD.replace("@/ledger", "/proc/none"), "ledger", "start")
    assert said == "hostler: /proc/none: No such file or directory\n"


@pytest.mark.parametrize("name", ["nothing", "a'b%_", "x\ny", "ü" * 300, "../../etc/passwd", "-0"])
@pytest.mark.parametrize("command", [("why",), ("logs",), ("release",), ("restore", "--into", "/nowhere")], ids=lambda c: c[0])
def test_command_when_the_lease_is_unknown_then_one_line(hostler, lease, command, name):
    status, said, wrong = hostler(*command, "--", name)
    assert (status, said) == (2, "")
    assert wrong.count("\n") == 1
    assert "no such lease" in wrong


def test_logs_when_the_rank_is_not_of_the_gang_then_the_allowed_ones_are_named(hostler, lease):
    assert hostler("logs", lease, "--rank", "-1")[0] == 2

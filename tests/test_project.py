"""The project's own files: pins, targets, CI, and that the core needs no Airflow."""

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
PINS = [Requirement(line) for line in (ROOT / "constraints.txt").read_text().splitlines() if line and not line.startswith("#")]
PINNED = {pin.name.lower(): str(pin.specifier)[2:] for pin in PINS if pin.marker is None or pin.marker.evaluate()}
CORE = [
    "model",
    "config",
    "ledger",
    "planning",
    "health",
    "metrics",
    "catalog",
    "vault",
    "reach",
    "lifecycle",
    "sim",
    "cli",
    "stores",
]


def test_constraints_when_read_then_every_line_is_one_exact_version():
    assert len(PINNED) > 200
    for pin in PINS:
        assert [(one.operator, "*" in one.version) for one in pin.specifier] == [("==", False)], pin


def test_constraints_when_read_then_celery_is_below_5_7_and_airflow_is_3_3():
    assert Version(PINNED["celery"]) < Version("5.7")
    assert Version(PINNED["apache-airflow"]).release[:2] == (3, 3)


def test_constraints_when_compared_with_the_project_then_each_pin_is_one_that_it_allows():
    optional = [need for needs in PROJECT["optional-dependencies"].values() for need in needs]
    for need in map(Requirement, [*PROJECT["dependencies"], *optional]):
        if need.name.lower() in PINNED:
            assert need.specifier.contains(PINNED[need.name.lower()]), need


def test_extras_when_listed_then_every_cloud_and_part_has_its_own():
    assert set(PROJECT["optional-dependencies"]) >= {"aws", "gcp", "azure", "alibaba", "sandbox", "torch", "all"}
    assert PROJECT["requires-python"] == ">=3.11,<3.14"


@pytest.mark.parametrize("target", ["demo", "test", "lint", "typecheck", "bench", "soak", "clean"])
def test_makefile_when_a_target_is_asked_then_it_is_there_and_makes_the_environment_by_itself(target):
    rule = re.search(rf"^{target}:(.*)##", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert rule
    assert target == "clean" or "$(STAMP)" in rule[1]


def test_ci_when_run_then_the_readmes_test_command_comes_last():
    last = (ROOT / ".ci" / "run").read_text().strip().splitlines()[-1]
    assert last == "make test"
    assert last in (ROOT / "README.md").read_text()


def test_readme_when_a_bare_machine_is_meant_then_it_names_what_it_needs_first():
    (line,) = re.findall(r"^sudo apt-get install (.*)$", (ROOT / "README.md").read_text(), re.MULTILINE)
    assert set(line.split()) == {"git", "make", "python3", "python3-venv"}


@pytest.mark.parametrize("version", ["3.10.14", "3.14.0", "2.7.18"])
def test_environment_when_python_is_another_then_refused_by_name_and_nothing_is_made(tmp_path, version):
    other = tmp_path / "python-of-another-age"
    other.write_text(f'#!/bin/sh\n[ "$1" = --version ] && echo "Python {version}" && exit 0\nexit 1\n')
    other.chmod(0o755)
    environment = {**os.environ, "PYTHON": str(other), "VENV": str(tmp_path / "venv")}
    done = subprocess.run(
        ["bash", str(ROOT / ".ci" / "make-venv")], env=environment, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 1
    assert "needs Python 3.11, 3.12 or 3.13" in done.stderr
    assert version in done.stderr
    assert not (tmp_path / "venv").exists()


def test_core_tests_when_collected_then_airflow_is_not_imported():
    program = (
        "import sys, pytest\n"
        "status = pytest.main(['--collect-only', '-q', '-p', 'no:cacheprovider', *sys.argv[1:]])\n"
        "loaded = sorted(name for name in sys.modules if name.split('.')[0] in ('airflow', 'hostler_operators', 'hostler_sensors'))\n"
        "print('LOADED', loaded)\n"
        "sys.exit(status)\n"
    )
    argv = [sys.executable, "-c", program, *(f"tests/{name}" for name in CORE)]
    done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stdout[-2000:]
    assert done.stdout.splitlines()[-1] == "LOADED []"

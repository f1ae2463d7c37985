import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from hostler.recipes.files import setup_files
from hostler.recipes.setup import main, options
from hostler.recipes.setup.machine import Machine, StepError
from hostler.recipes.setup.packages import package_manager
from hostler.recipes.setup.step import Context

from . import fake_node

H100S = {"accelerator": "H100", "accelerator_count": "8"}


def make_wheel(folder: Path, name: str, version: str) -> None:
    module = {"scikit-learn": "sklearn", "nvidia-ml-py": "pynvml"}.get(name, name)
    stem = f"{name.replace('-', '_')}-{version}"
    with zipfile.ZipFile(folder / f"{stem}-py3-none-any.whl", "w") as wheel:
        wheel.writestr(f"{module}.py", "")
        wheel.writestr(f"{stem}.dist-info/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        wheel.writestr(f"{stem}.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{stem}.dist-info/RECORD", "")


@pytest.fixture(scope="session")
def wheels(tmp_path_factory):
    """Empty packages of the pinned names and versions: the real pip installs them into the real virtual environment."""
    folder = tmp_path_factory.mktemp("wheels")
    for name, version in options.parse({"torch": "true"}).packages.items():
        make_wheel(folder, name, version)
    return folder


@pytest.fixture(scope="session")
def ready_venv(tmp_path_factory, wheels):
    """A virtual environment as the setup leaves it; making one takes seconds, so most nodes of these tests link to it."""
    folder = tmp_path_factory.mktemp("ready") / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    (site,) = folder.glob("lib/python3*/site-packages")
    for path in wheels.iterdir():
        zipfile.ZipFile(path).extractall(site)
    return folder


class Node:
    def __init__(self, folder: Path, wheels: Path, venv: Path | None = None, **changes: object) -> None:
        self.folder = folder / "node"
        fake_node.build(self.folder, **changes)
        self.home = self.folder / "root/opt/hostler"
        if venv is not None:
            self.home.mkdir(parents=True)
            (self.home / "venv").symlink_to(venv)
        self.env = {
            "PATH": str(self.folder / "bin"),
            "FAKE_NODE": str(self.folder),
            "HOSTLER_ROOT": str(self.folder / "root"),
            "HOSTLER_HOME": str(self.home),
            "HOSTLER_REBOOT_WAIT_S": "0.01",
            "PIP_NO_INDEX": "1",
            "PIP_FIND_LINKS": str(wheels),
            "PIP_CONFIG_FILE": os.devnull,
        }
        self.output = ""

    def setup(self, given: dict[str, str] = H100S) -> int:
        code = self.folder / "code"
        for name, content in setup_files(given).items():
            (code / name).parent.mkdir(parents=True, exist_ok=True)
            (code / name).write_bytes(content)
        done = subprocess.run(
            [sys.executable, "setup.py"],
            check=False,
            cwd=code,
            env=self.env,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=120,
        )
        self.output = done.stdout
        return done.returncode

    def state(self) -> dict:
        return json.loads((self.folder / "state.json").read_text())

    def change(self, **changes: object) -> None:
        (self.folder / "state.json").write_text(json.dumps({**self.state(), **changes}))

    def report(self) -> dict:
        return json.loads((self.home / "setup/report.json").read_text())

    def context(self) -> Context:
        machine = Machine(self.env)
        machine.make_home()
        return Context(machine, options.parse(H100S), package_manager(machine))


@pytest.fixture
def make_node(tmp_path, wheels, ready_venv):
    return lambda venv=ready_venv, **changes: Node(tmp_path, wheels, venv, **changes)


def test_setup_when_the_machine_is_bare_then_it_is_ready_and_a_second_run_changes_nothing(make_node):
    node = make_node(venv=None)

    assert node.setup() == 0, node.output
    report = node.report()
    assert report["state"] == "succeeded"
    assert report["versions"]["driver"] == "580.95.05"
    assert report["versions"]["fabric_manager"] == "580.95.05"
    assert report["versions"]["cuda_toolkit"] == "13.0"
    assert report["versions"]["framework"] == options.parse({}).packages
    assert report["versions"]["system"] == "Ubuntu 24.04 LTS"
    held = {"nvidia-driver-580-open", "nvidia-fabricmanager-580", "cuda-toolkit-13-0", "nvidia-container-toolkit"}
    assert set(node.state()["held"]) == held
    before = node.state()

    assert node.setup() == 0, node.output
    assert "  $ " not in node.output
    assert node.state() == before
    assert {step["result"] for step in node.report()["steps"].values()} == {"already so"}


def test_setup_when_nouveau_holds_the_device_then_it_reboots_once_and_goes_on(make_node):
    node = make_node(nouveau=True)

    assert node.setup() == 75, node.output
    assert "nouveau holds the accelerators" in node.output
    assert node.report()["state"] == "rebooting"
    assert node.setup() == 75
    assert node.state()["reboots"] == 2  # the first call did not take: it calls again, but that is the same reboot
    fake_node.reboot(node.folder)

    assert node.setup() == 0, node.output
    assert node.report()["reboots"] == 1


def test_setup_when_the_library_was_upgraded_under_the_module_then_it_reboots(make_node):
    node = make_node()
    assert node.setup() == 0, node.output
    node.change(loaded="570.195.03")

    assert node.setup() == 75
    assert "Driver/library version mismatch" in node.output


def test_setup_when_reboots_do_not_help_then_it_gives_up_with_words(make_node):
    node = make_node(nouveau=True)
    for _ in range(2):
        assert node.setup() == 75
        fake_node.reboot(node.folder)
        node.change(nouveau=True, loaded=None)

    assert node.setup() == 1
    assert "another reboot is needed after 2" in node.output


def test_setup_when_the_image_brought_a_driver_then_it_is_kept_and_the_fabric_manager_must_match_it(make_node):
    node = make_node(library="570.195.03", loaded="570.195.03", packages={"nvidia-driver-570-open": "570.195.03-0ubuntu1"})
    fake_node.link(node.folder, "nvidia-smi")

    assert node.setup() == 1
    assert "no repository offers nvidia-fabricmanager-570 570.195.03" in node.report()["error"]

    assert node.setup({**H100S, "accelerator_count": "8", "accelerator": "L40S"}) == 0, node.output
    assert node.report()["versions"]["driver"] == "570.195.03"


def test_setup_when_torch_is_asked_for_then_an_old_driver_is_replaced_and_torch_is_there(make_node):
    node = make_node(gpus=1, library="535.274.02", loaded="535.274.02", packages={})
    fake_node.link(node.folder, "nvidia-smi")
    asked = {"accelerator": "H100", "accelerator_count": "1", "torch": "true"}

    assert node.setup(asked) == 75, node.output
    fake_node.reboot(node.folder)
    assert node.setup(asked) == 0, node.output
    assert node.report()["versions"]["framework"]["torch"] == options.TORCH_VERSION


def test_setup_when_there_is_no_accelerator_then_only_the_framework_is_set_up(make_node):
    node = make_node(gpus=0)

    assert node.setup({}) == 0, node.output
    assert set(node.report()["steps"]) == {"disk space", "no package half installed", "clock", "framework"}


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"gpus": 7}, "accelerators: 7 NVIDIA accelerators on the bus, 8 expected"),
        ({"free_kib": 1 << 20}, "disk space: 1.0 GiB free"),
        ({"repository": False}, "curl"),
    ],
)
def test_setup_when_a_step_cannot_be_done_then_it_fails_with_words(make_node, changes, words):
    node = make_node(**changes)

    assert node.setup() == 1
    assert words in node.report()["error"]
    assert node.output.splitlines()[-1].startswith("setup failed: ")


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"driver": "newest"}, "option driver: 'newest'; allowed: auto, pinned, image"),
        ({"gpu": "H100"}, "unknown option 'gpu'; allowed: accelerator,"),
        ({"accelerator_count": "-1"}, "allowed: a whole number"),
    ],
)
def test_setup_when_an_option_is_wrong_then_nothing_is_done(make_node, given, words):
    node = make_node()
    before = node.state()

    assert node.setup(given) == 1
    assert words in node.output
    assert node.state() == before


CHANGING = [
    "driver",
    "fabric manager",
    "persistence mode",
    "CUDA toolkit",
    "container toolkit",
    "packages held",
    "clock",
    "framework",
]


@pytest.mark.parametrize("left_out", CHANGING)
def test_verification_when_one_step_was_left_out_then_it_fails_and_names_it(make_node, monkeypatch, left_out):
    venv = {"venv": None} if left_out == "framework" else {}
    node = make_node(services={"chrony": "inactive"}, **venv)
    for name, value in node.env.items():
        monkeypatch.setenv(name, value)
    context = node.context()
    for step in main.wanted_steps(context.options):
        if step.name != left_out and step.problem(context):
            try:
                step.apply(context)
            except StepError:
                assert left_out == "driver"  # what needs it cannot be done either

    with pytest.raises(StepError, match=rf"verification: (.*; )?{left_out}: "):
        main._verify_all(context)


def test_verification_when_the_machine_needs_it_then_every_changing_step_is_listed():
    wanted = main.wanted_steps(options.parse(H100S))
    looking = {"disk space", "no package half installed", "accelerators"}
    assert {step.name for step in wanted} == {*CHANGING, *looking}


def test_packages_when_each_python_is_asked_then_its_own_versions_are_pinned(monkeypatch):
    for version, numpy in (((3, 7), "1.24.4"), ((3, 8), "1.24.4"), ((3, 11), "2.4.6"), ((3, 14), "2.5.5")):
        monkeypatch.setattr(options.sys, "version_info", (*version, 0))
        assert options.parse({}).packages["numpy"] == numpy


def test_packages_when_compared_with_the_controllers_pins_then_they_are_the_same():
    constraints = (Path(__file__).parents[3] / "constraints.txt").read_text().splitlines()
    pinned = dict(line.partition(" ;")[0].split("==") for line in constraints if "==" in line and "< '3.12'" not in line)
    wanted = {**options.FRAMEWORK[3, 12], "nvidia-ml-py": options.NVML_VERSION}
    assert {name: pinned[name] for name in wanted} == wanted

import ast
import io
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from hostler.recipes.agent.build import agent_name, build_agent

OLD = Path.home() / ".pyenv/versions"


def test_build_when_repeated_then_gives_the_same_bytes():
    first = build_agent()
    build_agent.cache_clear()
    assert build_agent() == first
    assert agent_name().startswith("agent-")


def test_build_when_looked_into_then_holds_the_agent_and_no_more():
    with zipfile.ZipFile(io.BytesIO(build_agent())) as archive:
        names = archive.namelist()
        assert "__main__.py" in names
        assert "hostler/vault/envelope.py" in names
        assert not [name for name in names if "control" in name or name.endswith("build.py")]
        assert archive.read("hostler/__init__.py") == b""


def test_sources_when_read_then_are_python_3_8_and_import_only_what_a_node_has():
    with zipfile.ZipFile(io.BytesIO(build_agent())) as archive:
        for name in archive.namelist():
            tree = ast.parse(archive.read(name), name, feature_version=(3, 8))
            for found in ast.walk(tree):
                if isinstance(found, ast.ImportFrom | ast.Import):
                    module = found.module if isinstance(found, ast.ImportFrom) else found.names[0].name
                    top = (module or "").split(".")[0]
                    assert top in sys.stdlib_module_names | {"cryptography", "hostler"}, f"{name}: {module}"


@pytest.mark.parametrize("version", ["3.8", "3.9", "3.12"])
def test_agent_when_run_by_another_python_then_answers(tmp_path, version):
    found = sorted(OLD.glob(f"{version}*/bin/python3"))
    if not found:
        pytest.skip(f"no Python {version} here")
    (tmp_path / "agent.pyz").write_bytes(build_agent())
    environment = {"HOSTLER_HOME": str(tmp_path / "home"), "PATH": "/usr/bin:/bin"}
    done = subprocess.run(
        [found[0], tmp_path / "agent.pyz", "version"], env=environment, input="", capture_output=True, text=True, check=True
    )
    assert f'"python": "{version}' in done.stdout

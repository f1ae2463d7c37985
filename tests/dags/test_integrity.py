"""What every Dag file must hold; a new file is picked up by itself."""

import ast
import inspect
import os
import subprocess
import sys
from datetime import timedelta

import pytest
from airflow.sdk import BaseOperator
from airflow.serialization.serialized_objects import DagSerialization
from tests.airflow_home import ROOT

FILES = sorted((ROOT / "dags").glob("*.py"))
ALLOWED = ("airflow.sdk", "airflow.providers.standard", "hostler_operators", "hostler_sensors", "hostler.model")
RESERVED = frozenset({"node_id", "label", "output", "resources"})
"""Names that are taken on every operator, beside the arguments of BaseOperator itself."""

PARSE_S = 1.0


@pytest.fixture(params=[path.stem for path in FILES])
def dag(request, bag):
    assert request.param in bag.dags, bag.import_errors
    return bag.dags[request.param]


def test_bag_when_parsed_then_no_errors_and_one_dag_a_file(bag):
    assert bag.import_errors == {}
    assert sorted(bag.dags) == [path.stem for path in FILES]
    assert all(name.startswith("hostler_") for name in bag.dags)


def test_bag_when_parsed_then_each_file_is_fast(bag):
    slow = [path for path in FILES if _parse_s(bag, path) > PARSE_S and _parse_cpu_s(path) > PARSE_S]
    assert slow == []


def _parse_s(bag, path):
    return sum(stat.duration.total_seconds() for stat in bag.dagbag_stats if stat.file.endswith(path.name))


def _parse_cpu_s(path):
    """Seconds of CPU of a cold parse with Airflow loaded: what a busy machine does not stretch."""
    program = (
        "import runpy, sys, time; import airflow.sdk; began = time.process_time(); runpy.run_path(sys.argv[1]); "
        "print(time.process_time() - began)"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    argv = [sys.executable, "-c", program, str(path)]
    done = subprocess.run(argv, env=environment, capture_output=True, check=True, text=True, timeout=120)
    return float(done.stdout.splitlines()[-1])


def test_parse_cpu_when_a_file_is_slow_then_it_is_seen(tmp_path):
    (tmp_path / "slow.py").write_text("import time\nEND = time.process_time() + 1.2\nwhile time.process_time() < END: pass\n")
    assert _parse_cpu_s(tmp_path / "slow.py") > PARSE_S


def test_dag_when_serialized_then_comes_back_whole(dag):
    data = DagSerialization.to_dict(dag)
    again = DagSerialization.from_dict(data)
    assert again.task_ids == dag.task_ids
    assert DagSerialization.to_dict(dag) == data


def test_dag_when_shown_then_says_purpose_and_triage(dag):
    assert "**Purpose.**" in dag.doc_md
    assert "**Triage" in dag.doc_md
    assert "hostler" in dag.tags
    assert dag.description


def test_dag_when_run_then_bounded_and_never_timed_out(dag):
    assert dag.max_active_runs >= 1
    assert dag.catchup is False
    assert dag.dagrun_timeout is None
    assert all(task.execution_timeout is None for task in dag.tasks)


def test_tasks_when_they_fail_then_retried_long_enough_for_an_outage(dag):
    for task in dag.tasks:
        assert task.retries >= 8
        assert task.retry_exponential_backoff == 2.0
        assert task.retry_delay == timedelta(seconds=10)
        assert task.max_retry_delay == timedelta(seconds=60)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_file_when_read_then_short_and_imports_only_what_a_graph_needs(path):
    source = path.read_text()
    assert len(source.splitlines()) <= 120
    for node in ast.walk(ast.parse(source)):
        names = [node.module] if isinstance(node, ast.ImportFrom) else []
        names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        assert all(name.startswith(ALLOWED) for name in names), names


def test_operators_when_defined_then_no_reserved_arguments(bag):
    ours = {type(task) for dag in bag.dags.values() for task in dag.tasks if type(task).__module__.startswith("hostler")}
    assert len(ours) >= 10
    for kind in (kind for kind in ours if "__init__" in vars(kind)):
        own = set(inspect.signature(kind.__init__).parameters) - {"self", "kwargs", "args"}
        assert not own & RESERVED
        assert not own & set(inspect.signature(BaseOperator.__init__).parameters)


def test_files_when_parsed_then_no_cloud_database_or_network_is_touched():
    code = (
        "import sys, glob, runpy, socket\n"
        "import airflow.sdk, airflow.triggers.base\n"
        "from airflow.providers.standard.operators import trigger_dagrun\n"
        "def refuse(*a, **k): raise AssertionError('network at parse')\n"
        "socket.socket.connect = refuse\n"
        "before = set(sys.modules)\n"
        "[runpy.run_path(path) for path in sorted(glob.glob('dags/*.py'))]\n"
        "new = set(sys.modules) - before\n"
        "heavy = ('boto', 'asyncssh', 'psycopg', 'hostler.stores', 'hostler.drivers', 'hostler.wiring')\n"
        "print([name for name in sorted(new) if name.startswith(heavy)])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"

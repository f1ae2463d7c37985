"""The command starts fast and without Airflow: measured as work done, not as time on a busy machine."""

import resource
import subprocess
import sys

PROGRAM = "import sys; from hostler.cli.main import build_parser; build_parser(); print('\\n'.join(sys.modules))"


def test_command_when_started_then_in_less_than_a_second_of_cpu():
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run([sys.executable, "-m", "hostler.cli.main", "--version"], capture_output=True, text=True, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert done.stdout.startswith("hostler "), done.stderr
    assert (after.ru_utime + after.ru_stime) - (before.ru_utime + before.ru_stime) < 1.0


def test_command_when_started_then_neither_airflow_nor_an_sdk_nor_the_database_is_imported():
    loaded = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True).stdout.split()
    heavy = ("airflow", "boto3", "botocore", "sqlalchemy", "asyncssh", "hostler_sandbox")
    assert [name for name in loaded if name.startswith(heavy)] == []

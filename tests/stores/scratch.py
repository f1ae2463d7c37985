"""Databases of tests: emptying them, and running SQL on them as their owner."""

from typing import Any

import psycopg

from hostler.stores.tables import metadata


def run_sql(url: str, *statements: str) -> list[Any]:
    """Runs statements, each committed at once; returns the rows of the last."""
    with psycopg.connect(url.replace("+psycopg", "", 1), autocommit=True) as connection:
        cursor = connection.cursor()
        for statement in statements:
            cursor.execute(statement.encode())
        return cursor.fetchall() if cursor.description else []


def empty(url: str) -> None:
    """Deletes all rows; as superuser, past the trigger that keeps events."""
    tables = ", ".join(table.fullname for table in metadata.sorted_tables)
    run_sql(url, "SET session_replication_role = replica", f"TRUNCATE {tables} RESTART IDENTITY")

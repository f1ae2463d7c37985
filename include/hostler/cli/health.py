"""``hostler explain-health``: what captured outputs and logs say of the health of a node. Needs no ledger and no fleet."""

import argparse
import codecs
import json
import sys
from pathlib import Path
from typing import Final

from hostler.health.sources import explain
from hostler.health.sources.document import document

MAX_BYTES: Final = 256 * 1024 * 1024
"""No more of a file is read; a source refuses what is too long for it long before."""

_MARKS: Final = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),  # what a Windows shell writes when an output is sent to a file
    (codecs.BOM_UTF16_BE, "utf-16"),
)


def explain_health(options: argparse.Namespace) -> int:
    """Prints one JSON document for one file; for several, one a line, in their order.

    Returns 0 whenever every file was read, whatever the verdict; 2 when one could not be opened.
    """
    if options.lines:
        from hostler.cli.health_lines import explain_lines

        return explain_lines()
    if not options.files:
        raise ValueError("name at least one FILE (- for standard input), or give --lines")
    status = 0
    for name in options.files:
        try:
            content = read(name)
        except OSError as error:
            print(f"hostler: {name}: {error.strerror or error}", file=sys.stderr)
            status = 2
            continue
        health = explain(
            content,
            name="" if name == "-" else name,
            kind=options.source,
            command=options.captured,
            exit_code=options.exit_code,
        )
        print(json.dumps(document(health), indent=None if len(options.files) > 1 else 2))
    return status


def read(name: str) -> str:
    """Returns the text of a file, ``-`` for standard input; bytes that are no text become U+FFFD.

    Raises:
        OSError: it cannot be opened or read.
    """
    if name == "-":
        content = sys.stdin.buffer.read(MAX_BYTES)
    else:
        with Path(name).open("rb") as file:
            content = file.read(MAX_BYTES)
    encoding = next((encoding for mark, encoding in _MARKS if content.startswith(mark)), "utf-8")
    return content.decode(encoding, "replace")

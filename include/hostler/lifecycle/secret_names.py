"""From a secret's name to the job's environment variable, and which names cannot be one. Pure."""

import re
from collections.abc import Sequence

from hostler.lifecycle.refusal import Problem

RESERVED = frozenset(
    {
        *("PATH", "HOME", "SHELL", "IFS", "ENV", "BASH_ENV", "PYTHONPATH", "PYTHONHOME"),
        *("RANK", "NODE_RANK", "LOCAL_RANK", "WORLD_SIZE", "NNODES", "MASTER_ADDR", "MASTER_PORT"),
    }
)
"""Variables that decide what a job runs, or that its contract gives it: a secret's value there breaks the gang, or shows."""

RESERVED_PREFIXES = ("HOSTLER_", "LD_")

_VARIABLE = re.compile(r"[A-Z_][A-Z0-9_]*")


def variable_of(name: str) -> str:
    """Returns the environment variable of a secret: upper case, all but letters and digits become ``_``."""
    return "".join(letter if letter.isalnum() else "_" for letter in name).upper()


def name_problems(names: Sequence[str]) -> list[Problem]:
    """Returns what is wrong with a request's secret names; empty when each gets a variable of its own."""
    problems: list[Problem] = []
    taken: dict[str, str] = {}
    for name in names:
        variable = variable_of(name)
        if not _VARIABLE.fullmatch(variable):
            problems.append(
                ("secrets", f"{name!r} makes no variable; allowed: ASCII letters, digits, -, . and _, no digit first")
            )
        elif variable in RESERVED or variable.startswith(RESERVED_PREFIXES):
            problems.append(("secrets", f"{name!r} would set {variable}; allowed: names that no variable of a job has"))
        elif variable in taken:
            problems.append(("secrets", f"{name!r} and {taken[variable]!r} would both set {variable}; allowed: one of them"))
        taken.setdefault(variable, name)
    return problems

"""What the registers in NVLink's error lines mean: Xid 74 (NVLink 1 to 4) and Xid 144 to 150 (NVLink 5)."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from hostler.health.catalog.tables import Row, rows
from hostler.model.enums import HealthAction

NVLINK5_XIDS: Final = range(144, 151)
NVLINK4_XID: Final = 74
NETIR_XID: Final = 149
"""A broken-off line of it is still decoded by IntrInfo alone."""
CLEANUP_XID: Final = 45
V2_DRIVER: Final = 575
"""First driver branch whose IntrInfo has the second layout."""

_REGISTERS = re.compile(r"\(\s*((?:0x[0-9a-fA-F]+[\s,]*)+)")
_UNIT = re.compile(r"\b([A-Z][A-Z0-9_]+(?:/[A-Z][A-Z0-9_]+)*|MSE Degraded)\s+(?:Fatal|Non-?fatal)", re.IGNORECASE)
_WORD = re.compile(r"\b(Fatal|Non-?fatal)\b", re.IGNORECASE)
_LINK = re.compile(r"\blink\s+(-?\d+)", re.IGNORECASE)

_STRICT: Final = ("RESET_GPU", "XID_154_EVAL", "IGNORE")
"""Actions of the decode table, the strictest first: where several rows fit one line, the strictest is followed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Decoded:
    """What an NVLink line says once its registers are read.

    Attributes:
        nvidia_action: NVIDIA's word; empty when the registers are not in its table. action: ours.
        repeat_action: what it asks for from the second time on one link.
        is_fatal: by the table where it tells, else by the line's own word; None when neither tells.
        link: number of the link; None when the line names none. sub_code: of a link-down event; else None.
        words: for a person. source: the table row's.
    """

    nvidia_action: str
    action: HealthAction
    repeat_action: HealthAction
    is_fatal: bool | None
    link: int | None
    sub_code: int | None
    investigate: str
    words: str
    source: str


def registers(line: str) -> tuple[int, ...]:
    """Returns the hexadecimal numbers of the line's last round brackets (open or closed); empty when there are none."""
    found = _REGISTERS.findall(line)
    return tuple(int(word, 16) for word in re.findall(r"0x[0-9a-fA-F]+", found[-1])) if found else ()


def link_of(line: str) -> int | None:
    """Returns the link's number; None when the line names none, or -1 for the whole device."""
    found = _LINK.search(line)
    return int(found.group(1)) if found and int(found.group(1)) >= 0 else None


def says_fatal(line: str) -> bool | None:
    """Returns what the line itself says of fatal; None when it says nothing."""
    found = _WORD.search(line)
    return None if found is None else found.group(1).lower() == "fatal"


def decode_144_150(code: int, line: str, driver_major: int | None = None) -> Decoded:
    """Returns what an Xid 144 to 150 line asks for, by NVIDIA's table; its own Fatal counts only where the table is silent.

    Args:
        driver_major: such as 580; None tries both layouts of IntrInfo.
    """
    numbers = registers(line)
    said = says_fatal(line)
    found = list(_fitting(code, line, numbers, driver_major)) if len(numbers) > 1 or (numbers and code == NETIR_XID) else []
    if not found:
        return _undecoded(code, line, is_fatal=said)
    action, row = min(found, key=lambda pair: _STRICT.index(pair[0]) if pair[0] in _STRICT else 0)
    severity = row["severity"].lower()
    top = numbers[0] >> 20 & 0x3F
    is_down = "NETIR_LINK" in row["unit"]
    sub = f", sub-code {top}" if is_down else ""
    ours = _ACTIONS.get(action, HealthAction.RESET_GPU)
    return Decoded(
        nvidia_action=action,
        action=ours,
        repeat_action=HealthAction.DRAIN_AND_DIAG if ours is HealthAction.RESET_GPU else ours,
        is_fatal=not severity.startswith("non-fatal"),
        link=link_of(line),
        sub_code=top if is_down else None,
        investigate=row["investigate"],
        words=f"{row['unit']}{sub} ({row['severity']}): {action}, then {row['investigate']}",
        source=row["source"],
    )


_ACTIONS: Final = {
    "IGNORE": HealthAction.RECORD,
    "XID_154_EVAL": HealthAction.RESTART_APP,
    "RESET_GPU": HealthAction.RESET_GPU,
}


def _undecoded(code: int, line: str, *, is_fatal: bool | None) -> Decoded:
    return Decoded(
        nvidia_action="",
        action=HealthAction.DRAIN_AND_DIAG,
        repeat_action=HealthAction.DRAIN_AND_DIAG,
        is_fatal=is_fatal,
        link=link_of(line),
        sub_code=None,
        investigate="",
        words=f"NVLink unit error {code} whose unit and status are not in NVIDIA's table: diagnose",
        source="ours: what cannot be decoded is not ignored",
    )


def _fitting(code: int, line: str, numbers: tuple[int, ...], driver_major: int | None) -> Iterator[tuple[str, Row]]:
    """Yields NVIDIA's action and row for each row that fits the line's numbers (and its unit, where it names a known one)."""
    of_code = [row for row in rows("xid_144_150") if int(row["code"]) == code]
    named = _UNIT.search(line)
    unit = named.group(1).upper() if named else ""
    # "NETIR" alone is how drivers write NETIR_INT: names are a filter only where the table knows them.
    mine = [row for row in of_code if unit and _names(unit, row)]
    layouts = ("v1_mask", "v2_mask") if driver_major is None else (("v1_mask", "v2_mask")[driver_major >= V2_DRIVER],)
    status = numbers[1] if len(numbers) > 1 else 0
    for row in mine or of_code:
        if not _has_status(row["status"], status, is_bits=code < NETIR_XID):
            continue
        for layout in layouts:
            if _fits(row[f"{layout}_2"], numbers[0]):
                yield row["nvidia_action_2"], row
            elif _fits(row[layout], numbers[0]):
                yield row["nvidia_action"], row


def _names(unit: str, row: Row) -> bool:
    return bool(set(unit.split("/")) & set(row["unit"].upper().split("/")))


@lru_cache(maxsize=256)
def _mask(pattern: str) -> tuple[int, int]:
    return int(pattern.translate(str.maketrans("01-", "110")), 2), int(pattern.replace("-", "0"), 2)


def _fits(pattern: str, number: int) -> bool:
    if not pattern:
        return False
    which, wanted = _mask(pattern)
    return number & which == wanted


def _has_status(allowed: str, status: int, *, is_bits: bool) -> bool:
    """Error status of Xid 144 to 148 is one bit a cause, of 149 and 150 a number; empty allows any."""
    if not allowed:
        return True
    numbers = [int(word, 16) for word in allowed.split("/")]
    return status in numbers or (is_bits and any(status & number for number in numbers))


def decode_74(line: str, companions: frozenset[int] = frozenset()) -> Decoded:
    """Returns what an Xid 74 line asks for by the bits of its seven registers.

    Args:
        companions: other Xids of the same burst; a sympathetic bit follows them.
    """
    numbers = registers(line)
    known = {(int(row["register"]), int(row["bit"])): row for row in rows("xid_74")}
    found = [known.get((at, bit)) for at, number in enumerate(numbers, 1) for bit in range(32) if number >> bit & 1]
    hits = [row for row in found if row is not None]
    strange = len(found) - len(hits)
    if not found:
        return _bits(line, None, HealthAction.RESET_GPU, HealthAction.DRAIN_AND_DIAG, "NVLink error without registers")
    is_alone = not companions and all(row["kind"] in {"sympathetic", "ignored"} for row in hits) and not strange
    first = [HealthAction.RESET_GPU] * bool(strange)
    again = [HealthAction.DRAIN_AND_DIAG] * bool(strange)
    for row in hits:
        follows = row["kind"] == "sympathetic" and not is_alone
        first.append(HealthAction.RECORD if follows else HealthAction(row["first_action"]))
        again.append(HealthAction.RECORD if follows else HealthAction(row["repeat_action"]))
    words = "; ".join(dict.fromkeys(row["words"] for row in hits if row["kind"] != "ignored"))
    words += f"{'; ' * bool(words)}{strange} bits that NVIDIA does not name" if strange else ""
    source = next((row["source"] for row in hits), None)
    return _bits(line, source, _worst(first), _worst(again), words or "bits that can be ignored")


def _worst(actions: list[HealthAction]) -> HealthAction:
    return max(actions, key=lambda action: action.rank)


def _bits(line: str, source: str | None, first: HealthAction, again: HealthAction, words: str) -> Decoded:
    return Decoded(
        nvidia_action="WORKFLOW_NVLINK_ERR",
        action=first,
        repeat_action=again,
        is_fatal=first.rank >= HealthAction.RESET_GPU.rank,
        link=link_of(line),
        sub_code=None,
        investigate="CONTACT_SUPPORT",
        words=words,
        source=source or rows("xid_74")[0]["source"],
    )

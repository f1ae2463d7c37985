"""Is this ledger the one that acts for the deployment? One object in the backup store says who acted last.

Each reconcile that is free to act leaves a new mark in the ledger, then in the store. A ledger that finds a mark there that it
never made is new, restored from an older backup, or a clone; or a second controller acts for the same deployment. A dump that
was restored elsewhere is known by the store's identity besides. Then a person must say which is the one.
"""

import json
import secrets
from dataclasses import dataclass

from hostler.lifecycle.events import shorten, words_of
from hostler.lifecycle.fleet import Fleet
from hostler.model.enums import FleetMode

MARKS = "epoch/marks"
"""The marks that this ledger made, newest last, as a JSON list."""

IDENTITY = "epoch/identity"
"""Identity of the store that the ledger was in when it was last found to be the only one."""

MOST_MARKS = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """What the epoch object says.

    Attributes:
        is_known: the ledger has acted for the deployment before, and nobody else since.
        refusal: why nothing may be ended until a person confirms, in words; None when the object speaks for this ledger,
            or there is none yet.
        trouble: the backup store could not be asked or written, in words; None otherwise.
    """

    is_known: bool
    refusal: str | None = None
    trouble: str | None = None


def epoch_key(deployment: str) -> str:
    """Returns where the object lies in the backup store."""
    return f"epoch/{deployment}.json"


def standing(fleet: Fleet) -> Standing:
    """Reads the object and compares it with the ledger; writes nothing."""
    is_same = fleet.ledger.get_meta(IDENTITY) == fleet.ledger.identity()
    marks = _marks(fleet)
    try:
        document = read_object(fleet)
    except OSError as error:
        return Standing(is_known=is_same, refusal=None if is_same else _MOVED if marks else None, trouble=words_of(error))
    if document is None:
        # Never written, or the backup store was changed: the ledger itself must say that it is where it was.
        return Standing(is_known=is_same and bool(marks), refusal=_MOVED if marks and not is_same else None)
    mark = _mark_of(document)
    if mark is None or mark not in marks:
        return Standing(is_known=False, refusal=_stranger(document))
    return Standing(is_known=is_same, refusal=None if is_same else _MOVED)


def take_epoch(fleet: Fleet, *, who: str, is_forced: bool = False) -> str | None:
    """Leaves a new mark in the ledger, then in the store. Call it only when ``standing`` spoke for the ledger.

    Args:
        is_forced: a person said that this ledger is the one: whatever the object says is replaced.

    Returns:
        Why the mark could not be left, in words; None when it was. The ledger's own note is made in any case.
    """
    mark = secrets.token_hex(8)
    _add_mark(fleet, mark)
    fleet.ledger.set_meta(IDENTITY, fleet.ledger.identity())
    if not fleet.settings.backup_uri or fleet.settings.mode is FleetMode.OBSERVE:
        return None  # an observer acts for nobody, and writes nothing anywhere but in its ledger
    content = {"version": 1, "mark": mark, "ledger": fleet.ledger.identity(), "who": who, "at": fleet.ledger.now().isoformat()}
    try:
        for _ in range(3):
            before = read_object(fleet)
            is_ours = before is None or _mark_of(before) in _marks(fleet)
            if not is_ours and not is_forced:
                return _stranger(before or b"")
            if _replace(fleet, json.dumps(content, sort_keys=True).encode(), before):
                return None
    except OSError as error:
        return words_of(error)
    return "others write the epoch object all the time"


def _replace(fleet: Fleet, content: bytes, before: bytes | None) -> bool:
    try:
        return fleet.store.replace(epoch_key(fleet.settings.deployment), content, expected=before)
    except OSError:
        raise
    except Exception as error:  # each store raises its own SDK's errors
        raise OSError(words_of(error)) from error


def read_object(fleet: Fleet) -> bytes | None:
    """Returns the object as it lies in the store; None when there is none.

    Raises:
        OSError: the store cannot be asked.
    """
    if not fleet.settings.backup_uri:
        return None
    try:
        return fleet.store.get(epoch_key(fleet.settings.deployment))
    except FileNotFoundError:
        return None
    except OSError:
        raise
    except Exception as error:  # each store raises its own SDK's errors
        raise OSError(words_of(error)) from error


_MOVED = (
    "this ledger is a copy in another place of the one that acted for the deployment: a person must confirm that it is the "
    "only one (`hostler reap --confirm`)"
)


def _stranger(document: bytes) -> str:
    found = _parsed(document)
    last = f" ({found.get('who')} at {found.get('at')})" if found else ""
    return shorten(
        f"another ledger acted last for this deployment{last}: this one is new, restored or a clone, or there is a second "
        "controller; a person must confirm which is the only one (`hostler reap --confirm`)"
    )


def _marks(fleet: Fleet) -> list[str]:
    return _list_of(fleet.ledger.get_meta(MARKS))


def _list_of(kept: str | None) -> list[str]:
    return [str(mark) for mark in json.loads(kept)] if kept else []


def _add_mark(fleet: Fleet, mark: str) -> None:
    while True:
        before = fleet.ledger.get_meta(MARKS)
        after = json.dumps([*_list_of(before), mark][-MOST_MARKS:])
        if fleet.ledger.swap_meta(MARKS, before, after):
            return


def _parsed(document: bytes) -> dict[str, object]:
    try:
        found = json.loads(document)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _mark_of(document: bytes) -> str | None:
    mark = _parsed(document).get("mark")
    return mark if isinstance(mark, str) else None

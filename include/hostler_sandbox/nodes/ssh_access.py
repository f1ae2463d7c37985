"""Who may log in: authorized keys and user certificates, by the node's own sshd configuration.

Honoured in ``/etc/ssh/sshd_config`` and ``sshd_config.d/*.conf`` (first value wins, as in sshd): ``TrustedUserCAKeys``,
``AuthorizedPrincipalsFile``, ``AuthorizedKeysFile``, ``AllowUsers``, ``DenyUsers``, ``PermitRootLogin``. A ``Match`` block
ends the
part that is read. The files are read at each login, so a change needs no restart (a real sshd needs one for its own file).

Source: https://man.openbsd.org/sshd_config
"""

import fnmatch
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from hostler_sandbox.nodes.cloud_init import User, inside

_LISTS: Final = frozenset({"allowusers", "denyusers"})


def read_config(root: Path) -> dict[str, str]:
    """Returns the node's sshd settings: lower-case keyword -> value (lists are joined by a space)."""
    settings: dict[str, str] = {}
    for path in (*sorted((root / "etc/ssh/sshd_config.d").glob("*.conf")), root / "etc/ssh/sshd_config"):
        if not path.is_file():
            continue
        for line in path.read_text(encoding="utf-8").splitlines():
            keyword, _, value = line.split("#", 1)[0].strip().replace("=", " ", 1).partition(" ")
            key, value = keyword.lower(), value.strip().strip('"')
            if key == "match":
                break
            if key in _LISTS:
                settings[key] = f"{settings.get(key, '')} {value}".strip()
            elif key:
                settings.setdefault(key, value)
    return settings


def authorized_keys(root: Path, users: Mapping[str, User], name: str) -> str:
    """Returns an ``authorized_keys`` text for this login: its keys, then the trusted authorities with their principals.

    Empty when nobody may log in by that name.
    """
    settings = read_config(root)
    if name not in users or not _is_admitted(settings, name):
        return ""
    lines = list(users[name].authorized_keys)
    for pattern in settings.get("authorizedkeysfile", ".ssh/authorized_keys").split():
        lines += _lines(_path(root, pattern, name))
    authorities = settings.get("trustedusercakeys", "none")
    principals = _principals(root, settings, name)
    if authorities.lower() != "none" and principals:
        options = f'cert-authority,principals="{",".join(principals)}"'
        lines += [f"{options} {line}" for line in _lines(inside(root, authorities))]
    return "\n".join(lines) + "\n" if lines else ""


def _is_admitted(settings: Mapping[str, str], name: str) -> bool:
    allowed = settings.get("allowusers", "").split()
    if any(fnmatch.fnmatchcase(name, pattern) for pattern in settings.get("denyusers", "").split()):
        return False
    if allowed and not any(fnmatch.fnmatchcase(name, pattern) for pattern in allowed):
        return False
    return name != "root" or settings.get("permitrootlogin", "prohibit-password").lower() != "no"


def _principals(root: Path, settings: Mapping[str, str], name: str) -> tuple[str, ...]:
    """Names that a certificate must carry one of; without a principals file, the login name itself."""
    pattern = settings.get("authorizedprincipalsfile", "none")
    if pattern.lower() == "none":
        return (name,)
    words = [line.split()[-1] for line in _lines(_path(root, pattern, name))]
    return tuple(word for word in words if not set(word) & set('*?!,"'))


def _path(root: Path, pattern: str, name: str) -> Path:
    """Sshd's tokens; a relative path is below the home folder, which is the root folder on these nodes."""
    home = home_of(root, name)
    filled = pattern.replace("%u", name).replace("%h", "/" + str(home.relative_to(root)))
    return inside(root, filled) if filled.startswith("/") else home / filled


def home_of(root: Path, name: str) -> Path:  # noqa: ARG001  # one home for all logins today; callers should not know
    """Returns the home folder of a login: the root folder, so that ``~/x`` and SFTP ``x`` and ``/x`` are one file."""
    return root


def _lines(path: Path) -> list[str]:
    """Key lines of a file; empty when it is not there, as sshd treats it."""
    if not path.is_file():
        return []
    text = path.read_text(encoding="utf-8")
    return [line.strip() for line in text.splitlines() if line.strip() and not line.strip().startswith("#")]

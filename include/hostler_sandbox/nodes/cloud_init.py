"""First boot of a node: reads cloud-config user data and does what cloud-init would do with it.

Honoured keys: ``ssh_keys``, ``users``, ``ssh_authorized_keys``, ``write_files``, ``bootcmd``, ``runcmd``, ``hostname``,
``fqdn``,
``packages``, ``package_update``. Other keys are logged as not honoured, never silently taken. A user-data text that starts with
``#!`` runs as a script after boot. Paths are inside the node's root folder; in ``bootcmd``, ``runcmd`` and scripts, absolute
paths below /etc, /home, /mnt, /opt, /root, /srv and /var are led there too, since these commands are written for a machine of
their own.

Source: https://cloudinit.readthedocs.io/en/latest/reference/modules.html
"""

import base64
import binascii
import gzip
import os
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import yaml

_HONOURED: Final = frozenset(
    [
        "ssh_keys",
        "users",
        "ssh_authorized_keys",
        "write_files",
        "bootcmd",
        "runcmd",
        "hostname",
        "fqdn",
        "packages",
        "package_update",
        "ssh_deletekeys",
        "ssh_genkeytypes",
        "disable_root",
        "ssh_pwauth",
        "manage_etc_hosts",
        "preserve_hostname",
    ]
)
_GUEST_PATH: Final = re.compile(r"(?<![\w.$}/~-])/(?=(?:etc|home|mnt|opt|root|srv|var)(?:/|\s|$|[\"';:)]))")
_LOADER: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""The one in C where PyYAML was built with it: 10 x faster."""
DEFAULT_USER: Final = "ubuntu"


@dataclass(frozen=True, slots=True, kw_only=True)
class User:
    """A login of the node. ``sudo``: whether the ``sudo`` program lets this user through."""

    name: str
    authorized_keys: tuple[str, ...] = ()
    sudo: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class FileToWrite:
    """One ``write_files`` entry, decoded. ``path`` is absolute, as seen from inside the node."""

    path: str
    content: bytes
    mode: int = 0o644
    append: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CloudConfig:
    """What the user data asks for.

    Attributes:
        host_key: private host key in OpenSSH or PEM form; None means that the node makes its own.
        boot_commands, run_commands: shell texts, in order; the first before, the second after the files are written.
        warnings: what was not honoured and why, for the boot log.
    """

    host_key: str | None = None
    hostname: str | None = None
    users: tuple[User, ...] = (User(name=DEFAULT_USER, sudo=True),)
    files: tuple[FileToWrite, ...] = ()
    boot_commands: tuple[str, ...] = ()
    run_commands: tuple[str, ...] = ()
    packages: tuple[str, ...] = ()
    warnings: tuple[str, ...] = field(default=())


def parse(user_data: str, *, key_pair: str | None = None) -> CloudConfig:  # noqa: PLR0911  # one return for each kind of text
    """Reads user data. Bad user data never stops a boot (nor does it on a real machine): it becomes a warning.

    Args:
        user_data: text of any kind; empty when there is none.
        key_pair: public key that the cloud was told to put into the first user's ``authorized_keys``.
    """
    keys = (key_pair,) if key_pair else ()
    plain = CloudConfig(users=(User(name=DEFAULT_USER, authorized_keys=keys, sudo=True),))
    text = user_data.strip()
    if not text:
        return plain
    if text.startswith("#!"):
        return replace(plain, run_commands=(text,))
    if not text.startswith("#cloud-config"):
        return replace(plain, warnings=("user data is neither #cloud-config nor a #! script: not used",))
    try:
        document = yaml.load(text, Loader=_LOADER)  # noqa: S506  # both are the safe loader
        if document is None:
            return plain
        if not isinstance(document, dict):
            return replace(plain, warnings=("cloud-config is not a mapping: not used",))
        return _config(document, keys)
    except (yaml.YAMLError, ValueError, TypeError, AttributeError, KeyError) as error:
        return replace(plain, warnings=(f"cloud-config not used: {type(error).__name__}",))


def _config(document: Mapping[str, Any], key_pair: tuple[str, ...]) -> CloudConfig:
    keys = document.get("ssh_keys") or {}
    return CloudConfig(
        host_key=keys.get("ed25519_private") or keys.get("ecdsa_private") or keys.get("rsa_private"),
        hostname=document.get("fqdn") or document.get("hostname"),
        users=_users(document, key_pair),
        files=tuple(_file(entry) for entry in document.get("write_files") or ()),
        boot_commands=tuple(_command(entry) for entry in document.get("bootcmd") or ()),
        run_commands=tuple(_command(entry) for entry in document.get("runcmd") or ()),
        packages=tuple(str(name) for name in document.get("packages") or ()),
        warnings=tuple(f"{key}: not honoured by the sandbox" for key in document if key not in _HONOURED),
    )


def _users(document: Mapping[str, Any], key_pair: tuple[str, ...]) -> tuple[User, ...]:
    """The default user exists unless ``users`` is given without ``default``; top-level keys belong to the first user."""
    common = key_pair + tuple(str(key) for key in document.get("ssh_authorized_keys") or ())
    entries: list[Any] = list(document.get("users", ["default"]) or [])
    users = []
    for place, entry in enumerate(entries):
        shared = common if place == 0 else ()
        if entry == "default":
            users.append(User(name=DEFAULT_USER, authorized_keys=shared, sudo=True))
        elif isinstance(entry, str):
            users.append(User(name=entry, authorized_keys=shared))
        else:
            own = tuple(str(key) for key in entry.get("ssh_authorized_keys") or ())
            users.append(User(name=str(entry["name"]), authorized_keys=own + shared, sudo=bool(entry.get("sudo"))))
    return tuple(users)


def _file(entry: Mapping[str, Any]) -> FileToWrite:
    content = entry.get("content", "")
    raw = content if isinstance(content, bytes) else str(content).encode()
    encoding = str(entry.get("encoding", "text/plain")).lower()
    if encoding in {"b64", "base64", "gz+b64", "gz+base64", "gzip+b64", "gzip+base64"}:
        try:
            raw = base64.b64decode(raw)
        except binascii.Error as error:
            raise ValueError("write_files: content is not base64") from error
    if encoding.startswith("gz"):
        raw = gzip.decompress(raw)
    mode = int(str(entry.get("permissions", "0644")), 8)
    return FileToWrite(path=str(entry["path"]), content=raw, mode=mode, append=bool(entry.get("append")))


def _command(entry: object) -> str:
    return shlex.join(str(word) for word in entry) if isinstance(entry, list) else str(entry)


def write_files(config: CloudConfig, root: Path) -> None:
    """Writes the files below ``root``; ``..`` cannot leave it."""
    for entry in config.files:
        path = inside(root, entry.path)
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("ab" if entry.append else "wb") as target:
            target.write(entry.content)
        path.chmod(entry.mode)


def inside(root: Path, path: str) -> Path:
    """Returns where a path of the node lies on the host; ``..`` above the node's / stays at /."""
    return root / os.path.normpath("/" + path).lstrip("/")


def for_guest(command: str, root: Path) -> str:
    """Returns the command with the machine's own absolute paths led into the root folder."""
    if command.startswith("#!"):
        head, _, rest = command.partition("\n")
        return f"{head}\n{_GUEST_PATH.sub(lambda _: f'{root}/', rest)}"
    return _GUEST_PATH.sub(lambda _: f"{root}/", command)

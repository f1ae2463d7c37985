"""Who has a file open for writing, as this machine's kernel tells it."""

import os
from pathlib import Path
from typing import Final

_WRITE_MODES: Final = os.O_WRONLY | os.O_RDWR


def writers_of(path: Path) -> int:
    """Returns how many open files for writing there are on the path's file; processes of other users are seen by root only.

    On a system without ``/proc`` none are seen: then the time that a file must rest is all there is.
    """
    try:
        wanted = path.stat()
    except FileNotFoundError:
        return 0
    count = 0
    for folder in Path("/proc").glob("[0-9]*/fd"):
        try:
            numbers = os.listdir(folder)  # noqa: PTH208 - names are all that is needed
        except OSError:
            continue
        count += sum(_is_writing(f"{folder}/{number}", wanted) for number in numbers)
    return count


def _is_writing(descriptor: str, wanted: os.stat_result) -> bool:
    try:
        # Most descriptors are no files: their links tell, without a look at what they lead to.
        if not os.readlink(descriptor).startswith("/"):  # noqa: PTH115 - as in writers_of
            return False
        found = os.stat(descriptor)  # noqa: PTH116 - a Path for each descriptor of a machine costs more than the call
        if (found.st_dev, found.st_ino) != (wanted.st_dev, wanted.st_ino):
            return False
        with open(descriptor.replace("/fd/", "/fdinfo/"), encoding="ascii") as text:  # noqa: PTH123 - as above
            flags = next(int(line.split()[1], 8) for line in text if line.startswith("flags:"))
    except (OSError, StopIteration, ValueError):
        return False
    return bool(flags & _WRITE_MODES)

"""PCI addresses as logs and tools write them, brought to one form (pure)."""

import re
from typing import Final

_ADDRESS: Final = re.compile(r"(?:PCI:)?(?:([0-9a-f]{1,8}):)?([0-9a-f]{1,2}):([0-9a-f]{1,2})(?:\.([0-9a-f]))?", re.IGNORECASE)
_SHORT_DOMAIN: Final = 0xFFFF


def normal_pci(text: str) -> str | None:
    """Returns the address in lower case with a domain of four digits (eight where it needs them); None when it is none.

    A function that the text leaves out stays out: ``PCI:0000:9B:00`` is ``0000:9b:00``, ``00000000:9B:00.0`` is
    ``0000:9b:00.0``. ``same_device`` compares both forms.
    """
    found = _ADDRESS.fullmatch(text.strip())
    if found is None:
        return None
    domain, bus, device = int(found[1] or "0", 16), int(found[2], 16), int(found[3], 16)
    width = 4 if domain <= _SHORT_DOMAIN else 8
    function = f".{found[4].lower()}" if found[4] else ""
    return f"{domain:0{width}x}:{bus:02x}:{device:02x}{function}"


def device_key(pci: str) -> str:
    """Returns what two addresses of one device have in common: the address without a function, normal where it can be."""
    normal = normal_pci(pci) or pci.lower()
    return normal.partition(".")[0]


def same_device(one: str, other: str) -> bool:
    """True when two addresses name the same device; the function is not compared."""
    return device_key(one) == device_key(other)

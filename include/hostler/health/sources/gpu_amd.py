"""``amd-smi metric|monitor|bad-pages|list|static --json`` of ROCm 6 and 7."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from hostler.health.finding import degraded, failed, unknown
from hostler.health.roll_up import accelerator_health, source_health, unlisted, unreadable
from hostler.health.sources.gpu_amd_readings import AmdReading, amount, judge_amd
from hostler.health.sources.gpu_amd_words import amd_error
from hostler.health.sources.gpu_smi_errors import no_answer
from hostler.health.sources.json_text import load
from hostler.health.sources.source import Source
from hostler.model.enums import HealthAction, Verdict
from hostler.model.health import AcceleratorHealth, Finding, SourceHealth

KIND: Final = "amd-smi"
_SENSORS: Final = frozenset(
    {"temperature", "usage", "power", "hotspot_temperature", "power_usage", "gfx", "ecc", "pcie", "throttle", "mem_usage"}
)
_PAGES: Final = ("retired", "pending", "un_res", "bad_pages", "retired_bad_pages")
_HARM: Final = re.compile(r"therm|prochot|hbm|vr_", re.IGNORECASE)

Entry = Mapping[str, Any]


def detect(text: str, name: str) -> float:  # noqa: ARG001 - the file's name says nothing here
    """Returns 0.9 for JSON with ``gpu`` numbers and a section of amd-smi."""
    if '"gpu_data"' in text:
        return 0.95
    words = (
        "temperature",
        "usage",
        "socket_power",
        "ecc",
        "hotspot_temperature",
        "bdf",
        "asic",
        "pending",
        "retired",
        "mem_usage",
    )
    return 0.9 if re.search(r'"gpu"\s*:\s*"?\d+', text) and any(f'"{word}"' in text for word in words) else 0.0


def parse(text: str, *, command: str | None, exit_code: int | None) -> SourceHealth:
    """Judges every GPU of the document."""
    document = load(text)
    if isinstance(document, Mapping):
        inner = document.get("gpu_data")
        document = inner if isinstance(inner, list) else ([document] if "gpu" in document else None)
    if not isinstance(document, Sequence) or isinstance(document, str) or not document:
        known = amd_error(text)
        if known is None and '"gpu"' in text:
            return unreadable(KIND, "the JSON is cut or malformed, or lists no GPU")
        return source_health(KIND, findings=[known or no_answer(text, command, exit_code)])
    accelerators, notes = [], []
    for place, entry in enumerate(document):
        health, unread = _entry(place, entry)
        accelerators.append(health)
        notes += unread
    findings = list(_node(accelerators, command))
    return source_health(
        KIND, accelerators, findings=findings, unknown=[*notes, *(f.what for f in findings if f.verdict is Verdict.UNKNOWN)]
    )


def _node(accelerators: list[AcceleratorHealth], command: str | None) -> Iterator[Finding]:
    gaps = unlisted(accelerators)
    if gaps and not re.search(r"\s(-g|--gpu)\b", command or ""):
        yield unknown("reading.gpus", f"GPU {gaps} is not listed: nothing is known of it")


def _entry(place: int, entry: Any) -> tuple[AcceleratorHealth, list[str]]:
    index = amount(entry.get("gpu"))[0] if isinstance(entry, Mapping) else None
    if index is None:
        finding = unknown("reading.gpu", f"entry {place} names no GPU")
        return accelerator_health(findings=(finding,)), []
    pages = list(_pages(entry))
    reading = amd_reading(int(index), entry)
    findings, notes = ([], []) if _tells_pages(entry) and reading.is_partial else judge_amd(reading)
    health = accelerator_health(index=reading.index, pci=reading.pci, uuid=reading.uuid, findings=[*findings, *pages])
    return health, [f"accelerator {reading.index}: {text}" for text in notes]


def amd_reading(index: int, entry: Entry) -> AmdReading:
    """Returns the readings of one GPU from whichever sections the document has."""
    odd: dict[str, str] = {}

    def read(field: str, *places: Any) -> float | None:
        for value in places:
            number, text = amount(value)
            if number is not None:
                return number
            if text:
                odd.setdefault(field, text)
        return None

    heat, use, ecc = _part(entry, "temperature"), _part(entry, "usage"), _part(entry, "ecc")
    limit, asic, bus = _part(entry, "limit"), _part(entry, "asic"), _part(entry, "bus")
    hotspot = read("hotspot", heat.get("hotspot"), heat.get("junction"), entry.get("hotspot_temperature"), heat.get("gpu_temp"))
    edge = read("edge", heat.get("edge"), entry.get("edge_temperature"))
    memory = read("memory", heat.get("mem"), heat.get("vram"), heat.get("memory"), entry.get("memory_temperature"))
    used = read("utilisation_ratio", use.get("gfx_activity"), use.get("gfx_usage"), entry.get("gfx"), entry.get("gfx_util"))
    bad, bad_text = _ecc(entry, ecc, ("uncorrectable", "ue_count", "double_bit_ecc"))
    if hotspot is None and edge is None and heat:
        odd["temperature_c"] = odd.get("hotspot") or odd.get("edge") or "not reported"
    if bad is None and bad_text:
        odd["ecc_volatile_uncorrectable_count"] = odd["ecc"] = bad_text
    return AmdReading(
        index=index,
        pci=next((str(v) for v in (entry.get("bdf"), bus.get("bdf")) if isinstance(v, str)), None),
        uuid=entry.get("uuid") if isinstance(entry.get("uuid"), str) else None,
        name=str(asic.get("market_name") or entry.get("market_name") or "AMD GPU"),
        edge_c=edge,
        hotspot_c=hotspot,
        memory_c=memory,
        hotspot_limit_c=amount(limit.get("slowdown_hotspot_temperature"))[0],
        memory_limit_c=amount(limit.get("slowdown_vram_temperature"))[0],
        utilisation_ratio=None if used is None else used / 100,
        uncorrectable_count=bad,
        deferred_count=_ecc(entry, ecc, ("deferred",))[0],
        asks_ecc="ecc" in entry or "double_bit_ecc" in entry,
        is_partial=not _SENSORS & set(entry),
        throttles=tuple(_throttles(entry)),
        link_errors=tuple(_link_errors(entry)),
        odd={key: value for key, value in odd.items() if key not in {"hotspot", "edge", "memory"}},
    )


def _part(entry: Entry, key: str) -> Entry:
    value = entry.get(key)
    return value if isinstance(value, Mapping) else {}


def _ecc(entry: Entry, ecc: Entry, words: tuple[str, ...]) -> tuple[int | None, str | None]:
    """Returns the highest of the counts whose name holds one of the words: totals, cache, and the sum of the blocks."""
    counts: list[int] = []
    text: str | None = None
    for key, value in [*ecc.items(), *((key, value) for key, value in entry.items() if key in words)]:
        if not any(word in str(key) for word in words) or str(key).startswith("cache"):
            continue
        number, odd = amount(value)
        if number is not None:
            counts.append(int(number))
        text = text or odd
    blocks = [
        amount(value)[0] or 0
        for block in _part(entry, "ecc_blocks").values()
        if isinstance(block, Mapping)
        for key, value in block.items()
        if any(str(key).startswith(word) for word in words)
    ]
    if not counts and text is None and isinstance(entry.get("ecc"), str):
        text = str(entry["ecc"])
    total = max([*counts, int(sum(blocks))], default=0)
    return (total, None) if counts or total else (None, text)


def _throttles(entry: Entry) -> Iterator[str]:
    status = _part(entry, "power").get("throttle_status")
    if isinstance(status, str) and status.upper() == "THROTTLED":
        yield "throttle status: throttled"
    for key, value in _part(entry, "throttle").items():
        is_active = isinstance(value, str) and value.upper() == "ACTIVE"
        if is_active and str(key).endswith("status") and _HARM.search(str(key)):
            yield str(key).replace("_", " ")


def _link_errors(entry: Entry) -> Iterator[str]:
    errors = entry.get("xgmi_err")
    if isinstance(errors, str) and not re.search(r"no errors|n/?a", errors, re.IGNORECASE):
        yield errors[:200]
    for key, value in _part(entry, "xgmi_err").items():
        number = amount(value)[0]
        if number and "err" in str(key):
            yield f"{key} {number:.0f}"


def _tells_pages(entry: Entry) -> bool:
    return any(key in entry for key in _PAGES)


def _pages(entry: Entry) -> Iterator[Finding]:
    """Yields what ``amd-smi bad-pages`` says: pages that could not be set aside, that wait, that are set aside."""
    source = "AMD SMI documentation, bad pages"
    for key in _PAGES:
        pages = entry.get(key)
        count = len(pages) if isinstance(pages, list) else 0
        if isinstance(pages, str) and not re.search(r"no bad pages|n/?a", pages, re.IGNORECASE):
            yield unknown("reading.pages", f"{key} pages could not be read: {pages[:100]}")
        elif count and key == "un_res":
            yield failed(
                "pages.failed",
                f"{count} bad pages could not be set aside: replace",
                HealthAction.DRAIN_AND_REPLACE,
                f"{key}: {count}",
                source,
            )
        elif count and key == "pending":
            yield failed(
                "pages.pending",
                f"{count} bad pages wait to be set aside: reset the GPU",
                HealthAction.RESET_GPU,
                f"{key}: {count}",
                source,
            )
        elif count:
            yield degraded("pages.retired", f"{count} bad pages are set aside", f"{key}: {count}", source)


AMD: Final = Source(kind=KIND, detect=detect, parse=parse, command=r"\bamd-smi\b")

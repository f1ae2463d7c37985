"""``rocm-smi ... --json`` of ROCm 3 to 7."""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from hostler.health.finding import unknown
from hostler.health.roll_up import accelerator_health, skipped, source_health, unreadable, words_of
from hostler.health.sources.gpu_amd_readings import AmdReading, amount, judge_amd
from hostler.health.sources.gpu_amd_words import amd_error, error_devices
from hostler.health.sources.gpu_smi_errors import no_answer
from hostler.health.sources.json_text import load
from hostler.health.sources.source import Source
from hostler.model.enums import Verdict
from hostler.model.health import AcceleratorHealth, Finding, SourceHealth

KIND: Final = "rocm-smi"
_CARD: Final = re.compile(r"card(\d{1,3})$")
_TEMPERATURE: Final = re.compile(r"temperature \(sensor (\w[\w# ]*)\) \(c\)", re.IGNORECASE)
_NONE: Final = frozenset({"n/a", "none", "", "0", "unknown"})
_TOPOLOGY: Final = re.compile(r"(?<=DRM devices )\d{1,3}|(?<= and )\d{1,3}$")


def detect(text: str, name: str) -> float:  # noqa: ARG001 - the file's name says nothing here
    """Returns 1.0 for JSON with cards."""
    return 1.0 if re.search(r'"card\d+"\s*:\s*\{', text) else 0.0


def parse(text: str, *, command: str | None, exit_code: int | None) -> SourceHealth:
    """Judges every card by its sensors; ECC stands in no rocm-smi JSON, which is said and not taken for none."""
    document = load(text)
    cards = _cards(document) if isinstance(document, Mapping) else []
    if not cards:
        known = amd_error(text)
        if known is None and '"card' in text:
            return unreadable(KIND, "the JSON is cut or malformed, or has no cards")
        return source_health(KIND, findings=[known or no_answer(text, command, exit_code)])
    accelerators, notes = [], []
    errors = error_devices(text)
    for index, card in cards:
        health, unread = _card(index, card, errors.get(index))
        accelerators.append(health)
        notes += unread
    findings = list(_node([index for index, _ in cards], document, command))
    notes.append("ECC errors are not told by this document")
    return source_health(
        KIND, accelerators, findings=findings, unknown=[*notes, *(f.what for f in findings if f.verdict is Verdict.UNKNOWN)]
    )


def _cards(document: Mapping[str, Any]) -> list[tuple[int, Any]]:
    found = [(match, value) for key, value in document.items() if (match := _CARD.match(str(key)))]
    return sorted(((int(match[1]), value) for match, value in found), key=lambda pair: pair[0])


def _node(indexes: list[int], document: Mapping[str, Any], command: str | None) -> Iterator[Finding]:
    """Yields doubt about cards that are not listed though others are, or though the topology names them."""
    system = document.get("system")
    named = {int(number) for key in (system if isinstance(system, Mapping) else ()) for number in _TOPOLOGY.findall(str(key))}
    gaps = sorted((named | set(skipped(indexes))) - set(indexes))
    if gaps and not re.search(r"\s(-d|--device)\b", command or ""):
        yield unknown("reading.gpus", f"card {words_of(gaps)} is not listed: nothing is known of it")


def _card(index: int, card: Any, error: Finding | None) -> tuple[AcceleratorHealth, list[str]]:
    if not isinstance(card, Mapping):
        finding = unknown("reading.card", f"its entry is no object: {str(card)[:100]}")
        return accelerator_health(index=index, findings=(finding,)), []
    reading = rocm_reading(index, {str(key).strip().lower(): value for key, value in card.items()})
    findings, notes = judge_amd(reading)
    if error:
        findings = [error, *(finding for finding in findings if finding.verdict is not Verdict.UNKNOWN)]
    health = accelerator_health(index=index, pci=reading.pci, uuid=reading.uuid, findings=findings)
    return health, [f"accelerator {index}: {text}" for text in notes]


def rocm_reading(index: int, card: Mapping[str, Any]) -> AmdReading:
    """Returns the readings of one card; its keys are lower case."""
    heats: dict[str, float] = {}
    odd: dict[str, str] = {}
    for key, value in card.items():
        sensor = _TEMPERATURE.match(key) if key.startswith("temperature") else None
        if not sensor:
            continue
        number, text = amount(value)
        word = _sensor(sensor[1].lower())
        if number is not None and word:
            heats[word] = max(number, heats.get(word, number))
        elif text and text.lower() not in _NONE and word:
            odd["temperature_c"] = text
    use, use_text = amount(card.get("gpu use (%)"))
    if use is None and use_text:
        odd["utilisation_ratio"] = use_text
    return AmdReading(
        index=index,
        pci=_text(card, "pci bus"),
        uuid=_text(card, "unique id"),
        name=_name(card),
        edge_c=heats.get("edge"),
        hotspot_c=heats.get("hotspot"),
        memory_c=heats.get("memory"),
        utilisation_ratio=None if use is None else use / 100,
        odd=odd,
    )


def _sensor(word: str) -> str | None:
    if word in {"junction", "hotspot"}:
        return "hotspot"
    if word == "memory" or word.startswith("hbm"):
        return "memory"
    return "edge" if word in {"edge", "#1"} else None


def _text(card: Mapping[str, Any], key: str) -> str | None:
    value = card.get(key)
    return value if isinstance(value, str) and value.strip().lower() not in _NONE else None


def _name(card: Mapping[str, Any]) -> str:
    keys = ("card series", "card model", "device name", "card sku")
    return next((value for value in (_text(card, key) for key in keys) if value and not value.startswith("0x")), "AMD GPU")


ROCM: Final = Source(kind=KIND, detect=detect, parse=parse, command=r"\brocm-smi\b")

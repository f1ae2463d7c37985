"""``hostler advise``: which accelerators a workload wants, with the arithmetic and the reasons."""

import argparse
import json
import sys
from collections.abc import Mapping
from decimal import Decimal
from enum import StrEnum
from typing import Any, TypeVar

from hostler.catalog.accelerator_facts import AS_OF, accelerator_facts
from hostler.catalog.cache import open_index
from hostler.catalog.egress import EGRESS
from hostler.catalog.index import CatalogIndex
from hostler.cli.offers_options import number
from hostler.cli.table import render
from hostler.model.enums import CapacityType
from hostler.model.offering import Offering
from hostler.planning.adviser import Advice, Suggestion, advise
from hostler.planning.adviser_fit import gib
from hostler.planning.adviser_memory import Optimizer, Recompute
from hostler.planning.adviser_work import Framework, Method, WorkKind, Workload, parse_count
from hostler.planning.filters import is_price

_Word = TypeVar("_Word", bound=StrEnum)


def advise_command(options: argparse.Namespace) -> int:
    """Prints the advice. Exit status 1 when nothing fits or price lists have broken rows that were left out."""
    work = workload_of(options)
    index = open_index(options.catalog, keep_going=options.keep_going)
    facts = accelerator_facts()
    advice = advise(work, facts, prices_in(index, facts))
    for fault in index.catalog.faults:
        print(f"hostler: left out: {fault}", file=sys.stderr)
    if options.json:
        print(json.dumps(_document(work, advice), indent=1, ensure_ascii=False))
    else:
        print(_text(advice, limit=options.limit, shows_all=options.why_not))
    return 0 if advice.suggestions and not index.catalog.faults else 1


def workload_of(options: argparse.Namespace) -> Workload:
    """Returns the workload. Raises ValueError: an option is wrong; names the field and what is allowed."""
    return Workload(
        kind=_word("workload", options.workload, WorkKind),
        parameters=None if options.parameters is None else parse_count("parameters", options.parameters),
        model=options.model,
        memory_gib=None if options.memory_gib is None else number("--memory-gib", options.memory_gib),
        precision=options.precision,
        batch=options.batch,
        sequence=options.sequence,
        method=_word("method", options.method, Method),
        framework=_word("framework", options.framework, Framework),
        optimizer=_word("optimizer", options.optimizer, Optimizer),
        recompute=None if options.recompute is None else _word("recompute", options.recompute, Recompute),
        has_fp32_gradients=options.fp32_gradients,
        lora_rank=options.lora_rank,
        tokens=None if options.tokens is None else parse_count("tokens", options.tokens),
        tokens_per_s=None if options.tokens_per_s is None else number("--tokens-per-s", options.tokens_per_s),
        most_accelerators=options.most,
    )


def prices_in(index: CatalogIndex, names: Mapping[str, Any]) -> dict[str, Decimal]:
    """Returns name -> cheapest on-demand price of one accelerator for an hour in the four clouds; doubted ones do not count."""
    prices: dict[str, Decimal] = {}
    for name in names:
        for count in sorted(index.sizes.get(name, {})):
            for item in index.known((name,), count) if count else ():
                price = _sure_price(item.offering)
                if price is not None:
                    prices[name] = min(prices.get(name, price / count), price / count)
    return prices


def _sure_price(offering: Offering) -> Decimal | None:
    """Returns the on-demand price when there is one, it is not doubted and can be paid; else None."""
    price = offering.price_usd_per_hour
    is_sure = offering.is_available and not offering.doubts and offering.cloud in EGRESS
    return price if is_sure and offering.capacity_type is CapacityType.ON_DEMAND and is_price(price) else None


def _word(name: str, value: str, words: type[_Word]) -> _Word:
    try:
        return words(value)
    except ValueError:
        raise ValueError(f"{name} {value!r} is not one of {', '.join(word.value for word in words)}") from None


def _text(advice: Advice, *, limit: int, shows_all: bool) -> str:
    parts = ["\n".join(advice.arithmetic)] if advice.arithmetic else []
    shown = advice.suggestions[: limit or None]
    parts.append(_table(shown) if shown else "nothing fits")
    for item in shown[:1]:
        parts.append("\n".join([f"first is {item.accelerator}:", *(f"  {reason}" for reason in item.reasons)]))
        count = min(item.count, 8)
        nodes = f" --nodes {-(-item.count // 8)}" if item.count > count else ""
        parts.append(f"prices: hostler offers --accelerator {item.accelerator} --count {count}{nodes} --spot")
    if advice.refusals and (shows_all or not shown):
        parts.append("why not:\n" + "\n".join(f"  {refusal.subject}: {refusal.reason}" for refusal in advice.refusals))
    elif advice.refusals:
        parts.append(f"{len(advice.refusals)} do not fit (--why-not says why): {', '.join(r.subject for r in advice.refusals)}")
    parts.append(f"facts of accelerators as of {AS_OF}; memory by formula, an estimate: leave room")
    return "\n\n".join(parts)


def _table(shown: tuple[Suggestion, ...]) -> str:
    has_hours, has_rate = any(item.hours for item in shown), any(item.tokens_per_s for item in shown)
    headings = ["", "ACCELERATOR", "COUNT", "ON EACH", "USD/H"]
    headings += (["HOURS", "USD IN ALL"] if has_hours else []) + (["TOKENS/S AT MOST"] if has_rate else []) + ["TO KNOW"]
    rows = []
    for place, item in enumerate(shown, start=1):
        row = [str(place), item.accelerator, str(item.count), f"{gib(item.fit.used_bytes)} of {gib(item.fit.usable_bytes)}"]
        row.append("-" if item.usd_per_hour is None else f"{item.usd_per_hour:.2f}")
        if has_hours:
            total = None if item.hours is None or item.usd_per_hour is None else item.hours * item.usd_per_hour
            row += ["-" if item.hours is None else f"{item.hours}", "-" if total is None else f"{total:.2f}"]
        if has_rate:
            row.append("-" if item.tokens_per_s is None else f"{item.tokens_per_s}")
        rows.append([*row, "; ".join((*item.drawbacks, *item.remarks))])
    return render(headings, rows)


def _document(work: Workload, advice: Advice) -> dict[str, Any]:
    return {
        "workload": work.kind.value,
        "arithmetic": list(advice.arithmetic),
        "suggestions": [_suggestion(place, item) for place, item in enumerate(advice.suggestions, start=1)],
        "refusals": [{"subject": refusal.subject, "reason": refusal.reason} for refusal in advice.refusals],
        "facts_as_of": AS_OF,
    }


def _suggestion(place: int, item: Suggestion) -> dict[str, Any]:
    return {
        "rank": place,
        "accelerator": item.accelerator,
        "count": item.count,
        "memory_bytes": {name: int(size) for name, size in item.fit.parts_bytes.items()},
        "usable_bytes": int(item.fit.usable_bytes),
        "recompute": item.fit.recompute.value if item.fit.recompute else None,
        "hours": None if item.hours is None else str(item.hours),
        "tokens_per_s_at_most": None if item.tokens_per_s is None else str(item.tokens_per_s),
        "usd_per_hour": None if item.usd_per_hour is None else str(item.usd_per_hour),
        "reasons": list(item.reasons),
        "drawbacks": list(item.drawbacks),
        "remarks": list(item.remarks),
    }

"""Why this verdict: for a person, and for the ledger."""

from typing import Final

from hostler.health.engine.decide import Decision, Fault
from hostler.model.enums import HealthAction

MOST_FAULTS: Final = 8


def why(decision: Decision) -> tuple[str, ...]:
    """Returns a line for each fault, the worst first, then what is not known; empty when all is well."""
    lines = [_line(fault) for fault in decision.faults[:MOST_FAULTS]]
    if len(decision.faults) > MOST_FAULTS:
        lines.append(f"and {len(decision.faults) - MOST_FAULTS} faults more")
    return (*lines, *(f"unknown: {text}" for text in decision.unknown[:MOST_FAULTS]))


def _line(fault: Fault) -> str:
    where = fault.accelerator or "node"
    head = f"{where}: {fault.finding.what}"
    if fault.line_count > 1:
        head += f" ({fault.line_count} lines)"
    if fault.silence is not None:
        return f"{head}; silenced by {fault.silence.who}: {fault.silence.why}"
    if fault.wanted.rank <= HealthAction.RECORD.rank:
        return head
    asks = f"asks for {fault.wanted}" + (f", because {fault.climbed}" if fault.climbed else "")
    if fault.action is not fault.wanted:
        return f"{head}; would ask for {fault.wanted} once a second source or more looks bear it out"
    return f"{head}; {asks}" + (" when no job runs" if fault.at_idle else "")


def evidence(decision: Decision) -> tuple[tuple[str, str], ...]:
    """Returns name and value pairs for the ledger: verdict, action, and of the worst fault who saw what by which document."""
    pairs = [("verdict", decision.verdict.value), ("action", decision.action.value)]
    if decision.at_idle:
        pairs.append(("when", "no job runs"))
    if decision.wants_test:
        pairs.append(("wants", "a diagnosis, alone"))
    if decision.unknown:
        pairs.append(("unknown", "; ".join(decision.unknown)))
    if decision.faults:
        worst = decision.faults[0]
        pairs += [
            ("fault", worst.finding.code),
            ("accelerator", worst.accelerator or "node"),
            ("cause", worst.cause),
            ("evidence", worst.finding.evidence),
            ("source", worst.finding.source),
            ("seen_by", ", ".join(worst.seen_by)),
            ("proof", worst.proof or "not proven yet"),
            ("wanted", worst.wanted.value),
            ("clears_by", worst.clears),
            ("faults", str(len(decision.faults))),
        ]
    return tuple(pairs)

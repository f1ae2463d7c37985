"""The verdict engine (pure): looks over time into one verdict, one rung of the ladder, and why.

A look is what one source told at one moment. Faults are sessions: opened by the first sign, closed by their explicit clear
condition. An action that may hurt running work needs two sources or enough looks; see ``docs/health.md``.
"""

from hostler.health.engine.decide import Decision, Fault, decide
from hostler.health.engine.look import Event, Located, Look, look_of, probe_looks, xid_events
from hostler.health.engine.memory import Memory, from_text, to_text
from hostler.health.engine.observe import MOST_GAP_S, note_remedy, observe
from hostler.health.engine.silence import Silence
from hostler.health.engine.why import evidence, why

__all__ = [
    "MOST_GAP_S",
    "Decision",
    "Event",
    "Fault",
    "Located",
    "Look",
    "Memory",
    "Silence",
    "decide",
    "evidence",
    "from_text",
    "look_of",
    "note_remedy",
    "observe",
    "probe_looks",
    "to_text",
    "why",
    "xid_events",
]

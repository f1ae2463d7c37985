"""One row a kind of captured text: who recognises it and who judges it. ``explain`` is the way in (pure)."""

from hostler.health.sources.registry import SOURCES, explain
from hostler.health.sources.source import Source

__all__ = ["SOURCES", "Source", "explain"]

"""Words in a log and what they mean: the row of a small table, shared by the logs of tools (pure)."""

import re
from dataclasses import dataclass

from hostler.health.roll_up import cut
from hostler.model.enums import HealthAction, Verdict
from hostler.model.health import Finding


@dataclass(frozen=True, slots=True, kw_only=True)
class LogWord:
    """One row: patterns are searched in any case; the first row that fits a line speaks."""

    code: str
    patterns: tuple[str, ...]
    verdict: Verdict
    action: HealthAction
    what: str

    def search(self, text: str) -> "re.Match[str] | None":
        """Returns where the text says it; None when it does not."""
        return re.search("|".join(self.patterns), text, re.IGNORECASE)

    def finding(self, said: str, source: str) -> Finding:
        """Returns the finding, with the line that it was read from."""
        return Finding(
            code=self.code, what=self.what, verdict=self.verdict, action=self.action, evidence=cut(said), source=source
        )

"""Words of NVML and nvidia-smi that by themselves prove a node unfit. Other words mean unknown (pure)."""

from hostler.health.catalog.tables import rows
from hostler.model.enums import HealthAction, Verdict
from hostler.model.health import Finding


def explain_error(text: str) -> Finding | None:
    """Returns what an error text proves; None when it proves nothing."""
    for row in rows("error_words"):
        if row["words"] in text.lower():
            return Finding(
                code=row["code"],
                what=f"{row['meaning']} ({text})",
                verdict=Verdict(row["verdict"]),
                action=HealthAction(row["action"]),
                evidence=text[:400],
                source=row["source"],
            )
    return None

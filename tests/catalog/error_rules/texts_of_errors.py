"""The two sets of labelled texts: the published cases (not in this repository) and our own variants with their sources."""

import json
from pathlib import Path

CASES = next(
    (
        found
        for folder in Path(__file__).parents
        if (found := folder / "shared" / "data" / "cloud-errors" / "cases.jsonl").exists()
    ),
    None,
)
VARIANTS = (
    next(folder for folder in Path(__file__).parents if folder.name == "tests") / "data" / "cloud-errors" / "variants.jsonl"
)


def read(path: Path | None) -> list[dict]:
    """The labelled texts of one file; none where it is absent."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path else []

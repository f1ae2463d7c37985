"""Real captures that are not part of the repository: read from shared/data/gpu-health where that folder is near."""

from pathlib import Path

import pytest

FOLDER = next(
    (
        found
        for folder in Path(__file__).resolve().parents
        for found in (folder / "shared" / "data" / "gpu-health",)
        if found.is_dir()
    ),
    None,
)

needs_captures = pytest.mark.skipif(
    FOLDER is None, reason="shared/data/gpu-health is not here; it may not all be redistributed"
)


def capture(name: str) -> str:
    """Returns the text of one file of the folder."""
    assert FOLDER is not None
    return (FOLDER / name).read_text(encoding="utf-8")

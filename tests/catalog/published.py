"""Where the published price lists are; only those with a licence are in the project, the others lie beside it or nowhere."""

from functools import lru_cache
from pathlib import Path

import pytest

from hostler.catalog.offerings import Catalog, load_catalog

FOLDER = next(
    (found for folder in Path(__file__).parents if (found := folder / "shared" / "data" / "catalog").is_dir()),
    None,
)

needs_lists = pytest.mark.skipif(FOLDER is None, reason="shared/data/catalog is not here; most lists may not be redistributed")


def listed(word: str) -> list[Path]:
    """The files whose names have the word."""
    return sorted(path for path in FOLDER.iterdir() if word in path.name) if FOLDER else []


@lru_cache(maxsize=8)
def catalog(*words: str) -> Catalog:
    """The catalog of the files whose names have one of the words; of all without a word."""
    paths = [path for word in words for path in listed(word)] if words else listed("")
    return load_catalog(paths)


def offers(cat: Catalog, **wanted):
    """Offerings whose fields are these."""
    return [item for item in cat.offerings if all(getattr(item, name) == value for name, value in wanted.items())]


def cheapest(cat: Catalog, *, per_accelerator: bool = False, **wanted):
    """The cheapest priced offering whose fields are these."""
    priced = [item for item in offers(cat, **wanted) if item.price_usd_per_hour is not None and item.accelerator_count]
    share = (lambda item: item.accelerator_count) if per_accelerator else (lambda item: 1)
    return min(priced, key=lambda item: (item.price_usd_per_hour / share(item), item.key))

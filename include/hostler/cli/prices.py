"""Prices: what is planned with, and a refresh by hand."""

import argparse
import json
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

from hostler.catalog.prices import read_kept
from hostler.cli.table import ago, render
from hostler.wiring.prices import PriceOutcome, accepted_paths, refresh_prices
from hostler.wiring.settings import open_ledger, read_fleet_file


def prices(options: argparse.Namespace) -> int:
    """Shows the accepted prices of each cloud; with ``--refresh`` asks the clouds first.

    Exit status 1 when a batch was refused or a cloud did not answer.
    """
    outcomes = _refresh(options) if options.refresh else ()
    for item in outcomes:
        if not options.json:
            print(f"{item.cloud}: {item.verdict}, {item.row_count} rows{f', report {item.report}' if item.report else ''}")
            print(*(f"  {problem}" for problem in item.problems), sep="\n", end="\n" if item.problems else "")
    _show(outcomes, as_json=options.json)
    return 1 if any(item.verdict != "accepted" for item in outcomes) else 0


def _refresh(options: argparse.Namespace) -> tuple[PriceOutcome, ...]:
    from hostler.cli.act import who
    from hostler.wiring.build import secret_of_environment
    from hostler.wiring.sdk_sessions import SdkSessions

    fleet = read_fleet_file()
    with open_ledger(fleet) as ledger:
        return refresh_prices(
            fleet,
            sessions=SdkSessions(),
            secret=secret_of_environment,
            ledger=ledger,
            who=who(),
            accepts_jumps=options.accept_jumps,
            clouds=tuple(options.cloud or ()),
        )


def _show(outcomes: tuple[PriceOutcome, ...], *, as_json: bool) -> None:
    """Prints what is accepted, by cloud."""
    found = [_Accepted.of(path) for path in accepted_paths(read_fleet_file())]
    if as_json:
        document = {"accepted": [asdict(item) for item in found], "refreshed": [asdict(item) for item in outcomes]}
        print(json.dumps(document, default=str))
        return
    now = datetime.now(UTC)
    cells = [
        (item.cloud, str(item.rows), str(item.doubted), ago(item.accepted_at, now), " ".join(item.regions)) for item in found
    ]
    print(render(("CLOUD", "PRICES", "DOUBTED", "ACCEPTED", "REGIONS"), cells))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Accepted:
    """What is planned with of one cloud."""

    cloud: str
    rows: int
    doubted: int
    accepted_at: datetime
    regions: tuple[str, ...]

    @classmethod
    def of(cls, path: Path) -> "_Accepted":
        """Reads one file of accepted prices."""
        rows = read_kept(path)
        return cls(
            cloud=path.stem,
            rows=len(rows),
            doubted=sum(bool(row.doubts) for row in rows),
            accepted_at=datetime.fromtimestamp(path.stat().st_mtime, UTC),
            regions=tuple(sorted({row.region for row in rows})),
        )

"""Prices of the deployment: what is planned with, and the refresh that asks the clouds, checks, and accepts or refuses."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Final, Literal

from hostler.catalog.errors import CatalogError
from hostler.catalog.offerings import Catalog, load_catalog, shipped_paths
from hostler.catalog.price_batch import PriceBatch
from hostler.catalog.price_suite import Judge, Judgement
from hostler.catalog.prices import PriceKey, PriceRow, PriceSource, keep, read_kept, rows_of, with_known_prices
from hostler.catalog.rates import shipped_rates
from hostler.catalog.specs import machine_specs
from hostler.cloud.errors import CloudConfigError, CloudError
from hostler.cloud.session import SessionSource
from hostler.config.schema import FleetFile, PriceSourceSettings
from hostler.ledger.port import Ledger
from hostler.lifecycle.events import make_event, words_of
from hostler.model.enums import CapacityType
from hostler.model.lease import Event
from hostler.model.offering import Offering

Secret = Callable[[str], str]

_PER_REGION: Final = frozenset({"alibaba"})
"""Clouds that are asked for each type in each region: only for those that their lists have there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceOutcome:
    """What became of one cloud's prices.

    Attributes:
        verdict: ``accepted``; ``refused``: a check failed and the prices before it stay; ``unanswered``: the cloud did not
            tell, the prices before it stay. problems: why, in words; empty when accepted. report: the data docs' first page;
            None when nothing was checked.
    """

    cloud: str
    verdict: Literal["accepted", "refused", "unanswered"]
    row_count: int
    problems: tuple[str, ...] = ()
    report: Path | None = None


def catalog_paths(fleet: FleetFile) -> tuple[Path, ...]:
    """Returns the price lists of the deployment: those of ``catalog`` or the shipped ones, and the accepted prices."""
    lists = tuple(path.expanduser() for path in fleet.catalog) or shipped_paths()
    return (*lists, *accepted_paths(fleet))


def accepted_paths(fleet: FleetFile) -> tuple[Path, ...]:
    """Returns the files of accepted prices, by name; empty before the first refresh."""
    folder = fleet.prices.folder.expanduser() / "accepted"
    return tuple(sorted(folder.glob("*.csv"))) if folder.is_dir() else ()


class AcceptedPrices:
    """Fills prices into what drivers list: accepted ones, and where those say nothing, those of the price lists.

    Accepted prices are read again when they have changed, the lists once. Threads may share it: reading twice does no harm.
    """

    def __init__(self, fleet: FleetFile) -> None:
        self._fleet = fleet
        self._seen: tuple[tuple[Path, int, int], ...] = ()
        self._rows: Mapping[PriceKey, PriceRow] = {}
        self._lists: Mapping[PriceKey, PriceRow] | None = None

    def __call__(self, offerings: Iterable[Offering]) -> tuple[Offering, ...]:
        """Returns the offerings with prices. Raises CatalogError: the accepted file is damaged; nothing is planned."""
        paths = accepted_paths(self._fleet)
        seen = tuple((path, stat.st_mtime_ns, stat.st_size) for path in paths for stat in (path.stat(),))
        if seen != self._seen:
            self._rows = {row.key: row for path in paths for row in read_kept(path)}
            self._seen = seen
        filled = with_known_prices(offerings, self._rows, shipped_rates())
        if all(item.price_usd_per_hour is not None for item in filled):
            return filled
        return tuple(
            item if item.price_usd_per_hour is not None else with_known_prices((item,), self._of_lists(), shipped_rates())[0]
            for item in filled
        )

    def _of_lists(self) -> Mapping[PriceKey, PriceRow]:
        if self._lists is None:
            # A row that is broken is no reason to plan without the others; a refresh and `hostler offers` name it.
            known = load_catalog([path.expanduser() for path in self._fleet.catalog], keep_going=True)
            self._lists = rows_of(known.offerings)
        return self._lists


def refresh_prices(
    fleet: FleetFile,
    *,
    sessions: SessionSource,
    secret: Secret,
    ledger: Ledger,
    who: str,
    accepts_jumps: bool = False,
    clouds: Sequence[str] = (),
) -> tuple[PriceOutcome, ...]:
    """Asks each cloud of ``prices.sources``, checks what it tells, and accepts it whole or not at all.

    Args:
        who: in the record. accepts_jumps: a person has seen that prices have really moved by over 20 %.
        clouds: only these; empty: all.

    Returns:
        One outcome a cloud, by name; empty when fleet.yaml names no source. Each accepted or refused batch is an event.

    Raises:
        ChecksMissingError: the extra ``checks`` is not installed; nothing was changed.
        LedgerError: accepted prices stay accepted; run it again.
    """
    now = ledger.now()
    # A list that is broken in a row is still a second source for the others.
    known = load_catalog([path.expanduser() for path in fleet.catalog], keep_going=True)
    judge = Judge(fleet.prices.folder.expanduser() / "reports", fleet.prices.reports_kept)
    outcomes = []
    for cloud, settings in sorted(fleet.prices.sources.items()):
        if clouds and cloud not in clouds:
            continue
        work = _Refresh(fleet=fleet, cloud=cloud, settings=settings, known=known, now=now)
        outcome = work.run(judge, sessions, secret, accepts_jumps=accepts_jumps)
        ledger.append_events([_event(outcome, who)])
        outcomes.append(outcome)
    return tuple(outcomes)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Refresh:
    """The refresh of one cloud."""

    fleet: FleetFile
    cloud: str
    settings: PriceSourceSettings
    known: Catalog
    now: datetime

    def run(self, judge: Judge, sessions: SessionSource, secret: Secret, *, accepts_jumps: bool) -> PriceOutcome:
        """Fetches, judges, keeps."""
        wanted = wanted_types(self.cloud, self.settings.regions, self.known)
        try:
            rows = _source(self.cloud, self.settings, sessions, secret).fetch(wanted, self.now)
            last = read_kept(self._kept("accepted"))
        except (CloudError, CatalogError, KeyError) as error:
            return PriceOutcome(cloud=self.cloud, verdict="unanswered", row_count=0, problems=(words_of(error),))
        batch = self._batch(rows, wanted, last)
        said = judge.judge(batch, name=f"{self.now:%Y%m%dT%H%M%SZ}", accepts_jumps=accepts_jumps)
        # What is refused is kept too, for the person who looks into it; nothing reads it.
        keep(self._kept("accepted" if said.is_good else "refused"), batch.with_doubts())
        return self._outcome(said, len(rows))

    def _outcome(self, said: Judgement, count: int) -> PriceOutcome:
        verdict: Literal["accepted", "refused"] = "accepted" if said.is_good else "refused"
        return PriceOutcome(cloud=self.cloud, verdict=verdict, row_count=count, problems=said.problems, report=said.report)

    def _kept(self, verdict: str) -> Path:
        return self.fleet.prices.folder.expanduser() / verdict / f"{self.cloud}.csv"

    def _batch(self, rows: tuple[PriceRow, ...], wanted: Mapping[str, Sequence[str]], last: tuple[PriceRow, ...]) -> PriceBatch:
        mine = [item for item in self.known.offerings if item.cloud == self.cloud]
        counts = {name: spec.accelerator_count for (cloud, name), spec in machine_specs().items() if cloud == self.cloud}
        counts.update({item.instance_type: item.accelerator_count for item in mine})
        return PriceBatch(
            cloud=self.cloud,
            rows=rows,
            wanted=wanted,
            last=last,
            lists=_second_source(mine),
            accelerator_counts=counts,
            rates=shipped_rates(),
        )


def wanted_types(cloud: str, regions: Sequence[str], known: Catalog) -> dict[str, tuple[str, ...]]:
    """Returns what to ask a cloud for: region -> instance types, by name."""
    mine = [item for item in known.offerings if item.cloud == cloud and item.vcpu_count]
    every = {item.instance_type for item in mine} | {name for owner, name in machine_specs() if owner == cloud}
    wanted = {}
    for region in regions:
        here = {item.instance_type for item in mine if item.region == region}
        wanted[region] = tuple(sorted(here if cloud in _PER_REGION and here else every))
    return wanted


def _second_source(offerings: Sequence[Offering]) -> dict[tuple[str, str, str], Offering]:
    """Returns undoubted on-demand prices of the lists, one a region and type."""
    found: dict[tuple[str, str, str], Offering] = {}
    for item in offerings:
        if item.capacity_type is CapacityType.ON_DEMAND and item.price_usd_per_hour is not None and not item.doubts:
            found.setdefault((item.cloud, item.region, item.instance_type), item)
    return found


def _source(cloud: str, settings: PriceSourceSettings, sessions: SessionSource, secret: Secret) -> PriceSource:
    """Returns the client of a cloud's price API. Raises CloudConfigError, KeyError: fleet.yaml lacks something."""
    endpoint_url = str(settings.endpoint_url) if settings.endpoint_url else None
    if cloud == "aws":
        from hostler.drivers.aws.prices import AwsPrices

        return AwsPrices(sessions=sessions, connection=settings.connection)
    if cloud == "azure":
        from hostler.drivers.azure.prices import AzurePrices

        return AzurePrices(endpoint_url=endpoint_url)
    if settings.secret is None:
        raise CloudConfigError(f"prices.sources.{cloud}.secret: is missing; it names the secret with the key")
    if cloud == "gcp":
        from hostler.drivers.gcp.prices import GooglePrices

        return GooglePrices(api_key=secret(settings.secret), endpoint_url=endpoint_url)
    from hostler.drivers.alibaba.prices import AlibabaPrices

    return AlibabaPrices(access_key=secret(settings.secret), endpoint_url=endpoint_url)


def _event(outcome: PriceOutcome, who: str) -> Event:
    why = "; ".join(outcome.problems) or f"{outcome.row_count} prices passed every check"
    report = str(outcome.report) if outcome.report else None
    return make_event(None, who, f"prices.{outcome.verdict}", why, cloud=outcome.cloud, rows=outcome.row_count, report=report)

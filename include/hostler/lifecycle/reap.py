"""The second net: compares the ledger with the clouds in both directions and ends what nobody answers for."""

from dataclasses import dataclass, field, replace
from datetime import datetime

from hostler.cloud.driver import CloudDriver, Machine, MachineState, SupportsForeignView
from hostler.cloud.errors import CloudAuthError, CloudError
from hostler.cloud.tags import LEASE, is_foreign
from hostler.lifecycle.backup_notes import RESTORED
from hostler.lifecycle.blast import claim_end
from hostler.lifecycle.denied import note_denied
from hostler.lifecycle.epoch import standing, take_epoch
from hostler.lifecycle.events import make_event, words_of
from hostler.lifecycle.fleet import Fleet
from hostler.lifecycle.freshness import note_reconciled
from hostler.lifecycle.reap_leases import push_leases
from hostler.lifecycle.reap_machines import Sighting, judge_machine
from hostler.lifecycle.reap_report import Finding, ReapReport
from hostler.model.enums import FleetMode

__all__ = ["Finding", "ReapReport", "confirm_epoch", "reconcile"]

CONFIRMED = "confirmed_epoch"
SEEN = "orphan/"
TICK_GAP_S = 30
"""Two sightings closer together than this count as one: two reaps at once are one tick."""


async def reconcile(fleet: Fleet, *, who: str, dry_run: bool) -> ReapReport:
    """Pushes leases that nobody drives, and ends orphans; touches nothing that is not certainly ours.

    Idempotent, and safe when two run at once. With ``dry_run``, in mode ``observe``, or on a ledger that no person has
    confirmed and that does not know the machines it sees, it only reports.

    Args:
        who: for the record. dry_run: nothing is written or ended.
    """
    tick = Tick(fleet=fleet, who=who, at=await fleet.offload(fleet.ledger.now))
    machines = await tick.see_all()
    tick.report_only = await tick.why_report_only(machines, dry_run=dry_run)
    if tick.report_only is None:
        await tick.take_charge()
    leases, errors = await push_leases(fleet, who=who, report_only=tick.report_only)
    tick.findings += leases
    tick.errors += errors
    for sighting in machines:
        await tick.treat(sighting)
    return ReapReport(
        at=tick.at,
        who=who,
        findings=tuple(tick.findings),
        live_count=sum(1 for sighting in machines if sighting.is_live),
        report_only=tick.report_only,
        errors=tuple(tick.errors),
    )


def confirm_epoch(fleet: Fleet, *, who: str) -> None:
    """A person says that this ledger is the one and only of its deployment: from now on ``reconcile`` may end orphans."""
    fleet.ledger.set_meta(RESTORED, "")
    fleet.ledger.set_meta(CONFIRMED, fleet.ledger.now().isoformat())
    take_epoch(fleet, who=who, is_forced=True)
    fleet.ledger.append_events([make_event(None, who, "epoch.confirmed", "a person confirmed this ledger as the only one")])


@dataclass(slots=True, kw_only=True)
class Tick:
    """One reap under way."""

    fleet: Fleet
    who: str
    at: datetime
    findings: list[Finding] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    report_only: str | None = None

    async def see_all(self) -> list[Sighting]:
        """Lists every machine of ours in every region, and names the foreign ones; a cloud that cannot be asked is an error."""
        machines: list[Sighting] = []
        for name, driver in sorted(self.fleet.drivers.items()):
            for region in driver.regions:
                try:
                    machines += [self._sight(machine) for machine in await self._list(driver, region)]
                    await self._name_foreign(driver, region)
                except CloudError as error:
                    self.errors.append(f"{name}/{region}: {words_of(error)}")
                    if isinstance(error, CloudAuthError):
                        await note_denied(self.fleet, self.who, f"{name}/{region}", error)
        return machines

    async def take_charge(self) -> None:
        """Leaves word, in the ledger and in the backup store, that this ledger acts for the deployment now."""
        trouble = await self.fleet.offload(lambda: take_epoch(self.fleet, who=self.who))
        if trouble is not None:
            self.errors.append(f"epoch object in the backup store: {trouble}")
        await self.fleet.offload(lambda: note_reconciled(self.fleet, self.at))

    async def _list(self, driver: CloudDriver, region: str) -> tuple[Machine, ...]:
        return await self.fleet.offload(lambda: driver.list_nodes(region))

    async def _name_foreign(self, driver: CloudDriver, region: str) -> None:
        if not isinstance(driver, SupportsForeignView):
            return
        for machine in await self.fleet.offload(lambda: driver.list_foreign(region)):
            reason = f"{machine.name or 'a machine'} in {machine.zone} is not ours: never touched"
            self.findings.append(Finding(subject=machine.provider_id, kind="foreign", action="none", reason=reason))

    def _sight(self, machine: Machine) -> Sighting:
        is_ours = not is_foreign(machine.tags, self.fleet.settings.deployment)
        return Sighting(machine=machine, is_ours=is_ours, is_live=machine.state is not MachineState.TERMINATED)

    async def why_report_only(self, machines: list[Sighting], *, dry_run: bool) -> str | None:
        """Returns why nothing may be ended in this tick; None when it may. A ledger that knows all it sees confirms itself."""
        if restored := await self.fleet.offload(lambda: self.fleet.ledger.get_meta(RESTORED)):
            return f"this ledger was restored ({restored}): a person must confirm it (`hostler reap --confirm`)"
        if dry_run:
            return "dry run"
        if self.fleet.settings.mode is FleetMode.OBSERVE:
            return "mode: observe in fleet.yaml"
        found = await self.fleet.offload(lambda: standing(self.fleet))
        is_confirmed = await self.fleet.offload(lambda: self.fleet.ledger.get_meta(CONFIRMED))
        if found.refusal is not None or found.is_known or is_confirmed:
            return found.refusal
        doubt = await self._why_not_the_one(machines, found.trouble)
        if doubt is None:
            await self.fleet.offload(lambda: self.fleet.ledger.set_meta(CONFIRMED, self.at.isoformat()))
        return doubt

    async def _why_not_the_one(self, machines: list[Sighting], trouble: str | None) -> str | None:
        """Returns what speaks against a ledger that nobody has confirmed yet; None when it has seen all and knows all."""
        verdicts = [await judge_machine(self.fleet, sighting, self.at) for sighting in machines if sighting.is_live]
        unknown = [verdict for verdict in verdicts if verdict is not None and verdict.kind == "orphan"]
        if unknown:
            return (
                f"this ledger is new and does not know {len(unknown)} live machines of this deployment "
                f"({unknown[0].subject} first): a person must confirm it (`hostler reap --confirm`)"
            )
        if trouble is not None:
            return f"this ledger is not confirmed yet, and the backup store cannot be asked: {trouble}"
        if self.errors:
            return f"this ledger is not confirmed yet, and not everything could be listed: {self.errors[0]}"
        return None

    async def treat(self, sighting: Sighting) -> None:
        """Reports one machine, and ends it when everything speaks for it."""
        if not sighting.is_live:
            return
        finding = await judge_machine(self.fleet, sighting, self.at)
        is_named = any(known.subject == sighting.machine.provider_id for known in self.findings)
        if finding is None or is_named:
            return
        if finding.action != "end":
            self.findings.append(finding)
            return
        waits = self.report_only or await self._not_yet(sighting.machine)
        if waits is not None:
            self.findings.append(replace(finding, action="none", reason=f"{finding.reason}; left alone: {waits}"))
            return
        await self._end(sighting.machine, finding)

    async def _not_yet(self, machine: Machine) -> str | None:
        """Returns why a machine is left alone in this tick: too young, seen once only, or the blast radius is used up."""
        settings, ledger = self.fleet.settings, self.fleet.ledger
        key = f"{SEEN}{machine.provider_id}"
        first = await self.fleet.offload(lambda: ledger.get_meta(key))
        if not first:
            await self.fleet.offload(lambda: ledger.set_meta(key, self.at.isoformat()))
            return "seen for the first time"
        # By this ledger's clock alone: the cloud's own time of the launch is another clock, and may be hours off.
        seen_s = (self.at - datetime.fromisoformat(first)).total_seconds()
        grace_s = max(TICK_GAP_S, settings.orphan_grace_s)
        if seen_s < grace_s:
            return f"known for {seen_s:.0f} s, grace is {grace_s:.0f} s"
        if not await self.fleet.offload(lambda: claim_end(self.fleet, machine.provider_id)):
            return f"limits.destroyed_per_tick is {settings.destroyed_per_tick}"
        return None

    async def _end(self, machine: Machine, finding: Finding) -> None:
        """Who, what, why and the evidence first; then the order."""
        driver = self.fleet.drivers[machine.cloud]
        event = make_event(
            machine.tags.get(LEASE),
            self.who,
            "reap.ending",
            finding.reason,
            provider_id=machine.provider_id,
            zone=machine.zone,
            launched_at=machine.launched_at,
            instance_type=machine.instance_type,
        )
        self.fleet.crash("write:reap-ending:before")
        await self.fleet.offload(lambda: self.fleet.ledger.append_events([event]))
        self.fleet.crash("reap-terminate:before")
        try:
            await self.fleet.offload(lambda: driver.terminate(machine.region, machine.provider_id))
        except CloudError as error:
            self.errors.append(f"{machine.provider_id}: {words_of(error)}")
            self.findings.append(replace(finding, action="refused"))
            return
        finally:
            self.fleet.crash("reap-terminate:after")
        self.findings.append(replace(finding, action="ended"))

"""The driver for Amazon EC2: six calls of the port, and the view of machines that are not ours."""

import logging
import time
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from hostler.catalog.aws import load
from hostler.catalog.aws_quota import quota_for
from hostler.cloud.doctor import Check, Examination, PolicyFor
from hostler.cloud.driver import Interruption, LaunchOrder, Machine, MachineState, OfferingQuery
from hostler.cloud.errors import (
    AlreadyExistsError,
    CloudAuthError,
    CloudConfigError,
    CloudUnavailableError,
    NodeNotFoundError,
    NodeNotOursError,
    TeardownRefusedError,
)
from hostler.cloud.inventory import Thing, ThingKind
from hostler.cloud.session import SessionSource
from hostler.cloud.tags import DEPLOYMENT, OWNER_PREFIXES, is_foreign
from hostler.drivers.aws import convert, notices
from hostler.drivers.aws.calls import PAGE_SIZE, Calls
from hostler.drivers.aws.classify import drawn
from hostler.drivers.aws.inventory import Inventory
from hostler.drivers.aws.lookups import Lookups
from hostler.drivers.aws.offers import Offers
from hostler.drivers.aws.orders import run_request
from hostler.drivers.aws.settings import AwsSettings
from hostler.drivers.aws.warnings_queue import WarningsQueue
from hostler.model.offering import Offering

if TYPE_CHECKING:
    from hostler.drivers.aws.doctor.asking import Patient

_log = logging.getLogger(__name__)

SETTLE_S: Final = 15.0
"""Added to the time-outs: what a request that was cut off may still take inside EC2. An assumption: no figure is public."""

LIST_LAG_S: Final = 30.0
"""How long a new instance may be missing from lists. EC2 names no figure ("eventual consistency"); reports speak of seconds."""

_ALIVE: Final = ("pending", "running", "shutting-down", "stopping", "stopped")
_UNKNOWN_ID: Final = "InvalidInstanceID.NotFound"
_DEAD: Final = (MachineState.TERMINATING, MachineState.TERMINATED)


def build(*, deployment: str, settings: AwsSettings, sessions: SessionSource) -> "AwsDriver":
    """Returns the driver of one deployment; calls nothing yet.

    Raises:
        CloudConfigError: ``clouds.aws.tags`` would mark our machines as another owner's.
    """
    claimed = sorted(key for key in settings.tags if key.lower().startswith((*OWNER_PREFIXES, "aws:")))
    if claimed:
        raise CloudConfigError(f"clouds.aws.tags: {', '.join(claimed)} marks machines as another owner's; choose other keys")
    return AwsDriver(deployment=deployment, settings=settings, sessions=sessions)


class AwsDriver:
    """See ``hostler.cloud.driver.CloudDriver`` for what each call promises.

    Args:
        page_size: machines a page. clock: monotonic seconds.
    """

    name = convert.CLOUD
    list_lag_s = LIST_LAG_S

    def __init__(
        self,
        *,
        deployment: str,
        settings: AwsSettings,
        sessions: SessionSource,
        page_size: int = PAGE_SIZE,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.regions = settings.regions
        # Looking up may take as long as one call may; then comes the one that buys.
        self.call_budget_s = 2 * settings.call_timeout_s + SETTLE_S
        self._deployment = deployment
        self._settings = settings
        self._clock = clock
        self._calls = Calls(
            sessions=sessions, connection=settings.connection, timeout_s=settings.call_timeout_s, page_size=page_size
        )
        self._lookups = Lookups(self._calls, settings, clock)
        self._offers = Offers(self._calls, self._lookups, settings)
        self._warnings = WarningsQueue(self._calls, settings.queue_for)
        self._inventory = Inventory(self._calls, deployment)

    def pace_with(self, claim: Callable[[], float]) -> None:
        """See ``SupportsPace``."""
        self._calls.pace_with(claim)

    def list_offerings(self, query: OfferingQuery) -> tuple[Offering, ...]:
        """See ``CloudDriver.list_offerings``. On-demand prices are those of the catalog; where it has none they are None."""
        with drawn("list_offerings", "read"):
            return self._offers.find(query)

    def launch(self, order: LaunchOrder) -> Machine:
        """See ``CloudDriver.launch``. The token makes it idempotent for as long as EC2 keeps tokens (about a day)."""
        if is_foreign(order.tags, self._deployment):
            raise CloudConfigError(f"{order.name}: its tags are not those of deployment {self._deployment}")
        began = self._clock()
        region = order.offering.region
        with drawn("preparing run_instances", "read"):
            request = run_request(order, self._lookups.site(order), self._settings)
        if self._clock() - began > self._settings.call_timeout_s:
            raise CloudUnavailableError(f"{order.name}: look-ups took so long that a launch now would outlive its call budget")
        quota = quota_for(order.offering.instance_type, order.offering.capacity_type)
        answer = self._calls.call(region, "run_instances", effect="create", quota=quota, **request)
        with drawn("reading the answer of run_instances", "create"):
            made = self._machine(answer["Instances"][0], region)
        if made.state in _DEAD:
            raise AlreadyExistsError(f"{order.name}: its token belongs to {made.provider_id}, which is {made.state}")
        return made

    def get_node(self, region: str, provider_id: str) -> Machine:
        """See ``CloudDriver.get_node``."""
        answer = self._calls.call(region, "describe_instances", InstanceIds=[provider_id])
        with drawn("reading the answer of describe_instances", "read"):
            found = [self._machine(instance, region) for instance in _instances(answer.get("Reservations", ()))]
        if not found:
            raise NodeNotFoundError(f"EC2 knows no {provider_id} in {region}", code=_UNKNOWN_ID)
        if found[0].provider_id != provider_id or not self._has_our_tag(found[0]):
            # EC2 drops the tags of a terminated machine before the machine: that one is gone, whoever's it was.
            is_there = found[0].provider_id == provider_id and found[0].state is not MachineState.TERMINATED
            kind = NodeNotOursError if is_there else NodeNotFoundError
            raise kind(f"{provider_id} in {region} is not a machine of deployment {self._deployment}")
        return found[0]

    def list_nodes(self, region: str, tags: Mapping[str, str] | None = None) -> tuple[Machine, ...]:
        """See ``CloudDriver.list_nodes``."""
        with drawn("list_nodes", "read"):
            found = [self._machine(instance, region) for instance in self._ours(region, tags)]
        return tuple(machine for machine in found if self._has_our_tag(machine))

    def terminate(self, region: str, provider_id: str) -> None:
        """See ``CloudDriver.terminate``.

        A machine that is seen to be somebody else's is never touched. One that cannot be seen is still asked to end: ids come
        from our own launches and lists, and describing may be denied to us, or may not know yet what ending already does.
        """
        seen = self._seen(region, provider_id)
        if seen is not None and seen.state is MachineState.TERMINATED:
            raise NodeNotFoundError(f"{provider_id} in {region} is terminated")
        if seen is not None and is_foreign(seen.tags, self._deployment):
            raise TeardownRefusedError(f"{provider_id} in {region} carries our tag, but another owner claims it too; ask them")
        self._calls.call(region, "terminate_instances", effect="delete", InstanceIds=[provider_id])

    def list_interruptions(self, region: str) -> tuple[Interruption, ...]:
        """See ``CloudDriver.list_interruptions``. Interruptions first, then maintenance."""
        with drawn("list_interruptions", "read"):
            now = datetime.now(UTC)
            instances = list(self._ours(region, None))
            ids = {instance["InstanceId"] for instance in instances}
            if not ids:
                return ()
            found = [
                *self._warnings.read(region),
                *notices.of_spot_requests(self._spot_requests(region), region, now),
                *notices.of_instances(instances, region, now),
                *notices.of_statuses(self._scheduled(region), region, now),
            ]
            return notices.one_per_machine(notice for notice in found if notice.provider_id in ids)

    def list_foreign(self, region: str) -> tuple[Machine, ...]:
        """See ``SupportsForeignView``. Only types of the catalog are looked at."""
        filters = [
            {"Name": "instance-type", "Values": sorted(load())},
            {"Name": "instance-state-name", "Values": list(_ALIVE)},
        ]
        with drawn("list_foreign", "read"):
            found = self._calls.pages(region, "describe_instances", "Reservations", Filters=filters)
            machines = [self._machine(instance, region) for instance in _instances(found)]
        return tuple(machine for machine in machines if is_foreign(machine.tags, self._deployment))

    def examine(self, examination: Examination) -> tuple[Check, ...]:
        """See ``SupportsDoctor``."""
        from hostler.drivers.aws.doctor.examine import examine

        return examine(self._patient(examination))

    def policy(self, examination: Examination, whose: PolicyFor, *, account: str | None = None) -> Mapping[str, Any]:
        """See ``SupportsPolicy``."""
        from hostler.drivers.aws.doctor.rights import policy

        return policy(self._patient(examination), whose, account=account)

    def _patient(self, examination: Examination) -> "Patient":
        from hostler.drivers.aws.doctor.asking import Patient

        return Patient(
            deployment=self._deployment,
            settings=self._settings,
            examination=examination,
            calls=self._calls,
            lookups=self._lookups,
        )

    def list_inventory(self, region: str) -> tuple[Thing, ...]:
        """See ``SupportsInventory``."""
        return self._inventory.list(region)

    def remove_unattached(self, region: str, kind: ThingKind, thing_id: str) -> None:
        """See ``SupportsInventory``."""
        self._inventory.remove(region, kind, thing_id)

    def _seen(self, region: str, provider_id: str) -> Machine | None:
        """Returns our machine; None when EC2 will not or cannot show it.

        Raises:
            NodeNotFoundError: EC2 shows it, and it is not ours.
        """
        try:
            return self.get_node(region, provider_id)
        except CloudAuthError:
            _log.warning("may not describe %s in %s; it can only be asked to end", provider_id, region)
        except NodeNotFoundError as error:
            if error.code != _UNKNOWN_ID:
                raise
        return None

    def _ours(self, region: str, tags: Mapping[str, str] | None) -> Iterator[Mapping[str, Any]]:
        """Yields instances with our deployment's tag and all of ``tags``, to the last page."""
        filters = convert.tag_filters({**(tags or {}), DEPLOYMENT: self._deployment})
        yield from _instances(self._calls.pages(region, "describe_instances", "Reservations", Filters=filters))

    def _spot_requests(self, region: str) -> list[Mapping[str, Any]]:
        filters = convert.tag_filters({DEPLOYMENT: self._deployment})
        return self._calls.pages(region, "describe_spot_instance_requests", "SpotInstanceRequests", Filters=filters)

    def _scheduled(self, region: str) -> list[Mapping[str, Any]]:
        """Returns statuses with scheduled events; none where the role may not see them: spot's notices must not go with them."""
        filters = [{"Name": "event.code", "Values": list(notices.EVENT_CODES)}]
        try:
            return self._calls.pages(region, "describe_instance_status", "InstanceStatuses", Filters=filters)
        except (CloudAuthError, CloudConfigError) as error:
            _log.warning("scheduled events in %s cannot be seen: %s", region, error)
            return []

    def _machine(self, instance: Mapping[str, Any], region: str) -> Machine:
        return convert.machine(instance, region, self._settings.reach.address)

    def _has_our_tag(self, machine: Machine) -> bool:
        return machine.tags.get(DEPLOYMENT) == self._deployment


def _instances(reservations: Any) -> Iterator[Mapping[str, Any]]:
    """Yields the instances of EC2's reservations (its word for the instances of one launch)."""
    for reservation in reservations:
        yield from reservation.get("Instances", ())

"""RunInstances: what EC2 checks, in EC2's order, then the machines."""

from dataclasses import dataclass, replace
from decimal import Decimal
from urllib.parse import urlencode

from hostler_sandbox.aws import moto_server, refusals, wire
from hostler_sandbox.aws.call import Call
from hostler_sandbox.aws.errors import Ec2Error
from hostler_sandbox.aws.faults import LaunchFaults
from hostler_sandbox.aws.fixtures import IMAGE_KINDS
from hostler_sandbox.aws.instances import Instance, Instances, read_base, view
from hostler_sandbox.aws.launch_checks import Wanted, check_resources, key_is_usable, read_order
from hostler_sandbox.aws.moto_server import ACCOUNT, MotoServer
from hostler_sandbox.aws.node_specs import node_spec
from hostler_sandbox.aws.placement import PlacementGroups
from hostler_sandbox.aws.reservations import Reservations
from hostler_sandbox.aws.spot import SpotRequests
from hostler_sandbox.aws.tokens import Tokens, TokenUse, fingerprint
from hostler_sandbox.state.errors import NoStockError, PriceTooLowError, QuotaError, RefusedError
from hostler_sandbox.state.estate import Estate
from hostler_sandbox.state.machines import Cause, MachineOrder, MachineState


@dataclass(frozen=True, slots=True)
class Granted:
    """Stock, quota and price taken for one machine."""

    order: MachineOrder
    price: Decimal
    reservation_id: str | None


class Launcher:
    """Answers RunInstances."""

    def __init__(
        self,
        *,
        estate: Estate,
        instances: Instances,
        moto: MotoServer,
        spot: SpotRequests,
        reservations: Reservations,
        faults: LaunchFaults,
        groups: PlacementGroups,
        ssh_port: int,
    ) -> None:
        self._estate = estate
        self._instances = instances
        self._moto = moto
        self._spot = spot
        self._reservations = reservations
        self._faults = faults
        self._groups = groups
        self._ssh_port = ssh_port
        self.tokens = Tokens()

    def run(self, call: Call) -> bytes:
        """Launches, or answers what the token launched before.

        Raises:
            Ec2Error: refused; nothing was made, unless a fault asked for just that.
        """
        wanted = read_order(call)
        if call.params.get("DryRun"):
            raise Ec2Error("DryRunOperation", "Request would have succeeded, but DryRun flag is set.", 412)
        if not wanted.token:
            return self._launch(call, wanted, None)
        scope = (call.region, wanted.zone if wanted.is_zonal else "", wanted.token)
        with self.tokens.held(scope) as use:
            if use.instance_ids:
                return self._replay(call, use)
            return self._launch(call, wanted, use)

    def _replay(self, call: Call, use: TokenUse) -> bytes:
        if use.fingerprint != fingerprint(call.form):
            raise refusals.token_mismatch()
        found = [one for instance_id in use.instance_ids if (one := self._instances.find(instance_id))]
        if len(found) < len(use.instance_ids) or any(one.machine.state is MachineState.TERMINATED for one in found):
            raise refusals.token_of_dead()
        return _answer(call, found)

    def _launch(self, call: Call, wanted: Wanted, use: TokenUse | None) -> bytes:
        check_resources(call, wanted)
        if wanted.placement_group:
            self._groups.check(call.region, wanted.placement_group)
        self._faults.before(call)
        granted = self._take(call, wanted)
        late = self._faults.late(call)
        try:
            made = self._make(call, wanted, granted, hidden_s=late.delay_s if late else 0.0)
        except BaseException:
            for one in granted:
                self._give_back(one)
            raise
        if use is not None:
            use.fingerprint, use.instance_ids = fingerprint(call.form), tuple(one.instance_id for one in made)
        if late:
            raise late.error
        return _answer(call, made)

    # -- stock ----------------------------------------------------------------------------------------------------------------

    def _take(self, call: Call, wanted: Wanted) -> list[Granted]:
        zone = wanted.zone or self._any_zone(call.region, wanted)
        order = MachineOrder(
            cloud="aws",
            region=call.region,
            zone=zone,
            instance_type=wanted.instance_type,
            capacity_type=wanted.capacity_type,
            vcpu_count=moto_server.vcpu_count(wanted.instance_type),
            max_price=wanted.max_price,
            dies_on_power_off=wanted.behavior == "terminate",
        )
        granted: list[Granted] = []
        try:
            while len(granted) < wanted.most:
                granted.append(self._take_one(order, wanted))
        except (RefusedError, Ec2Error) as refusal:
            if len(granted) < wanted.least:
                for one in granted:
                    self._give_back(one)
                raise _words(refusal, order, wanted) from refusal
        return granted

    def _take_one(self, order: MachineOrder, wanted: Wanted) -> Granted:
        """Takes one machine: of the reservation named, of an open one that fits, or of the pool."""
        found = wanted.reservation_id
        if found:
            self._reservations.take(found, order)
        elif wanted.capacity_type == "on-demand" and wanted.takes_open:
            found = self._reservations.take_open(order)
        if found:
            # What a reservation holds is out of the pool and inside the quota already.
            order = replace(order, capacity_type="reserved")
        elif order.capacity_type == "reserved":
            raise Ec2Error("InvalidParameterCombination", "A capacity block launch must name its reservation.")
        return Granted(order, self._estate.check(order), found)

    def _any_zone(self, region: str, wanted: Wanted) -> str:
        pool_type = "on-demand" if wanted.capacity_type == "reserved" else wanted.capacity_type
        stocked = self._estate.pools.stocked_zones(region, wanted.instance_type, pool_type)
        usable = [zone for zone in stocked if zone in moto_server.zone_names(region)]
        if usable:
            return usable[0]
        raise refusals.no_spot_capacity() if pool_type == "spot" else refusals.no_capacity_anywhere(wanted.instance_type)

    def _give_back(self, one: Granted) -> None:
        if one.reservation_id:
            self._reservations.give_back(one.reservation_id)
        else:
            self._estate.give_back(one.order)

    # -- machines -------------------------------------------------------------------------------------------------------------

    def _make(self, call: Call, wanted: Wanted, granted: list[Granted], *, hidden_s: float) -> list[Instance]:
        count = str(len(granted))
        form = {**call.form, "MinCount": count, "MaxCount": count, "Placement.AvailabilityZone": granted[0].order.zone}
        with self._moto.lock:
            reservation = self._moto.run_instances(call.environ, urlencode(form).encode())
        made = []
        boot_fault = self._faults.boot(call)
        fails_with = self._faults.cause(boot_fault) if key_is_usable(call.region, wanted.kms_keys) else Cause.LAUNCH_KEY
        for index, (grant, thing) in enumerate(zip(granted, reservation.instances, strict=True)):
            order = replace(grant.order, hidden_s=hidden_s)
            machine = self._estate.add(
                thing.id, order, grant.price,
                fails_with=fails_with,
                client_token=wanted.token,
            )  # fmt: skip
            machine.is_boot_broken = boot_fault == "no_ssh"
            one = Instance(
                number=self._instances.next_number(),
                machine=machine,
                moto=thing,
                reservation_id=reservation.id,
                client_token=wanted.token,
                request_id=self._spot.open(machine, wanted) if wanted.capacity_type == "spot" else None,
                user_data=wanted.user_data,
                behavior=wanted.behavior,
                image_id=wanted.image_id,
                key_name=wanted.key_name,
                placement_group=wanted.placement_group,
                capacity_reservation_id=grant.reservation_id,
                targets_reservation=bool(wanted.reservation_id),
                launch_index=index,
            )
            _finish_cards(one, wanted)
            thing.disable_api_termination = bool(call.params.get("DisableApiTermination"))
            self._plan_boot(one)
            one.base = read_base(one)
            self._instances.add(one)
            made.append(one)
        return made

    def _plan_boot(self, one: Instance) -> None:
        """Puts the machine's address into moto's primary card, and says what is to boot."""
        address = one.machine.address
        for card in one.moto.nics.values():
            if card.device_index == 0:
                card.private_ip_address = address
                card.private_ip_addresses[:] = [{"Primary": True, "PrivateIpAddress": address}]
                card.public_ip = address if card.public_ip else None
        spec = node_spec(
            one,
            image=IMAGE_KINDS.get(one.image_id, "bare"),
            address=address,
            ssh_port=self._ssh_port,
            is_boot_broken=one.machine.is_boot_broken,
            now=self._estate.clock.now(),
        )
        self._estate.plan_boot(one.machine, spec)


def _finish_cards(one: Instance, wanted: Wanted) -> None:
    """Gives cards what moto forgets: their tags, and that a card made by the launch goes with the instance unless told otherwise."""
    for card in one.moto.nics.values():
        if wanted.card_tags:
            card.add_tags(dict(wanted.card_tags))
        if card.device_index not in wanted.kept_cards:
            card.delete_on_termination = True
    for name, disk in one.moto.get_block_device_mapping:
        if name not in wanted.kept_disks:
            disk.delete_on_termination = True


def _answer(call: Call, made: list[Instance]) -> bytes:
    call.resources.extend(one.instance_id for one in made)
    result = {
        "ReservationId": made[0].reservation_id,
        "OwnerId": ACCOUNT,
        "Groups": [],
        "Instances": [view(one) for one in made],
    }
    return wire.answer("RunInstances", result)


def _words(refusal: Exception, order: MachineOrder, wanted: Wanted) -> Exception:
    """Puts a refusal of the state model into EC2's words."""
    if isinstance(refusal, QuotaError):
        return refusals.over_spot_quota() if order.capacity_type == "spot" else refusals.over_quota(refusal.limit)
    if isinstance(refusal, PriceTooLowError):
        return refusals.price_too_low(Decimal(str(refusal.offered)), Decimal(str(refusal.needed)))
    if isinstance(refusal, NoStockError):
        if order.capacity_type == "spot":
            return refusals.no_spot_capacity()
        if not wanted.zone:
            return refusals.no_capacity_anywhere(order.instance_type)
        return refusals.no_capacity(order.instance_type, order.zone, refusal.others)
    return refusal

"""The steps that buy and prepare nodes; each is ``ConvergeOperator`` up to its phase."""

from hostler.model.enums import Phase
from hostler_operators.converge import ConvergeOperator


class PlanPlacementOperator(ConvergeOperator):
    """Ranks what can be bought for the request; fails with the reasons when nothing fits."""

    phase = Phase.PLAN


class AcquireCapacityOperator(ConvergeOperator):
    """Grants the lease: caps, and reservations where the request names them."""

    phase = Phase.ACQUIRE


class LaunchNodesOperator(ConvergeOperator):
    """Buys the gang, all or nothing; waits, without a worker, while there is no stock."""

    phase = Phase.LAUNCH


class SetupNodesOperator(ConvergeOperator):
    """Puts agent, drivers and framework on the nodes; replaces a node that cannot be set up."""

    phase = Phase.SETUP


class ValidateNodesOperator(ConvergeOperator):
    """Probes every node; replaces one that is not healthy."""

    phase = Phase.VALIDATE

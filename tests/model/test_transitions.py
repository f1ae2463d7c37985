import pytest

from hostler.model.enums import LeaseState, NodeState
from hostler.model.transitions import LEASE_MOVES, NODE_MOVES, IllegalTransitionError, check_lease_move, check_node_move


def moves(states, table, check):
    for before in states:
        for after in states:
            if after == before or after in table[before]:
                check(before, after)
            else:
                with pytest.raises(IllegalTransitionError):
                    check(before, after)


def test_lease_table_when_every_pair_is_walked_then_only_listed_moves_pass():
    moves(LeaseState, LEASE_MOVES, check_lease_move)


def test_node_table_when_every_pair_is_walked_then_only_listed_moves_pass():
    moves(NodeState, NODE_MOVES, check_node_move)


def test_money_when_a_lease_ends_then_it_ends_through_draining():
    assert [state for state in LeaseState if LeaseState.RELEASED in LEASE_MOVES[state]] == [LeaseState.DRAINING]

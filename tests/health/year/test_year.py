"""A year of noisy but healthy nodes leads to no drain; one planted fault of each kind is found, in the same noise."""

import random
from dataclasses import replace

import pytest
from tests.health.year.node import YEAR_S, SimNode
from tests.health.year.noise import RATES, live
from tests.health.year.plants import PLANTS, lemon, plant

from hostler.health.engine import sessions

NODES = 200
SHARE = 0.03
"""Of the rates of noise, so that 200 years pass in seconds; ``python -m tests.health.year`` plays them in full."""


def test_year_when_nodes_are_noisy_but_healthy_then_none_is_drained_and_all_end_healthy():
    for seed in range(NODES):
        node = SimNode(name=f"node-{seed}")
        live(node, random.Random(seed), YEAR_S, SHARE)
        node.settle()

        assert not node.harms, (seed, node.harms[0])
        assert node.decision.verdict.value == "healthy", (seed, node.decision)


def test_year_when_the_noise_is_full_then_nothing_is_drained_and_little_is_kept_from_work():
    node = SimNode(name="loud")
    live(node, random.Random(1), YEAR_S, 2.0)

    assert not node.harms, node.harms[0]
    assert node.failed_s < 3600


def test_year_when_one_look_were_proof_enough_then_the_noise_would_drain_nodes(monkeypatch):
    rules = sessions.with_rules
    monkeypatch.setattr(sessions, "with_rules", lambda session, codes: replace(rules(session, codes), proof=1))
    node = SimNode(name="loud")
    live(node, random.Random(1), YEAR_S, 1.0)

    assert node.harms


@pytest.mark.parametrize("act", RATES, ids=lambda act: act.__name__)
def test_noise_when_played_alone_then_the_node_recovers_by_itself(act):
    for seed in range(5):
        node = SimNode(name="n")
        node.look()
        act(node, random.Random(seed))
        node.settle()
        assert not node.harms
        assert node.decision.verdict.value == "healthy", (seed, node.decision)


@pytest.mark.parametrize("fault", PLANTS, ids=lambda fault: fault.kind)
def test_year_when_a_fault_is_planted_in_the_noise_then_it_is_named_and_its_rung_is_asked_for(fault):
    rng = random.Random(fault.kind)
    node = SimNode(name="sick")
    live(node, rng, rng.uniform(10, 40) * 86_400.0, 0.3)
    node.settle()
    assert not node.harms

    found = plant(node, fault)

    assert found.named_after_s is not None, found
    assert found.asked_after_s is not None, found


def test_year_when_a_fault_comes_back_after_each_remedy_then_the_node_is_replaced():
    assert lemon(SimNode(name="lemon")) == ["reset_gpu", "reboot_node", "drain_and_replace"]

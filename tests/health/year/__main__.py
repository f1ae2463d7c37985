"""``python -m tests.health.year``: 200 years in full, then the table of delays. Exit status 1 when a healthy node was drained."""

import argparse
import random
import sys
import time

from tests.health.year.node import YEAR_S, SimNode
from tests.health.year.noise import live
from tests.health.year.plants import PLANTS, lemon, plant

from hostler.cli.table import render


def delay(seconds):
    return "never" if seconds is None else f"{seconds / 60:.0f} min"


def table(seed):
    """Returns (kind, named after, asked after, rung, why) of each planted fault."""
    found = []
    for fault in PLANTS:
        rng = random.Random(f"{seed} {fault.kind}")
        node = SimNode(name="sick")
        live(node, rng, rng.uniform(10, 40) * 86_400.0)
        node.settle()
        one = plant(node, fault)
        found.append((one.kind, delay(one.named_after_s), delay(one.asked_after_s), one.action, one.words[:110]))
    return found


def main():
    parser = argparse.ArgumentParser(description="a year of noisy but healthy nodes, and the delay of each planted fault")
    parser.add_argument("--nodes", type=int, default=200)
    parser.add_argument("--share", type=float, default=1.0, help="of the rates of noise")
    parser.add_argument("--seed", type=int, default=0)
    wanted = parser.parse_args()
    began, looks, failed_s, drained = time.perf_counter(), 0, 0.0, []
    for number in range(wanted.nodes):
        node = SimNode(name=f"node-{number}")
        live(node, random.Random(wanted.seed * 100_003 + number), YEAR_S, wanted.share)
        looks, failed_s = looks + node.looks, failed_s + node.failed_s
        drained += [(node.name, *node.harms[0][:2])] if node.harms else []
    rows = table(wanted.seed)
    sys.stdout.write(render(("FAULT (one look a minute)", "NAMED AFTER", "ASKED AFTER", "RUNG", "WHY"), rows) + "\n")
    sys.stdout.write(f"the same fault after each remedy asks for: {', '.join(lemon(SimNode(name='lemon')))}\n")
    share_failed = failed_s / (wanted.nodes * YEAR_S) if wanted.nodes else 0.0
    took_s = time.perf_counter() - began
    sys.stdout.write(
        f"{wanted.nodes} healthy nodes, a year each, {looks} looks with news: {len(drained)} drained, "
        f"kept from new work {share_failed:.5%} of the time; {took_s:.0f} s\n"
    )
    for entry in drained:
        sys.stdout.write(f"DRAINED: {entry}\n")
    return 1 if drained or any("never" in row for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())

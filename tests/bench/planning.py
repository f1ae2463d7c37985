"""The bench of planning: a request for any of four accelerators, spot and on-demand, over every price list there is.

SkyPilot stands beside it when ``HOSTLER_BENCH_SKYPILOT`` names an interpreter that has it: it gets the lists it can read (AWS, Google,
Azure), laid where it keeps its own. Without it, its figures of 2026-12 on 1,640 of the same offers are named as such.
"""

import gc
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

from tests.catalog.published import FOLDER

from hostler.catalog.cache import open_index
from hostler.cli.offers import rank_all
from hostler.model.capacity import CapacityNow, QuotaState
from hostler.model.enums import CapacityType
from hostler.model.request import NodeRequest
from hostler.planning.terms import CostTerms, PlanTerms

Row = tuple[str, float, float, str]

NOW = datetime(2026, 12, 1, tzinfo=UTC)
FOUR = ("A100", "A100-80GB", "H100", "L4")
WARM_AIM_S, COLD_AIM_S = 0.010, 0.300
PUBLISHED_WARM_S, PUBLISHED_COLD_S = 1.9, 4.6
"""SkyPilot 0.14.1 on 1,640 offers, measured earlier (2 cores, 2026-12); used only where it is not here to be measured."""


def planning() -> list[Row]:
    """Returns the rows of the table: warm and cold against the aims, and against SkyPilot."""
    lists = "all lists" if FOLDER else "the shipped lists"
    warm, offers = _warm()
    cold = _cold()
    peer = _skypilot()
    peer_words = f"SkyPilot {peer['skypilot']}, {peer['rows']} rows" if peer else "SkyPilot 0.14.1, an earlier measurement"
    peer_warm, peer_cold = (peer["warm_cpu_s"], peer["cold_cpu_s"]) if peer else (PUBLISHED_WARM_S, PUBLISHED_COLD_S)
    return [
        (f"plan any of 4, spot too, {offers} offers of {lists}", warm, WARM_AIM_S, "the aim, 10 ms"),
        ("the same", warm, peer_warm, f"{peer_words}, warm"),
        ("hostler offers, a new process, warm cache", cold, COLD_AIM_S, "the aim, 0.3 s"),
        ("the same", cold, peer_cold, f"{peer_words}, a new process"),
    ]


def _warm() -> tuple[float, int]:
    """Returns the least CPU seconds of several plans with every check and reason, and over how many offers."""
    index = open_index([FOLDER] if FOLDER else [])
    request = NodeRequest(
        tenant="default",
        accelerator=FOUR[0],
        accelerators_per_node=8,
        node_count=2,
        capacity_types=(CapacityType.SPOT, CapacityType.ON_DEMAND),
        max_cost_usd=Decimal(1000),
    )
    quota = QuotaState(cloud="aws", region="us-east-1", code="L-417A185B", unit="vCPU", limit=Decimal(384), used=Decimal(0))
    terms = PlanTerms(
        accelerators=FOUR,
        costs=CostTerms(data_gib=Decimal(500), data_at="aws/us-east-1"),
        capacity=CapacityNow(quotas=(quota,), max_usd_per_hour=Decimal(500)),
    )
    index.known(FOUR, 8)
    gc.collect()
    times = []
    for _ in range(40):
        began = time.process_time()
        ranking = rank_all(index, request, terms, (), NOW)
        times.append(time.process_time() - began)
    return min(times), len(ranking.ranked) + len(ranking.refusals)


def _cold() -> float:
    """Returns the least CPU seconds of a whole process that finds its cache filled."""
    command = [
        sys.executable,
        "-m",
        "hostler.cli.main",
        "offers",
        "--accelerator",
        ",".join(FOUR),
        "--nodes",
        "2",
        "--spot",
        "--json",
    ]
    with tempfile.TemporaryDirectory() as cache:
        # Compiled modules as an installation has them, whatever this shell says of them.
        env = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        env |= {"HOSTLER_CACHE": cache, "PYTHONPYCACHEPREFIX": cache, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        times = []
        for _ in range(4):
            before = _children_cpu_s()
            lists = ["--catalog", str(FOLDER)] if FOLDER else []
            subprocess.run([*command, *lists], env=env, stdout=subprocess.DEVNULL, check=True)
            times.append(_children_cpu_s() - before)
    # The first one fills the cache.
    return min(times[1:])


def _skypilot() -> dict[str, Any] | None:
    """Returns what SkyPilot's own interpreter measured; None when there is none or no lists for it."""
    interpreter = os.environ.get("HOSTLER_BENCH_SKYPILOT")
    if not interpreter or FOLDER is None:
        return None
    script = Path(__file__).with_name("skypilot_offline.py")
    with tempfile.TemporaryDirectory() as home:
        env = {"PATH": os.environ["PATH"], "HOME": home, "SKYPILOT_DISABLE_USAGE_COLLECTION": "1"}
        done = subprocess.run([interpreter, str(script), str(FOLDER)], env=env, capture_output=True, text=True, check=True)
    answer: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return answer


def _children_cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    for what, ours, bound, words in planning():
        sys.stdout.write(f"{what}: {ours:.4f} s of CPU against {bound:.4f} ({words}): {ours / bound:.4f}\n")

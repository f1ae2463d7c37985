"""``make demo``: a real training run lives its whole life on two rented 8-GPU spot nodes of the sandbox cloud, and loses one of them.

Environment: ``SEED`` picks the zones that are out of stock and the node that is taken (default: chosen at random and shown);
``KEEP=1`` leaves Airflow up after the run until Ctrl-C. Exit status 0 only if all is right. Ctrl-C at any moment leaves no process
and no node.
"""

import json
import os
import random
import shutil
import signal
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from hostler_sandbox.demo.loss import NodeTaker, choose_loss
from hostler_sandbox.demo.report import faults_of, make_report
from hostler_sandbox.demo.run import REQUEST, explain, follow, restore
from hostler_sandbox.demo.stage import Stage, StageOptions
from hostler_sandbox.demo.story import Story, outcome_table, step_table
from hostler_sandbox.demo.undisturbed import undisturbed_weights

FOLDER = Path(".demo")
_RUN_S = 600.0


def main() -> int:
    """Runs the demo."""
    seed = int(os.environ.get("SEED") or random.randrange(1_000_000))  # noqa: S311  # dice, no secret
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    signal.signal(signal.SIGINT, signal.default_int_handler)  # also where a shell started us in the background and ignores it
    story = Story()
    story.say(f"Hostler demo, seed {seed} (SEED={seed} make demo replays it); everything is on this machine's loopback")
    _clear(FOLDER)
    stage = Stage(StageOptions(folder=FOLDER, seed=seed, deployment="demo", say=lambda words: story.say(f"starting {words}")))
    try:
        with stage:
            story.say(f"Airflow is at {stage.airflow.url}, login admin / {stage.airflow.passwords['admin']}")
            story.say(f"out of 8 x H100 spot: {', '.join(_empty_zones(stage)) or 'no zone'}")
            status = _show(stage, story, seed)
            if os.environ.get("KEEP") == "1":
                story.say(f"KEEP=1: Airflow stays at {stage.airflow.url} until Ctrl-C")
                signal.pause()
        story.say("all processes are ended")
    except KeyboardInterrupt:
        story.say("interrupted: all processes and nodes are ended")
        return 130
    return status


def _show(stage: Stage, story: Story, seed: int) -> int:
    """Follows one run, writes the report, prints the tables; returns the exit status."""
    loss = choose_loss(random.Random(seed), steps=int(REQUEST["recipe_options"]["steps"]), nodes=REQUEST["nodes"])  # noqa: S311
    with ThreadPoolExecutor(1) as beside:
        undisturbed = beside.submit(undisturbed_weights, stage.folder / "undisturbed", REQUEST)
        ended = follow(stage, story, REQUEST, NodeTaker(stage, loss), _RUN_S)
    lease_id = ended.view.lease.lease_id
    objects, said = restore(stage, lease_id, stage.folder / "restored")
    story.say(f"hostler restore: {said}")
    report = make_report(
        seed, stage.look("figures"), ended.view, restored_objects=objects, undisturbed_sha256=undisturbed.result()
    )
    (stage.folder / "report.json").write_text(json.dumps(report, indent=2) + "\n")
    wrong = faults_of(report, ended.view)
    if ended.state != "success":
        wrong.append(f"Airflow's run ended {ended.state}")
    print(f"\n{step_table(ended.tasks)}\n\n{outcome_table(report)}")
    print(f"Airflow UI               {stage.airflow.url}  admin / {stage.airflow.passwords['admin']}  (KEEP=1 leaves it up)")
    print(f"report                   {FOLDER / 'report.json'}\n")
    if wrong:
        print(explain(stage, lease_id))
    for words in wrong:
        print(f"WRONG: {words}")
    return 1 if wrong else 0


def _empty_zones(stage: Stage) -> list[str]:
    """Returns the zones of the fleet's region where the seed left no stock of what the demo asks for."""
    pools = (pool.split("/") for pool in stage.sandbox["empty_pools"])
    wanted = ["p5.48xlarge", "spot"]
    return [zone for zone, *kind in pools if kind == wanted and zone.startswith("us-east-1")]


def _clear(folder: Path) -> None:
    """Removes what an earlier demo left; its processes ended with it."""
    if folder.exists():
        shutil.rmtree(folder)


if __name__ == "__main__":
    sys.exit(main())

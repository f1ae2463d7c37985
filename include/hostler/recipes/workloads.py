"""The registry of training recipes, and the orders that start one on the nodes of a gang."""

import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from hostler.model.lease import Job, Lease, Node
from hostler.model.request import NodeRequest
from hostler.reach.port import JobOrder
from hostler.recipes.files import package_files
from hostler.recipes.options import Option

SCRIPT: Final = "script"
MASTER_PORTS: Final = range(20_000, 32_768)
"""Above well-known services, below the ports that Linux lends to outgoing connections (32768 and up by default)."""

_PYTHON: Final = '"${HOSTLER_HOME:-/opt/hostler}/venv/bin/python"'
_OPTION_NAME: Final = re.compile(r"[a-z][a-z0-9_]{0,62}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """A training program we bring.

    Attributes:
        command: shell command line for a request, run once on each node. packages: (Python package, folder in the code folder).
        options: name -> what is allowed. needs_torch: setup installs PyTorch too.
    """

    command: Callable[[NodeRequest], str]
    packages: tuple[tuple[str, str], ...] = ()
    options: Mapping[str, Option]
    needs_torch: bool = False


_COMMON: Final = {
    "epochs": Option(default=12, minimum=1, maximum=1_000_000, is_whole=True, what="Passes over the data."),
    "steps": Option(default=0, minimum=0, maximum=1_000_000_000, is_whole=True, what="Steps in all; 0: as `epochs` says."),
    "batch_size": Option(
        default=64, minimum=1, maximum=1_000_000, is_whole=True, what="Samples of one step, over the whole gang."
    ),
    "hidden_size": Option(default=64, minimum=1, maximum=65_536, is_whole=True, what="Width of the hidden layer."),
    "learning_rate": Option(default=0.15, minimum=1e-9, maximum=100, what="Length of a step."),
    "seed": Option(default=7, minimum=0, maximum=2**31 - 1, is_whole=True, what="Same seed and gang size: same weights."),
    "step_delay_s": Option(default=0, minimum=0, maximum=3600, what="Seconds that each step takes longer."),
    "join_s": Option(default=300, minimum=1, maximum=86_400, what="Longest wait for the gang to come together."),
    "answer_s": Option(default=60, minimum=1, maximum=86_400, what="Longest wait for another node in a step."),
}


def _digits(_request: NodeRequest) -> str:
    return f'cd "$HOSTLER_CODE_DIR" && exec {_PYTHON} -m digits.train'


def _torch_ddp(request: NodeRequest) -> str:
    processes = dict(request.recipe_options).get("processes_per_node") or str(request.accelerators_per_node)
    return (
        f'cd "$HOSTLER_CODE_DIR" && exec {_PYTHON} -m torch.distributed.run --nnodes="$NNODES" --node-rank="$NODE_RANK"'
        f' --nproc-per-node={processes} --master-addr="$MASTER_ADDR" --master-port="$MASTER_PORT" torch_ddp/train.py'
    )


RECIPES: Final[Mapping[str, Recipe]] = {
    "digits": Recipe(command=_digits, packages=(("hostler.recipes.training.digits", "digits"),), options=_COMMON),
    "torch-ddp": Recipe(
        command=_torch_ddp,
        packages=(("hostler.recipes.training.torch_ddp", "torch_ddp"),),
        options={
            **_COMMON,
            "learning_rate": Option(default=0.004, minimum=1e-9, maximum=100, what="Length of a step."),
            "precision": Option(default="auto", choices=("auto", "bf16", "fp16", "fp32"), what="Number format of the network."),
            "processes_per_node": Option(
                default="", minimum=1, maximum=64, is_whole=True, what="Processes of a node; empty: one an accelerator."
            ),
        },
        needs_torch=True,
    ),
}
"""Name -> recipe; ``script`` is not here, it brings nothing."""


def recipe_names() -> tuple[str, ...]:
    """Returns the names a request may use, sorted."""
    return tuple(sorted((*RECIPES, SCRIPT)))


def check(request: NodeRequest) -> list[tuple[str, str]]:
    """Returns what is wrong with the request's workload as (field, message naming what is allowed); empty: nothing."""
    if request.recipe not in recipe_names():
        return [("recipe", f"unknown recipe {request.recipe!r}; allowed: {', '.join(recipe_names())}")]
    problems: list[tuple[str, str]] = []
    if request.recipe == SCRIPT and not (request.script or "").strip():
        problems.append(("script", "recipe `script` needs the command line to run"))
    if request.recipe != SCRIPT and request.script is not None:
        problems.append(("script", f"only with recipe `script`, this is recipe {request.recipe!r}"))
    return problems + [("recipe_options", message) for message in _option_problems(request)]


def _option_problems(request: NodeRequest) -> list[str]:
    if request.recipe == SCRIPT:
        names = [name for name, _ in request.recipe_options if not _OPTION_NAME.fullmatch(name)]
        return [f"{name!r}: allowed are lower-case letters, digits and _, beginning with a letter" for name in names]
    options = RECIPES[request.recipe].options
    problems = []
    for name, text in request.recipe_options:
        if name not in options:
            problems.append(f"unknown option {name!r} of recipe {request.recipe!r}; allowed: {', '.join(sorted(options))}")
        elif problem := options[name].problem(text):
            problems.append(f"{name}: {problem}")
    return problems


def master_port_for(job_id: str) -> int:
    """Returns the port that rank 0 of a job listens on: the same for all ranks, seldom that of another job."""
    return MASTER_PORTS[int.from_bytes(hashlib.sha256(job_id.encode()).digest()[:8], "big") % len(MASTER_PORTS)]


def orders_for(lease: Lease, job: Job, nodes: Sequence[Node]) -> tuple[JobOrder, ...]:
    """Returns the orders of a job's nodes, in rank order.

    Secrets and the dead man's switch are not in them: the lifecycle adds both at the last moment.

    Args:
        nodes: at least those that the job names; the order does not matter.

    Raises:
        ValueError: a node of the job is not among ``nodes`` or has no address yet. Ask again when all are there.
    """
    by_name = {node.node_name: node for node in nodes}
    absent = [name for name in job.node_names if name not in by_name or by_name[name].address is None]
    if absent:
        raise ValueError(f"job {job.job_id}: no address yet of {', '.join(absent)}")
    request = lease.request
    recipe = RECIPES.get(request.recipe)
    command = recipe.command(request) if recipe else f'cd "$HOSTLER_CODE_DIR" || exit 1\n{request.script}'
    files = {path: text for package, folder in (recipe.packages if recipe else ()) for path, text in _files(package, folder)}
    return tuple(
        JobOrder(
            job_id=job.job_id,
            attempt_token=job.attempt_token,
            argv=("sh", "-c", command),
            env=_environment(lease),
            files=files,
            rank=rank,
            world_size=len(job.node_names),
            master_host=by_name[job.node_names[0]].address or "",
            master_port=master_port_for(job.job_id),
            restore_step=job.resumed_from_step or None,
        )
        for rank in range(len(job.node_names))
    )


def _files(package: str, folder: str) -> list[tuple[str, bytes]]:
    return list(package_files(package, folder).items())


def _environment(lease: Lease) -> dict[str, str]:
    """Returns what a job is told beside its place in the gang, which the agent knows."""
    request = lease.request
    uris = {"HOSTLER_CODE_URI": request.code_uri, "HOSTLER_DATA_URI": request.data_uri}
    return {
        "HOSTLER_LEASE_ID": lease.lease_id,
        "HOSTLER_CHECKPOINT_INTERVAL_STEPS": str(request.checkpoint_interval_steps),
        "HOSTLER_ACCELERATORS": str(request.accelerators_per_node),
        **{name: uri for name, uri in uris.items() if uri},
        **{f"HOSTLER_OPTION_{name.upper()}": text for name, text in request.recipe_options},
    }


def setup_options(lease: Lease) -> Mapping[str, str]:
    """Returns the options of the setup of the lease's nodes (``hostler.recipes.setup.options``)."""
    recipe = RECIPES.get(lease.request.recipe)
    return {
        "accelerator": lease.request.accelerator,
        "accelerator_count": str(lease.request.accelerators_per_node),
        "torch": "true" if recipe and recipe.needs_torch else "false",
    }

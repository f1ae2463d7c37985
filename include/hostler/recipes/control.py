"""What the lifecycle asks of nodes, over any transport: puts the agent there and gives it orders (``reach.port.NodeControl``).

Orders go in by standard input, answers come out as one JSON document. Every call may be repeated.
"""

import asyncio
import base64
import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from hostler.model.lease import Node
from hostler.reach.port import (
    BackupTarget,
    CommandResult,
    JobOrder,
    JobStatus,
    LoadRecord,
    ReachError,
    ShippedObject,
    Target,
    Transport,
    target_of,
)
from hostler.recipes import answers, files
from hostler.recipes.agent.build import agent_name, build_agent
from hostler.recipes.answers import NodeAgentError

_HOME = '"${HOSTLER_HOME:-/opt/hostler}"'
_ABSENT = 45  # exit code of our own: the file that was to be run is not on the node
_MAKE_HOME = (
    f"mkdir -p {_HOME}/agent 2>/dev/null && [ -w {_HOME}/agent ] || "
    f'{{ sudo -n mkdir -p {_HOME} && sudo -n chown "$(id -u):$(id -g)" {_HOME} && mkdir -p {_HOME}/agent; }}'
)
SETUP_ARGV = ("python3", "setup.py")

SetupFiles = Callable[[Mapping[str, str]], Mapping[str, bytes]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlTimes:
    """How long things may take, in seconds.

    Attributes:
        answer_s: an agent's answer to a question. put_s: putting a file there. probe_s: the probe's whole run.
        checkpoint_wait_s: how long ``stop_job`` waits for the checkpoint it asked for; term_wait_s: then for the job to end
            by itself. Both together stay well below the lifecycle's own time-out of a call.
        flush_s: shipping what is left.
        first_expiry_s: the dead man's switch of a node on which no job was started yet.
        abandoned_after_s: a node whose last job has ended powers itself off after this long without a word from us. Above the
            longest pause between two calls, above the longest time that nodes are kept.
    """

    answer_s: float = 30
    put_s: float = 60
    probe_s: float = 45
    checkpoint_wait_s: float = 30
    term_wait_s: float = 10
    flush_s: float = 600
    first_expiry_s: float = 4 * 3600
    abandoned_after_s: float = 6 * 3600


class SshNodeControl:
    """Implements NodeControl, NodeLogs and NodeLoad.

    Args:
        setup_files: the setup recipe's files for its options; path -> content, started as ``python3 setup.py``.
        probe_file: gives the probe, one self-contained file.
        jumps: jump host by cloud, for clouds whose nodes are reached through one.
    """

    def __init__(
        self,
        transport: Transport,
        *,
        setup_files: SetupFiles = files.setup_files,
        probe_file: Callable[[], bytes] = files.probe_file,
        times: ControlTimes | None = None,
        jumps: Mapping[str, Target] | None = None,
    ) -> None:
        self._transport = transport
        self._setup_files = setup_files
        self._probe_file = probe_file
        self._times = times or ControlTimes()
        self._jumps = jumps or {}

    def _target(self, node: Node) -> Target:
        return replace(target_of(node), through=self._jumps.get(node.offering.cloud))

    async def is_up(self, node: Node) -> bool:
        """True when the node answers with its pinned host key. False (never an error) when it does not."""
        try:
            result = await self._transport.run(self._target(node), "true", timeout_s=self._times.answer_s)
        except ReachError:
            return False
        return result.exit_code == 0

    async def start_setup(self, node: Node, job_id: str, options: Mapping[str, str]) -> JobStatus:
        """Puts the agent there, then starts the setup recipe as its job ``job_id``; re-attaches when it is there already."""
        order = {
            "job_id": job_id,
            "lease_id": node.lease_id,
            "attempt_token": job_id,
            "argv": list(SETUP_ARGV),
            "files": _encoded(await asyncio.to_thread(self._setup_files, options)),
            "may_resume": True,
            "configure": {**self._whose(node), "first_expires_in_s": self._times.first_expiry_s},
        }
        return answers.job_status(await self._ask(node, "start", order))

    async def poll_setup(self, node: Node, job_id: str) -> JobStatus:
        """Returns the setup's status. A setup that a reboot ended, or that asked to be started again, goes on."""
        found = await self._ask(node, "status", {"job_id": job_id})
        if found.get("may_resume"):
            found = await self._ask(node, "resume", {"job_id": job_id})
        return answers.job_status(found)

    async def probe(self, node: Node) -> Mapping[str, Any]:
        """Returns the probe's document, version 1; one that says ``unknown`` and why when the probe gave none."""
        content = await asyncio.to_thread(self._probe_file)
        name = f"probe-{hashlib.sha256(content).hexdigest()[:16]}.py"
        result = await self._run(node, name, "", lambda: content, stdin=None, timeout_s=self._times.probe_s)
        return answers.probe_document(result)

    async def start_job(self, node: Node, order: JobOrder, backup: BackupTarget | None) -> JobStatus:
        """Starts the job, or re-attaches to it."""
        document = {
            "job_id": order.job_id,
            "lease_id": node.lease_id,
            "attempt_token": order.attempt_token,
            "argv": list(order.argv),
            "env": dict(order.env),
            "secrets": dict(order.secrets),
            "files": _encoded(order.files),
            "rank": order.rank,
            "world_size": order.world_size,
            "master_host": order.master_host,
            "master_port": order.master_port,
            "restore_step": order.restore_step,
            "expires_in_s": order.expires_in_s,
            "configure": {**self._whose(node), **({"backup": _target(backup)} if backup else {})},
        }
        return answers.job_status(await self._ask(node, "start", document))

    async def poll_job(self, node: Node, job_id: str) -> JobStatus:
        """Returns the job's status; state ``missing`` when the node knows no such job."""
        return answers.job_status(await self._ask(node, "status", {"job_id": job_id}))

    async def stop_job(self, node: Node, job_id: str, attempt_token: str, *, checkpoint: bool) -> JobStatus:
        """Asks for a checkpoint when wanted, then ends the job. A token of another attempt changes nothing."""
        times = self._times
        order = {
            "job_id": job_id,
            "attempt_token": attempt_token,
            "checkpoint": checkpoint,
            "checkpoint_wait_s": times.checkpoint_wait_s,
            "term_wait_s": times.term_wait_s,
        }
        wait_s = times.checkpoint_wait_s + times.term_wait_s + times.answer_s
        return answers.job_status(await self._ask(node, "stop", order, wait_s))

    async def flush(self, node: Node, lease_id: str) -> Sequence[ShippedObject]:
        """Ships what is not yet shipped and returns all objects of this node, by key.

        Raises:
            NodeAgentError: the node answered, but not all could be shipped; again later.
        """
        found = await self._ask(node, "flush", {"lease_id": lease_id}, self._times.flush_s)
        if found.get("error"):
            raise NodeAgentError(f"{node.node_name}: not all was shipped: {found['error']}")
        return answers.shipped_objects(found)

    async def renew(self, node: Node, expires_in_s: float) -> None:
        """Sets the dead man's switch anew."""
        await self._ask(node, "renew", {"expires_in_s": expires_in_s})

    async def read_log(self, node: Node, job_id: str, offset: int) -> tuple[bytes, int]:
        """Returns log bytes from ``offset`` on and the next offset. Raises ReachError."""
        return answers.log_piece(await self._ask(node, "log", {"job_id": job_id, "offset": offset}))

    async def read_load(self, node: Node, window_s: float) -> LoadRecord:
        """Returns the samples of the last ``window_s`` seconds. Raises ReachError."""
        return answers.load_record(await self._ask(node, "load", {"window_s": window_s}))

    async def close(self) -> None:
        """Closes connections."""
        await self._transport.close()

    async def _ask(
        self, node: Node, command: str, order: Mapping[str, Any], timeout_s: float | None = None
    ) -> Mapping[str, Any]:
        stdin = json.dumps(order).encode()
        wait_s = timeout_s or self._times.answer_s
        result = await self._run(node, agent_name(), command, build_agent, stdin=stdin, timeout_s=wait_s)
        return answers.agent_result(node.node_name, result)

    def _whose(self, node: Node) -> dict[str, Any]:
        return {
            "lease_id": node.lease_id,
            "node_name": node.node_name,
            "abandoned_after_s": self._times.abandoned_after_s,
        }

    async def _run(
        self, node: Node, name: str, words: str, content: Callable[[], bytes], *, stdin: bytes | None, timeout_s: float
    ) -> CommandResult:
        """Runs one of our files on the node; puts it there first when it is missing (its name tells its content)."""
        target = self._target(node)
        path = f"{_HOME}/agent/{name}"
        command = f"[ -f {path} ] || exit {_ABSENT}; exec python3 {path} {words}".rstrip()
        result = await self._transport.run(target, command, timeout_s=timeout_s, stdin=stdin)
        if result.exit_code == _ABSENT:
            await self._put(target, f"$HOSTLER_HOME/agent/{name}", content())
            result = await self._transport.run(target, command, timeout_s=timeout_s, stdin=stdin)
        return result

    async def _put(self, target: Target, path: str, content: bytes) -> None:
        made = await self._transport.run(target, _MAKE_HOME, timeout_s=self._times.answer_s)
        if made.exit_code != 0:
            raise NodeAgentError(f"{target.host}: no folder of ours can be made: {made.stderr.strip()[-300:]}")
        await self._transport.put(target, content, path, mode=0o600, timeout_s=self._times.put_s)


def _target(backup: BackupTarget) -> dict[str, Any]:
    return {
        "uri": backup.uri,
        "data_key": base64.b64encode(backup.data_key).decode(),
        "key_id": backup.key_id,
        "endpoint_url": backup.endpoint_url,
        "region": backup.region,
    }


def _encoded(files: Mapping[str, bytes]) -> dict[str, str]:
    return {path: base64.b64encode(content).decode() for path, content in files.items()}

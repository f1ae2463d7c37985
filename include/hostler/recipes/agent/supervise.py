"""The supervisor: one process a job. Stages, restores, starts, watches, stops; writes down how it ended."""

from __future__ import annotations

import base64
import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from typing import IO, Any, Callable

from hostler.recipes.agent import jobs, processes, restore, staging
from hostler.recipes.agent.layout import (
    JobFolder,
    NodeHome,
    private_folder,
    read_json,
    stamp,
    write_json,
    write_whole,
)
from hostler.recipes.agent.logs import LogWriter
from hostler.recipes.agent.report import MetricsFollower

_TICK_S = 0.2
_BEAT_S = 1.0
_DRAIN_S = 5.0
_READ_BYTES = 65536
_LAST_WISH = {"checkpoint": True, "checkpoint_wait_s": 15.0, "term_wait_s": 5.0}  # a shutdown waits for 90 s at most
_NOT_FOR_JOBS = ("HOSTLER_AGENT_PYTHON",)


class Supervisor:
    """Runs one job to its end.

    Args:
        handed: ``secrets`` (environment of the job, kept in memory only) and ``files`` (path -> base64).
    """

    def __init__(self, home: NodeHome, folder: JobFolder, handed: dict[str, Any]) -> None:
        self._home = home
        self._folder = folder
        self._handed = handed
        self._order = read_json(folder.order_file) or {}
        self._log = LogWriter(folder.logs)
        self._log_lock = threading.Lock()
        self._metrics = MetricsFollower(folder.metrics_file)
        self._process: subprocess.Popen[bytes] | None = None
        self._beaten_at = float("-inf")
        self._is_going_down = False
        self._signs: tuple[object, ...] = ()

    def run(self) -> None:
        """Runs the job; every way to end is written down."""
        try:
            self._set_state("starting")
            self._prepare()
            self._process = self._start()
            write_json(self._folder.process_file, processes.identity(self._process.pid))
            pump = threading.Thread(target=self._pump, args=(self._process.stdout,), daemon=True)
            pump.start()
            self._set_state("running")
            was_stopped = self._watch()
            self._finish(pump, was_stopped=was_stopped)
        except Exception as error:  # noqa: BLE001 - whatever it is, the job has failed and the reason must be on record
            self._kill_all(0)
            self._say(f"[hostler] {error}")
            self._set_state("failed", error=f"{type(error).__name__}: {str(error)[:500]}")
        finally:
            self._log.close()

    def go_down(self) -> None:
        """The node is shutting down: nobody else asks a supervisor to end."""
        self._is_going_down = True

    def _prepare(self) -> None:
        for path in (self._folder.code, self._folder.checkpoints, self._folder.output, self._data_folder()):
            private_folder(path)
        staging.stage(self._order.get("env") or {}, self._home.node().get("backup"), self._folder.code, self._data_folder())
        for name, text in self._handed.get("files", {}).items():
            path = jobs.code_file(self._folder, name)
            write_whole(path, base64.b64decode(text), mode=0o700, is_durable=False)
        self._handed.pop("files", None)
        if self._order.get("restore_step") is not None:
            restore.restore_step(self._home, self._folder, self._order)
            self._say(f"[hostler] checkpoint of step {self._order['restore_step']} restored")

    def _data_folder(self) -> Any:
        return self._home.root / "data" / str(self._order.get("lease_id"))

    def _start(self) -> subprocess.Popen[bytes]:
        environment = self._environment()
        argv = [str(word) for word in self._order["argv"]]
        try:
            return subprocess.Popen(
                argv,
                cwd=str(self._folder.code),
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        finally:
            self._handed.clear()

    def _environment(self) -> dict[str, str]:
        made = {name: value for name, value in os.environ.items() if name not in _NOT_FOR_JOBS}
        tools = self._home.root / "venv" / "bin"
        if tools.is_dir():  # what the setup recipe installed goes before the system's
            made["PATH"] = "{}:{}".format(tools, made.get("PATH", "/usr/local/bin:/usr/bin:/bin"))
        made.update(self._order.get("env") or {})
        rank, count = str(self._order["rank"]), str(self._order["world_size"])
        made.update(
            HOSTLER_HOME=str(self._home.root),
            HOSTLER_CODE_DIR=str(self._folder.code),
            HOSTLER_DATA_DIR=str(self._data_folder()),
            HOSTLER_CHECKPOINT_DIR=str(self._folder.checkpoints),
            HOSTLER_OUTPUT_DIR=str(self._folder.output),
            HOSTLER_METRICS_FILE=str(self._folder.metrics_file),
            HOSTLER_JOB_ID=self._folder.job_id,
            HOSTLER_LEASE_ID=str(self._order["lease_id"]),
            RANK=rank,
            NODE_RANK=rank,
            LOCAL_RANK="0",
            WORLD_SIZE=count,
            NNODES=count,
            MASTER_ADDR=str(self._order.get("master_host") or "127.0.0.1"),
            MASTER_PORT=str(self._order["master_port"]),
        )
        made.update(self._handed.get("secrets", {}))
        return made

    def _watch(self) -> bool:
        """Waits for the job's end; True when it was stopped by order."""
        process = self._running()
        while process.poll() is None:
            self._tick()
            wish = _LAST_WISH if self._is_going_down else read_json(self._folder.stop_file)
            if wish is not None:
                self._stop(wish)
                return True
            time.sleep(_TICK_S)
        return False

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            raise RuntimeError("the job was not started")
        return self._process

    def _tick(self) -> None:
        self._metrics.follow()
        if self._folder.checkpoint_request.exists():
            with contextlib.suppress(FileNotFoundError):
                self._folder.checkpoint_request.unlink()
            self._ask_for_checkpoint()
        with self._log_lock:
            if self._folder.rotate_request.exists():
                self._log.rotate()
                with contextlib.suppress(FileNotFoundError):
                    self._folder.rotate_request.unlink()
            self._log.rotate_when_due()
        self._beat()

    def _beat(self, *, at_end: bool = False) -> None:
        """Writes the heartbeat when the job shows life: output, metrics or checkpoints that grow. A workload that never
        reports metrics may be silent for long and well: there, being alive is enough.
        """
        if not at_end and time.monotonic() - self._beaten_at < _BEAT_S:
            return
        signs = (self._log.offset, self._metrics.report["lines"], _changed_at(self._folder))
        if signs == self._signs and self._metrics.report["lines"]:
            return
        self._signs, self._beaten_at = signs, time.monotonic()
        with contextlib.suppress(OSError):  # no room on the disk: the heartbeat goes stale, the job goes on
            write_json(self._folder.report_file, self._metrics.report, is_durable=False)
            write_json(self._folder.heartbeat_file, stamp(), is_durable=False)

    def _members(self) -> set[int]:
        # The group's id is ours until the process was waited for; the marker finds the rest, before and after.
        process = self._process
        group = process.pid if process is not None and process.returncode is None else None
        return processes.members(group, jobs.marker(self._folder))

    def _ask_for_checkpoint(self) -> bool:
        """Signals those that listen; the others would die of it. Returns whether anybody listens."""
        listeners = {pid for pid in self._members() if processes.catches(pid, signal.SIGUSR1)}
        processes.send(listeners, signal.SIGUSR1)
        return bool(listeners)

    def _stop(self, wish: dict[str, Any]) -> None:
        process = self._running()
        before = {step for step, _ in self._folder.steps()}
        if wish.get("checkpoint") and self._ask_for_checkpoint():
            self._wait(
                float(wish["checkpoint_wait_s"]),
                lambda: process.poll() is not None or any(step not in before for step, _ in self._folder.steps()),
            )
        self._kill_all(float(wish["term_wait_s"]))

    def _wait(self, most_s: float, is_done: Callable[[], bool]) -> None:
        deadline = time.monotonic() + most_s
        while not is_done() and time.monotonic() < deadline:
            self._tick()
            time.sleep(_TICK_S / 2)

    def _kill_all(self, grace_s: float) -> None:
        process = self._process
        tick: Callable[[], object] = process.poll if process is not None else (lambda: None)
        if not processes.end(self._members, grace_s=grace_s, tick=tick):
            self._say("[hostler] some processes of the job outlived SIGKILL: they hang in the kernel")

    def _finish(self, pump: threading.Thread, *, was_stopped: bool) -> None:
        process = self._running()
        process.wait()
        self._kill_all(0)
        pump.join(_DRAIN_S)
        while self._metrics.follow():
            pass
        self._metrics.follow(at_end=True)
        self._beat(at_end=True)
        write_json(self._folder.report_file, self._metrics.report)
        code = process.returncode
        if self._is_going_down:
            # A workload that was asked to end may well exit with 0: it has not done its work for that.
            self._set_state("failed", exit_code=code, error=jobs.SHUT_DOWN)
        elif was_stopped:
            self._set_state("stopped", exit_code=code)
        elif code == 0:
            self._set_state("succeeded", exit_code=0)
        else:
            self._set_state("failed", exit_code=code, error=_how(code))

    def _pump(self, source: IO[bytes]) -> None:
        while True:
            data = os.read(source.fileno(), _READ_BYTES)
            if not data:
                return
            with self._log_lock:
                self._log.write(data)

    def _say(self, text: str) -> None:
        with self._log_lock:
            self._log.write(text.encode() + b"\n")

    def _set_state(self, state: str, *, exit_code: int | None = None, error: str | None = None) -> None:
        if state in jobs.FINAL:
            with self._log_lock:
                self._log.close()
        write_json(self._folder.state_file, {"state": state, "exit_code": exit_code, "error": error, "at": stamp()})


def _changed_at(folder: JobFolder) -> int:
    try:
        return folder.checkpoints.stat().st_mtime_ns
    except OSError:
        return 0


def _how(code: int) -> str:
    if code < 0:
        try:
            return f"ended by signal {signal.Signals(-code).name}"
        except ValueError:
            return f"ended by signal {-code}"
    return f"ended with exit code {code}"


def main(home: NodeHome, job_id: str, handed: dict[str, Any]) -> None:
    """Entry of the supervisor's process: tells its starter that it is up, lets go of its pipes, runs the job."""
    folder = home.job(job_id)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    write_json(folder.supervisor_file, processes.identity(os.getpid()))
    supervisor = Supervisor(home, folder, handed)
    signal.signal(signal.SIGTERM, lambda *_: supervisor.go_down())
    os.write(sys.stdout.fileno(), b"+")
    nothing = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1):
        os.dup2(nothing, number)
    supervisor.run()

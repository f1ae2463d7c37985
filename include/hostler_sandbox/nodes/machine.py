"""One node: its folder, its power, its boot, its faults. Lives in the runtime's event loop; not for other threads."""

import asyncio
import contextlib
import json
import os
import resource
import shutil
import signal
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import asyncssh

from hostler_sandbox.nodes import cloud_init, commands, hardware, layout, processes
from hostler_sandbox.nodes.cloud_init import CloudConfig, User
from hostler_sandbox.nodes.commands import Finished, Place
from hostler_sandbox.nodes.guest.interpreter import make_python
from hostler_sandbox.nodes.guest.state import FACTS_FILE, NodeState
from hostler_sandbox.nodes.metadata import Metadata
from hostler_sandbox.nodes.ssh_server import NodeSsh, listening_socket
from hostler_sandbox.nodes_port import BootError, NodeSpec

_REBOOT_S: Final = 0.6
_GRACE_STEPS: Final = 20
_GRACE_STEP_S: Final = 0.05
_INIT_STEP_S: Final = 300
_OS_RELEASE: Final = """PRETTY_NAME="Ubuntu 24.04.3 LTS"
NAME="Ubuntu"
VERSION_ID="24.04"
VERSION="24.04.3 LTS (Noble Numbat)"
VERSION_CODENAME=noble
ID=ubuntu
ID_LIKE=debian
UBUNTU_CODENAME=noble
VARIANT="simulated by hostler_sandbox"
"""
_MOTD: Final = "*** {node_id}: a simulated node of the Hostler sandbox. No figure it shows is a real machine's. ***\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """What all nodes of a runtime share.

    Attributes:
        shared: folder with the stand-in ``tool`` and the ``host`` links.
        nvml_library: the built NVML library; None when the sandbox runs without one.
        python_sources: site folders that ``pip`` on a node links from.
    """

    folder: Path
    shared: Path
    metadata_port: int
    nvml_library: Path | None
    python_sources: tuple[str, ...]


class Machine:
    """A node from boot to termination. ``on_power_off`` is told when the guest powered itself off."""

    def __init__(self, spec: NodeSpec, site: Site, on_power_off: Callable[[str], Awaitable[None]]) -> None:
        self.spec = spec
        self._site = site
        self._on_power_off = on_power_off
        self.state = NodeState(site.folder / spec.node_id)
        self.mark = processes.new_mark()
        self.hostname = spec.hostname or f"ip-{spec.address.replace('.', '-')}"
        self.metadata = Metadata(spec, self._power_button)
        self._config = CloudConfig()
        self.ssh = NodeSsh(address=spec.address, port=spec.ssh_port, place=self.place, users=self._users)
        self.is_on = False
        self.is_cut = False
        self.is_frozen = False
        self._finishing: asyncio.Task[None] | None = None
        self._later: asyncio.TimerHandle | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    def place(self) -> Place:
        """Returns where the node's commands run now."""
        url = f"http://{self.spec.address}:{self._site.metadata_port}"
        root = self.state.root
        environment = layout.environment(
            root, node_id=self.spec.node_id, shared=self._site.shared, hostname=self.hostname, metadata_url=url
        )
        return Place(root=root, mark=self.mark, environment=environment, is_disk_full=self.state.read().get("disk.full") == "1")

    def _users(self) -> Mapping[str, User]:
        return {user.name: user for user in self._config.users}

    def create(self) -> None:
        """Makes the node's disk from its image. Raises BootError for an unknown image or accelerator."""
        values = hardware.first_state(self.spec)
        root = self.state.root
        root.mkdir(parents=True)
        motd = _MOTD.format(node_id=self.spec.node_id)
        layout.make_root(root, shared=self._site.shared, hostname=self.hostname, os_release=_OS_RELEASE, motd=motd)
        base = layout.base_python()
        make_python(root, base, is_managed=self.spec.image == "bare")
        facts = {
            "node_id": self.spec.node_id,
            "address": self.spec.address,
            "mark": self.mark,
            "hostname": self.hostname,
            "metadata_port": self._site.metadata_port,
            "python_sources": self._site.python_sources,
            "tool": str(self._site.shared / "tool"),
            "nvml_library": str(self._site.nvml_library) if self._site.nvml_library else None,
        }
        (self.state.folder / FACTS_FILE).write_text(json.dumps(facts), encoding="utf-8")
        self.state.write(values)
        hardware.install_image(self.state, self.spec)
        self._config = cloud_init.parse(self.spec.user_data, key_pair=self.spec.authorized_key)

    async def power_on(self, *, is_first: bool, silence_s: float = 0.0) -> None:
        """Starts the machine; returns when SSH accepts (after ``silence_s`` more), user data may go on running.

        Raises:
            BootError: its address and port are taken, or its host key cannot be read.
        """
        try:
            await self.metadata.open(listening_socket(self.spec.address, self._site.metadata_port))
        except OSError as error:
            raise BootError(f"address: {self.spec.address}: {error.strerror}") from error
        self.is_on = True
        hardware.power_on(self.state)
        if self.spec.boot_fails:
            self.state.log_kernel("Kernel panic - not syncing: VFS: Unable to mount root fs (simulated)")
            return
        await asyncio.sleep(silence_s)
        log = await self._start_up(is_first=is_first)
        self._finishing = asyncio.get_running_loop().create_task(self._finish(log, is_first=is_first))

    async def _start_up(self, *, is_first: bool) -> list[str]:
        """The part of the boot before SSH opens."""
        log = [f"cloud-init: {warning}" for warning in self._config.warnings]
        log += [await self._init_step(command) for command in self._config.boot_commands]
        if is_first:
            self._apply_users()
            cloud_init.write_files(self._config, self.state.root)
        try:
            self.ssh.set_host_key(self._host_key())
            if not self.is_cut:
                self.ssh.open()
        except (OSError, asyncssh.KeyImportError) as error:
            raise BootError(f"{self.spec.node_id}: SSH cannot start: {type(error).__name__}") from error
        return log

    async def _finish(self, log: list[str], *, is_first: bool) -> None:
        """The part of the boot after SSH opens: packages and ``runcmd``, at first boot only."""
        if is_first:
            if self._config.packages:
                names = " ".join(self._config.packages)
                log.append(await self._init_step(f"apt-get update && apt-get install -y {names}"))
            log += [await self._init_step(command) for command in self._config.run_commands]
        for script in sorted((self.state.root / "var/lib/cloud/scripts/per-boot").glob("*")):
            if os.access(script, os.X_OK):
                log.append(await self._init_step(script.read_text(encoding="utf-8")))
        path = self.state.root / "var/log/cloud-init-output.log"
        with path.open("a", encoding="utf-8") as output:
            output.writelines(f"{line}\n" for line in log)
        finished = self.state.root / "var/lib/cloud/instance/boot-finished"
        finished.parent.mkdir(parents=True, exist_ok=True)
        finished.write_text("finished\n", encoding="utf-8")

    async def _init_step(self, command: str) -> str:
        """Runs one cloud-init command; a failure is logged and the boot goes on, as on a real machine."""
        text = cloud_init.for_guest(command, self.state.root)
        if text.startswith("#!"):
            script = self.state.root / "var/lib/cloud/user-data-script"
            script.parent.mkdir(parents=True, exist_ok=True)
            script.write_text(text, encoding="utf-8")
            script.chmod(0o700)
            text = str(script)
        try:
            ended = await commands.run(self.place(), text, timeout_s=_INIT_STEP_S)
        except TimeoutError:
            return "cloud-init: a command did not end in time"
        return f"{(ended.stdout + ended.stderr).decode('utf-8', 'replace')}exit {ended.exit_code}"

    def _apply_users(self) -> None:
        passwd = ["root:x:0:0:root:/root:/bin/bash"]
        passwd += [f"{user.name}:x:{1000 + place}:{1000 + place}::/home/{user.name}:/bin/bash"
                   for place, user in enumerate(self._config.users) if user.name != "root"]  # fmt: skip
        (self.state.root / "etc/passwd").write_text("\n".join(passwd) + "\n", encoding="utf-8")
        sudoers = [user.name for user in self._config.users if user.sudo or user.name == "root"]
        (self.state.root / "etc/sudoers").write_text(
            "".join(f"{name} ALL=(ALL) NOPASSWD:ALL\n" for name in sudoers), encoding="utf-8"
        )

    def _host_key(self) -> asyncssh.SSHKey:
        """The key from user data, else the one made at first boot."""
        path = self.state.root / "etc/ssh/ssh_host_ed25519_key"
        if self._config.host_key:
            key = asyncssh.import_private_key(self._config.host_key)
        elif path.exists():
            key = asyncssh.read_private_key(path)
        else:
            key = asyncssh.generate_private_key("ssh-ed25519")
        path.write_bytes(key.export_private_key("openssh"))
        path.chmod(0o600)
        path.with_suffix(".pub").write_bytes(key.export_public_key("openssh"))
        return key

    async def power_off(self) -> None:
        """Cuts the power: ports closed, every process ended. The disk stays."""
        await self.close_ports()
        await asyncio.to_thread(processes.end_all, (self.mark,))

    async def close_ports(self) -> None:
        """First half of ``power_off``; the caller ends the processes."""
        self.is_on = self.is_frozen = False
        for pending in (self._later, self._finishing):
            if pending and pending is not asyncio.current_task():
                pending.cancel()
        self._later = None
        await self.ssh.cut()
        await self.metadata.close()

    async def erase(self) -> None:
        """Deletes the disk; call after ``power_off``."""
        await asyncio.to_thread(shutil.rmtree, self.state.folder, ignore_errors=True)

    async def run(self, command: str, timeout_s: float) -> Finished:
        """Runs a command as root. Raises TimeoutError, also when the node is frozen or off: nobody is there to answer."""
        if not self.is_on or self.is_frozen:
            raise TimeoutError(f"{self.spec.node_id}: does not answer")
        return await commands.run(self.place(), command, timeout_s=timeout_s)

    async def freeze(self) -> None:
        """Stops every process and goes silent; ports stay open."""
        self.is_frozen = True
        await self.ssh.pause()
        await asyncio.to_thread(processes.pause, (self.mark,))

    async def thaw(self) -> None:
        """Undoes ``freeze``."""
        self.is_frozen = False
        await asyncio.to_thread(processes.resume, (self.mark,))
        if not self.is_cut:
            self.ssh.resume()

    async def cut_off(self) -> None:
        """Drops the node from the network as seen from outside: SSH refused, connections gone. Its processes go on."""
        self.is_cut = True
        await self.ssh.cut()

    async def mend(self) -> None:
        """Undoes ``cut_off``."""
        self.is_cut = False
        if self.is_on and not self.is_frozen:
            self.ssh.open()

    async def fill_disk(self, *, is_full: bool) -> None:
        """Fills or frees the disk: for all processes of the node, running or yet to start, no file can grow."""
        with self.state.change() as values:
            values["disk.full"] = str(int(is_full))
        for pid in processes.processes_of((self.mark,)):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                _, hard = resource.prlimit(pid, resource.RLIMIT_FSIZE)
                resource.prlimit(pid, resource.RLIMIT_FSIZE, (0 if is_full else hard, hard))

    async def _power_button(self, action: str, delay_s: float) -> None:
        """A program on the node asked: ``poweroff``, ``reboot`` or ``cancel``."""
        if self._later:
            self._later.cancel()
            self._later = None
        if action != "cancel":
            self._later = asyncio.get_running_loop().call_later(delay_s, self._press, action)

    def _press(self, action: str) -> None:
        work = self._guest_reboot() if action == "reboot" else self._guest_power_off()
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _guest_power_off(self) -> None:
        await self._ask_to_end()
        await self.power_off()
        await self._on_power_off(self.spec.node_id)

    async def _guest_reboot(self) -> None:
        await self._ask_to_end()
        await self.reboot()

    async def _ask_to_end(self) -> None:
        """What a system's shutdown does first: SIGTERM to all, and some time."""
        asked = await asyncio.to_thread(processes.processes_of, (self.mark,))
        processes.send(asked, signal.SIGTERM)
        for _ in range(_GRACE_STEPS):
            if not await asyncio.to_thread(processes.processes_of, (self.mark,)):
                return
            await asyncio.sleep(_GRACE_STEP_S)

    async def reboot(self) -> None:
        """Power off, a moment of silence, power on."""
        await self.power_off()
        await self.power_on(is_first=False, silence_s=_REBOOT_S)

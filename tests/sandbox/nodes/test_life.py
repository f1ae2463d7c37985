import asyncio
import time
from pathlib import Path

import asyncssh
import pytest

from hostler_sandbox.nodes import processes
from hostler_sandbox.nodes.runtime import SshNodes

DAEMONS = """
setsid sleep 4711 >/dev/null 2>&1 </dev/null &
(cd / && env -i setsid sleep 4712) >/dev/null 2>&1 </dev/null &
nohup sh -c 'trap "" TERM HUP; sleep 4713; true' >/dev/null 2>&1 </dev/null &
(cd / && exec env -i /bin/sh -c 'exec /bin/sleep 4714') >/dev/null 2>&1 </dev/null &
echo started
"""
BEATING = """
(while :; do date +%s%N > ~/beat; sleep 0.02; done) >/dev/null 2>&1 </dev/null &
while [ ! -s ~/beat ]; do sleep 0.02; done
"""


def sleepers(*seconds: int) -> list[str]:
    """The machine's processes with these arguments, whoever owns them."""
    wanted = {f"sleep\0{number}\0".encode() for number in seconds}
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes()
        except OSError:
            continue
        if any(words.endswith(one) for one in wanted):
            found.append(path.parent.name)
    return found


async def until(check, deadline_s=10.0):
    end = time.monotonic() + deadline_s
    while not await check():
        assert time.monotonic() < end, "not in time"
        await asyncio.sleep(0.02)


def test_kill_when_daemons_left_their_session_and_environment_then_no_process_is_left(boot, bench):
    node = boot()
    assert node.ok(DAEMONS) == "started\n"
    end = time.monotonic() + 10
    while len(sleepers(4711, 4712, 4713, 4714)) < 4:
        assert time.monotonic() < end, "the daemons did not start"
        time.sleep(0.02)
    folder = node.root.parent
    bench.runtime.kill(node.id)
    assert sleepers(4711, 4712, 4713, 4714) == []
    assert not folder.exists()
    bench.runtime.kill(node.id)


def test_kill_when_one_of_two_nodes_ends_then_the_other_goes_on(boot, bench):
    first, second = boot(), boot()
    first.ok("setsid sleep 4721 >/dev/null 2>&1 </dev/null & true")
    second.ok("(cd / && env -i setsid sleep 4722) >/dev/null 2>&1 </dev/null & true")
    bench.runtime.kill(first.id)
    assert sleepers(4721) == []
    assert len(sleepers(4722)) == 1


def test_two_nodes_when_up_at_once_then_neither_sees_the_others_files_or_state(boot):
    first = boot(accelerator_name="H100", accelerator_count=8, image="gpu")
    second = boot(accelerator_name="L4", accelerator_count=1, image="gpu")
    first.ok("echo mine > $HOSTLER_HOME/f; echo mine > ~/g")
    assert second.run("cat $HOSTLER_HOME/f || cat ~/g").exit_code != 0
    assert first.ok("nvidia-smi -L | wc -l").strip() == "8"
    assert second.ok("nvidia-smi -L").startswith("GPU 0: NVIDIA L4 ")
    first.fault("missing", gpu=3)
    assert first.ok("nvidia-smi -L | wc -l").strip() == "7"
    assert second.ok("nvidia-smi -L | wc -l").strip() == "1"


async def test_guest_power_off_when_asked_then_front_is_told_and_ports_close(boot, bench):
    node = boot()
    bench.told.clear()
    node.ok("setsid sleep 4731 >/dev/null 2>&1 </dev/null & sudo shutdown -h now")
    assert await asyncio.to_thread(bench.told.wait, 10)
    assert bench.powered_off[-1] == node.id
    assert sleepers(4731) == []
    with pytest.raises(ConnectionRefusedError):
        await node.connect()


def test_guest_power_off_when_cancelled_then_node_stays(boot, bench):
    node = boot()
    told = len(bench.powered_off)
    node.ok("shutdown -h +1; shutdown -c")
    assert node.run("true").exit_code == 0
    assert len(bench.powered_off) == told


async def test_reboot_when_guest_asks_then_processes_end_files_stay_and_boot_id_changes(boot):
    node = boot()
    path = node.root / "proc/sys/kernel/random/boot_id"
    before = path.read_text()
    node.ok("echo kept > ~/kept; setsid sleep 4741 >/dev/null 2>&1 </dev/null & sudo reboot")

    async def is_back():
        try:
            async with await node.connect():
                return path.read_text() != before
        except (OSError, asyncssh.Error):
            return False

    await until(is_back)
    assert sleepers(4741) == []
    assert node.ok("cat ~/kept") == "kept\n"


async def test_stop_then_resume_when_asked_then_disk_is_as_it_was(boot, bench):
    node = boot()
    node.ok("echo kept > ~/kept")
    bench.runtime.stop(node.id)
    bench.runtime.stop(node.id)
    with pytest.raises(TimeoutError):
        node.run("true")
    bench.runtime.resume(node.id)
    assert node.ok("cat ~/kept") == "kept\n"
    async with await node.connect():
        pass


async def test_freeze_when_frozen_then_nobody_answers_and_processes_stand_still_until_thaw(boot, bench):
    node = boot()
    node.ok(BEATING)
    connection = await node.connect()
    bench.runtime.freeze(node.id)
    beat = (node.root / "beat").read_text()
    with pytest.raises((TimeoutError, asyncssh.Error)):
        await node.connect(login_timeout=0.5)
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(connection.run("true"), 0.5)
    assert (node.root / "beat").read_text() == beat
    bench.runtime.thaw(node.id)

    async def beats():
        return (node.root / "beat").read_text() not in {beat, ""}

    await until(beats)
    async with await node.connect() as again:
        assert (await again.run("echo back")).stdout == "back\n"
    connection.abort()


async def test_cut_network_when_cut_then_connections_drop_and_processes_go_on_until_mended(boot, bench):
    node = boot()
    node.ok(BEATING)
    connection = await node.connect()
    bench.runtime.cut_network(node.id)
    await asyncio.wait_for(connection.wait_closed(), 5)
    with pytest.raises(OSError, match=r"refused|Connect"):
        await node.connect()
    beat = (node.root / "beat").read_text()

    async def beats():
        return (node.root / "beat").read_text() not in {beat, ""}

    await until(beats)
    bench.runtime.mend_network(node.id)
    async with await node.connect() as again:
        assert (await again.run("echo back")).stdout == "back\n"


async def test_fill_disk_when_full_then_writes_fail_for_old_and_new_processes_and_sftp(boot, bench):
    node = boot()
    (node.root / "grow.py").write_text(
        "import time\nf = open('old', 'w')\nwhile True:\n  time.sleep(0.02); f.write('x'); f.flush()\n"
    )
    node.ok("python3 grow.py >/dev/null 2>&1 </dev/null & echo $! > pid; while [ ! -s old ]; do sleep 0.02; done")
    bench.runtime.fill_disk(node.id)

    async def has_ended():
        return node.run("kill -0 $(cat pid)").exit_code != 0

    await until(has_ended)
    assert node.run("echo x > ~/new").exit_code != 0
    assert node.ok("df --output=avail").split()[1] == "0"
    assert node.run("sudo apt-get install -y jq").exit_code == 100
    async with await node.connect() as connection, connection.start_sftp_client() as sftp:
        with pytest.raises(asyncssh.SFTPError, match="space"):
            async with sftp.open("/x", "wb") as target:
                await target.write(b"x")
    bench.runtime.free_disk(node.id)
    assert node.run("echo x > ~/new").exit_code == 0


def test_hundred_nodes_when_booted_then_under_five_seconds(tmp_path, bench):
    began = time.process_time()  # not the wall clock: other programs of a busy machine are not counted
    names = [bench.boot(accelerator_name="H100", accelerator_count=8, image="gpu").id for _ in range(100)]
    took_s = time.process_time() - began
    for name in names:
        bench.runtime.kill(name)
    assert took_s < 5


def test_start_when_an_earlier_sandbox_left_processes_then_they_are_ended(tmp_path, bench):
    node = bench.boot()
    node.ok("setsid sleep 4751 >/dev/null 2>&1 </dev/null & (cd /; env -i setsid sleep 4752) >/dev/null 2>&1 </dev/null & true")
    folder = tmp_path / "old"
    (folder / "nodes").mkdir(parents=True)
    (folder / "nodes/i-old").mkdir()
    (folder / "nodes/i-old/node.json").write_text((node.root.parent / "node.json").read_text())
    (folder / "nodes/i-old/root").symlink_to(node.root)
    SshNodes(folder).close()
    assert sleepers(4751, 4752) == []
    bench.runtime.kill(node.id)


def test_unknown_node_when_ordered_then_key_error(bench):
    for order in (
        bench.runtime.freeze,
        bench.runtime.thaw,
        bench.runtime.cut_network,
        bench.runtime.mend_network,
        bench.runtime.fill_disk,
    ):
        with pytest.raises(KeyError):
            order("i-none")
    with pytest.raises(KeyError):
        bench.runtime.gpu_fault("i-none", {"kind": "lost"})


def test_new_mark_when_made_often_then_never_twice():
    made = {processes.new_mark() for _ in range(2000)}
    assert len(made) == 2000
    assert all(0 <= soft <= hard for soft, hard in made)

import asyncio
import socket
import time
from dataclasses import replace

import asyncssh
import pytest
from tests.reach.loopback_node import LoopbackNode, until

from hostler.reach.port import HostKeyMismatchError, ReachError
from hostler.reach.ssh import SshLimits, SshTransport
from hostler.vault.local import LocalKeys


@pytest.fixture
def keys(tmp_path):
    return LocalKeys(tmp_path / "keys")


@pytest.fixture
async def node(tmp_path, keys):
    made = LoopbackNode(tmp_path / "node", keys)
    await made.start()
    yield made
    await made.close()


@pytest.fixture
async def transport(keys):
    made = SshTransport(lambda: keys.user_certificate("hostler", 7200))
    yield made
    await made.close()


async def test_run_when_command_ends_then_gives_code_and_output(transport, node):
    result = await transport.run(node.target(), "cat; echo oops >&2; exit 3", timeout_s=10, stdin=b"in\xff")
    assert (result.exit_code, result.stdout, result.stderr) == (3, "in�", "oops\n")


async def test_run_when_repeated_then_uses_one_connection(transport, node):
    for _ in range(5):
        await transport.run(node.target(), "true", timeout_s=10)
    assert node.connections == 1


async def test_run_when_many_at_once_then_is_bounded_and_all_succeed(keys, node):
    transport = SshTransport(lambda: keys.user_certificate("hostler"), limits=SshLimits(commands_per_node=3))
    results = await asyncio.gather(*(transport.run(node.target(), "sleep 0.05; echo hi", timeout_s=20) for _ in range(12)))
    assert [result.stdout for result in results] == ["hi\n"] * 12
    assert (node.connections, node.most_running) == (1, 3)
    await transport.close()


async def test_run_when_another_host_key_answers_then_nothing_is_sent(transport, tmp_path, keys):
    impostor = LoopbackNode(tmp_path / "impostor", keys)
    await impostor.start(private=keys.host_key_pair("another")[0])
    with pytest.raises(HostKeyMismatchError, match="nothing was sent"):
        await transport.run(impostor.target(), "echo secret", timeout_s=10, stdin=b"secret")
    assert (impostor.logins, impostor.commands) == ([], [])
    await impostor.close()


async def test_run_when_host_offers_no_ed25519_key_then_nothing_is_sent(transport, tmp_path, keys):
    impostor = LoopbackNode(tmp_path / "impostor", keys)
    await impostor.start(private=asyncssh.generate_private_key("ecdsa-sha2-nistp256").export_private_key().decode())
    with pytest.raises(ReachError):
        await transport.run(impostor.target(), "echo secret", timeout_s=10)
    assert (impostor.logins, impostor.commands) == ([], [])
    await impostor.close()


async def test_run_when_authority_or_principal_differs_then_is_not_let_in(node, tmp_path, keys):
    for credential in (
        lambda: LocalKeys(tmp_path / "other").user_certificate("hostler"),
        lambda: keys.user_certificate("somebody"),
    ):
        transport = SshTransport(credential)
        with pytest.raises(ReachError, match="not let in"):
            await transport.run(node.target(), "true", timeout_s=10)
        await transport.close()
    assert node.commands == []


async def test_run_when_certificate_has_ended_then_is_not_let_in(node, keys):
    transport = SshTransport(lambda: keys.user_certificate("hostler", -5))
    with pytest.raises(ReachError, match="not let in"):
        await transport.run(node.target(), "true", timeout_s=10)
    await transport.close()


async def test_run_when_certificate_is_about_to_end_then_takes_a_fresh_one(node, keys):
    given = []

    def credential():
        given.append(keys.user_certificate("hostler", 60 if len(given) == 0 else 7200))
        return given[-1]

    transport = SshTransport(credential)
    for name in ("127.0.0.1", "localhost", "127.0.0.1"):
        await transport.run(replace(node.target(), host=name), "true", timeout_s=10)
    assert len(given) == 2
    await transport.close()


async def test_run_when_command_hangs_then_ends_in_time_and_the_connection_still_works(transport, node):
    started = time.monotonic()
    with pytest.raises(ReachError, match="in time"):
        await transport.run(node.target(), "sleep 30", timeout_s=0.5)
    assert time.monotonic() - started < 10
    assert (await transport.run(node.target(), "echo on", timeout_s=10)).stdout == "on\n"


async def test_run_when_nobody_answers_then_raises_in_time(keys):
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        transport = SshTransport(lambda: keys.user_certificate("hostler"), limits=SshLimits(connect_timeout_s=0.3))
        node = LoopbackNode.__new__(LoopbackNode)
        node.address, node.port, node.public = "127.0.0.1", silent.getsockname()[1], keys.host_key_pair("x")[1]
        started = time.monotonic()
        with pytest.raises(ReachError, match="in time"):
            await transport.run(node.target(), "true", timeout_s=20)
        assert time.monotonic() - started < 10
        await transport.close()


async def test_run_when_port_is_closed_then_raises(transport, node):
    await node.close()
    with pytest.raises(ReachError):
        await transport.run(node.target(), "true", timeout_s=10)


async def test_run_when_connection_was_cut_meanwhile_then_connects_again(transport, node):
    await transport.run(node.target(), "true", timeout_s=10)
    for connection in tuple(node.open_now):
        connection.abort()
    assert (await transport.run(node.target(), "echo back", timeout_s=10)).stdout == "back\n"
    assert node.connections == 2


async def test_run_when_cut_in_mid_command_then_says_so_and_does_not_repeat_it(transport, node):
    asking = asyncio.create_task(transport.run(node.target(), "touch started; sleep 30", timeout_s=20))
    await until((node.home / "started").exists)
    for connection in tuple(node.open_now):
        connection.abort()
    with pytest.raises(ReachError):
        await asking
    assert len(node.commands) == 1


async def test_run_when_output_is_huge_then_keeps_the_limit_and_ends(keys, node):
    transport = SshTransport(lambda: keys.user_certificate("hostler"), limits=SshLimits(output_bytes=1000))
    result = await transport.run(node.target(), "head -c 3000000 /dev/zero | tr '\\0' x; exit 7", timeout_s=30)
    assert (result.exit_code, result.stdout) == (7, "x" * 1000)
    await transport.close()


async def test_run_when_command_reads_no_input_then_its_code_counts(transport, node):
    result = await transport.run(node.target(), "exit 5", timeout_s=20, stdin=bytes(4_000_000))
    assert result.exit_code == 5


async def test_connection_when_idle_then_is_closed(keys, node):
    transport = SshTransport(lambda: keys.user_certificate("hostler"), limits=SshLimits(idle_close_s=0.1))
    await transport.run(node.target(), "true", timeout_s=10)
    await until(lambda: not node.open_now)
    await transport.run(node.target(), "true", timeout_s=10)
    assert node.connections == 2
    await transport.close()


def test_transport_when_used_from_a_second_loop_then_works(tmp_path, keys):
    transport = SshTransport(lambda: keys.user_certificate("hostler"))

    async def once(number: int) -> str:
        node = LoopbackNode(tmp_path / str(number), keys)
        await node.start()
        told = (await transport.run(node.target(), f"echo {number}", timeout_s=10)).stdout
        await transport.close()
        await node.close()
        return told

    assert [asyncio.run(once(number)) for number in (1, 2)] == ["1\n", "2\n"]


async def test_put_when_done_then_file_is_whole_with_mode_and_no_rest(transport, node):
    content = bytes(range(256)) * 5000
    await transport.put(node.target(), content, "a b/it's $(x).bin", mode=0o640)
    path = node.home / "a b" / "it's $(x).bin"
    assert path.read_bytes() == content
    assert path.stat().st_mode & 0o777 == 0o640
    assert [entry.name for entry in path.parent.iterdir()] == [path.name]
    assert await transport.get(node.target(), "a b/it's $(x).bin") == content


async def test_put_when_path_names_our_folder_then_goes_there(transport, node):
    await transport.put(node.target(), b"", "$HOSTLER_HOME/agent/x")
    assert (node.home / "opt/agent/x").read_bytes() == b""
    assert await transport.get(node.target(), "$HOSTLER_HOME/agent/x") == b""


async def test_put_when_folder_can_not_be_made_then_raises_and_leaves_the_old_file(transport, node):
    (node.home / "file").write_text("old")
    with pytest.raises(ReachError, match="writing file/x failed"):
        await transport.put(node.target(), b"new", "file/x")
    assert (node.home / "file").read_text() == "old"


async def test_get_when_absent_then_says_not_found(transport, node):
    with pytest.raises(FileNotFoundError):
        await transport.get(node.target(), "nothing")


async def test_get_when_file_is_too_large_then_raises(keys, node):
    transport = SshTransport(lambda: keys.user_certificate("hostler"), limits=SshLimits(file_bytes=10))
    (node.home / "big").write_bytes(bytes(11))
    with pytest.raises(ReachError, match="larger than 10"):
        await transport.get(node.target(), "big")
    await transport.close()


async def test_run_when_through_a_jump_host_then_both_ends_are_proved(keys, node, tmp_path):
    gate = LoopbackNode(tmp_path / "gate", keys, name="gate")
    await gate.start()
    transport = SshTransport(lambda: keys.user_certificate("hostler"))
    for _ in range(2):
        assert (await transport.run(replace(node.target(), through=gate.target()), "echo in", timeout_s=10)).stdout == "in\n"
    assert gate.tunnels == [(node.address, node.port)]
    assert gate.commands == []
    assert (await transport.run(node.target(), "echo out", timeout_s=10)).stdout == "out\n"
    assert len(gate.tunnels) == 1
    wrong = gate.target(host_key=node.public)
    with pytest.raises(HostKeyMismatchError):
        await transport.run(replace(node.target(), through=wrong), "echo in", timeout_s=10)
    await transport.close()
    await gate.close()


async def test_run_when_user_has_ssh_settings_and_an_agent_then_they_are_not_used(transport, node, tmp_path, monkeypatch):
    (tmp_path / ".ssh").mkdir()
    (tmp_path / ".ssh" / "config").write_text("Host *\n  ProxyCommand false\n  User nobody\n")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("SSH_AUTH_SOCK", str(tmp_path / "no-agent"))
    assert (await transport.run(node.target(), "true", timeout_s=10)).exit_code == 0
    assert node.logins == ["hostler"]

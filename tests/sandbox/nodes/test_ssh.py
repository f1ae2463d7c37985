import asyncio
import shutil
import subprocess

import asyncssh
import pytest

from hostler_sandbox.nodes_port import BootError


async def test_login_when_certificate_names_a_principal_then_command_runs_as_that_user(boot):
    node = boot()
    async with await node.connect() as connection:
        done = await connection.run("echo $USER; pwd; echo oops >&2; exit 3")
    assert (done.exit_status, done.stdout, done.stderr) == (3, f"hostler\n{node.root}\n", "oops\n")


@pytest.mark.parametrize("principals", [(), ("other",), ("hostler",)])
async def test_login_when_certificate_lacks_the_principal_then_refused(boot, bench, principals):
    node = boot()
    with pytest.raises(asyncssh.PermissionDenied):
        await node.connect(bench.identity.certificate(*principals))


async def test_login_when_certificate_is_expired_then_refused(boot, bench):
    node = boot()
    with pytest.raises(asyncssh.PermissionDenied):
        await node.connect(bench.identity.certificate("fleet-1", valid_before="20200101"))


async def test_login_when_another_authority_signed_then_refused(boot, bench):
    node = boot()
    other = asyncssh.generate_private_key("ssh-ed25519")
    with pytest.raises(asyncssh.PermissionDenied):
        await node.connect(other.generate_user_certificate(bench.identity.user, "x", principals=["fleet-1"]))


async def test_login_when_only_the_bare_key_is_shown_then_refused(boot, bench):
    node = boot()
    with pytest.raises(asyncssh.PermissionDenied):
        await node.connect(client_keys=[bench.identity.user])


@pytest.mark.parametrize("name", ["root", "nobody", "ubuntu"])
async def test_login_when_user_does_not_exist_then_refused(boot, name):
    node = boot()
    with pytest.raises(asyncssh.PermissionDenied):
        await node.connect(username=name)


async def test_login_without_principals_file_then_login_name_is_the_principal(boot, bench):
    files = [
        {"path": "/etc/ssh/ca.pub", "content": bench.identity.authority.export_public_key().decode()},
        {"path": "/etc/ssh/sshd_config.d/1.conf", "content": "TrustedUserCAKeys /etc/ssh/ca.pub\n"},
    ]
    node = boot(user_data=bench.identity.user_data(write_files=files))
    async with await node.connect(bench.identity.certificate("hostler")) as connection:
        assert (await connection.run("true")).exit_status == 0
    with pytest.raises(asyncssh.PermissionDenied):
        await node.connect(bench.identity.certificate("fleet-1"))


async def test_login_when_key_pair_or_user_keys_are_given_then_plain_keys_work(boot, bench):
    line = bench.identity.user.export_public_key().decode()
    launched = boot(user_data="", authorized_key=line)
    listed = boot(user_data=bench.identity.user_data(users=[{"name": "ann", "ssh_authorized_keys": [line]}]))
    key = [bench.identity.user]
    async with await launched.connect(username="ubuntu", client_keys=key, known_hosts=None) as connection:
        assert (await connection.run("echo $USER")).stdout == "ubuntu\n"
    async with await listed.connect(username="ann", client_keys=key) as connection:
        assert (await connection.run("sudo true")).exit_status == 1


async def test_host_key_when_user_data_gives_one_then_node_proves_itself_with_it(boot):
    node, keyless = boot(), boot(user_data="")
    async with await node.connect() as connection:
        assert connection.get_server_host_key().public_data == node.bench.identity.host.public_data
    with pytest.raises(asyncssh.HostKeyNotVerifiable):
        await keyless.connect()


async def test_input_and_signals_when_sent_then_reach_the_process(boot):
    node = boot()
    async with await node.connect() as connection:
        assert (await connection.run("sha256sum | cut -c1-8", input="x" * 300_000)).stdout == "29927e27\n"
        process = await connection.create_process("trap 'echo got; exit 5' TERM; echo ready; while :; do read -t 1 x; done")
        assert await process.stdout.readline() == "ready\n"
        process.terminate()
        done = await asyncio.wait_for(process.wait(), 10)
        assert (done.exit_status, done.stdout) == (5, "got\n")
        killed = await connection.run("kill -9 $$")
    assert (killed.exit_status, killed.exit_signal[0]) == (-1, "KILL")


async def test_sftp_when_path_is_absolute_then_it_is_inside_the_node(boot):
    node = boot()
    async with await node.connect() as connection:
        async with connection.start_sftp_client() as sftp:
            await sftp.makedirs("/opt/hostler/a")
            async with sftp.open("/opt/hostler/a/x", "wb") as target:
                await target.write(b"one")
            await sftp.chmod("/opt/hostler/a/x", 0o700)
            await sftp.posix_rename("/opt/hostler/a/x", "/opt/hostler/a/y")
            assert "hostname" in await sftp.listdir("/etc")
            assert not await sftp.exists("/etc/shadow")
            assert not await sftp.exists("../../../../../../../../etc/shadow")
        assert (await connection.run('cat "$HOSTLER_HOME/a/y" ~/opt/hostler/a/y')).stdout == "oneone"


def test_openssh_client_when_installed_then_logs_in_and_copies(boot, bench, tmp_path):
    if not shutil.which("ssh"):
        pytest.skip("no OpenSSH client")
    node = boot()
    key = tmp_path / "key"
    bench.identity.user.write_private_key(str(key))
    key.chmod(0o600)
    bench.identity.certificate("fleet-1").write_certificate(str(tmp_path / "key-cert.pub"))
    known = tmp_path / "known"
    address, port = node.spec.address, node.spec.ssh_port
    known.write_text(f"[{address}]:{port} {bench.identity.host.export_public_key().decode()}")
    options = [
        "-F",
        "none",
        "-i",
        str(key),
        "-o",
        f"UserKnownHostsFile={known}",
        "-o",
        "BatchMode=yes",
        "-o",
        "StrictHostKeyChecking=yes",
    ]
    done = subprocess.run(
        ["ssh", *options, "-p", str(port), f"hostler@{address}", "hostname; cat"],
        input=b"hello", capture_output=True, timeout=30, check=False,
    )  # fmt: skip
    assert done.stdout == f"{node.spec.hostname}\nhello".encode(), done.stderr
    copied = subprocess.run(
        ["scp", *options, "-P", str(port), str(known), f"hostler@{address}:/opt/hostler/k"],
        capture_output=True,
        timeout=30,
        check=False,
    )
    assert copied.returncode == 0, copied.stderr
    assert (node.root / "opt/hostler/k").read_bytes() == known.read_bytes()


async def test_login_shell_then_banner_says_simulated(boot):
    node = boot()
    async with await node.connect() as connection:
        done = await connection.run(input="echo done\n")
    assert "simulated" in done.stdout


def test_boot_when_port_is_taken_or_name_is_known_then_boot_error_and_nothing_stays(boot, bench):
    node = boot()
    for more in ({"node_id": node.id}, {"address": node.spec.address}, {"node_id": "a/b"}, {"address": "0.0.0.0"},  # noqa: S104
                 {"accelerator_name": "H9000", "accelerator_count": 1}, {"image": "nope"}):  # fmt: skip
        before = bench.runtime.node_ids()
        with pytest.raises(BootError):
            boot(**more)
        assert bench.runtime.node_ids() == before
    assert node.ok("echo still") == "still\n"


async def test_boot_when_it_is_to_fail_then_port_stays_shut_and_machine_is_there(boot):
    node = boot(boot_fails=True)
    with pytest.raises(ConnectionRefusedError):
        await node.connect()
    assert node.id in node.bench.runtime.node_ids()

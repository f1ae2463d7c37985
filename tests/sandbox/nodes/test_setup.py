"""Setting up a bare node by hand; a step left out must show."""

import asyncio
import time

import pytest

UPDATE = "sudo apt-get update -q"
DRIVER = "sudo apt-get install -y nvidia-driver-570-server"


def reboot(node):
    before = (node.root / "proc/sys/kernel/random/boot_id").read_text()
    node.bench.runtime.reboot(node.id)
    assert (node.root / "proc/sys/kernel/random/boot_id").read_text() != before


@pytest.fixture
def bare(boot):
    return boot(accelerator_name="H100", accelerator_count=8)


def test_bare_node_when_nothing_is_done_then_accelerators_are_on_the_bus_and_no_program_reads_them(bare):
    assert bare.ok("lspci -nn | grep -c '\\[0302\\].*\\[10de:2330\\]'").strip() == "8"
    assert bare.run("nvidia-smi").exit_code == 127
    assert "nouveau" in bare.ok("lsmod")


def test_bare_node_when_lists_are_not_updated_then_package_is_not_located(bare):
    done = bare.run(DRIVER)
    assert done.exit_code == 100
    assert "E: Unable to locate package nvidia-driver-570-server" in done.stderr


def test_bare_node_when_driver_is_installed_then_needs_a_reboot_before_it_works(bare):
    bare.ok(f"{UPDATE} && {DRIVER}")
    assert (bare.root / "var/run/reboot-required").exists()
    done = bare.run("nvidia-smi")
    assert (done.exit_code, "couldn't communicate with the NVIDIA driver" in done.stdout) == (9, True)
    assert bare.run("sudo modprobe nvidia").exit_code == 1
    reboot(bare)
    assert not (bare.root / "var/run/reboot-required").exists()
    assert bare.ok("nvidia-smi -L | wc -l").strip() == "8"
    assert "570.195.03" in bare.ok("nvidia-smi --query-gpu=driver_version --format=csv,noheader")


def test_bare_node_when_nouveau_is_taken_off_then_module_loads_without_reboot(bare):
    bare.ok(f"{UPDATE} && {DRIVER} && sudo modprobe -r nouveau && sudo modprobe nvidia && nvidia-smi -L")


def test_bare_node_when_utilities_are_left_out_then_there_is_no_nvidia_smi(bare):
    bare.ok(f"{UPDATE} && sudo apt-get install -y nvidia-headless-570-server")
    reboot(bare)
    assert bare.run("nvidia-smi").exit_code == 127
    bare.ok("sudo apt-get install -y nvidia-utils-570-server && nvidia-smi")


def test_fabric_manager_when_versions_differ_then_it_does_not_start(bare):
    bare.ok(f"{UPDATE} && {DRIVER} && sudo apt-get install -y nvidia-fabricmanager-580")
    reboot(bare)
    assert bare.run("sudo systemctl start nvidia-fabricmanager").exit_code == 1
    assert bare.run("systemctl is-active nvidia-fabricmanager").stdout == "failed\n"
    assert "In Progress" in bare.ok("nvidia-smi -q -x")
    bare.ok("sudo apt-get install -y nvidia-fabricmanager-570 && sudo systemctl enable --now nvidia-fabricmanager")
    assert "Completed" in bare.ok("nvidia-smi -q -x")


def test_held_driver_when_everything_is_upgraded_then_it_stays_else_it_mismatches(bare):
    bare.ok(f"{UPDATE} && {DRIVER}")
    reboot(bare)
    bare.ok("sudo apt-mark hold nvidia-driver-570-server")
    assert bare.ok("apt-mark showhold") == "nvidia-driver-570-server\n"
    assert bare.run("sudo apt-get install -y nvidia-driver-580-server").exit_code == 100
    bare.ok("sudo apt-mark unhold nvidia-driver-570-server && sudo apt-get install -y nvidia-driver-580-server")
    done = bare.run("nvidia-smi")
    assert (done.exit_code, done.stdout.splitlines()[0]) == (18, "Failed to initialize NVML: Driver/library version mismatch")


def test_packages_when_asked_then_tell_name_version_and_hold(bare):
    version = "570.195.03-0ubuntu0.24.04.1"
    bare.ok(f"{UPDATE} && sudo apt-get install -y nvidia-driver-570-server={version}")
    form = "'${db:Status-Abbrev}|${Package}|${Version}\\n'"
    assert bare.ok(f"dpkg-query -W -f={form} nvidia-driver-570-server") == f"ii |nvidia-driver-570-server|{version}\n"
    assert bare.ok("dpkg -l nvidia-driver-570-server").splitlines()[-1].startswith("ii  nvidia-driver-570-server")
    assert bare.run("dpkg -s nvidia-driver-580-server").exit_code == 1
    assert bare.run("sudo apt-get install -y nvidia-driver-570-server=1.2.3").exit_code == 100
    assert "already the newest version" in bare.ok(DRIVER)
    bare.ok("sudo apt-get remove -y nvidia-driver-570-server")
    assert bare.run("nvidia-smi").exit_code == 127


def test_containers_when_set_up_then_docker_knows_the_runtime(bare):
    assert bare.run("docker info").exit_code == 127
    bare.ok(f"{UPDATE} && sudo apt-get install -y docker.io nvidia-container-toolkit")
    assert "nvidia" not in bare.ok("docker info")
    bare.ok("sudo nvidia-ctk runtime configure --runtime=docker && sudo systemctl restart docker")
    assert "nvidia" in bare.ok("docker info --format '{{json .Runtimes}}'")
    assert bare.run("docker run hello-world").exit_code == 125
    bare.ok("sudo systemctl stop docker")
    assert bare.run("docker info").exit_code == 1


def test_gpu_image_when_booted_then_all_is_in_place(boot):
    node = boot(accelerator_name="A100", accelerator_count=8, instance_type="p4de.24xlarge", image="gpu")
    assert "A100-SXM4-80GB" in node.ok("nvidia-smi -L")
    assert node.ok("systemctl is-active docker nvidia-persistenced nvidia-fabricmanager") == "active\n" * 3
    assert "On" in node.ok("nvidia-smi")
    assert node.ok("~/usr/local/cuda/bin/nvcc --version | grep -c 'release 12.8'").strip() == "1"
    assert node.run("python3 -m venv ~/v && dcgmi diag -r 1 -j && dcgmi discovery -l").exit_code == 0


async def test_per_boot_script_when_rebooted_then_it_runs_again(boot, bench):
    script = "#!/bin/sh\nsu -s /bin/sh -c \"echo up >> '/opt/hostler/boots'\" hostler\n"
    files = [{"path": "/var/lib/cloud/scripts/per-boot/x", "content": script, "permissions": "0755"}]
    node = boot(
        user_data=bench.identity.user_data(write_files=files, runcmd=["mkdir -p /opt/hostler && chown hostler: /opt/hostler"])
    )
    end = time.monotonic() + 10
    for wanted in ("up\n", "up\nup\n"):
        while not (path := node.root / "opt/hostler/boots").exists() or path.read_text() != wanted:
            assert time.monotonic() < end
            await asyncio.sleep(0.02)
        await asyncio.to_thread(bench.runtime.reboot, node.id)


async def test_user_data_when_it_has_packages_and_commands_then_they_run_inside_the_node(boot, bench):
    data = bench.identity.user_data(
        packages=["jq"], runcmd=["mkdir -p /srv/x && hostname > /srv/x/name", ["touch", "/opt/hostler/y"], "false"]
    )
    node = boot(user_data=data)
    end = time.monotonic() + 10
    while not (node.root / "var/lib/cloud/instance/boot-finished").exists():
        assert time.monotonic() < end
        await asyncio.sleep(0.02)
    assert (node.root / "srv/x/name").read_text() == f"{node.spec.hostname}\n"
    assert (node.root / "opt/hostler/y").exists()
    assert node.ok("dpkg -l jq && cloud-init status --wait").endswith("status: done\n")
    assert "exit 1" in (node.root / "var/log/cloud-init-output.log").read_text()

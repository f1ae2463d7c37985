import json

from hostler_sandbox.nodes.guest.interpreter import version_folder

VENV = "$HOSTLER_HOME/venv/bin"


def test_node_python_when_nothing_is_installed_then_sees_standard_library_only(boot):
    node = boot()
    for name in ("numpy", "sklearn", "cryptography", "pynvml", "torch", "airflow", "hostler", "pip", "yaml"):
        done = node.run(f"python3 -c 'import {name}'")
        assert f"No module named '{name}'" in done.stderr, name
    assert node.ok("python3 -c 'import json, ssl, sqlite3, venv'") == ""
    prefix, path = node.ok("python3 -c 'import sys, json; print(sys.prefix); print(json.dumps(sys.path))'").splitlines()
    assert prefix == str(node.root / "usr")
    assert [one for one in json.loads(path) if "site-packages" in one] == [f"{prefix}/lib/{version_folder()}/site-packages"]


def test_venv_when_ubuntu_package_is_missing_then_fails_in_ubuntus_words(boot):
    node = boot()
    done = node.run("python3 -m venv $HOSTLER_HOME/venv")
    assert done.exit_code == 1
    assert "apt install python3" in done.stdout
    assert node.run("pip --version").exit_code == 127
    assert node.run("python3 -m pip --version").exit_code == 1


def test_pip_when_outside_of_a_venv_then_refused_on_ubuntu(boot):
    node = boot()
    node.ok("sudo apt-get update -q && sudo apt-get install -y python3-pip")
    done = node.run("pip install numpy")
    assert done.exit_code == 1
    assert "externally-managed-environment" in done.stderr
    assert node.run("pip install --break-system-packages threadpoolctl && python3 -c 'import threadpoolctl'").exit_code == 0


def test_pip_when_installing_in_a_venv_then_only_that_venv_sees_it(boot):
    node = boot()
    node.ok(
        "apt-get update && apt-get install -y python3-venv && python3 -m venv $HOSTLER_HOME/venv && python3 -m venv ~/other"
    )
    said = node.ok(f"{VENV}/pip install --no-input scikit-learn numpy cryptography nvidia-ml-py")
    assert "Successfully installed" in said
    modules = "numpy, sklearn, cryptography.hazmat.primitives.ciphers.aead, pynvml"
    code = f"import {modules}; print(numpy.arange(3).sum(), sklearn.__file__)"
    out = node.ok(f"{VENV}/python -c '{code}'")
    assert out.startswith(f"3 {node.root}/opt/hostler/venv/")
    for python in ("python3", "~/other/bin/python"):
        assert node.run(f"{python} -c 'import numpy'").exit_code == 1
    listed = json.loads(node.ok(f"{VENV}/python -m pip list --format=json"))
    assert {"numpy", "scipy", "cffi", "pip"} <= {one["name"] for one in listed}
    assert node.ok(f"{VENV}/pip check") == "No broken requirements found.\n"
    assert node.ok(f"{VENV}/f2py -v").strip()
    node.ok(f"{VENV}/pip uninstall -y numpy")
    assert node.run(f"{VENV}/python -c 'import numpy'").exit_code == 1
    assert "requires numpy, which is not installed" in node.run(f"{VENV}/pip check").stdout


def test_pip_when_version_is_not_to_be_had_then_no_matching_distribution(boot):
    node = boot()
    node.ok("apt-get update && apt-get install -y python3-venv && python3 -m venv ~/v")
    for asked in ("numpy==0.0.1", "no-such-package-at-all", "'numpy>99'"):
        done = node.run(f"~/v/bin/pip install {asked}")
        assert done.exit_code == 1
        assert "No matching distribution found" in done.stderr
    assert "numpy" not in node.ok("~/v/bin/pip freeze")
    node.ok("printf 'threadpoolctl  # why\\n' > r.txt; echo 'threadpoolctl<1' > c.txt")
    assert node.run("~/v/bin/pip install -r r.txt -c c.txt").exit_code == 1
    assert node.run("~/v/bin/pip install -r r.txt && ~/v/bin/python -c 'import threadpoolctl'").exit_code == 0


def test_path_when_looking_for_host_programs_then_only_plain_tools_are_there(boot):
    node = boot()
    for name in ("docker", "nvidia-smi", "pip", "nvcc", "dcgmi", "git-not", "uv"):
        assert node.run(f"command -v {name}").exit_code != 0, name
    assert node.run("tar --version && sha256sum --version && bash --version").exit_code == 0
    assert node.ok("command -v python3").startswith(str(node.root))

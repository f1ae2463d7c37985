import base64
import gzip
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hostler_sandbox.nodes import cloud_init


def test_parse_when_empty_then_default_user_with_key_pair():
    config = cloud_init.parse("", key_pair="ssh-ed25519 A")
    assert config.users == (cloud_init.User(name="ubuntu", authorized_keys=("ssh-ed25519 A",), sudo=True),)


@pytest.mark.parametrize(
    "text",
    ["hello", "#cloud-config\n- a", "#cloud-config\nusers: 3", "#cloud-config\n{a: [", "#cloud-config\nwrite_files: [{}]"],
)
def test_parse_when_text_is_bad_then_boots_with_a_warning(text):
    config = cloud_init.parse(text)
    assert config.warnings
    assert config.users[0].name == "ubuntu"


@settings(max_examples=50, deadline=None)  # the deadline would measure how busy the machine is
@given(st.text(max_size=200))
def test_parse_when_text_is_anything_then_never_raises(text):
    cloud_init.parse("#cloud-config\n" + text)


def test_parse_when_key_is_not_honoured_then_it_is_named():
    assert cloud_init.parse("#cloud-config\nswap: {}\nhostname: a").warnings == ("swap: not honoured by the sandbox",)


def test_write_files_when_encoded_then_decoded_with_mode_and_kept_inside(tmp_path):
    packed = base64.b64encode(gzip.compress(b"two")).decode()
    config = cloud_init.parse(
        "#cloud-config\nwrite_files:\n"
        "- {path: /a/b, content: b25l, encoding: b64, permissions: '0600'}\n"
        f"- {{path: ../../../c, content: {packed}, encoding: gz+b64}}\n"
        "- {path: /a/b, content: more, append: true}\n"
    )
    cloud_init.write_files(config, tmp_path / "root")
    assert (tmp_path / "root/a/b").read_bytes() == b"onemore"
    assert (tmp_path / "root/c").read_bytes() == b"two"
    assert not (tmp_path / "c").exists()


@pytest.mark.parametrize(
    ("command", "wanted"),
    [
        ("mkdir -p /opt/hostler && echo x>/etc/y", "mkdir -p /n/opt/hostler && echo x>/n/etc/y"),
        ("ls $HOSTLER_HOME/var/x ~/opt a/opt ./etc", "ls $HOSTLER_HOME/var/x ~/opt a/opt ./etc"),
        ("cat '/etc/os-release' /usr/bin/env /etcetera", "cat '/n/etc/os-release' /usr/bin/env /etcetera"),
        ("#!/opt/x\ncat /var", "#!/opt/x\ncat /n/var"),
    ],
)
def test_for_guest_when_path_is_the_machines_own_then_led_inside(command, wanted):
    assert cloud_init.for_guest(command, Path("/n")) == wanted

"""Cloud-config of a node: proves itself with our host key, lets in who the deployment's authority vouches for, nobody else."""

import yaml

from hostler.model.lease import Intent
from hostler.vault.port import NodeIdentity

PRINCIPAL = "hostler"
"""What a user certificate must name. The same in every deployment: the authority's key is what differs."""

_AUTHORITY_FILE = "/etc/ssh/hostler_user_authority.pub"
_PRINCIPALS_FILE = "/etc/ssh/hostler_principals"
_RESTART_SSH = "systemctl try-reload-or-restart ssh 2>/dev/null || systemctl try-reload-or-restart sshd 2>/dev/null || true"
_AGENT_AT_BOOT = """\
#!/bin/sh
# Starts the node's agent again after a reboot, so that checkpoints go on being shipped and an abandoned node powers off.
for agent in /opt/hostler/agent/agent-*.pyz; do
  [ -f "$agent" ] || continue
  sudo -n -u {user} sh -c "nohup python3 '$agent' daemon >/dev/null 2>&1 </dev/null &"
done
"""


def build(intent: Intent, identity: NodeIdentity, *, user: str) -> str:
    """Returns the cloud-config text for an intent's machine; the same intent always gives the same bytes.

    The host's private key is in it: it is as secret as the machine's disk, and good for this one machine only.

    Args:
        user: login that is made, with sudo and without a password.

    Source: https://cloudinit.readthedocs.io/en/latest/reference/modules.html
    """
    private, public = identity.host_key_pair(intent.intent_id)
    sshd = (
        f"TrustedUserCAKeys {_AUTHORITY_FILE}\n"
        f"AuthorizedPrincipalsFile {_PRINCIPALS_FILE}/%u\n"
        "PasswordAuthentication no\n"
        "KbdInteractiveAuthentication no\n"
        "PermitRootLogin no\n"
        f"AllowUsers {user}\n"
    )
    document = {
        "ssh_deletekeys": True,
        "ssh_genkeytypes": ["ed25519"],
        "ssh_keys": {"ed25519_private": private, "ed25519_public": public},
        "ssh_pwauth": False,
        "disable_root": True,
        "users": [{"name": user, "sudo": "ALL=(ALL) NOPASSWD:ALL", "shell": "/bin/bash", "lock_passwd": True}],
        "write_files": [
            _file(_AUTHORITY_FILE, identity.user_ca_public_key() + "\n"),
            _file(f"{_PRINCIPALS_FILE}/{user}", PRINCIPAL + "\n"),
            _file("/etc/ssh/sshd_config.d/10-hostler.conf", sshd),
            _file("/var/lib/cloud/scripts/per-boot/hostler-agent", _AGENT_AT_BOOT.format(user=user), "0755"),
        ],
        "runcmd": [f"mkdir -p /opt/hostler && chown {user}: /opt/hostler", _RESTART_SSH],
    }
    return "#cloud-config\n" + yaml.safe_dump(document, sort_keys=True, width=4096)


def _file(path: str, content: str, permissions: str = "0644") -> dict[str, str]:
    return {"path": path, "content": content, "permissions": permissions}

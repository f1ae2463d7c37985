"""Keys of an instance's role, as its metadata service hands them out: made up, and good for as long as the sandbox lives."""

import hashlib
from datetime import datetime, timedelta
from typing import Final

from hostler_sandbox.nodes_port import RoleCredentials

_LIFE: Final = timedelta(hours=12)
"""EC2 renews keys before they expire (user guide, "Retrieve security credentials"); the node runtime takes one set only, so these
live longer than EC2's six hours."""


def role_keys(role: str, instance_id: str, now: datetime) -> RoleCredentials:
    """Returns the keys of a role for one instance."""
    digest = hashlib.sha256(f"{role}/{instance_id}".encode()).hexdigest()
    return RoleCredentials(
        role_name=role,
        access_key_id=f"ASIA{digest[:16].upper()}",
        secret_access_key=f"simulated-{digest[16:46]}",
        session_token=f"simulated-{digest}",
        expires_at=now + _LIFE,
    )

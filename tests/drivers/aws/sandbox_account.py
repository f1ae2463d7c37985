"""A sandbox in this process, and drivers that have all of fleet.yaml named."""

from contextlib import contextmanager

from tests.clouds import aws

from hostler.cloud.doctor import Examination
from hostler_sandbox import Delays, SandboxOptions, start

FAST = Delays(pending_s=0.0, shutting_down_s=0.0, stopping_s=0.0, boot_s=0.0)
BUCKET = "s3://hostler-backups/acme"


@contextmanager
def account(folder):
    """Gives the sandbox."""
    with start(SandboxOptions(folder=folder, has_nodes=False, delays=FAST)) as made:
        yield made


def settings_of(sandbox, **changes):
    made = sandbox.info["fixtures"]
    image = next(name for name, kind in made["image_parameters"].items() if kind == "gpu")
    return {
        "image": f"ssm:{image}",
        "instance_profile": made["instance_profile"],
        "security_groups": {"tags": made["security_group_tags"]},
        "kms_key": made["kms_alias"],
        **changes,
    }


def driver_of(sandbox, **changes):
    named = settings_of(sandbox, **changes)
    return aws.driver(named.pop("image"), deployment="acme", **named)


def examination(**changes):
    values = {"is_enforcing": True, "asks_writes": True, "nodes": 4, "usd_per_hour": 100, "backup_uri": BUCKET}
    return Examination(**{**values, **changes})


def wire(sandbox, after=0):
    """Returns (service, action, error) of every call since."""
    names = {"servicequotas": "service-quotas"}
    return [
        (names.get(entry["service"], entry["service"]), entry["action"], entry["error"])
        for entry in sandbox.journal.after(after, kind="wire")
    ]


def last(sandbox):
    return len(sandbox.journal.after())

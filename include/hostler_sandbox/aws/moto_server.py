"""moto's server, as the overlay uses it: its switches, its WSGI app, its EC2 objects. Private parts of moto are touched here only.

moto 5.2.5 ships AWS's real instance types and their offerings by zone; both are read from here too.
"""

import functools
import io
import os
import threading
import time
import uuid
from collections.abc import Iterable, Mapping
from typing import Any, Final

# moto reads its switches when it is imported. Without these it accepts any image and any type.
os.environ["MOTO_EC2_ENABLE_INSTANCE_TYPE_VALIDATION"] = "true"
os.environ["MOTO_ENABLE_AMI_VALIDATION"] = "true"
os.environ["MOTO_ENABLE_KEYPAIR_VALIDATION"] = "true"
# 1,300 public images that every launch would be compared with; the sandbox has its own (fixtures).
os.environ["MOTO_EC2_LOAD_DEFAULT_AMIS"] = "false"
os.environ["MOTO_IAM_LOAD_MANAGED_POLICIES"] = "false"

from moto.core.base_backend import BackendDict
from moto.core.exceptions import ServiceException
from moto.core.model_instances import reset_model_data
from moto.ec2.models import ec2_backends
from moto.ec2.models.instance_types import INSTANCE_TYPE_OFFERINGS, INSTANCE_TYPES
from moto.ec2.responses import EC2Response
from moto.events.models import events_backends
from moto.moto_server.werkzeug_app import BackendRequest, DomainDispatcherApplication, create_backend_app
from werkzeug.test import run_wsgi_app

from hostler_sandbox.aws.errors import Ec2Error

ACCOUNT: Final = "123456789012"
Answer = tuple[int, list[tuple[str, str]], bytes]
"""HTTP status, headers, body."""


def _inner(environ: Mapping[str, Any], body: bytes) -> dict[str, Any]:
    inner = dict(environ)
    inner["wsgi.input"] = io.BytesIO(body)
    inner["CONTENT_LENGTH"] = str(len(body))
    inner.pop("HTTP_TRANSFER_ENCODING", None)
    inner.pop("wsgi.input_terminated", None)
    return inner


class MotoFailedError(Exception):
    """moto does not serve the call, or stumbled over it. Plain moto answers an HTML page, at which SDKs stumble in turn."""


class MotoServer:
    """Passes calls on to moto. ``lock`` guards what moto does not do safely from several threads (making and ending machines)."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self._app = DomainDispatcherApplication(create_backend_app)

    def run_instances(self, environ: Mapping[str, Any], body: bytes) -> Any:
        """Makes instances and returns moto's reservation. Its answer document, which takes seconds for a hundred, is not made.

        Raises:
            Ec2Error: moto refused. MotoFailedError: it stumbled.
        """
        response = EC2Response()
        try:
            response.setup_class(BackendRequest(_inner(environ, body)))
            return response.run_instances().result
        except ServiceException as refusal:
            raise _refusal(refusal) from refusal
        except Exception as error:
            raise MotoFailedError(f"{type(error).__name__}: {error}") from error

    def call(self, environ: Mapping[str, Any], body: bytes) -> Answer:
        """Sends a request to moto with this body and returns its answer. Raises MotoFailedError."""
        try:
            parts, status, headers = run_wsgi_app(self._app, _inner(environ, body))
        except Exception as error:
            raise MotoFailedError(f"{type(error).__name__}: {error}") from error
        content = b"".join(parts)
        close = getattr(parts, "close", None)
        if close:
            close()
        return int(status.split(" ", 1)[0]), list(headers), content


def _refusal(error: ServiceException) -> Ec2Error:
    return Ec2Error(str(error.code), str(error.message))


def reset() -> None:
    """Empties moto: its state is the process's, not the server's."""
    BackendDict.reset()
    reset_model_data()


def send_event(region: str, kind: str, detail: dict[str, Any]) -> None:
    """Puts an event of EC2 on the region's default bus: rules that match it send it to their targets, queues for example.

    Source: EC2 user guide, "Spot Instance interruption notices", the event's example.
    """
    machine = str(detail["instance-id"])
    event: Any = {
        "version": "0",
        "id": str(uuid.uuid4()),
        "detail-type": kind,
        "source": "aws.ec2",
        "account": ACCOUNT,
        "time": time.time(),
        "region": region,
        "resources": [f"arn:aws:ec2:{region}:{ACCOUNT}:instance/{machine}"],
        "detail": detail,
    }
    for rule in events_backends[ACCOUNT][region].describe_event_bus("default").rules.values():
        if rule.state == "ENABLED":
            # moto asks for a field that is no part of the event unless the target transforms its input.
            has_transform = any("InputTransformer" in target for target in rule.targets)
            extra = {"ingestion-time": event["time"]} if has_transform else {}
            rule.send_to_targets({**event, **extra}, transform_input=has_transform)


def backend(region: str) -> Any:
    """Returns moto's EC2 of a region."""
    return ec2_backends[ACCOUNT][region]


@functools.cache
def zones_of(region: str, instance_type: str) -> tuple[str, ...]:
    """Returns the zones of the region that offer the type, by name; empty when none does or the region does not exist."""
    offers: Iterable[Mapping[str, str]] = INSTANCE_TYPE_OFFERINGS["availability-zone"].get(region, ())
    return tuple(sorted(offer["Location"] for offer in offers if offer["InstanceType"] == instance_type))


@functools.cache
def zone_names(region: str) -> tuple[str, ...]:
    """Returns the zones of a region, by name."""
    return tuple(sorted(zone.name for zone in backend(region).describe_availability_zones()))


def region_of(zone: str) -> str:
    """Returns the region of a zone's name."""
    return zone.rstrip("abcdefghijklmnopqrstuvwxyz")


def type_facts(instance_type: str) -> Mapping[str, Any] | None:
    """Returns what AWS says of a type (DescribeInstanceTypes); None for an unknown one."""
    found: Mapping[str, Any] | None = INSTANCE_TYPES.get(instance_type)
    return found


def vcpu_count(instance_type: str) -> int:
    """Returns the type's vCPUs, 0 for an unknown one."""
    facts = type_facts(instance_type)
    return int(facts["VCpuInfo"]["DefaultVCpus"]) if facts else 0


def accelerator(instance_type: str) -> tuple[str, int]:
    """Returns name and count of a type's GPUs as AWS names them; ("", 0) for none."""
    facts = type_facts(instance_type) or {}
    for gpu in facts.get("GpuInfo", {}).get("Gpus", ()):
        return str(gpu["Name"]), int(gpu["Count"])
    return "", 0


def accelerator_memory_mib(instance_type: str) -> int:
    """Returns the memory of one GPU of the type, 0 for none."""
    facts = type_facts(instance_type) or {}
    return next((int(gpu["MemoryInfo"]["SizeInMiB"]) for gpu in facts.get("GpuInfo", {}).get("Gpus", ())), 0)


def role_of(region: str, instance_id: str) -> str | None:
    """Returns the name of the instance's role; None without a profile or a role in it."""
    association = backend(region).iam_instance_profile_associations.get(instance_id)
    roles = association.iam_instance_profile.roles if association else []
    return str(roles[0].name) if roles else None


def memory_mib(instance_type: str) -> int:
    """Returns the type's main memory, 0 for an unknown one."""
    facts = type_facts(instance_type)
    return int(facts["MemoryInfo"]["SizeInMiB"]) if facts else 0


def public_key(region: str, key_name: str) -> str | None:
    """Returns the public half of a key pair, in OpenSSH format."""
    pair = backend(region).key_pairs.get(key_name)
    text = pair.material_public if pair is not None else None
    return text.decode() if isinstance(text, bytes) else text

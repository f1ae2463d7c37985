"""States, health words, symptoms and runtime errors of Cloud TPUs, as rows of data (pure)."""

from typing import Final

from hostler.model.enums import HealthAction, Verdict

_V, _A = Verdict, HealthAction
Row = tuple[Verdict, HealthAction, str]

API_SOURCE: Final = "Cloud TPU API v2, Node.State, Node.Health and Symptom, read 2026-12-01"

STATES: Final[dict[str, Row]] = {
    "READY": (_V.HEALTHY, _A.NONE, "it is ready"),
    "ACTIVE": (_V.HEALTHY, _A.NONE, "it is active"),
    "CREATING": (_V.UNKNOWN, _A.RECORD, "it is being made: not ready yet"),
    "STARTING": (_V.UNKNOWN, _A.RECORD, "it starts: not ready yet"),
    "RESTARTING": (_V.UNKNOWN, _A.RECORD, "it restarts: not ready yet"),
    "REIMAGING": (_V.UNKNOWN, _A.RECORD, "it is being reimaged: not ready yet"),
    "UNHIDING": (_V.UNKNOWN, _A.RECORD, "it comes out of hiding: not ready yet"),
    "STOPPED": (_V.UNKNOWN, _A.RECORD, "it is stopped"),
    "STOPPING": (_V.UNKNOWN, _A.RECORD, "it is stopping"),
    "DELETING": (_V.UNKNOWN, _A.RECORD, "it is being deleted"),
    "HIDING": (_V.UNKNOWN, _A.RECORD, "it goes into hiding"),
    "HIDDEN": (_V.UNKNOWN, _A.RECORD, "it is hidden"),
    "REPAIRING": (_V.FAILED, _A.DRAIN_AND_REPLACE, "the cloud repairs it: its work is lost, take another"),
    "PREEMPTED": (_V.FAILED, _A.DRAIN_AND_REPLACE, "the cloud took it: take another"),
    "TERMINATED": (_V.FAILED, _A.DRAIN_AND_REPLACE, "it is terminated: take another"),
    "SUSPENDED": (_V.FAILED, _A.DRAIN_AND_REPLACE, "the cloud suspended it: take another"),
    "FAILED": (_V.FAILED, _A.DRAIN_AND_REPLACE, "its making failed: take another"),
}

HEALTH: Final[dict[str, Row]] = {
    "HEALTHY": (_V.HEALTHY, _A.NONE, "the cloud calls it healthy"),
    "TIMEOUT": (_V.FAILED, _A.REBOOT_NODE, "it does not answer the health monitor: reboot; replace when it repeats"),
    "UNHEALTHY_TENSORFLOW": (
        _V.FAILED,
        _A.RESTART_SERVICE,
        "the machine-learning stack on it is not well: restart the runtime",
    ),
    "UNHEALTHY_MAINTENANCE": (
        _V.FAILED,
        _A.RESTART_APP,
        "it is under maintenance and will run on once rescheduled: restart the job",
    ),
    "DEPRECATED_UNHEALTHY": (_V.FAILED, _A.DRAIN_AND_REPLACE, "the cloud calls it unhealthy"),
    "UNHEALTHY": (_V.FAILED, _A.DRAIN_AND_REPLACE, "the cloud calls it unhealthy"),
    "HEALTH_UNSPECIFIED": (_V.UNKNOWN, _A.RECORD, "its health was not read"),
}

SYMPTOMS: Final[dict[str, Row]] = {
    "LOW_MEMORY": (_V.DEGRADED, _A.RECORD, "the machine is short of memory"),
    "OUT_OF_MEMORY": (_V.DEGRADED, _A.RESTART_APP, "a program ran out of memory"),
    "EXECUTE_TIMED_OUT": (_V.DEGRADED, _A.RESTART_APP, "a program took too long"),
    "MESH_BUILD_FAIL": (_V.FAILED, _A.RESTART_SERVICE, "the chips could not be joined to a mesh: restart the runtime"),
    "HBM_OUT_OF_MEMORY": (_V.DEGRADED, _A.RESTART_APP, "a program ran out of the chip's memory"),
    "PROJECT_ABUSE": (_V.FAILED, _A.RECORD, "the cloud blocks the project: a person must act"),
}

_NOT_STARTED: Final = (
    r"(unable|failed) to initialize (backend '?tpu|TPU system|libtpu)|TPU (initialization|platform)[^\n]{0,20}(failed|not)"
    r"|failed to open /dev/(accel|vfio)"
)
_ICI: Final = (
    r"\bICI\b[^\n]{0,60}(down|fail|error|unhealthy)|slice[^\n]{0,30}(unhealthy|health check failed)"
    r"|failed to build (the )?mesh"
)
_IN_USE: Final = r"already in use by|libtpu_lockfile|TPU[^\n]{0,40}is in use|device or resource busy[^\n]{0,60}(accel|vfio|tpu)"
_HBM: Final = r"uncorrectable[^\n]{0,40}(hbm|ecc|memory)|hbm[^\n]{0,40}uncorrectable"
_HALTED: Final = r"(core|accelerator|tensor ?core)[^\n]{0,30}halted (unexpectedly|with)"
_NONE_FOUND: Final = r"no (TPU|accelerator)s?( chips?| devices?)?( were)? (found|detected|available)|found 0 TPU"
_ENDING: Final = r"maintenance event|TERMINATE_ON_HOST_MAINTENANCE|worker[^\n]{0,40}(is|was) (being )?preempted"
_SILENT: Final = (
    r"libtpu metrics unavailable|libtpu[^\n]{0,40}not found|metrics[^\n]{0,40}(unavailable|not available)|no metrics"
)

RUNTIME: Final[tuple[tuple[str, str, Row], ...]] = (
    ("tpu.hbm_uncorrectable", _HBM, (_V.FAILED, _A.DRAIN_AND_REPLACE, "an uncorrectable memory error of a chip: replace")),
    ("tpu.ici", _ICI, (_V.FAILED, _A.DRAIN_AND_DIAG, "the links between the chips are not well")),
    ("tpu.core_halted", _HALTED, (_V.FAILED, _A.RESTART_APP, "a core stopped: restart the program; diagnose when it repeats")),
    ("tpu.in_use", _IN_USE, (_V.DEGRADED, _A.RESTART_APP, "another program holds the chips: end it first")),
    ("tpu.none_found", _NONE_FOUND, (_V.FAILED, _A.REBOOT_NODE, "no TPU is found: reboot; replace when it repeats")),
    ("tpu.not_started", _NOT_STARTED,
     (_V.FAILED, _A.RESTART_SERVICE, "the TPU runtime does not start: restart it; reboot when it repeats")),
    ("tpu.maintenance", _ENDING,
     (_V.DEGRADED, _A.RECORD, "maintenance or the end of the machine is announced: checkpoint")),
    ("tpu.no_metrics", _SILENT,
     (_V.UNKNOWN, _A.RECORD, "the runtime tells nothing: no program runs, or libtpu is missing")),
)  # fmt: skip
"""Code, pattern, meaning; the first that matches speaks. Source: libtpu, JAX, tpu-info messages, read 2026-12-01."""
RUNTIME_SOURCE: Final = "messages of libtpu, JAX and tpu-info"
"""Of the rows of ``RUNTIME``."""

"""JSON schema of each field of a request: the Dag's Params and ``admit`` read this one table.

Clients meet it as HTTP 400 naming the field (Airflow checks Params) or as a refusal by ``admit``; both say what is allowed.
"""

from typing import Any, Final

from hostler.model.accelerators import ACCELERATORS
from hostler.model.enums import CapacityType

MAX_CONF_BYTES: Final = 256 * 1024
"""A larger conf is refused unread: it would be stored in the metadata database for ever."""

_TEXT: Final = {"type": "string", "minLength": 1, "maxLength": 256}
_URI: Final = {"type": ["string", "null"], "pattern": r"^(s3|file)://.+$", "maxLength": 1024}

REQUEST_FIELDS: Final[dict[str, dict[str, Any]]] = {
    "tenant": {
        "default": "default",
        "description": "Who pays: a tenant of fleet.yaml.",
        "schema": {**_TEXT, "pattern": r"^[a-z0-9][a-z0-9-]{0,62}$"},
    },
    "accelerator": {
        "default": "H100",
        "description": "Accelerator of each node.",
        "schema": {"type": "string", "enum": sorted(ACCELERATORS)},
    },
    "accelerators_per_node": {
        "default": 8,
        "description": "Accelerators in each node.",
        "schema": {"type": "integer", "minimum": 1, "maximum": 16},
    },
    "nodes": {
        "default": 2,
        "description": "Nodes of the gang; all or nothing.",
        "schema": {"type": "integer", "minimum": 1, "maximum": 1024},
    },
    "capacity_types": {
        "default": ["spot", "on-demand"],
        "description": "How to buy, in order of preference.",
        "schema": {
            "type": "array",
            "items": {"type": "string", "enum": [kind.value for kind in CapacityType]},
            "minItems": 1,
            "uniqueItems": True,
        },
    },
    "clouds": {
        "default": [],
        "description": "Clouds to use; empty: all of fleet.yaml.",
        "schema": {"type": "array", "items": _TEXT, "uniqueItems": True, "maxItems": 16},
    },
    "regions": {
        "default": [],
        "description": "Regions to use; empty: all of fleet.yaml.",
        "schema": {"type": "array", "items": _TEXT, "uniqueItems": True, "maxItems": 64},
    },
    "recipe": {
        "default": "digits",
        "description": "Training recipe, or `script` to run your own command.",
        "schema": {**_TEXT, "pattern": r"^[a-z][a-z0-9-]{0,62}$"},
    },
    "script": {
        "default": None,
        "description": "Your command line, run by `sh -c` once on each node (recipe `script`).",
        "schema": {"type": ["string", "null"], "maxLength": 65536},
    },
    "code_uri": {"default": None, "description": "Folder staged into $HOSTLER_CODE_DIR.", "schema": _URI},
    "data_uri": {"default": None, "description": "Folder staged into $HOSTLER_DATA_DIR.", "schema": _URI},
    "recipe_options": {
        "default": {},
        "description": "Settings of the recipe, name to text.",
        "schema": {"type": "object", "additionalProperties": {"type": "string", "maxLength": 1024}, "maxProperties": 64},
    },
    "secrets": {
        "default": [],
        "description": "Names of secrets given to the job's environment; never values.",
        "schema": {"type": "array", "items": _TEXT, "uniqueItems": True, "maxItems": 32},
    },
    "checkpoint_interval_steps": {
        "default": 20,
        "description": "Steps between checkpoints: the most work that a lost node costs.",
        "schema": {"type": "integer", "minimum": 1, "maximum": 1000000},
    },
    "deadline": {
        "default": None,
        "description": "Latest end, ISO 8601 with time zone; empty: none.",
        "schema": {"type": ["string", "null"], "format": "date-time", "maxLength": 64},
    },
    "max_cost_usd": {
        "default": 100.0,
        "description": "The run is released when its cost reaches this.",
        "schema": {"type": "number", "exclusiveMinimum": 0, "maximum": 10000000},
    },
    "max_price_usd_per_hour": {
        "default": None,
        "description": "Highest price of one node; empty: any.",
        "schema": {"type": ["number", "null"], "exclusiveMinimum": 0, "maximum": 10000000},
    },
    "keep_s": {
        "default": 0,
        "description": "Seconds to keep the nodes after the job; 0 releases at once.",
        "schema": {"type": "integer", "minimum": 0, "maximum": 604800},
    },
}
"""Field name in conf -> default, description, schema. The order is that of the form."""

"""What Airflow asks of an installed provider: a name and a description. Hostler needs no connection type of its own."""

from typing import Any


def get_provider_info() -> dict[str, Any]:
    """Returns the provider's metadata (entry point ``apache_airflow_provider``)."""
    return {
        "package-name": "hostler",
        "name": "Hostler",
        "description": "The life of rented accelerator nodes: provision, validate, train, back up, release, account.",
    }

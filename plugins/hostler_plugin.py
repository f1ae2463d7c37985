"""Registers Hostler with Airflow: links on the steps, the listener that keeps who acted, the door, the Fleet page.

Everything works without it.
"""

from typing import Any, ClassVar

from airflow.plugins_manager import AirflowPlugin

from hostler_operators.actors import ActorListener, ActorMiddleware
from hostler_operators.door import RequestDoor
from hostler_operators.fleet_page import PREFIX, FleetPage, external_view
from hostler_operators.links import LINKS


class HostlerPlugin(AirflowPlugin):
    """What Airflow reads."""

    name = "hostler"
    operator_extra_links: ClassVar[list[Any]] = list(LINKS)
    listeners: ClassVar[list[Any]] = [ActorListener()]
    fastapi_root_middlewares: ClassVar[list[Any]] = [
        {"name": "hostler actors", "middleware": ActorMiddleware},
        {"name": "hostler door", "middleware": RequestDoor},
    ]
    fastapi_apps: ClassVar[list[Any]] = [{"name": "hostler fleet", "app": FleetPage(), "url_prefix": PREFIX}]
    external_views: ClassVar[list[Any]] = [external_view()]

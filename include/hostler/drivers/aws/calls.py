"""How this driver calls Amazon: one attempt, bounded in time, errors drawn, lists read to the end."""

import threading
from collections.abc import Mapping
from typing import Any

from hostler.catalog.aws_quota import Quota
from hostler.cloud.session import SessionSource
from hostler.drivers.aws.classify import Effect, drawn

CONNECT_SHARE = 3
"""A third of a call's time is for connecting, at most; the rest for the answer."""

PAGE_SIZE = 1000
"""Most that DescribeInstances gives a page. Source: EC2 API reference, MaxResults."""

POOL_SIZE = 32
"""Connections kept a region: ``lifecycle`` calls a driver from that many threads at most."""


class Calls:
    """Amazon's API for one deployment. Thread-safe: SDK clients are, and each is made once.

    Args:
        timeout_s: connect plus read time-out of one call. page_size: machines a page, 5 to 1000.
    """

    def __init__(
        self, *, sessions: SessionSource, connection: str | None, timeout_s: float, page_size: int = PAGE_SIZE
    ) -> None:
        self._sessions = sessions
        self._connection = connection
        self._timeout_s = timeout_s
        self._page_size = page_size
        self._options: object | None = None
        self._clients: dict[tuple[str, str], Any] = {}
        self._lock = threading.Lock()

    def call(
        self,
        region: str,
        operation: str,
        *,
        effect: Effect = "read",
        service: str = "ec2",
        quota: Quota | None = None,
        **arguments: Any,
    ) -> Mapping[str, Any]:
        """Makes one call, once, and returns its answer.

        Args:
            operation: as the SDK names it, ``run_instances``. effect, quota: see ``classify.drawn``.

        Raises:
            CloudError: drawn; the SDK's error is its cause.
        """
        # Without a client nothing can have been sent, whatever the call would do.
        with drawn(f"client for {service} in {region}", "read"):
            client = self._client(service, region)
        with drawn(f"{operation} in {region}", effect, quota):
            answer: Mapping[str, Any] = getattr(client, operation)(**arguments)
            return answer

    def pages(
        self, region: str, operation: str, key: str, *, service: str = "ec2", page_size: int | None = None, **arguments: Any
    ) -> list[Any]:
        """Returns the items under ``key`` of every page of a list.

        Args:
            page_size: items a page; None takes the size for EC2.

        Raises:
            CloudError: drawn; a list that broke off is no list.
        """
        with drawn(f"client for {service} in {region}", "read"):
            client = self._client(service, region)
        with drawn(f"{operation} in {region}", "read"):
            paginator = client.get_paginator(operation)
            pages = paginator.paginate(PaginationConfig={"PageSize": page_size or self._page_size}, **arguments)
            return [item for page in pages for item in page.get(key, ())]

    def _client(self, service: str, region: str) -> Any:
        """Returns the client of a service in a region, made at the first call."""
        with self._lock:
            found = self._clients.get((service, region))
            if found is None:
                found = self._sessions.client("aws", service, region, self._connection, options=self._config())
                self._clients[(service, region)] = found
            return found

    def _config(self) -> object:
        """Returns the SDK's options. One attempt: a retry inside the SDK would outlive the call's budget, and buy unseen."""
        if self._options is None:
            from botocore.config import Config

            connect_s = self._timeout_s / CONNECT_SHARE
            self._options = Config(
                connect_timeout=connect_s,
                read_timeout=self._timeout_s - connect_s,
                retries={"mode": "standard", "total_max_attempts": 1},
                max_pool_connections=POOL_SIZE,
                user_agent_extra="hostler",
            )
        return self._options

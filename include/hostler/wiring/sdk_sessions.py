"""SDK clients from the SDKs' own default credentials: what the command line uses, with Airflow down or not there."""

import threading
from typing import Any

from hostler.cloud.errors import CloudAuthError, CloudConfigError


class SdkSessions:
    """A ``SessionSource`` without connections. Thread-safe; loads an SDK at the first client of its cloud.

    For Amazon the chain is boto3's own: environment, shared files, container and instance roles; ``AWS_ENDPOINT_URL`` and
    ``AWS_ENDPOINT_URL_<SERVICE>`` are honoured.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._session: Any = None
        self._clients: dict[tuple[str, str, int], tuple[Any, object | None]] = {}

    def client(self, cloud: str, service: str, region: str, connection: str | None, options: object | None = None) -> Any:
        """Returns a client, the same one for the same service, region and options object; ``connection`` is not used.

        Raises:
            CloudAuthError: the default chain finds no credentials. CloudConfigError: this cloud's SDK is not known here.
        """
        if cloud != "aws":
            raise CloudConfigError(f"no SDK session for cloud {cloud!r}; known: aws (connection {connection!r} needs Airflow)")
        key = (service, region, id(options))
        # Making clients is not thread-safe in boto3; using them is.
        with self._lock:
            if key not in self._clients:
                # The options are kept beside the client, so that their id stays theirs.
                self._clients[key] = (self._aws_session().client(service, region_name=region, config=options), options)
            return self._clients[key][0]

    def _aws_session(self) -> Any:
        """Returns the one boto3 session, once it has credentials."""
        if self._session is None:
            import boto3

            session = boto3.Session()
            if session.get_credentials() is None:
                raise CloudAuthError(
                    "no AWS credentials: set them up as for the aws command line, or name a connection in Airflow"
                )
            self._session = session
        return self._session

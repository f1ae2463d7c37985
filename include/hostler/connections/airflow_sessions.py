"""SDK clients and secrets from Airflow's connections and variables. Credentials go nowhere else."""

import threading
from typing import Any

from hostler.cloud.errors import CloudAuthError, CloudConfigError, CloudError, CloudUnavailableError
from hostler.connections.airflow_away import airflow_is_away, is_transport_fault

_ClientKey = tuple[str, str, str | None, int]


class AirflowSessions:
    """A ``SessionSource`` for workers and the triggerer: clients are made once and shared by all threads.

    boto3 clients are thread-safe; making one is not, and costs about 50 ms: hence the lock and the memory.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._clients: dict[_ClientKey, tuple[Any, object | None]] = {}

    def client(self, cloud: str, service: str, region: str, connection: str | None, options: object | None = None) -> Any:
        """Returns an SDK client of this connection; see ``hostler.cloud.session.SessionSource``.

        Raises:
            CloudAuthError: the connection does not exist or gives no usable credentials.
            CloudUnavailableError: Airflow could not be asked now, or the cloud's token service did not answer: again later.
            CloudConfigError: no sessions are known for this cloud.
        """
        if cloud != "aws":
            raise CloudConfigError(f"cloud {cloud!r}: Airflow connections give clients for: aws")
        key = (service, region, connection, id(options))
        with self._lock:
            if key not in self._clients:
                # The options are kept beside the client, so that their id stays theirs.
                self._clients[key] = (_aws_client(service, region, connection, options), options)
            return self._clients[key][0]


def _aws_client(service: str, region: str, connection: str | None, options: object | None) -> Any:
    """Makes a client through the amazon provider's hook, which honours the connection's roles and ``endpoint_url``."""
    from airflow.providers.amazon.aws.hooks.base_aws import AwsBaseHook

    try:
        hook = AwsBaseHook(aws_conn_id=connection, client_type=service, region_name=region, config=options)
        if connection and not hook.conn_config:
            # The hook takes whatever credentials lie about for a connection that it did not get: those of another account, maybe.
            raise _ConnectionMissingError
        return hook.get_client_type(region_name=region, config=options)
    except Exception as error:  # noqa: BLE001 - whatever the provider raises
        raise _drawn(error, service, connection) from None


class _ConnectionMissingError(LookupError):
    """Airflow gave no connection of this name."""


def _drawn(error: Exception, service: str, connection: str | None) -> CloudError:
    """Returns the drawn error. The SDK's and the hook's texts may quote what they were given: only the kind of error is told."""
    kind = type(error).__name__
    if is_transport_fault(error):
        return CloudUnavailableError(f"connection {connection!r} could not be read now: {kind}")
    if isinstance(error, _ConnectionMissingError) and connection:
        if airflow_is_away(connection):
            return CloudUnavailableError(
                f"connection {connection!r} could not be read now: Airflow's API server does not answer"
            )
        return CloudAuthError(f"connection {connection!r} does not exist in Airflow")
    return CloudAuthError(f"connection {connection!r} gives no {service} client: {kind}")


def secret(name: str) -> str:
    """Returns the password of the Airflow connection ``name``, else the variable ``name``; masked in all logs from now on.

    Raises:
        KeyError: neither exists, or it is empty; the text names it.
        ConnectionError: Airflow could not be asked now: again later.
    """
    from airflow.sdk.log import mask_secret

    value = _password_of(name) or _variable(name)
    if not value and airflow_is_away(name):
        raise ConnectionError(f"secret {name!r} could not be read now: Airflow's API server does not answer")
    if not value:
        raise KeyError(f"secret {name!r}: no Airflow connection with a password and no variable of this name")
    mask_secret(value)
    return value


def _password_of(name: str) -> str | None:
    from airflow.sdk import Connection
    from airflow.sdk.exceptions import AirflowNotFoundException, AirflowRuntimeError

    try:
        password: str | None = Connection.get(name).password
    except (AirflowNotFoundException, AirflowRuntimeError):
        return None
    return password


def _variable(name: str) -> str | None:
    from airflow.sdk import Variable

    value: str | None = Variable.get(name, default=None)
    return value

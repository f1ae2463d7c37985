"""How a driver gets its SDK clients without knowing where credentials live."""

from typing import Any, Protocol


class SessionSource(Protocol):
    """Gives ready SDK clients. ``hostler.connections`` makes them from Airflow connections, the command line from the SDK's
    own default credentials.
    """

    def client(self, cloud: str, service: str, region: str, connection: str | None, options: object | None = None) -> Any:
        """Returns an SDK client.

        Args:
            cloud: ``aws``, ``gcp``, ... service: the SDK's service name, such as ``ec2`` or ``s3``.
            connection: Airflow connection id; None means the SDK's default chain.
            options: the SDK's own client options (``botocore.config.Config`` for AWS); None means its defaults.

        Raises:
            CloudAuthError: there are no usable credentials; the text names the connection, never its content.
        """
        ...

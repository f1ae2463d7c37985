"""Tells "it does not exist" from "Airflow could not be asked".

Airflow 3.3.2 answers a worker's question for a connection with *not found* also while its API server is away: its secrets back end
takes every error for an absence. Taken at its word, an outage of the API server would end leases as if their credentials had been
revoked.
"""

from typing import Final

_TRANSPORT: Final = frozenset(
    {
        "AirflowRuntimeError",  # the Execution API's own errors, all but "not found"
        "EndpointConnectionError",
        "HTTPClientError",  # botocore's base of time-outs and cut lines
        "RemoteError",
        "TransportError",  # httpx's base of the same
    }
)
"""Class names, so that nothing needs to be imported to recognise them."""


def is_transport_fault(error: BaseException) -> bool:
    """Returns True when an error says that a question was not answered, rather than what the answer is."""
    if isinstance(error, PermissionError | FileNotFoundError):
        return False  # the first is also Airflow's "access denied"; the second a key file that a connection names
    names = {cls.__name__ for cls in type(error).__mro__}
    return isinstance(error, OSError | EOFError) or not names.isdisjoint(_TRANSPORT)


def airflow_is_away(name: str) -> bool:
    """Asks Airflow itself for the connection ``name``; True when no answer comes, False when it says that there is none.

    False as well where there is nobody to ask, as in a test or on the command line.
    """
    try:
        from airflow.sdk.exceptions import ErrorType
        from airflow.sdk.execution_time.comms import ErrorResponse, GetConnection
        from airflow.sdk.execution_time.task_runner import SUPERVISOR_COMMS
    except ImportError:
        return False
    try:
        answer = SUPERVISOR_COMMS.send(GetConnection(conn_id=name))
    except Exception as error:  # noqa: BLE001 - the pipe's errors are as many as its ends
        return is_transport_fault(error)
    return isinstance(answer, ErrorResponse) and answer.error in {ErrorType.API_SERVER_ERROR, ErrorType.GENERIC_ERROR}

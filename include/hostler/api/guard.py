"""Stands before every route, those that do not exist too: nothing is answered to a request that the door does not admit.

It wraps the whole app, so that a route which is added later cannot forget it.
"""

from typing import Final

from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from hostler.api.callers import Door, NotAllowedError, NotSignedInError

HEADERS: Final = {
    # Everything comes from where the page comes from; only that place may put the page into a frame.
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'self'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
"""Set on every answer, refusals too. Source: https://www.w3.org/TR/CSP3/."""


class Guard:
    """Plain ASGI. Puts the caller into ``request.state.caller``.

    Args:
        app: what is guarded. door: who is let in.
    """

    def __init__(self, app: ASGIApp, door: Door) -> None:
        self._app = app
        self._door = door

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Passes an admitted request on; answers any other one itself."""
        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
            return
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers[name] = value
                headers.setdefault("Cache-Control", "no-store")
            await send(message)

        request = Request(scope, receive)
        try:
            request.state.caller = await self._door.admit(request)
        except NotSignedInError as error:
            refusal = JSONResponse({"detail": str(error)}, 401, headers={"WWW-Authenticate": self._door.challenge})
            await refusal(scope, receive, send_guarded)
            return
        except NotAllowedError as error:
            await JSONResponse({"detail": str(error)}, 403)(scope, receive, send_guarded)
            return
        await self._app(scope, receive, send_guarded)

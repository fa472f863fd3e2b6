"""The guard in front of all endpoints: a request passes if its path is open to all or its user is authorized.

Owns the responses 401, 403 and 500 of the guard itself. Paths that do not exist are guarded too: a user without access
does not learn which paths exist.
"""

from __future__ import annotations

from http import HTTPStatus

import orjson
from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

from podium.lib.clock import Clock
from podium.lib.log import get_logger
from podium.server.serving.authentication import Authenticator, NotAuthenticated
from podium.server.serving.authorization import Authorizer, NotDecided

log = get_logger("serving")

_PATH_SHOWN_MAX = 200
_TOLD_EVERY_S = 10.0
_REASONS = {
    HTTPStatus.UNAUTHORIZED: "Unauthorized",
    HTTPStatus.FORBIDDEN: "Forbidden",
    HTTPStatus.NOT_FOUND: "NotFound",
    HTTPStatus.INTERNAL_SERVER_ERROR: "InternalError",
}


def guard(authenticator: Authenticator, authorizer: Authorizer, clock: Clock) -> Middleware:
    """Return the guard, as a middleware."""
    refusals = _Refusals(clock)

    @web.middleware
    async def let_through(request: web.Request, handler: Handler) -> web.StreamResponse:
        if authorizer.is_open(request.path):
            return await handler(request)
        verb, path = request.method.lower(), request.path
        try:
            user = await authenticator.user_of(request)
            is_allowed = await authorizer.allows(user, verb, path)
        except NotAuthenticated as error:
            refusals.tell(path[:_PATH_SHOWN_MAX], str(error))
            refusal = _refusal(HTTPStatus.UNAUTHORIZED, "Unauthorized")
            # A client certificate belongs to its connection: other credentials need another connection.
            refusal.force_close()
            return refusal
        except NotDecided as error:
            log.warning("Access could not be reviewed", path=path[:_PATH_SHOWN_MAX], error=str(error))
            return _refusal(HTTPStatus.INTERNAL_SERVER_ERROR, "Internal Server Error: access could not be reviewed")
        if not is_allowed:
            return _refusal(HTTPStatus.FORBIDDEN, f'forbidden: User "{user.name}" cannot {verb} path "{path}"')
        return await handler(request)

    return let_through


class _Refusals:
    """Logs refused credentials, at info level only one every ten seconds: clients can cause any number of them."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._next_s = 0.0
        self._untold = 0

    def tell(self, path: str, reason: str) -> None:
        """Log a refused request, or count it for the next log line."""
        now_s = self._clock.monotonic()
        is_shown = now_s >= self._next_s
        show = log.info if is_shown else log.debug
        show("Unable to authenticate the request", path=path, reason=reason, more_before=self._untold)
        if is_shown:
            self._next_s = now_s + _TOLD_EVERY_S
        self._untold = 0 if is_shown else self._untold + 1


def _refusal(code: HTTPStatus, message: str) -> web.Response:
    return web.Response(status=code, body=failure(code, message), content_type="application/json")


def failure(code: HTTPStatus, message: str) -> bytes:
    """Return the `Status` that tells an API client why it gets this code."""
    status = {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": message,
        "reason": _REASONS[code],
        "code": int(code),
    }
    return orjson.dumps(status)

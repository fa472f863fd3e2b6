"""The door before all endpoints: nothing answers that is not open to all or allowed to who asks.

Owns the answers 401, 403 and 500 of the door itself. What is not served is guarded too: who may not look is not told
what there is.
"""

from __future__ import annotations

from http import HTTPStatus

import orjson
from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

from podium.daemon.serving.authentication import Authenticator, NotAuthenticated
from podium.daemon.serving.authorization import Authorizer, NotDecided
from podium.telemetry import get_logger

log = get_logger("serving")

_PATH_SHOWN_MAX = 200
_REASONS = {
    HTTPStatus.UNAUTHORIZED: "Unauthorized",
    HTTPStatus.FORBIDDEN: "Forbidden",
    HTTPStatus.INTERNAL_SERVER_ERROR: "InternalError",
}


def guard(authenticator: Authenticator, authorizer: Authorizer) -> Middleware:
    """The door, as a middleware."""

    @web.middleware
    async def let_through(request: web.Request, handler: Handler) -> web.StreamResponse:
        if authorizer.is_open(request.path):
            return await handler(request)
        verb, path = request.method.lower(), request.path
        try:
            user = await authenticator.user_of(request)
            is_allowed = await authorizer.allows(user, verb, path)
        except NotAuthenticated as error:
            log.info("Unable to authenticate the request", path=path[:_PATH_SHOWN_MAX], reason=str(error))
            refusal = _status(HTTPStatus.UNAUTHORIZED, "Unauthorized")
            # A certificate belongs to its connection: another one needs another connection.
            refusal.force_close()
            return refusal
        except NotDecided as error:
            log.warning("Access could not be reviewed", path=path[:_PATH_SHOWN_MAX], error=str(error))
            return _status(HTTPStatus.INTERNAL_SERVER_ERROR, "Internal Server Error: access could not be reviewed")
        if not is_allowed:
            return _status(HTTPStatus.FORBIDDEN, f'forbidden: User "{user.name}" cannot {verb} path "{path}"')
        return await handler(request)

    return let_through


def _status(code: HTTPStatus, message: str) -> web.Response:
    status = {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": message,
        "reason": _REASONS[code],
        "code": int(code),
    }
    return web.Response(status=code, body=orjson.dumps(status), content_type="application/json")

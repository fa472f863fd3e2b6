"""The errors of requests to the API server, including those of the network and of proxies.

Owns the exceptions and how a `Status` body selects one. Never retries: the caller decides what an error means.
"""

# ruff: noqa: N818 - the names are the API's own reasons
from __future__ import annotations

from typing import ClassVar

import msgspec
from msgspec import Struct

from podium.lib.error_text import UserFacingError


class ApiError(UserFacingError):
    """A request that gave no result.

    `may_have_happened` says whether a write with this error can have taken effect all the same: then the caller must
    read the object again, or wait for the watch, before it draws a conclusion.
    """

    may_have_happened: ClassVar[bool] = False

    def __init__(self, message: str, *, code: int = 0, reason: str = "", retry_after_s: float | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        self.reason = reason
        self.retry_after_s = retry_after_s

    def __str__(self) -> str:
        """Return the message, preceded by code and reason if the server gave them."""
        head = " ".join(part for part in (str(self.code or ""), self.reason) if part)
        return f"{head}: {self.message}" if head else self.message


def may_have_happened(error: BaseException | None) -> bool:
    """Return True if a write that failed with this error, or an earlier one in its chain, may have taken effect."""
    while error is not None and not (isinstance(error, ApiError) and error.may_have_happened):
        error = error.__cause__ or error.__context__
    return error is not None


class Unreachable(ApiError):
    """No connection could be made: the request was certainly not sent."""


class PoolExhausted(Unreachable):
    """All connections were in use for too long: the request was certainly not sent. Says nothing about the server."""


class NotLeading(ApiError):
    """This process may write no more: the request was certainly not sent."""


class ConnectionLost(ApiError):
    """The connection broke, or the deadline passed, while reading."""


class NoResponse(ConnectionLost):
    """No data has arrived for too long: the server is slow, or the connection is dead without having been closed."""


class OutcomeUnknown(ApiError):
    """The connection broke, or the deadline passed, after a write may have been sent."""

    may_have_happened = True


class Malformed(ApiError):
    """The server's answer does not have the expected form."""

    may_have_happened = True


class BadRequest(ApiError):
    """400: the server did not understand the request."""


class Unauthorized(ApiError):
    """401: the credentials are not valid (any more)."""


class Forbidden(ApiError):
    """403: the credentials are known but may not do this."""


class NotFound(ApiError):
    """404: there is no such object, or no such resource type."""


class Conflict(ApiError):
    """409: the object has changed, or its state forbids the write (a pod that is bound already)."""


class AlreadyExists(ApiError):
    """409: an object of that name already exists."""


class Gone(ApiError):
    """410: the resource version or continue token is too old."""


class Expired(Gone):
    """410 with reason Expired, which current API servers use instead of `Gone`."""


class Invalid(ApiError):
    """422: the object or the query does not pass validation."""


class TooManyRequests(ApiError):
    """429: the request was not carried out; retry it after `retry_after_s` seconds.

    `is_server_wide` says that API priority and fairness rejected the request, so that other requests would be rejected
    too. Otherwise a webhook or the storage rejected it, which may accept others.
    """

    def __init__(self, message: str, *, code: int = 429, reason: str = "", retry_after_s: float | None = None) -> None:
        super().__init__(
            message, code=code, reason=reason, retry_after_s=1.0 if retry_after_s is None else retry_after_s
        )
        self.retry_after_s: float
        self.is_server_wide = False


class ServerError(ApiError):
    """5xx: the server failed, and the answer does not say whether the request took effect."""

    may_have_happened = True


class InternalError(ServerError):
    """500: the server failed."""


class Unavailable(ServerError):
    """503 or 502: the server, or a proxy in front of it, cannot answer now."""


class ServerTimeout(ServerError):
    """504, or reason ServerTimeout: the server gave up waiting."""


_BY_REASON: dict[str, type[ApiError]] = {
    "BadRequest": BadRequest,
    "Unauthorized": Unauthorized,
    "Forbidden": Forbidden,
    "NotFound": NotFound,
    "Conflict": Conflict,
    "AlreadyExists": AlreadyExists,
    "Gone": Gone,
    "Expired": Expired,
    "Invalid": Invalid,
    "TooManyRequests": TooManyRequests,
    "InternalError": InternalError,
    "ServiceUnavailable": Unavailable,
    "ServerTimeout": ServerTimeout,
    "Timeout": ServerTimeout,
}

REASONS = frozenset(_BY_REASON) | {
    "MethodNotAllowed",
    "NotAcceptable",
    "RequestEntityTooLarge",
    "StorageReadError",
    "UnsupportedMediaType",
}
"""The reasons that an API server gives by itself. A webhook may give any other one."""

_BY_CODE: dict[int, type[ApiError]] = {
    400: BadRequest,
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    408: ServerTimeout,
    409: Conflict,
    410: Gone,
    422: Invalid,
    429: TooManyRequests,
    500: InternalError,
    502: Unavailable,
    503: Unavailable,
    504: ServerTimeout,
}


UNDER_WAY_S = 60.0
"""For how long an API server may work on a request (kube-apiserver's `--request-timeout`), answered or not."""

ACCEPTED = (200, 201, 202)
"""The codes of an API server for a request that was carried out or accepted."""

_ERROR_CODES = range(400, 600)
RETRY_AFTER_S_MAX = 60.0
"""The longest Retry-After that is respected. A server, or a proxy in front of it, may ask for more."""


class StatusDetails(Struct, rename="camel"):
    """The part of a `Status` that is read here."""

    retry_after_seconds: int | None = None


class Status(Struct, rename="camel"):
    """`meta/v1 Status`: the body of a failed request."""

    code: int | None = None
    reason: str | None = None
    message: str | None = None
    details: StatusDetails | None = None


_decode_status = msgspec.json.Decoder(Status).decode


def from_status(status: Status, *, code: int = 0, retry_after_s: float | None = None) -> ApiError:
    """Return the error for a `Status`. Its own fields have precedence over the HTTP answer's."""
    reason = status.reason or ""
    if retry_after_s is None and status.details is not None:
        retry_after_s = status.details.retry_after_seconds or None
    if retry_after_s is not None:
        # An integer of JSON may be too large for a float.
        retry_after_s = float(min(max(0, retry_after_s), RETRY_AFTER_S_MAX))
    actual = status.code if status.code and status.code in _ERROR_CODES else code
    kind = _BY_REASON.get(reason) or _kind_of(actual)
    message = status.message or "the server gave no message"
    return kind(message, code=actual, reason=reason, retry_after_s=retry_after_s)


def _kind_of(code: int) -> type[ApiError]:
    return _BY_CODE.get(code) or (ServerError if code >= 500 else ApiError)


def from_response(code: int, body: bytes, retry_after: str | None = None, *, has_flow_schema: bool = False) -> ApiError:
    """Return the error for an HTTP answer.

    If the code leaves open whether a write took effect, the body cannot change that.

    Args:
        code: the HTTP status, not one of `ACCEPTED`. An API server never answers podium's requests with one below 400.
        body: a `Status` as JSON, or whatever a proxy sends instead.
        retry_after: the header's text; only whole seconds are understood, as in client-go.
        has_flow_schema: whether a header names the flow schema, which API priority and fairness adds to every answer.
    """
    seconds = float(retry_after) if retry_after is not None and retry_after.isdecimal() else None
    try:
        status = _decode_status(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        status = Status(message=body[:200].decode(errors="replace").strip() or None)
    if code < 400:
        return Malformed(f"answered with code {code}: {body[:100]!r}")
    error = from_status(status, code=code, retry_after_s=seconds)
    if isinstance(error, TooManyRequests):
        # The rejection of API priority and fairness has this text; webhooks and the storage send a Status of their own.
        error.is_server_wide = has_flow_schema and error.message.lower().startswith("too many requests")
    if _kind_of(code).may_have_happened and not error.may_have_happened:
        return _kind_of(code)(error.message, code=code, retry_after_s=error.retry_after_s)
    return error

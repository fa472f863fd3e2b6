"""What the API server, or the way to it, can answer instead of a result.

Owns the exceptions and their choice from a `Status` body. Never retries: whoever asked decides what an error means.
"""

# ruff: noqa: N818 - the names are the API's own reasons
from __future__ import annotations

from typing import ClassVar

import msgspec
from msgspec import Struct

from podium.lib.error_words import Worded


class ApiError(Worded):
    """A request that gave no result.

    `may_have_happened` says whether a write that ended so can nevertheless have taken effect: then the object has to
    be read again (or the watch awaited) before anything is concluded.
    """

    may_have_happened: ClassVar[bool] = False

    def __init__(self, message: str, *, code: int = 0, reason: str = "", retry_after_s: float | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        self.reason = reason
        self.retry_after_s = retry_after_s

    def __str__(self) -> str:
        """The message, led by code and reason where the server gave them."""
        head = " ".join(part for part in (str(self.code or ""), self.reason) if part)
        return f"{head}: {self.message}" if head else self.message


class Unreachable(ApiError):
    """No connection could be made: the request was certainly not sent."""


class Crowded(Unreachable):
    """All connections were in use for too long: the request was certainly not sent, whatever the server may be like."""


class HeldBack(ApiError):
    """This process may write no more: the request was certainly not sent."""


class ConnectionLost(ApiError):
    """The connection broke, or the deadline passed, while reading."""


class Silent(ConnectionLost):
    """Nothing has come for too long: the server is slow, or the connection is dead without anybody having said so."""


class OutcomeUnknown(ApiError):
    """The connection broke, or the deadline passed, after a write may have been sent."""

    may_have_happened = True


class Malformed(ApiError):
    """The server's answer is not what its type promises."""

    may_have_happened = True


class BadRequest(ApiError):
    """400: the server could not make sense of the request."""


class Unauthorized(ApiError):
    """401: the credentials are not valid, or not valid any more."""


class Forbidden(ApiError):
    """403: the credentials are known but may not do this."""


class NotFound(ApiError):
    """404: there is no such object, or no such resource type."""


class Conflict(ApiError):
    """409: the object has changed, or its state forbids the write (a pod that is bound already)."""


class AlreadyExists(ApiError):
    """409: an object of that name is there already."""


class Gone(ApiError):
    """410: the resource version or continue token is too old to go on from."""


class Expired(Gone):
    """410 with reason Expired: what API servers answer today for `Gone`."""


class Invalid(ApiError):
    """422: the object or the query does not pass validation."""


class TooManyRequests(ApiError):
    """429: not done; to be asked again after `retry_after_s` seconds.

    `is_server_wide` says that priority and fairness has refused it, so that other requests would be refused, too.
    Otherwise a webhook or a store has, which may accept others.
    """

    def __init__(self, message: str, *, code: int = 429, reason: str = "", retry_after_s: float | None = None) -> None:
        super().__init__(
            message, code=code, reason=reason, retry_after_s=1.0 if retry_after_s is None else retry_after_s
        )
        self.retry_after_s: float
        self.is_server_wide = False


class ServerError(ApiError):
    """5xx: something failed on the server's side, at a point that the answer does not tell."""

    may_have_happened = True


class InternalError(ServerError):
    """500: the server failed."""


class Unavailable(ServerError):
    """503 or 502: the server, or a proxy before it, cannot answer now."""


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


ACCEPTED = (200, 201, 202)
"""The codes by which an API server says that it has done, or will do, what was asked."""

RETRY_AFTER_S_MAX = 60.0
"""A server, or a proxy before it, may ask for more: it is asked again then."""


class StatusDetails(Struct, rename="camel"):
    """The part of a `Status` that is read here."""

    retry_after_seconds: int | None = None


class Status(Struct, rename="camel"):
    """`meta/v1 Status`: how the API server words a failure."""

    code: int | None = None
    reason: str | None = None
    message: str | None = None
    details: StatusDetails | None = None


_decode_status = msgspec.json.Decoder(Status).decode


def from_status(status: Status, *, code: int = 0, retry_after_s: float | None = None) -> ApiError:
    """The error a `Status` stands for; its own words win over the HTTP answer's around it."""
    reason = status.reason or ""
    if retry_after_s is None and status.details is not None and status.details.retry_after_seconds:
        retry_after_s = float(status.details.retry_after_seconds)
    if retry_after_s is not None:
        retry_after_s = min(retry_after_s, RETRY_AFTER_S_MAX)
    actual = status.code or code
    kind = _BY_REASON.get(reason) or _kind_of(actual)
    message = status.message or "the server gave no message"
    return kind(message, code=actual, reason=reason, retry_after_s=retry_after_s)


def _kind_of(code: int) -> type[ApiError]:
    return _BY_CODE.get(code) or (ServerError if code >= 500 else ApiError)


def from_response(code: int, body: bytes, retry_after: str | None = None, *, has_flow_schema: bool = False) -> ApiError:
    """The error an HTTP answer stands for.

    A code that leaves open whether a write has happened is not overruled by a body that says something else.

    Args:
        code: the HTTP status, not one of `ACCEPTED`. Below 400 it is no answer of an API server to what podium asks.
        body: a `Status` as JSON, or anything a proxy may say instead.
        retry_after: the header's text; only whole seconds are understood, as in client-go.
        has_flow_schema: whether a header names the flow schema, as priority and fairness has it on every answer.
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
        # Its own refusal is this text; a webhook's or a store's is a Status with words of theirs.
        error.is_server_wide = has_flow_schema and error.message.lower().startswith("too many requests")
    if _kind_of(code).may_have_happened and not error.may_have_happened:
        return _kind_of(code)(error.message, code=code, retry_after_s=error.retry_after_s)
    return error

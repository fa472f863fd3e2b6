"""The API server's errors: one exception that converts itself to a `Status` object.

Source: apimachinery pkg/api/errors (v0.36): the reasons, codes and messages that clients read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from podium.sandbox.resources import ResourceType

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Cause:
    """One invalid field: its path, the message, and the machine-readable reason."""

    field: str
    message: str
    reason: str = "FieldValueInvalid"

    def as_json(self) -> Json:
        """Return the cause as an entry of `Status.details.causes`."""
        cause = {"reason": self.reason, "message": self.message}
        return cause | {"field": self.field} if self.field else cause


class ApiError(Exception):
    """The server answers the request with a `Status` of status Failure."""

    def __init__(
        self,
        code: int,
        reason: str,
        message: str,
        *,
        details: Json | None = None,
        retry_after_s: int | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.message = message
        self.retry_after_s = retry_after_s
        self.details = dict(details or {})
        if retry_after_s is not None:
            self.details["retryAfterSeconds"] = retry_after_s

    def status(self) -> Json:
        """Return the body of the answer."""
        body: Json = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
            "reason": self.reason,
        }
        if self.details:
            body["details"] = self.details
        return body | {"code": self.code}


def bad_request(message: str) -> ApiError:
    """Return the error 400: the request is malformed."""
    return ApiError(400, "BadRequest", message)


def nested_too_deep() -> ApiError:
    """Return the error 400: the body of the request has more levels than any object."""
    return bad_request("the body of the request is nested too deep")


def forbidden(resource: ResourceType, obj: Json, reason: str) -> ApiError:
    """Return the error 403: admission refuses the object."""
    name = obj["metadata"].get("name") or obj["metadata"].get("generateName") or ""
    message = f'{resource.group_resource} "{name}" is forbidden: {reason}'
    return ApiError(403, "Forbidden", message, details=_details(resource, name))


def not_found(resource: ResourceType, name: str) -> ApiError:
    """Return the error 404: the object does not exist."""
    message = f'{resource.group_resource} "{name}" not found'
    return ApiError(404, "NotFound", message, details=_details(resource, name))


def already_exists(resource: ResourceType, name: str) -> ApiError:
    """Return the error 409: an object of that name exists."""
    message = f'{resource.group_resource} "{name}" already exists'
    return ApiError(409, "AlreadyExists", message, details=_details(resource, name))


def conflict(resource: ResourceType, name: str, reason: str) -> ApiError:
    """Return the error 409: a precondition does not hold."""
    message = f'Operation cannot be fulfilled on {resource.group_resource} "{name}": {reason}'
    return ApiError(409, "Conflict", message, details=_details(resource, name))


def stale(resource: ResourceType, name: str) -> ApiError:
    """Return the error 409: the object has changed since the writer read it."""
    reason = "the object has been modified; please apply your changes to the latest version and try again"
    return conflict(resource, name, reason)


def invalid(resource: ResourceType, name: str, causes: Sequence[Cause]) -> ApiError:
    """Return the error 422: the object is invalid. Every invalid field is a cause."""
    descriptions = [f"{cause.field}: {cause.message}" for cause in causes]
    text = descriptions[0] if len(descriptions) == 1 else "[" + ", ".join(descriptions) + "]"
    details = {
        "name": name,
        "group": resource.group,
        "kind": resource.kind,
        "causes": [cause.as_json() for cause in causes],
    }
    return ApiError(422, "Invalid", f'{resource.kind} "{name}" is invalid: {text}', details=details)


def expired(message: str) -> ApiError:
    """Return the error 410: the history no longer contains that revision."""
    return ApiError(410, "Expired", message)


def too_many_requests(message: str, retry_after_s: int | None, causes: Sequence[Cause] = ()) -> ApiError:
    """Return the error 429: the client must retry later."""
    details: Json = {"causes": [cause.as_json() for cause in causes]} if causes else {}
    return ApiError(429, "TooManyRequests", message, details=details, retry_after_s=retry_after_s)


def _details(resource: ResourceType, name: str) -> Json:
    details = {"name": name, "kind": resource.plural}
    if resource.group:
        details["group"] = resource.group
    return details

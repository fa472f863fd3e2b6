"""The API server's refusals: one exception that knows how to become a `Status` object.

Source: apimachinery pkg/api/errors (v0.36): reasons, codes and message shapes that clients look at.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from podium.sandbox.resources import ResourceType

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Cause:
    """One field that is wrong: where, why, and the reason code a client can switch on."""

    field: str
    message: str
    reason: str = "FieldValueInvalid"

    def as_json(self) -> Json:
        """The cause as it stands in `Status.details.causes`."""
        shown = {"reason": self.reason, "message": self.message}
        return shown | {"field": self.field} if self.field else shown


class ApiError(Exception):
    """A request that is answered with a `Status` of kind Failure."""

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
        """The answer's body."""
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
    """400: the request itself makes no sense."""
    return ApiError(400, "BadRequest", message)


def not_found(resource: ResourceType, name: str) -> ApiError:
    """404: no such object."""
    message = f'{resource.group_resource} "{name}" not found'
    return ApiError(404, "NotFound", message, details=_details(resource, name))


def already_exists(resource: ResourceType, name: str) -> ApiError:
    """409: the name is taken."""
    message = f'{resource.group_resource} "{name}" already exists'
    return ApiError(409, "AlreadyExists", message, details=_details(resource, name))


def conflict(resource: ResourceType, name: str, why: str) -> ApiError:
    """409: a precondition does not hold."""
    message = f'Operation cannot be fulfilled on {resource.group_resource} "{name}": {why}'
    return ApiError(409, "Conflict", message, details=_details(resource, name))


def stale(resource: ResourceType, name: str) -> ApiError:
    """409: the object has changed since the writer read it."""
    why = "the object has been modified; please apply your changes to the latest version and try again"
    return conflict(resource, name, why)


def invalid(resource: ResourceType, name: str, causes: Sequence[Cause]) -> ApiError:
    """422: the object breaks a rule; every broken field is a cause."""
    listed = [f"{cause.field}: {cause.message}" for cause in causes]
    text = listed[0] if len(listed) == 1 else "[" + ", ".join(listed) + "]"
    details = {
        "name": name,
        "group": resource.group,
        "kind": resource.kind,
        "causes": [cause.as_json() for cause in causes],
    }
    return ApiError(422, "Invalid", f'{resource.kind} "{name}" is invalid: {text}', details=details)


def expired(message: str) -> ApiError:
    """410: that revision is no longer in the history."""
    return ApiError(410, "Expired", message)


def too_many_requests(message: str, retry_after_s: int | None, causes: Sequence[Cause] = ()) -> ApiError:
    """429: come back later."""
    details: Json = {"causes": [cause.as_json() for cause in causes]} if causes else {}
    return ApiError(429, "TooManyRequests", message, details=details, retry_after_s=retry_after_s)


def _details(resource: ResourceType, name: str) -> Json:
    details = {"name": name, "kind": resource.plural}
    if resource.group:
        details["group"] = resource.group
    return details

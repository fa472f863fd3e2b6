"""Errors about the content of objects, named by the field at fault."""

from __future__ import annotations

from podium.lib.error_text import UserFacingError


class FieldError(UserFacingError, ValueError):
    """A field of an object has no usable meaning.

    Attributes:
        path: The field's path in the API's spelling: `spec.containers[0].resources.requests[cpu]`.
        detail: What is wrong with it.
    """

    def __init__(self, path: str, detail: str) -> None:
        super().__init__(path, detail)
        self.path = path
        self.detail = detail

    def __str__(self) -> str:
        return f"{self.path}: {self.detail}"


def field_and_detail(mismatch: str) -> tuple[str, str]:
    """Split msgspec's `Expected x, got y - at $.spec.z` into the field, empty if it names none, and the error."""
    detail, _, path = mismatch.rpartition(" - at ")
    if not detail:
        return "", mismatch.replace("`", "")
    return path.strip("`").removeprefix("$").removeprefix("."), f"{detail[0].lower()}{detail[1:]}".replace("`", "")

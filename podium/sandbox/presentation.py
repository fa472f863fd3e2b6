"""The forms of an answer, chosen by `Accept`: plain objects and lists, metadata only, or kubectl's tables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import orjson

from podium.sandbox.errors import ApiError
from podium.sandbox.journal import Record
from podium.sandbox.resources import ResourceType
from podium.sandbox.tables import table
from podium.sandbox.views import metadata_only, shape_of

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class ListMeta:
    """The metadata of a list."""

    revision: int
    continue_token: str = ""
    remaining: int | None = None

    def as_json(self) -> Json:
        """Return the metadata as JSON for the answer."""
        metadata: Json = {"resourceVersion": str(self.revision)}
        if self.continue_token:
            metadata["continue"] = self.continue_token
        if self.remaining is not None:
            metadata["remainingItemCount"] = self.remaining
        return metadata


@dataclass(frozen=True, slots=True)
class Presentation:
    """One form of showing the objects of a type: `form` is object, table or metadata."""

    resource: ResourceType
    form: str
    include_object: str
    now: Callable[[], datetime]

    def one(self, record: Record) -> bytes:
        """Encode one object."""
        if self.form == "table":
            return orjson.dumps(self._table([record], {"resourceVersion": str(record.revision)}))
        if self.form == "metadata":
            return record.encoded("metadata", metadata_only)
        return record.encoded(self.resource.api_version, shape_of(self.resource))

    def many(self, records: Sequence[Record], meta: ListMeta) -> bytes:
        """Encode a list of objects."""
        if self.form == "table":
            return orjson.dumps(self._table(records, meta.as_json()))
        kind, version = self.resource.list_kind, self.resource.api_version
        if self.form == "metadata":
            kind, version = "PartialObjectMetadataList", "meta.k8s.io/v1"
        head = {"kind": kind, "apiVersion": version, "metadata": meta.as_json()}
        return orjson.dumps(head)[:-1] + b',"items":[' + b",".join(map(self.one, records)) + b"]}"

    def bookmark(self, revision: int, *, initial_events_end: bool = False) -> bytes:
        """Return the object of a BOOKMARK event."""
        metadata: Json = {"resourceVersion": str(revision), "creationTimestamp": None}
        if initial_events_end:
            metadata["annotations"] = {"k8s.io/initial-events-end": "true"}
        obj = {"kind": self.resource.kind, "apiVersion": self.resource.api_version, "metadata": metadata}
        if self.form == "table":
            return orjson.dumps(table(self.resource, [], {"resourceVersion": str(revision)}, self.now()))
        return orjson.dumps(metadata_only(obj) if self.form == "metadata" else obj)

    def _table(self, records: Sequence[Record], metadata: Json) -> Json:
        rows = []
        for record in records:
            content: Json | None = None
            if self.include_object == "Metadata":
                content = metadata_only(record.obj)
            elif self.include_object == "Object":
                shape = shape_of(self.resource)
                content = shape(record.obj) if shape else record.obj
            rows.append((record.obj, content))
        return table(self.resource, rows, metadata, self.now())


def negotiate(accept: str, include_object: str, resource: ResourceType, now: Callable[[], datetime]) -> Presentation:
    """Choose the first form in an Accept header that the sandbox supports.

    Raises:
        ApiError: 406, it supports none of them.
    """
    for entry in accept.split(","):
        media, *parameters = (part.strip() for part in entry.split(";"))
        kind = dict(part.split("=", 1) for part in parameters if "=" in part).get("as", "")
        if media not in ("application/json", "application/*", "*/*", "application/yaml", "text/html", ""):
            continue
        form = {"Table": "table", "PartialObjectMetadata": "metadata", "PartialObjectMetadataList": "metadata"}
        if not kind or kind in form:
            return Presentation(resource, form.get(kind, "object"), include_object or "Metadata", now)
    raise ApiError(406, "NotAcceptable", "only the following media types are accepted: application/json")

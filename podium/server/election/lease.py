"""The Lease as the API server stores it, and how it is read and written.

Owns the wire form. All other content of the object (labels, annotations, future fields) is written back unchanged.

Source: client-go v0.36 tools/leaderelection/resourcelock/leaselock.go.
Differs: a fractional duration is rounded up on the wire; upstream truncates it, so that others may take over too early.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import orjson

from podium.binder.events.event import ObjectReference
from podium.client.answers import check_object
from podium.client.dispatcher import Requester
from podium.lib.error_text import error_text
from podium.objects.api_errors import Malformed
from podium.objects.meta import ObjectMeta

Json = dict[str, Any]

_API_VERSION = "coordination.k8s.io/v1"
_KIND = "Lease"
_KUBE_SCHEDULER = "kube-scheduler"
DECIDES_AS: Final = "podium/decides-as"


@dataclass(frozen=True, slots=True)
class LeaseRecord:
    """The election's fields of a Lease; an empty holder means none. Times are the API's text: only shown and compared.

    Units: `duration_s` is in seconds, whole on the wire.
    """

    holder: str
    duration_s: float
    acquire_time: str = ""
    renew_time: str = ""
    transitions: int = 0

    def spec(self) -> Json:
        """Return the election's fields of a Lease's spec, as JSON."""
        return {
            "holderIdentity": self.holder,
            # The API has whole seconds; rounding down would let others take over before this process gives up.
            "leaseDurationSeconds": math.ceil(self.duration_s),
            "acquireTime": self.acquire_time,
            "renewTime": self.renew_time,
            "leaseTransitions": self.transitions,
        }


def is_held_by_kube_scheduler(lease: Mapping[str, Any]) -> bool:
    """Return whether kube-scheduler holds a Lease, given as JSON.

    Holders of every program are named alike, after their host. But the API server notes which program wrote a field.
    """
    if not (holder := (lease.get("spec") or {}).get("holderIdentity")):
        return False
    # The holder is any text, but the field manager is the program that wrote it.
    writers = [
        str(entry.get("manager"))
        for entry in (lease.get("metadata") or {}).get("managedFields") or ()
        if "f:holderIdentity" in ((entry.get("fieldsV1") or {}).get("f:spec") or {})
    ]
    return any(name.startswith(_KUBE_SCHEDULER) for name in (str(holder), *writers))


class LeaseLock:
    """One Lease, read and written as a whole; a write replaces the version that was last read or written.

    Args:
        deadline_s: the time limit of each request.
        decides_as: the rules that this replica decides by, kept in an annotation; "" for a process without rules.
    """

    def __init__(self, session: Requester, namespace: str, name: str, deadline_s: float, decides_as: str = "") -> None:
        self.namespace = namespace
        self.name = name
        self._session = session
        self._collection = f"/apis/{_API_VERSION}/namespaces/{namespace}/leases"
        self._deadline_s = deadline_s
        self._object: Json = {}
        self._annotations = {DECIDES_AS: decides_as} if decides_as else {}
        self._labels: dict[str, str] = {}
        self._previous_rules = ""

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"

    @property
    def reference(self) -> ObjectReference:
        """A reference to the version last seen, for Events about the Lease."""
        metadata = self._object.get("metadata", {})
        uid, version = metadata.get("uid", ""), metadata.get("resourceVersion", "")
        return ObjectReference(_API_VERSION, _KIND, self.name, self.namespace, uid, version)

    @property
    def is_held_by_kube_scheduler(self) -> bool:
        """Return whether kube-scheduler has written the holder last seen."""
        return is_held_by_kube_scheduler(self._object)

    @property
    def other_rules(self) -> str:
        """Return the rules that the leader before this replica decided by; "" if they are the same or unknown."""
        rules = self._annotations.get(DECIDES_AS, "")
        return self._previous_rules if rules and self._previous_rules not in ("", rules) else ""

    def put_metadata(self, labels: Mapping[str, str], annotations: Mapping[str, str]) -> None:
        """Set labels and annotations that the next write, and each one after it, leaves in the Lease."""
        self._labels.update(labels)
        self._annotations.update(annotations)

    async def read(self) -> LeaseRecord:
        """Read the current record.

        Raises: `NotFound` if the Lease does not exist; any other `ApiError`.
        """
        record = self._keep(await self._request("GET", f"{self._collection}/{self.name}"))
        annotations = (self._object.get("metadata") or {}).get("annotations") or {}
        self._previous_rules = str(annotations.get(DECIDES_AS) or "")
        return record

    async def create(self, record: LeaseRecord) -> None:
        """Create the Lease. Raises: `AlreadyExists` and any other `ApiError`."""
        metadata = self._with_own({"namespace": self.namespace, "name": self.name})
        lease = {"apiVersion": _API_VERSION, "kind": _KIND, "metadata": metadata, "spec": record.spec()}
        self._keep(await self._request("POST", self._collection, lease), record_sent=record)

    async def replace(self, record: LeaseRecord) -> None:
        """Write the record over the version last seen. Raises: `Conflict` if there is a newer one; any `ApiError`."""
        spec = {**self._object.get("spec", {}), **record.spec()}
        lease = {**self._object, "spec": spec}
        if self._annotations or self._labels:
            lease["metadata"] = self._with_own(lease.get("metadata") or {})
        self._keep(await self._request("PUT", f"{self._collection}/{self.name}", lease), record_sent=record)

    def _with_own(self, metadata: Json) -> Json:
        """Return the metadata with the labels and annotations of this process, where it has any."""
        for field, entries in (("labels", self._labels), ("annotations", self._annotations)):
            if entries:
                metadata = {**metadata, field: {**(metadata.get(field) or {}), **entries}}
        return metadata

    async def _request(self, method: Any, path: str, body: Json | None = None) -> bytes:
        content = None if body is None else orjson.dumps(body)
        return await self._session.request(method, path, content, deadline_s=self._deadline_s)

    def _keep(self, answer: bytes, *, record_sent: LeaseRecord | None = None) -> LeaseRecord:
        """Keep a response's Lease. Raises: `Malformed` if it is another Lease, or not the one just written."""
        # A proxy may answer anything; to believe that a write has succeeded takes its own content.
        check_object(answer, _API_VERSION, _KIND, ObjectMeta(name=self.name, namespace=self.namespace))
        try:
            lease = orjson.loads(answer)
            spec = lease.get("spec") or {}
            record = LeaseRecord(
                holder=str(spec.get("holderIdentity") or ""),
                duration_s=float(spec.get("leaseDurationSeconds") or 0),
                acquire_time=str(spec.get("acquireTime") or ""),
                renew_time=str(spec.get("renewTime") or ""),
                transitions=int(spec.get("leaseTransitions") or 0),
            )
        except (ValueError, TypeError, AttributeError) as error:
            raise Malformed(f"Lease {self}: {error_text(error)}") from error
        if record_sent is not None and record.holder != record_sent.holder:
            raise Malformed(
                f"Lease {self}: written for {record_sent.holder!r}, answered with holder {record.holder!r:.300}"
            )
        self._object = lease
        return record

"""Fills and empties etcd behind the API server's back, by the thousand.

Creating 20,000 pods one by one takes an API server half a minute; here it takes a second, and
nothing is worn out by it. Objects are stored as JSON, which an API server reads as well as its own protobuf, defaults
filled in as it reads. What admission would have added is in the objects, or left out.

Objects of one request share a revision, which Kubernetes does not expect: a watch that breaks off between two of them
misses the rest. While a scheduler looks on, `etcd_stream.put_each` writes one by one.
"""

from __future__ import annotations

import base64
import http.client
import itertools
import json
from collections.abc import Iterable, Iterator, Sequence
from types import TracebackType
from typing import Any, Final, Self

import msgspec

from benchmarks.nodes import Json

REGISTRY: Final = {
    "Node": "minions",
    "Pod": "pods",
    "PersistentVolume": "persistentvolumes",
    "PersistentVolumeClaim": "persistentvolumeclaims",
    "CSINode": "csinodes",
    "PodTemplate": "podtemplates",
    "PodGroup": "podgroups",
    "ElasticQuota": "scheduling.x-k8s.io/elasticquotas",
    "NodeResourceTopology": "topology.node.k8s.io/noderesourcetopologies",
    "DeviceClass": "deviceclasses",
    "ResourceClaim": "resourceclaims",
    "ResourceSlice": "resourceslices",
}
"""Where the API server keeps objects of a kind, under /registry."""

_EVENTS = "events"
_OPERATIONS_PER_REQUEST = 100
# Below etcd's limit for a request, 1.5 MiB.
_BYTES_PER_REQUEST = 1 << 20
_KEYS_PER_DELETION = 1000
_TIMEOUT_S = 60.0
_CREATED = "2026-01-01T00:00:00Z"


class EtcdError(Exception):
    """etcd did not do what it was asked."""


class Etcd:
    """etcd's JSON gateway. Use it as a context manager."""

    def __init__(self, address: str) -> None:
        """Takes `host:port` of the client URL."""
        self._connection = http.client.HTTPConnection(address, timeout=_TIMEOUT_S)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._connection.close()

    def put(self, objects: Iterable[Json]) -> None:
        """Store the objects; one that is there already is replaced."""
        for request in puts(objects):
            self._ask("txn", request)
        # Its revision is its own: who has seen it has seen all objects of the last request.
        self._ask("put", msgspec.json.encode({"key": _encode(b"/benchmarks/written"), "value": ""}))

    def delete_all_but_nodes(self) -> None:
        """Every object that a run has left behind, a thousand at a time."""
        for plural in (*REGISTRY.values(), _EVENTS):
            if plural != REGISTRY["Node"]:
                self.delete(f"/registry/{plural}/")

    def count(self, plural: str) -> int:
        """Return the number of objects of a kind; kinds as in paths, such as `events`."""
        answer = self._range(f"/registry/{plural}/", count_only=True)
        return int(answer.get("count", 0))

    def delete(self, prefix: str) -> None:
        """Delete everything whose key begins so, a thousand at a time."""
        while records := self._range(prefix, keys_only=True, limit=_KEYS_PER_DELETION).get("kvs"):
            after_last = base64.b64decode(records[-1]["key"]) + b"\0"
            body = {"key": records[0]["key"], "range_end": _encode(after_last)}
            self._ask("deleterange", msgspec.json.encode(body))

    def _range(self, prefix: str, **options: Any) -> Json:
        # The range holds everything that begins with the prefix.
        end = prefix[:-1] + chr(ord(prefix[-1]) + 1)
        body = {"key": _encode(prefix.encode()), "range_end": _encode(end.encode()), **options}
        return self._ask("range", msgspec.json.encode(body))

    def _ask(self, operation: str, body: bytes) -> Json:
        self._connection.request("POST", f"/v3/kv/{operation}", body, {"Content-Type": "application/json"})
        answer = self._connection.getresponse()
        content = answer.read()
        if answer.status != http.HTTPStatus.OK:
            raise EtcdError(content.decode(errors="replace"))
        document: Json = json.loads(content)
        return document


def puts(objects: Iterable[Json]) -> Iterator[bytes]:
    """Requests that store the objects, each of a bounded size."""
    operations: list[Json] = []
    size = 0
    for manifest in objects:
        value = _encode(msgspec.json.encode(as_stored(manifest)))
        if operations and (len(operations) == _OPERATIONS_PER_REQUEST or size + len(value) > _BYTES_PER_REQUEST):
            yield _transaction(operations)
            operations, size = [], 0
        operations.append({"requestPut": {"key": _encode(key(manifest).encode()), "value": value}})
        size += len(value)
    if operations:
        yield _transaction(operations)


def _transaction(operations: Sequence[Json]) -> bytes:
    return msgspec.json.encode({"success": operations})


def _encode(content: bytes) -> str:
    return base64.b64encode(content).decode()


def key(item: Json) -> str:
    """Where the API server looks for the object."""
    metadata = item["metadata"]
    place = [metadata["namespace"]] if "namespace" in metadata else []
    return "/".join(("", "registry", REGISTRY[item["kind"]], *place, metadata["name"]))


def as_stored(item: Json) -> Json:
    """The object with what the API server gives to each that it creates."""
    metadata = item["metadata"]
    server_fields = {
        "uid": _uid(),
        "creationTimestamp": _CREATED,
        "generation": 1,
        "managedFields": [managed_fields(item)],
    }
    return {**item, "metadata": {**server_fields, **metadata}}


def managed_fields(item: Json) -> Json:
    """Who has set which field, as the API server notes it: it makes up a third of an object's bytes."""
    fields = {f"f:{name}": _fields(value) for name, value in item.items() if name not in ("apiVersion", "kind")}
    return {
        "manager": "benchmarks",
        "operation": "Update",
        "apiVersion": item["apiVersion"],
        "time": _CREATED,
        "fieldsType": "FieldsV1",
        "fieldsV1": fields,
    }


def _fields(value: Any) -> Json:
    if isinstance(value, dict):
        return {f"f:{name}": _fields(child) for name, child in value.items()}
    if isinstance(value, list) and value and isinstance(value[0], dict) and "name" in value[0]:
        return {f'k:{{"name":"{child["name"]}"}}': {".": {}, **_fields(child)} for child in value}
    return {}


_uids = itertools.count(1)


def _uid() -> str:
    return f"00000000-0000-4000-8000-{next(_uids):012x}"

"""Owner references, and an index of the dependents of each owner."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from podium.sandbox.journal import DELETED, Change, Key, Record
from podium.sandbox.resources import ResourceType, resource_named
from podium.sandbox.selectors import match_label_selector
from podium.sandbox.store import Store

Json = dict[str, Any]

_DEPENDENTS = {
    "replicasets.apps": "pods",
    "deployments.apps": "replicasets.apps",
    "jobs.batch": "pods",
    "statefulsets.apps": "pods",
    "daemonsets.apps": "pods",
}


def controller_of(obj: Json) -> Json | None:
    """Return the owner reference of an object's controller, or None if it has none."""
    references = obj["metadata"].get("ownerReferences") or ()
    return next((reference for reference in references if reference.get("controller")), None)


def owner_reference(owner: Json) -> Json:
    """Return an owner reference to this object as the controller."""
    metadata = owner["metadata"]
    identity = {"apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": metadata["name"]}
    return identity | {"uid": metadata["uid"], "controller": True, "blockOwnerDeletion": True}


class Dependents:
    """An index of objects of some types, by the UID of their owner, or by namespace if they have no controller.

    Cost: each change updates the entries of one object.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._by_owner: dict[str, dict[tuple[str, Key], None]] = {}

    def note(self, resource: ResourceType, change: Change) -> None:
        """Update the index with one change of an object."""
        entry = (resource.storage, change.record.key)
        if change.previous is not None:
            for owner in _owners(change.previous.obj):
                self._by_owner.get(owner, {}).pop(entry, None)
        if change.type != DELETED:
            for owner in _owners(change.record.obj):
                self._by_owner.setdefault(owner, {})[entry] = None

    def of(self, uid: str) -> Iterator[tuple[ResourceType, Record]]:
        """Yield the existing objects of an owner."""
        for storage, key in list(self._by_owner.get(uid, ())):
            resource = resource_named(storage)
            record = self._store.collection(resource).records.get(key)
            if record is not None:
                yield resource, record

    def controlled_by(
        self, owner: Record, resource: ResourceType, is_member: Callable[[Json, Json], bool] | None = None
    ) -> list[Record]:
        """Adopt and release objects by a workload's selector, and return the objects that it then controls.

        Args:
            is_member: whether an object, the second argument, may belong to the owner besides; None for all.
        """
        uid, dependents = owner.obj["metadata"]["uid"], resource_named(_DEPENDENTS[resource.storage])
        selector = owner.obj["spec"].get("selector")

        def is_selected(record: Record) -> bool:
            labels = record.obj["metadata"].get("labels") or {}
            return match_label_selector(selector, labels) and (is_member is None or is_member(owner.obj, record.obj))

        references = []
        for kind, record in self.of(uid):
            if kind is not dependents or (controller_of(record.obj) or {}).get("uid") != uid:
                continue
            if selector and not is_selected(record):
                self._release(dependents, record, uid)
            else:
                references.append(record)
        for kind, record in self.of(_orphans_of(owner.key[0])) if selector else ():
            if kind is dependents and is_selected(record) and "deletionTimestamp" not in record.obj["metadata"]:
                references.append(self._claim(dependents, record, owner.obj))
        return references

    def _claim(self, resource: ResourceType, record: Record, owner: Json) -> Record:
        references = [*(record.obj["metadata"].get("ownerReferences") or ()), owner_reference(owner)]
        return self._refer(resource, record, references)

    def _release(self, resource: ResourceType, record: Record, uid: str) -> None:
        references = [
            reference for reference in record.obj["metadata"]["ownerReferences"] if reference.get("uid") != uid
        ]
        self._refer(resource, record, references)

    def _refer(self, resource: ResourceType, record: Record, references: list[Json]) -> Record:
        metadata = record.obj["metadata"] | {"ownerReferences": references}
        return self._store.replace_record(resource, record, record.obj | {"metadata": metadata})


def _owners(obj: Json) -> Iterator[str]:
    for reference in obj["metadata"].get("ownerReferences") or ():
        yield reference.get("uid", "")
    if controller_of(obj) is None:
        yield _orphans_of(obj["metadata"].get("namespace", ""))


def _orphans_of(namespace: str) -> str:
    return f"without a controller, in {namespace}"

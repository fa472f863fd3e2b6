"""The synchronous core of the sandbox: objects, their life cycle, and one revision counter.

Methods never await, so each request takes effect completely or not at all. Stored objects are shared and never changed
in place; callers of the public methods get their own copies.
"""

from __future__ import annotations

import random
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

import orjson

from podium.sandbox import admission, defaults, deletion
from podium.sandbox.errors import ApiError, Cause, already_exists, bad_request, conflict, invalid, not_found
from podium.sandbox.event_validation import validate_new_event
from podium.sandbox.journal import ADDED, DELETED, MODIFIED, Change, Collection, Key, Record
from podium.sandbox.metadata import new_metadata, updated_metadata
from podium.sandbox.patches import apply_patch
from podium.sandbox.resources import BY_KIND, RESOURCES, ResourceType, resource_named
from podium.sandbox.selectors import selection
from podium.sandbox.validation import check_shape, mapping, validate, validate_claim_update, validate_pod_update
from podium.sandbox.views import shape_of, to_stored, without_nulls

Json = dict[str, Any]

_IMMORTAL_NAMESPACES = frozenset({"default", "kube-public", "kube-system"})


def utc_now() -> datetime:
    """Return the wall clock."""
    return datetime.now(UTC)


def random_uid() -> str:
    """Return a random UUID."""
    return str(uuid.uuid4())


def timestamp(moment: datetime) -> str:
    """Return a time in Kubernetes' format, which has whole seconds."""
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


class Store:
    """Objects of every served type. `resource` arguments take a plural, singular or short name, or a type.

    Args:
        history_limit: how many changes per type watches can still read (up to twice as many are kept).
        now: the wall clock, for timestamps.
        new_uid: creates the UID of each new object.
        first_revision: the first resourceVersion. A store that replaces another one must start above it, so that
            clients of the old one get 410 instead of waiting for changes that never come.
    """

    def __init__(
        self,
        *,
        history_limit: int = 20_000,
        now: Callable[[], datetime] = utc_now,
        new_uid: Callable[[], str] = random_uid,
        first_revision: int = 1,
    ) -> None:
        self.now = now
        self._new_uid = new_uid
        self.revision = first_revision
        self._collections = {resource.storage: Collection(history_limit, first_revision) for resource in RESOURCES}
        self._dry_run = False
        self._names = random.Random(0)
        self._lookup = _Lookup(self._collections)

    # --- reading ---------------------------------------------------------------------------------------------

    def collection(self, resource: ResourceType) -> Collection:
        """Return the objects of a type with their history."""
        return self._collections[resource.storage]

    def record(self, resource: ResourceType, namespace: str | None, name: str) -> Record:
        """Return the present state of one object.

        Raises:
            ApiError: 404.
        """
        record = self.collection(resource).records.get(_key(resource, namespace, name))
        if record is None:
            raise not_found(resource, name)
        return record

    def get(self, resource: str | ResourceType, name: str, namespace: str | None = None) -> Json:
        """Return one object; the namespace is "default" unless given.

        Raises:
            ApiError: 404.
        """
        kind = _resolve(resource)
        return _view_of(kind, self.record(kind, namespace, name))

    def list(
        self,
        resource: str | ResourceType,
        namespace: str | None = None,
        *,
        label_selector: str = "",
        field_selector: str = "",
    ) -> list[Json]:
        """Return the selected objects of one namespace, or of all."""
        kind = _resolve(resource)
        chosen_objects = selection(kind, namespace, label_selector, field_selector)
        collection = self.collection(kind)
        records = (collection.records[key] for key in collection.sorted_keys())
        return [_view_of(kind, record) for record in records if chosen_objects.matches(record.obj)]

    # --- writing ---------------------------------------------------------------------------------------------

    @contextmanager
    def dry_run(self, active: bool = True) -> Iterator[None]:
        """Validate and answer writes within the block, if active, but do not keep them. The block must not await."""
        self._dry_run = active
        try:
            yield
        finally:
            self._dry_run = False

    def create(self, obj: Json, *, namespace: str | None = None) -> Json:
        """Create an object as a client would: defaults, admission and validation apply.

        Raises:
            ApiError: 400, 403, 409 or 422.
        """
        resource = _type_of(obj)
        return _view_of(resource, self.create_record(resource, namespace, _copy(obj)))

    def create_record(self, resource: ResourceType, namespace: str | None, obj: Json) -> Record:
        """Create an object without copying it: the store owns it from now on. Otherwise like `create`."""
        # Nulls go first: Go decodes them as absent fields, and defaults then fill these.
        obj = without_nulls(to_stored(resource, obj))
        check_shape(resource, obj)
        metadata = new_metadata(resource, namespace, obj, self._names)
        obj["metadata"] = metadata
        defaults.set_defaults(resource, obj)
        admission.fill_in(resource, obj, self._lookup)
        causes = validate(resource, obj)
        if resource.storage == "events":
            # Old and new Events share one type, whose rules depend on the version that was written.
            causes += validate_new_event(resource, obj)
        if causes:
            raise invalid(resource, str(metadata.get("name", "")), causes)
        # Quotas and limits are judged last, as upstream's order is mutation, validation, then quota.
        admission.demand_allowed(resource, obj, self._lookup)
        if resource.storage == "poddisruptionbudgets.policy":
            obj["status"] = {"currentHealthy": 0, "desiredHealthy": 0, "disruptionsAllowed": 0, "expectedPods": 0}
        key = _key(resource, metadata.get("namespace"), metadata["name"])
        if key in self.collection(resource).records:
            raise already_exists(resource, metadata["name"])
        metadata["uid"] = self._new_uid()
        metadata["creationTimestamp"] = timestamp(self.now())
        metadata["generation"] = 1
        return self._commit(resource, ADDED, key, obj, None)

    def put_raw(self, obj: Json) -> Json:
        """Store an object unchanged, without defaults, validation and life cycle, for invalid or running objects.

        Only the fields that the store itself needs are filled in: namespace, uid, creationTimestamp, resourceVersion.
        """
        resource = _type_of(obj)
        obj = to_stored(resource, _copy(obj))
        metadata = obj["metadata"]
        if resource.namespaced:
            metadata.setdefault("namespace", "default")
        key = _key(resource, metadata.get("namespace"), metadata["name"])
        previous = self.collection(resource).records.get(key)
        previous_metadata = previous.obj["metadata"] if previous else {}
        metadata.setdefault("uid", previous_metadata.get("uid") or self._new_uid())
        metadata.setdefault("creationTimestamp", previous_metadata.get("creationTimestamp") or timestamp(self.now()))
        return _view_of(resource, self._commit(resource, MODIFIED if previous else ADDED, key, obj, previous))

    def update(self, obj: Json, *, subresource: str | None = None) -> Json:
        """Replace an object, or its status with `subresource="status"`.

        Raises:
            ApiError: 404; 409, its resourceVersion is not the present one; 422.
        """
        resource = _type_of(obj)
        metadata = obj["metadata"]
        record = self.record(resource, metadata.get("namespace"), metadata["name"])
        return _view_of(resource, self.update_record(resource, record, to_stored(resource, _copy(obj)), subresource))

    def update_record(self, resource: ResourceType, old: Record, obj: Json, subresource: str | None = None) -> Record:
        """Replace a record by `obj` (in stored form), limited to the fields of `subresource`."""
        previous, obj = old.obj, without_nulls(obj)
        check_shape(resource, obj)
        metadata = updated_metadata(resource, previous["metadata"], obj)
        if subresource == "status":
            other_fields = {name: value for name, value in previous.items() if name not in ("metadata", "status")}
            obj = other_fields | {"metadata": metadata, "status": obj.get("status") or {}}
        else:
            obj = self._updated_main(resource, previous, _copy(obj | {"metadata": metadata}))
        # As the API server: the generation counts changes of the spec, not of status or labels.
        if subresource is None and obj.get("spec") != previous.get("spec"):
            obj["metadata"]["generation"] = previous["metadata"].get("generation", 0) + 1
        return self.replace_record(resource, old, obj)

    def replace_record(self, resource: ResourceType, old: Record, obj: Json) -> Record:
        """Commit a new state unless it equals the old one. If its last finalizer is gone, remove the object.

        `obj` and its metadata must be fresh dicts; everything below may be shared with `old`.
        """
        obj["metadata"].pop("resourceVersion", None)
        if deletion.is_finished(obj["metadata"]):
            return self.remove_record(resource, old, obj)
        present = old.obj["metadata"].get("resourceVersion")
        # A write without effect makes no revision and no event, which stops loops of controllers.
        if obj == old.obj | {"metadata": {k: v for k, v in old.obj["metadata"].items() if k != "resourceVersion"}}:
            return old
        assert present == str(old.revision)
        return self._commit(resource, MODIFIED, old.key, obj, old)

    def remove_record(self, resource: ResourceType, old: Record, last: Json | None = None) -> Record:
        """Remove an object and return its last state."""
        obj = dict(last or old.obj)
        obj["metadata"] = dict(obj["metadata"])
        return self._commit(resource, DELETED, old.key, obj, old)

    def patch(
        self,
        resource: str | ResourceType,
        name: str,
        patch: Any,
        namespace: str | None = None,
        *,
        patch_type: str = "merge",
        subresource: str | None = None,
    ) -> Json:
        """Patch an object; `patch_type` is merge, strategic, json or apply.

        Raises:
            ApiError: 400, 404, 409, 422.
        """
        kind = _resolve(resource)
        return _view_of(
            kind, self.patch_record(kind, self.record(kind, namespace, name), patch, patch_type, subresource)
        )

    def patch_record(
        self, resource: ResourceType, old: Record, patch: Any, patch_type: str, subresource: str | None
    ) -> Record:
        """Patch the object of a record; otherwise like `patch`."""
        shape = shape_of(resource)
        patched = apply_patch(shape(old.obj) if shape else old.obj, patch, patch_type, resource.kind)
        if not isinstance(patched.get("metadata"), dict):
            raise bad_request("the patch leaves no metadata")
        # Checked on the patch itself: the update takes immutable fields from the stored object.
        uid = patched["metadata"].get("uid")
        if uid != old.obj["metadata"].get("uid"):
            cause = Cause("metadata.uid", f'Invalid value: "{uid}": field is immutable')
            raise invalid(resource, old.key[1], [cause])
        return self.update_record(resource, old, to_stored(resource, patched), subresource)

    def delete(
        self,
        resource: str | ResourceType,
        name: str,
        namespace: str | None = None,
        *,
        grace_period_s: int | None = None,
    ) -> None:
        """Delete an object as a client would: grace periods and finalizers apply.

        Raises:
            ApiError: 404.
        """
        kind = _resolve(resource)
        options = {} if grace_period_s is None else {"gracePeriodSeconds": grace_period_s}
        self.delete_record(kind, self.record(kind, namespace, name), options)

    def delete_record(self, resource: ResourceType, record: Record, options: Json) -> tuple[Record, bool]:
        """Delete a record with `DeleteOptions`. Returns the last state and whether the object is removed.

        Raises:
            ApiError: 403, a namespace that every cluster has; 409, a precondition does not hold.
        """
        metadata = record.obj["metadata"]
        if resource.storage == "namespaces" and metadata["name"] in _IMMORTAL_NAMESPACES:
            reason = "this namespace may not be deleted"
            raise ApiError(403, "Forbidden", f'namespaces "{metadata["name"]}" is forbidden: {reason}')
        for field, value in mapping(options, "preconditions").items():
            if value and metadata.get(field) != value:
                reason = f"the {field} in the precondition ({value}) does not match the {field} in record"
                raise conflict(resource, metadata["name"], f"Precondition failed: {reason} ({metadata.get(field)})")
        if options.get("propagationPolicy") == "Orphan" or options.get("orphanDependents"):
            self._orphan_dependents(metadata["uid"])
        # None means at once: without a grace period and finalizers nothing has to be waited for.
        marked_object = deletion.mark(resource, record.obj, options, self.now())
        if marked_object is None:
            if resource.storage == "namespaces" and not self._dry_run:
                self._empty_namespace(metadata["name"])
            return self.remove_record(resource, record), True
        return self.replace_record(resource, record, marked_object), False

    def compact(self, keep: int = 0) -> None:
        """Drop history, so that older resourceVersions are answered with 410."""
        for collection in self._collections.values():
            collection.compact(keep)

    def rewind(self, revision: int) -> None:
        """Go back to an earlier revision, like an etcd restored from a backup. Later changes are lost.

        Raises:
            ApiError: 410, the revision is too old.
        """
        # Computed for all types first, so that a type whose history is too short leaves everything as it is.
        earlier = {name: collection.at(revision) for name, collection in self._collections.items()}
        for name, collection in self._collections.items():
            collection.rewind(earlier[name], revision)
        self.revision = revision

    # --- internals ------------------------------------------------------------------------------------------

    def _commit(self, resource: ResourceType, kind: str, key: Key, obj: Json, previous: Record | None) -> Record:
        revision = self.revision + 1
        obj.setdefault("kind", resource.kind)
        obj.setdefault("apiVersion", resource.api_version)
        obj["metadata"]["resourceVersion"] = str(revision)
        record = Record(key, obj, revision)
        # A dry run is answered as a real write would be, with the next revision.
        if not self._dry_run:
            self.revision = revision
            self.collection(resource).commit(Change(kind, record, previous))
        return record

    def _updated_main(self, resource: ResourceType, previous: Json, obj: Json) -> Json:
        if resource.has_status:
            obj.pop("status", None)
            if "status" in previous:
                obj["status"] = previous["status"]
        defaults.set_defaults(resource, obj)
        causes = validate(resource, obj)
        if resource.storage == "pods":
            admission.admit_pod_update(obj, previous)
            causes += validate_pod_update(previous, obj)
        elif resource.storage == "resourceclaims.resource.k8s.io":
            causes += validate_claim_update(previous, obj)
        if causes:
            raise invalid(resource, previous["metadata"]["name"], causes)
        # A claim that is being deleted must be able to lose its finalizers even above its quota.
        if resource.storage == "persistentvolumeclaims" and "deletionTimestamp" not in previous["metadata"]:
            admission.demand_allowed(resource, obj, self._lookup)
        return obj

    def _orphan_dependents(self, owner_uid: str) -> None:
        for resource in RESOURCES:
            for record in list(self.collection(resource).records.values()):
                # A copy, since each change is a commit.
                metadata = record.obj["metadata"]
                references = metadata.get("ownerReferences") or ()
                references_kept = [reference for reference in references if reference.get("uid") != owner_uid]
                if len(references_kept) < len(references):
                    metadata_without_owner = metadata | {"ownerReferences": references_kept}
                    self.replace_record(resource, record, record.obj | {"metadata": metadata_without_owner})

    def _empty_namespace(self, namespace: str) -> None:
        for resource in RESOURCES:
            records = self.collection(resource).records
            for record in [record for key, record in records.items() if resource.namespaced and key[0] == namespace]:
                self.remove_record(resource, record)


class _Lookup:
    """The stored objects, as admission reads them."""

    def __init__(self, collections: Mapping[str, Collection]) -> None:
        self._collections = collections

    def named(self, plural: str, name: str) -> Json | None:
        record = self._records(plural).get(("", name))
        return record.obj if record else None

    def all_of(self, plural: str, namespace: str = "") -> list[Json]:
        records = self._records(plural)
        return [records[key].obj for key in sorted(records) if key[0] == namespace] if records else []

    def _records(self, plural: str) -> dict[Key, Record]:
        return self._collections[resource_named(plural).storage].records


def _resolve(resource: str | ResourceType) -> ResourceType:
    return resource_named(resource) if isinstance(resource, str) else resource


def _key(resource: ResourceType, namespace: str | None, name: str) -> Key:
    return (namespace or "default") if resource.namespaced else "", name


def _type_of(obj: Json) -> ResourceType:
    try:
        return BY_KIND[obj["apiVersion"], obj["kind"]]
    except KeyError:
        message = f"no matches for kind {obj.get('kind')!r} in version {obj.get('apiVersion')!r}"
        raise bad_request(message) from None


def _copy(obj: Json) -> Json:
    # By way of JSON: faster than deepcopy, and it refuses what JSON cannot hold.
    copy: Json = orjson.loads(orjson.dumps(obj))
    return copy


def _view_of(resource: ResourceType, record: Record) -> Json:
    obj: Json = orjson.loads(record.encoded(resource.api_version, shape_of(resource)))
    return obj

"""Resource claims: create those that pods ask for by template, and take back what no pod uses any more.

Source: kubernetes pkg/controller/resourceclaim/controller.go (v1.36).
Differs: the status of a pod is written without server-side apply. Claims of pod groups are not created.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from podium.sandbox.controllers.ownership import Dependents, controller_of, owner_reference
from podium.sandbox.controllers.pods import FINISHED, PODS, phase_of
from podium.sandbox.errors import ApiError
from podium.sandbox.journal import DELETED, Change, Key, Record
from podium.sandbox.resources import ResourceType, resource_named
from podium.sandbox.store import Store

Json = dict[str, Any]

CLAIMS = resource_named("resourceclaims")
TEMPLATES = resource_named("resourceclaimtemplates")
_FINALIZER = "resource.kubernetes.io/delete-protection"
_POD_CLAIM_NAME = "resource.kubernetes.io/pod-claim-name"
_NAME_LENGTH_MAX = 57  # leaves room for the generated suffix in a name of 63 characters
_USERS_MAX = 256


class Claims:
    """Stands in for the resource claim controller.

    Cost: a change of a pod without claims costs two look-ups.
    """

    def __init__(self, store: Store, dependents: Dependents) -> None:
        self._store = store
        self._dependents = dependents
        self._pods_due: dict[Key, None] = {}
        self._claims_due: dict[Key, None] = {}
        self._waiting: dict[Key, dict[Key, None]] = {}

    def note(self, resource: ResourceType, change: Change) -> None:
        """Mark the pods and claims that a change affects."""
        key = change.record.key
        if resource is PODS:
            self._note_pod(change)
        elif resource is TEMPLATES:
            self._pods_due |= self._waiting.pop(key, {})
        elif resource is CLAIMS:
            self._claims_due[key] = None
            owner = controller_of(change.record.obj)
            if owner is not None and owner.get("kind") == "Pod":
                # Its pod may have to get another one.
                self._pods_due[key[0], owner.get("name", "")] = None

    def work(self) -> None:
        """Create the claims that are missing, then clean up."""
        pods, self._pods_due = self._pods_due, {}
        for key in pods:
            record = self._store.collection(PODS).records.get(key)
            if record is not None and "deletionTimestamp" not in record.obj["metadata"] and not _is_done(record.obj):
                self._give_claims(record)
        claims, self._claims_due = self._claims_due, {}
        for key in claims:
            self._clean_up(key)

    def _note_pod(self, change: Change) -> None:
        pod, key = change.record.obj, change.record.key
        if not (pod.get("spec") or {}).get("resourceClaims") and not _special_claim_of(pod):
            return
        if change.type == DELETED or _is_done(pod):
            self._claims_due |= dict.fromkeys((key[0], name) for name in _claim_names(pod))
        self._pods_due[key] = None

    # ------------------------------------------------------------ pods

    def _give_claims(self, record: Record) -> None:
        """Create the claims of a pod, and reserve them if the pod got its node without the scheduler."""
        statuses = {
            entry["name"]: entry for entry in (record.obj.get("status") or {}).get("resourceClaimStatuses") or ()
        }
        statuses_before = dict(statuses)
        for entry in record.obj["spec"].get("resourceClaims") or ():
            name = entry.get("name", "")
            if entry.get("resourceClaimTemplateName") and self._is_missing(record, statuses_before.get(name)):
                claim = self._claim_for(record, entry)
                if claim is not None:
                    statuses[name] = {"name": name, "resourceClaimName": claim.key[1]}
        if statuses != statuses_before:
            status = (record.obj.get("status") or {}) | {"resourceClaimStatuses": list(statuses.values())}
            pod = record.obj | {"metadata": dict(record.obj["metadata"]), "status": status}
            record = self._store.replace_record(PODS, record, pod)
        if record.obj["spec"].get("nodeName"):
            self._reserve(record)

    def _is_missing(self, pod: Record, status: Json | None) -> bool:
        if status is None:
            return True
        if not status.get("resourceClaimName"):
            return False
        claim = self._claim(pod.key[0], status["resourceClaimName"])
        return claim is None or not _is_owned(claim, pod)

    def _claim_for(self, pod: Record, entry: Json) -> Record | None:
        """Return the claim for an entry of the pod's spec, created if need be, or None without a template."""
        namespace, metadata = pod.key[0], pod.obj["metadata"]
        # A claim may have been created before the pod's status was written, as when a controller restarts.
        for resource, claim in self._dependents.of(metadata["uid"]):
            annotations = claim.obj["metadata"].get("annotations") or {}
            if resource is CLAIMS and annotations.get(_POD_CLAIM_NAME) == entry["name"] and _is_owned(claim, pod):
                return claim
        template_key = (namespace, entry["resourceClaimTemplateName"])
        template = self._store.collection(TEMPLATES).records.get(template_key)
        if template is None:
            # Tried again when the template comes.
            self._waiting.setdefault(template_key, {})[pod.key] = None
            return None
        template_metadata = template.obj["spec"].get("metadata") or {}
        reference = owner_reference(pod.obj)
        del reference["blockOwnerDeletion"]
        claim_metadata: Json = {
            "generateName": _base_name(metadata["name"], entry["name"]),
            "annotations": (template_metadata.get("annotations") or {}) | {_POD_CLAIM_NAME: entry["name"]},
            "ownerReferences": [reference],
        }
        if template_metadata.get("labels"):
            claim_metadata["labels"] = template_metadata["labels"]
        spec = template.obj["spec"].get("spec") or {}
        manifest = {"apiVersion": CLAIMS.api_version, "kind": CLAIMS.kind, "metadata": claim_metadata, "spec": spec}
        try:
            stored_claim = self._store.create(manifest, namespace=namespace)
        except ApiError:
            self._waiting.setdefault(template_key, {})[pod.key] = None
            return None
        return self._claim(namespace, stored_claim["metadata"]["name"])

    def _reserve(self, pod: Record) -> None:
        user = {"resource": "pods", "name": pod.key[1], "uid": pod.obj["metadata"]["uid"]}
        for name in _claim_names(pod.obj):
            claim = self._claim(pod.key[0], name)
            if claim is None or "deletionTimestamp" in claim.obj["metadata"]:
                continue
            status = claim.obj.get("status") or {}
            users = status.get("reservedFor") or []
            is_listed = any(consumer.get("uid") == user["uid"] for consumer in users)
            # Only an allocated claim can be reserved, and upstream bounds the list of users.
            if status.get("allocation") and not is_listed and len(users) < _USERS_MAX:
                self._put(claim, status | {"reservedFor": [*users, user]})

    # ------------------------------------------------------------ claims

    def _clean_up(self, key: Key) -> None:
        """Remove users that are gone, then the allocation, the finalizer, and the claim if its pod will not run."""
        record = self._claim(*key)
        if record is None:
            return
        status = record.obj.get("status") or {}
        users = status.get("reservedFor") or []
        users_left = [user for user in users if self._may_use(key[0], user)]
        is_protected = _FINALIZER in (record.obj["metadata"].get("finalizers") or ())
        is_being_deleted = "deletionTimestamp" in record.obj["metadata"]
        # The allocation is given back with the last user, so that the devices are free.
        if len(users_left) < len(users) or (is_protected and is_being_deleted and not users_left):
            status = status | {"reservedFor": users_left}
            if not users_left:
                del status["reservedFor"]
                if is_protected:
                    status = {name: value for name, value in status.items() if name not in ("allocation", "devices")}
            finalizers = record.obj["metadata"].get("finalizers") or []
            if not status.get("allocation"):
                finalizers = [name for name in finalizers if name != _FINALIZER]
            record = self._put(record, status, finalizers)
        if not users_left and key in self._store.collection(CLAIMS).records and self._is_useless(record):
            self._store.delete_record(CLAIMS, record, {})

    def _may_use(self, namespace: str, user: Json) -> bool:
        if user.get("apiGroup") or user.get("resource") != "pods":
            return True
        pod = self._store.collection(PODS).records.get((namespace, user.get("name", "")))
        return pod is not None and pod.obj["metadata"]["uid"] == user.get("uid") and not _is_done(pod.obj)

    def _is_useless(self, claim: Record) -> bool:
        """Return whether the claim was made for a pod that exists but never runs; the garbage collector does others."""
        owner = controller_of(claim.obj)
        if owner is None or owner.get("kind") != "Pod" or "deletionTimestamp" in claim.obj["metadata"]:
            return False
        pod = self._store.collection(PODS).records.get((claim.key[0], owner.get("name", "")))
        return pod is not None and (pod.obj["metadata"]["uid"] != owner.get("uid") or _is_done(pod.obj))

    def _claim(self, namespace: str, name: str) -> Record | None:
        return self._store.collection(CLAIMS).records.get((namespace, name))

    def _put(self, claim: Record, status: Json, finalizers: list[str] | None = None) -> Record:
        metadata = dict(claim.obj["metadata"])
        if finalizers is not None:
            metadata["finalizers"] = finalizers
        return self._store.replace_record(CLAIMS, claim, claim.obj | {"metadata": metadata, "status": status})


def _claim_names(pod: Json) -> Iterator[str]:
    """Yield the claims of a pod that exist, by name."""
    statuses = (pod.get("status") or {}).get("resourceClaimStatuses") or ()
    generated = {entry.get("name"): entry.get("resourceClaimName") for entry in statuses}
    for entry in pod["spec"].get("resourceClaims") or ():
        name = entry.get("resourceClaimName") or generated.get(entry.get("name"))
        if name:
            yield name
    if special := _special_claim_of(pod):
        yield special


def _special_claim_of(pod: Json) -> str:
    """Return the name of the claim that the scheduler has created for the pod's extended resources."""
    status = (pod.get("status") or {}).get("extendedResourceClaimStatus") or {}
    return str(status.get("resourceClaimName") or "")


def _is_done(pod: Json) -> bool:
    """Return whether a pod has ended, or will never start."""
    # Without a node no kubelet holds the pod back, so it will never run.
    is_dropped = "deletionTimestamp" in pod["metadata"] and not pod["spec"].get("nodeName")
    return phase_of(pod) in FINISHED or is_dropped


def _is_owned(claim: Record, pod: Record) -> bool:
    owner = controller_of(claim.obj)
    return owner is not None and bool(owner.get("uid") == pod.obj["metadata"]["uid"])


def _base_name(pod_name: str, claim_name: str) -> str:
    """Return the beginning of a generated name, with both names cut alike if they are too long together."""
    base = f"{pod_name}-{claim_name}-"
    if len(base) <= _NAME_LENGTH_MAX:
        return base
    cut = [name[: len(name) * _NAME_LENGTH_MAX // len(base)] for name in (pod_name, claim_name)]
    return "-".join(cut)

"""The controller manager of a question: it decides what the controllers of all workloads do next.

The caller reports every change of a pod and asks for the next syncs of the workloads concerned. The manager never
changes the cluster: the caller creates and deletes the pods.

A workload of which only pods are known is derived from them, so that questions about dumps without workloads work, too.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import msgspec
from msgspec.structs import replace

from podium.engine.derivation.applying import apply_manifest, is_same
from podium.engine.derivation.claims import claim_templates_of
from podium.engine.derivation.control_objects import ControlObjects, key_of, mapping_at, namespace_of
from podium.engine.derivation.controllers import (
    ReplicaSetState,
    Sync,
    SyncContext,
    desired_replicas,
    ordinals_kept,
    scale_in_proportion,
    sync_daemon_set,
    sync_deployment,
    sync_job,
    sync_replica_set,
    sync_stateful_set,
)
from podium.engine.derivation.pods import REVISION, TEMPLATE_HASH, owner_reference, replica_set_of
from podium.engine.derivation.revisions import is_of_older_template, named_template
from podium.engine.derivation.scale_down import is_ready
from podium.engine.derivation.workload_parts import (
    WorkloadId,
    controller_of,
    only,
    owner_id,
    revision_of,
    selector_of,
    without_hash,
)
from podium.engine.manifests import Manifest
from podium.objects.core import Node, Pod
from podium.objects.meta import OwnerReference
from podium.objects.storage import PersistentVolumeClaim
from podium.objects.times import time_or_none

KINDS: Final = ("Deployment", "ReplicaSet", "ReplicationController", "StatefulSet", "DaemonSet", "Job")
"""The kinds whose controllers are known."""

_ADOPTING: Final = ("ReplicaSet", "ReplicationController", "StatefulSet", "DaemonSet")
_ABOVE: Final = {"ReplicaSet": "Deployment", "Job": "CronJob"}
_API_VERSIONS: Final = {"Job": "batch/v1", "ReplicationController": "v1"}
_KEEPING_REVISIONS: Final = ("StatefulSet", "DaemonSet")


@dataclass(frozen=True, slots=True)
class WorkloadSync:
    """The next sync of a workload's controller."""

    kind: str
    key: str
    sync: Sync


class ControllerManager:
    """The controllers of all workloads of a cluster.

    Args:
        objects: the workloads, which `apply`, `scale` and `remove` change.
        nodes: returns the present nodes.
        claim_of: returns the claim to storage with that key; None if it does not exist.

    Attributes:
        new_replica_sets: ReplicaSets created for Deployments; the caller adds them to the cluster and takes them out.
        held_jobs: the keys of Jobs that create no pods because some have failed; None if no time passes, where each
            waits until its deleted pods are gone.
    """

    def __init__(
        self,
        objects: ControlObjects,
        pods: Iterable[Pod],
        nodes: Callable[[], Collection[Node]],
        claim_of: Callable[[str], PersistentVolumeClaim | None],
    ) -> None:
        self._objects = objects
        self._nodes = nodes
        self._claim_of = claim_of
        self.new_replica_sets: list[Manifest] = []
        self.held_jobs: set[str] | None = None
        self._pods: dict[WorkloadId, dict[str, Pod]] = {}
        self._orphans: dict[str, Pod] = {}
        self._dirty: dict[WorkloadId, None] = {}
        self._late: dict[WorkloadId, None] = {}
        self._outdated: set[str] = set()
        self._former: dict[str, Manifest] = {}
        """By key of a StatefulSet: its template before a rollout, which pods below the partition get again."""
        self._made_up: set[WorkloadId] = set()
        """The workloads of which only pods are known."""
        self._removed: set[WorkloadId] = set()
        self._scaled_from: dict[str, Manifest] = {}
        """The earlier state of each Deployment that was scaled, by its key."""
        self._changed: set[str] = set()
        """The keys of Deployments whose template was changed here."""
        self._current: dict[str, str] = {}
        """The key of the ReplicaSet of each Deployment's template, by the Deployment's key."""
        self._serial = 0
        for pod in pods:
            self._index(pod)
            self._note_revision(pod)

    # ------------------------------------------------------------ changes

    def on_pod(self, pod: Pod) -> None:
        """Note that a pod was created or placed, or is being deleted."""
        owner = owner_id(pod)
        if owner is not None and pod.is_terminating and not self.is_replaced_alike(pod):
            # While the pod still exists, as its spec is all that is known of the template.
            self._ensure(*owner)
        self._index(pod)
        self._touch_owner(pod)

    def on_pod_gone(self, pod: Pod) -> None:
        """Note that a pod was deleted."""
        owner = owner_id(pod)
        if owner is not None and owner[0] == "Job" and self._is_complete(owner):
            # A Job counts the pod as failed, and replaces it after a backoff.
            self._late[owner] = None
        else:
            self._touch_owner(pod)
        self._outdated.discard(pod.key)
        self._orphans.pop(pod.key, None)
        if owner is not None:
            self._pods.get(owner, {}).pop(pod.key, None)

    def end_backoffs(self) -> bool:
        """Let Jobs replace deleted pods, and return whether any Job does."""
        late, self._late = self._late, {}
        self._dirty.update(late)
        return bool(late)

    def touch(self, kind: str, key: str) -> None:
        """Note a change after which the workload may create more pods."""
        self._dirty[kind, key] = None

    def on_nodes(self) -> None:
        """Note that a node was added, changed or removed."""
        for key in self._objects.of_kind("DaemonSet"):
            self._dirty["DaemonSet", key] = None

    def apply(self, manifest: Manifest) -> None:
        """Apply a workload, or another object that derivation reads."""
        kind, key = str(manifest.get("kind")), key_of(manifest)
        # Kinds without a controller here matter all the same: LimitRanges, quotas and classes decide about new pods.
        if kind not in KINDS:
            self._objects.put(manifest)
            return
        self._removed.discard((kind, key))
        self._ensure(kind, key)
        old = self._objects.get(kind, key)
        new = manifest if old is None else apply_manifest(old, manifest)
        if old is not None and mapping_at(manifest, "spec").get("replicas") is None:
            # As kubectl apply: a manifest without replicas keeps the number, which an autoscaler may have set.
            new = {**new, "spec": {**mapping_at(new, "spec"), **only(mapping_at(old, "spec"), "replicas")}}
        self._objects.put(new)
        self._dirty[kind, key] = None
        if kind == "Deployment" and old is not None:
            self._note_scaling(key, old, new)
        templates = [mapping_at(workload, "spec", "template") for workload in (old, new)]
        if old is None or is_same(*templates):
            return
        if kind == "Deployment":
            self._current.pop(key, None)
            self._changed.add(key)
        elif kind in _KEEPING_REVISIONS:
            pods = self._pods.get((kind, key), {})
            # In the middle of a rollout the template before it is still the former one.
            if kind == "StatefulSet" and not self._outdated & pods.keys():
                self._former[key] = templates[0]
            self._outdated.update(pods)

    def scale(self, kind: str, key: str, count: int) -> bool:
        """Scale a workload, and return whether it and its controller are known."""
        self._ensure(kind, key)
        workload = self._objects.get(kind, key) if kind in KINDS else None
        if workload is None:
            return False
        field = "parallelism" if kind == "Job" else "replicas"
        scaled = {**workload, "spec": {**mapping_at(workload, "spec"), field: count}}
        self._objects.put(scaled)
        self._dirty[kind, key] = None
        if kind == "Deployment":
            self._note_scaling(key, workload, scaled)
        return True

    def _note_scaling(self, key: str, old: Manifest, new: Manifest) -> None:
        """Remember a Deployment before it is scaled, because its ReplicaSets are scaled in proportion."""
        if desired_replicas(old) != desired_replicas(new):
            self._scaled_from.setdefault(key, old)

    def remove(self, kind: str, key: str) -> list[Pod] | None:
        """Remove a workload, and return its pods, which are to be deleted; None if the workload is not known."""
        self._ensure(kind, key)
        if self._objects.get(kind, key) is None:
            return None
        pods = list(self._pods.get((kind, key), {}).values())
        if kind == "Deployment":
            for replica_set in self._replica_sets(key):
                pods += self._pods.get(("ReplicaSet", key_of(replica_set)), {}).values()
                self._objects.drop("ReplicaSet", key_of(replica_set))
        self._objects.drop(kind, key)
        self._made_up.discard((kind, key))
        self._removed.add((kind, key))
        return pods

    # ------------------------------------------------------------ questions

    def workloads(self) -> list[str]:
        """Return all workloads that exist or have pods, as NAMESPACE/KIND/NAME."""
        workloads = {(kind, key) for kind in KINDS for key in self._objects.of_kind(kind)}
        workloads |= {above for owner, pods in self._pods.items() for above in self._owners(owner, pods) if pods}
        return sorted(f"{key.partition('/')[0]}/{kind}/{key.partition('/')[2]}" for kind, key in workloads)

    def expected_pods(self, pods: Sequence[Pod]) -> int | None:
        """Return the total replicas of these pods' controllers; None if one of them cannot be scaled.

        Pods without a controller do not count.
        """
        owners = {owner for pod in pods if (owner := owner_id(pod)) is not None}
        # Jobs and DaemonSets have no scale subresource, so upstream's disruption controller cannot count their pods.
        if any(kind in ("Job", "DaemonSet") for kind, _ in owners):
            return None
        scaled = {self._scaled_owner(owner) for owner in owners}
        workloads = {owner: self._objects.get(*owner) for owner in scaled}
        return sum(
            len(_active(self._pods.get(owner, {}))) if workload is None else desired_replicas(workload)
            for owner, workload in workloads.items()
        )

    def _scaled_owner(self, owner: WorkloadId) -> WorkloadId:
        """Return the Deployment of a ReplicaSet, if it is known; return other workloads unchanged."""
        replica_set = self._objects.get(*owner) if owner[0] == "ReplicaSet" else None
        deployment = controller_of(replica_set) if replica_set is not None else None
        above = "Deployment", f"{owner[1].partition('/')[0]}/{deployment}"
        return owner if deployment is None or self._objects.get(*above) is None else above

    def is_replaced_alike(self, pod: Pod) -> bool:
        """Return whether a copy replaces the pod once it is deleted, because its workload is not known exactly."""
        owner = owner_id(pod)
        if owner is None or owner[0] in _KEEPING_REVISIONS:
            return False
        return owner[0] not in KINDS or owner in self._made_up or not self._is_complete(owner)

    # ------------------------------------------------------------ work

    def sync(self) -> list[WorkloadSync]:
        """Sync each workload that has changed since the last call, in the order of the changes."""
        dirty, self._dirty = list(self._dirty), {}
        return [WorkloadSync(kind, key, sync) for kind, key in dirty if (sync := self._sync(kind, key)) != Sync()]

    @property
    def has_work(self) -> bool:
        """True if a workload has changed since the last sync."""
        return bool(self._dirty)

    def _sync(self, kind: str, key: str) -> Sync:
        workload = self._objects.get(kind, key)
        if workload is None:
            return Sync()
        adoptions = self._adoptable_pods(workload, key)
        if adoptions:
            if kind in _KEEPING_REVISIONS:
                # They carry no label of the workload's revision.
                self._outdated.update(pod.key for pod in adoptions)
            self._dirty[kind, key] = None
            return Sync(adopt=adoptions)
        # Names must differ between syncs, since pods of the last one may still be terminating.
        self._serial += 1
        pods = list(self._pods.get((kind, key), {}).values())
        context = SyncContext(self._now_s(), self._objects.restarts_of, self._serial)
        if kind == "Deployment":
            self._sync_deployment(workload, key)
            return Sync()
        if kind in ("ReplicaSet", "ReplicationController"):
            return sync_replica_set(workload, pods, self._sibling_pods(workload), context)
        if kind == "StatefulSet":
            return self._sync_stateful_set(workload, key, pods)
        if kind == "Job":
            return sync_job(workload, pods, context, is_held=None if self.held_jobs is None else key in self.held_jobs)
        return sync_daemon_set(workload, pods, self._nodes(), self._outdated, context)

    def _now_s(self) -> float:
        # Only the order of a scale-down depends on the time.
        return time_or_none(self._objects.latest_time) or 0.0

    def _sibling_pods(self, replica_set: Manifest) -> list[Pod]:
        """Return the pods of all ReplicaSets of the same Deployment."""
        deployment = controller_of(replica_set)
        if deployment is None:
            return []
        siblings = self._replica_sets(f"{namespace_of(replica_set)}/{deployment}")
        return [pod for sibling in siblings for pod in self._pods.get(("ReplicaSet", key_of(sibling)), {}).values()]

    # ------------------------------------------------------------ revisions of StatefulSets and DaemonSets

    def _note_revision(self, pod: Pod) -> None:
        """Note if labels say that the pod was created from an older template than its workload's."""
        owner = owner_id(pod)
        workload = self._objects.get(*owner) if owner is not None and owner[0] in _KEEPING_REVISIONS else None
        if owner is None or workload is None:
            return
        if is_of_older_template(pod, workload):
            self._outdated.add(pod.key)
            if pod.metadata.labels.get(REVISION) == mapping_at(workload, "status").get("currentRevision"):
                self._former.setdefault(owner[1], named_template("StatefulSet", pod, self._objects))

    def _sync_stateful_set(self, stateful_set: Manifest, key: str, pods: Sequence[Pod]) -> Sync:
        former = self._former.get(key)
        if former is not None:
            # Also those that are created now wait for the rollout.
            self._outdated.update(f"{key}-{ordinal}" for ordinal in ordinals_kept(stateful_set))
        return sync_stateful_set(stateful_set, pods, self._outdated, former)

    # ------------------------------------------------------------ Deployments

    def _sync_deployment(self, deployment: Manifest, key: str) -> None:
        old_deployment = self._scaled_from.pop(key, None)
        active = [replica_set for replica_set in self._replica_sets(key) if desired_replicas(replica_set)]
        if old_deployment is not None and active:
            # Upstream scales first, and continues the rollout in a later sync.
            self._dirty["Deployment", key] = None
            for name, replicas in scale_in_proportion(deployment, old_deployment, active).items():
                self.scale("ReplicaSet", f"{namespace_of(deployment)}/{name}", replicas)
            return
        current = self._current_replica_set(deployment, key)
        states = [
            ReplicaSetState(
                replica_set, sum(map(is_ready, self._pods.get(("ReplicaSet", key_of(replica_set)), {}).values()))
            )
            for replica_set in self._replica_sets(key)
        ]
        (new,) = [state for state in states if key_of(state.manifest) == current]
        old = [state for state in states if state is not new]
        pod_count = sum(len(self._pods.get(("ReplicaSet", key_of(state.manifest)), ())) for state in old)
        for name, replicas in sync_deployment(deployment, new, old, pod_count).items():
            self.scale("ReplicaSet", f"{namespace_of(deployment)}/{name}", replicas)
            self._dirty["Deployment", key] = None

    def _current_replica_set(self, deployment: Manifest, key: str) -> str:
        """Return the key of the ReplicaSet of the Deployment's template, which is created if it does not exist."""
        if key in self._current:
            return self._current[key]
        template = mapping_at(deployment, "spec", "template")
        replica_sets = self._replica_sets(key)
        equals = [
            candidate
            for candidate in replica_sets
            if is_same(without_hash(mapping_at(candidate, "spec", "template")), template)
        ]
        # Only if the template was not changed here, since that would have made a new ReplicaSet.
        if not equals and key not in self._changed:
            equals = replica_sets  # the same but for defaults that this dump lacks
        if equals:
            replica_set = equals[-1]
        else:
            replica_set = replica_set_of(deployment)
            self._objects.put(replica_set)
            self.new_replica_sets.append(replica_set)
        self._current[key] = key_of(replica_set)
        return self._current[key]

    def _replica_sets(self, key: str) -> list[Manifest]:
        """Return the ReplicaSets of a Deployment, the oldest revision first."""
        namespace, _, name = key.partition("/")
        replica_sets = [
            candidate
            for candidate in self._objects.in_namespace("ReplicaSet", namespace)
            if controller_of(candidate) == name
        ]
        return sorted(replica_sets, key=revision_of)

    # ------------------------------------------------------------ pods and their owners

    def _index(self, pod: Pod) -> None:
        owner = owner_id(pod)
        if owner is None:
            self._orphans[pod.key] = pod
        else:
            self._orphans.pop(pod.key, None)
            self._pods.setdefault(owner, {})[pod.key] = pod

    def _adoptable_pods(self, workload: Manifest, key: str) -> tuple[Pod, ...]:
        """Return the pods without a controller that the workload selects, with a reference to it."""
        kind, namespace = str(workload.get("kind")), key.partition("/")[0]
        if kind not in _ADOPTING or not self._orphans:
            return ()
        selector = selector_of(workload)
        reference = msgspec.convert(owner_reference(workload), OwnerReference)
        prefix = f"{key.partition('/')[2]}-"
        return tuple(
            replace(pod, metadata=replace(pod.metadata, owner_references=(*pod.metadata.owner_references, reference)))
            for pod in self._orphans.values()
            if pod.metadata.namespace == namespace
            and not pod.is_terminating
            and selector.matches(pod.metadata.labels)
            # A StatefulSet adopts only pods of its own ordinals, which their names tell.
            and (kind != "StatefulSet" or pod.metadata.name.startswith(prefix))
        )

    def _touch_owner(self, pod: Pod) -> None:
        owner = owner_id(pod)
        if owner is None or owner[0] not in KINDS:
            return
        if not self.is_replaced_alike(pod):
            self._ensure(*owner)
            self._dirty[owner] = None
        if owner[0] == "ReplicaSet" and (replica_set := self._objects.get(*owner)) is not None:
            deployment = controller_of(replica_set)
            key = f"{pod.metadata.namespace}/{deployment}"
            # An unchanged Deployment needs no sync, and its template may not be known exactly.
            if deployment is not None and key in self._current:
                self._dirty["Deployment", key] = None

    def _owners(self, owner: WorkloadId, pods: Mapping[str, Pod]) -> list[WorkloadId]:
        """Return the pods' controller and that controller's own, which may be derived from the name."""
        kind, key = owner
        workload = self._objects.get(kind, key)
        namespace = key.partition("/")[0]
        if workload is not None:
            above = controller_of(workload)
            return [owner, (_ABOVE.get(kind, ""), f"{namespace}/{above}")] if above is not None else [owner]
        has_hash = any(TEMPLATE_HASH in pod.metadata.labels for pod in pods.values())
        # A dump may lack the ReplicaSet; its Deployment is in the name, before the hash.
        if kind in _ABOVE and (kind != "ReplicaSet" or has_hash or "-" in key):
            return [owner, (_ABOVE[kind], key.rpartition("-")[0])]
        return [owner]

    def _ensure(self, kind: str, key: str) -> None:
        """Derive a workload of which only pods are known."""
        # A DaemonSet's pods do not say on which other nodes it runs.
        if kind not in KINDS or kind == "DaemonSet" or (kind, key) in self._removed:
            return
        # The ReplicaSets of a Deployment may be unknown though it is known itself.
        pods = self._pods_below(key) if kind == "Deployment" else _active(self._pods.get((kind, key), {}))
        # What the files say of a workload is better than anything derived from its pods.
        if self._is_complete((kind, key)):
            return
        partial = self._objects.get(kind, key)
        self._made_up.add((kind, key))
        if not pods:
            return
        name = key.partition("/")[2]
        owner_references = []
        if kind == "ReplicaSet" and (above := self._owners((kind, key), self._pods[kind, key])[1:]):
            above_kind, above_key = above[0]
            above_name = {"name": above_key.partition("/")[2]}
            owner_references = [owner_reference({"apiVersion": "apps/v1", "kind": above_kind, "metadata": above_name})]
        metadata = {"name": name, "namespace": pods[0].metadata.namespace, "ownerReferences": owner_references}
        metadata |= mapping_at(partial, "metadata")
        template = named_template(kind, pods[0], self._objects)
        if kind == "Deployment":
            template = without_hash(template)
        counts = {"replicas": len(pods), "parallelism": len(pods)}
        claims = claim_templates_of(pods[0], self._claim_of) if kind == "StatefulSet" else []
        self._objects.put(
            {
                "apiVersion": _API_VERSIONS.get(kind, "apps/v1"),
                "kind": kind,
                "metadata": metadata,
                "spec": {**counts, "volumeClaimTemplates": claims, "template": template},
            }
        )

    def _pods_below(self, key: str) -> list[Pod]:
        """Return the pods of a Deployment's ReplicaSets, which are derived if they are not known."""
        owners = [
            owner for owner, pods in self._pods.items() if pods and ("Deployment", key) in self._owners(owner, pods)
        ]
        replica_sets = [owner for owner in owners if owner[0] == "ReplicaSet"]
        for replica_set in replica_sets:
            self._ensure(*replica_set)
        return [pod for owner in replica_sets for pod in _active(self._pods[owner])]

    def _is_complete(self, workload: WorkloadId) -> bool:
        """Return whether the workload is known with its template."""
        return bool(mapping_at(self._objects.get(*workload), "spec", "template", "spec"))


def _active(pods: Mapping[str, Pod]) -> list[Pod]:
    """Return the pods that are not being deleted."""
    return [pod for pod in pods.values() if not pod.is_terminating]

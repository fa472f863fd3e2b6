"""The workload in question: the pods that its controllers would create, and the objects that are submitted beside it.

Owns the difference between the workload as it is submitted and as it runs: suspended Jobs run, and scheduling gates are
open, since both wait only until a cluster is chosen. Never looks at a member cluster.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final

from podium.config import API_VERSION, KIND, KubeSchedulerConfiguration
from podium.engine.configurations import read_config
from podium.engine.derivation.control_objects import is_control_kind, items_at, mapping_at, namespace_of
from podium.engine.derivation.workload_kinds import (
    REPLICAS_MAX,
    has_template,
    replicas_of,
    templates_in,
    unknown_place_advice,
)
from podium.engine.errors import ManifestError
from podium.engine.files import LocatedManifest
from podium.engine.manifests import Manifest, as_manifest, resource_of
from podium.engine.store import ObjectStore
from podium.insight.cluster import Cluster
from podium.insight.steps import Apply
from podium.insight.trial import Trial
from podium.objects.resource_types import NODES, PODS, REPLICA_SETS
from podium.plugins import IN_TREE

_NAMES_SHOWN: Final = 3
_DECIDING: Final = frozenset(
    {"PriorityClass", "RuntimeClass", "LimitRange", "ResourceQuota", "ResourceClaimTemplate", "StorageClass"}
)
"""The kinds of objects that decide how pods are admitted and which claims they have."""
_SET_LATER: Final = ("nodeName", "schedulingGates")
"""The fields of a pod's spec that say where it is, or that no cluster is chosen yet."""


@dataclass(frozen=True, slots=True)
class Workload:
    """The workload in question.

    Attributes:
        name: kind, namespace and name of its workloads and single pods.
        pods: as its controllers would create them, without nodes. Those of one template share their `spec`.
        objects: the other objects that are submitted with it, and the ReplicaSets of its Deployments.
        control_objects: those that decide how its pods are admitted and which claims they have.
        typed_pods: a cache for `admission`.
        outcomes: the last outcome in each member of a watched fleet, and the revision of its state.
    """

    name: str
    pods: Sequence[Manifest]
    objects: Sequence[Manifest] = ()
    control_objects: Sequence[Manifest] = ()
    typed_pods: dict[object, Any] = field(default_factory=dict, compare=False, repr=False)
    outcomes: dict[str, tuple[object, Any]] = field(default_factory=dict, compare=False, repr=False)


@dataclass
class _Derivation(Trial):
    """A trial that keeps the manifests of the pods that controllers create."""

    manifests: list[Manifest] = field(default_factory=list)

    def create(self, pod: Manifest) -> None:
        """Create the pod. Raises: as `Trial.create`."""
        super().create(pod)
        self.manifests.append(pod)


def read_workload(items: Sequence[LocatedManifest], pods_max: int = REPLICAS_MAX) -> Workload:
    """Return the workload that these objects are.

    Raises:
        ManifestError: an object cannot be read, its kind has no pods, or it has none or more than `pods_max`.
    """
    items = [LocatedManifest(_as_started(item.manifest), item.location) for item in items]
    name = _name_of(items)
    _demand_few(items, pods_max)
    # An empty cluster, so that the pods are those of a new workload, the same for each member.
    trial = _Derivation(Cluster(_bare_configuration(), ObjectStore(())))
    Apply(name, items).carry_out(trial)
    trial.reconcile()
    if trial.refusals:
        raise ManifestError("; ".join(refusal.reason for refusal in trial.refusals.values()))
    if not trial.manifests:
        raise ManifestError(f"{name}: it has no pods, as the number of its replicas is 0")
    manifests = [item.manifest for item in items]
    replica_sets = trial.world.store.objects(REPLICA_SETS).values()
    return Workload(
        name,
        _without_place(trial.manifests),
        [
            *(manifest for manifest in manifests if resource_of(manifest) not in (None, PODS, REPLICA_SETS)),
            *(as_manifest(REPLICA_SETS, replica_set) for replica_set in replica_sets),
        ],
        list(filter(_is_deciding, manifests)),
    )


def _is_deciding(manifest: Manifest) -> bool:
    is_set_with_claims = manifest.get("kind") == "StatefulSet" and items_at(manifest, "spec", "volumeClaimTemplates")
    return is_control_kind(manifest) and (manifest["kind"] in _DECIDING or bool(is_set_with_claims))


@cache
def _bare_configuration() -> KubeSchedulerConfiguration:
    """Return a configuration with as few plugins as possible: nothing is scheduled by it, and each costs time."""
    plugins = {
        "multiPoint": {"disabled": [{"name": "*"}]},
        "queueSort": {"enabled": [{"name": "PrioritySort"}]},
        "bind": {"enabled": [{"name": "DefaultBinder"}]},
    }
    return read_config({"apiVersion": API_VERSION, "kind": KIND, "profiles": [{"plugins": plugins}]}, IN_TREE)


def _name_of(items: Sequence[LocatedManifest]) -> str:
    """Return what to call the workload. Raises: ManifestError: there is none."""
    subjects = [item.manifest for item in items if templates_in(item.manifest)]
    if any(resource_of(item.manifest) is NODES for item in items):
        raise ManifestError("the objects of a workload hold a Node: give the clusters' objects apart from it")
    if not subjects:
        kinds = ", ".join(dict.fromkeys(str(item.manifest.get("kind")) for item in items)) or "nothing"
        location = items[0].location.partition(": document")[0] if items else "the workload"
        raise ManifestError(
            f"{location}: expected pods or workloads with pod templates, found {kinds}{unknown_place_advice(items)}"
        )
    for subject in subjects:
        if subject.get("kind") == "DaemonSet":
            raise ManifestError("a DaemonSet has a pod on every node, so that no cluster fits it better than another")
    names = [_reference(subject) for subject in subjects]
    suffix = f" and {len(names) - _NAMES_SHOWN} more" if len(names) > _NAMES_SHOWN else ""
    return ", ".join(names[:_NAMES_SHOWN]) + suffix


def _demand_few(items: Iterable[LocatedManifest], pods_max: int) -> None:
    """Refuse too many pods before they are made. Raises: ManifestError."""
    templates = ((item, template) for item in items for template in templates_in(item.manifest))
    count = sum(replicas_of(item, template, default=1) for item, template in templates)
    if count > pods_max:
        raise ManifestError(f"a workload may have {pods_max:,} pods here, and this one has {count:,}")


def _reference(manifest: Manifest) -> str:
    metadata = mapping_at(manifest, "metadata")
    name = metadata.get("name") or metadata.get("generateName") or ""
    return f"{manifest['kind']} {namespace_of(manifest)}/{name}"


def _as_started(manifest: Manifest) -> Manifest:
    """Return a workload as one that starts at once, with all of its pods; return other objects unchanged."""
    if not has_template(manifest):
        return manifest
    # What it was in another cluster says nothing about its pods in a new one.
    fields = {name: value for name, value in manifest.items() if name != "status"}
    if manifest.get("kind") == "Job" and "suspend" in mapping_at(manifest, "spec"):
        fields["spec"] = {**mapping_at(manifest, "spec"), "suspend": False}
    if manifest.get("kind") == "StatefulSet":
        # Otherwise each pod would wait for the one before it to run.
        fields["spec"] = {**mapping_at(manifest, "spec"), "podManagementPolicy": "Parallel"}
    return fields


def _without_place(pods: Iterable[Manifest]) -> Sequence[Manifest]:
    """Return the pods without nodes and gates. Pods that share a spec still do."""
    specs: dict[int, Mapping[str, Any]] = {}
    pending_pods = []
    for pod in pods:
        spec = mapping_at(pod, "spec")
        if id(spec) not in specs:
            is_pending = not any(spec.get(name) for name in _SET_LATER)
            specs[id(spec)] = (
                spec if is_pending else {name: value for name, value in spec.items() if name not in _SET_LATER}
            )
        pending_pods.append({**pod, "spec": specs[id(spec)]})
    return pending_pods

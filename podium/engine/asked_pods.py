"""Finds the pod that a question of the library is about, by its name, or makes it from a workload's manifest."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from podium.engine.derivation.pods import asked_pod
from podium.engine.derivation.workload_kinds import template_of
from podium.engine.errors import ClusterError
from podium.engine.files import LocatedManifest
from podium.engine.manifests import Manifest
from podium.lib.nearest import nearest
from podium.objects.core import Pod

PodLike: TypeAlias = Pod | Manifest | str
"""A pod, its manifest or that of its workload, or the namespace and name of a pod of the cluster."""


def pod_named(name: str, pods: Mapping[str, Pod]) -> Pod:
    """Return the pod with that namespace and name, or the only pod with that name.

    Raises:
        ClusterError: no pod has that name, or several have. The message suggests names.
    """
    if (pod := pods.get(name)) is not None:
        return pod
    namesakes = [pod for pod in pods.values() if pod.metadata.name == name]
    if len(namesakes) > 1:
        keys = ", ".join(pod.key for pod in namesakes)
        raise ClusterError(f"there are {len(namesakes)} pods named {name}: give one of {keys}")
    if not namesakes:
        raise ClusterError(f"there is no pod {name}{nearest(name, pods)}")
    return namesakes[0]


def pod_manifest(manifest: object) -> object:
    """Return the manifest of a pod of the workload; return anything else unchanged.

    Raises:
        ManifestError: the workload has several pod templates.
    """
    if not isinstance(manifest, Mapping) or template_of(manifest) is None:
        return manifest
    kind = str(manifest.get("kind"))
    pod, _ = asked_pod([LocatedManifest(manifest, kind)], kind)
    return pod.manifest


def objects_beside(manifest: object) -> list[Manifest]:
    """Return the workload's manifest and those of the objects that its pods depend on; none for a pod."""
    if not isinstance(manifest, Mapping) or template_of(manifest) is None:
        return []
    kind = str(manifest.get("kind"))
    _, dependencies = asked_pod([LocatedManifest(manifest, kind)], kind)
    return [dependency.manifest for dependency in dependencies]

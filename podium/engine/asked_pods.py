"""The pod that a question of the library is about: by its name, or made from the manifest of a workload."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from podium.engine.derivation.pods import asked_pod
from podium.engine.derivation.workload_kinds import template_of
from podium.engine.errors import ClusterError
from podium.engine.files import Found
from podium.engine.manifests import Manifest
from podium.lib.nearest import nearest
from podium.objects.core import Pod

PodLike: TypeAlias = Pod | Manifest | str
"""A pod, its manifest or that of its workload, or the namespace and name of a pod of the cluster."""


def pod_named(name: str, pods: Mapping[str, Pod]) -> Pod:
    """The pod with that namespace and name, or of that name if no other pod has it.

    Raises:
        ClusterError: there is none, or several. The message has the names that may be meant.
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
    """The manifest of a pod of the workload; anything else as it is.

    Raises:
        ManifestError: the workload has several pod templates.
    """
    if not isinstance(manifest, Mapping) or template_of(manifest) is None:
        return manifest
    kind = str(manifest.get("kind"))
    pod, _ = asked_pod([Found(manifest, kind)], kind)
    return pod.manifest


def objects_beside(asked: object) -> list[Manifest]:
    """The workload that is asked about and what is made for it, which its pods depend on; none for a pod."""
    if not isinstance(asked, Mapping) or template_of(asked) is None:
        return []
    kind = str(asked.get("kind"))
    _, others = asked_pod([Found(asked, kind)], kind)
    return [other.manifest for other in others]

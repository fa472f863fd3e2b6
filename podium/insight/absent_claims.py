"""Claims that a pod names and that do not exist. The pod waits for them, whatever the nodes.

Claims that controllers create for a pod do not count: the cluster has them already.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from podium.engine.store import ObjectStore
from podium.insight.edits import Edit, EditKind
from podium.insight.json_patch import operation, pointer
from podium.insight.pod_edits import Wish
from podium.objects.core import Pod
from podium.objects.resource_types import PERSISTENT_VOLUME_CLAIMS, RESOURCE_CLAIMS


@dataclass(frozen=True, slots=True)
class AbsentClaim:
    """A claim that does not exist.

    Attributes:
        path: where the pod's spec asks for it.
        plugin: the filter that rejects the pod for it.
        is_unknown: whether no object of its kind was given, so that it may exist.
    """

    kind: str
    namespace: str
    name: str
    path: tuple[str | int, ...]
    plugin: str
    is_unknown: bool = False

    @property
    def text(self) -> str:
        """Says what is missing, and what helps."""
        source_text = " in the files, which hold no object of this kind" if self.is_unknown else ""
        return f"the {self.kind} {self.namespace}/{self.name} does not exist{source_text}: create it"

    def explains(self, reason: str) -> bool:
        """Return whether a filter's reason is that the claim is missing."""
        return f'"{self.name}"' in reason or f'"{self.namespace}/{self.name}"' in reason

    def creation(self) -> Wish:
        """Return the edit that creates it, tried as if the new claim restricted nothing."""
        text = f"create the {self.kind} {self.namespace}/{self.name}"
        patch = (operation("remove", pointer(*self.path)),)
        edit = Edit(EditKind.CREATE_CLAIM, self.kind, self.namespace, self.name, patch, text)
        return Wish(f"claim {self.path}", self.plugin, edit)


def absent_claims(store: ObjectStore, pod: Pod) -> Sequence[AbsentClaim]:
    """Return the claims of the pod that do not exist."""
    absent = [claim for claim in _claims(pod) if not _exists(store, claim)]
    # Only asked where a claim is missing: a dump without any claim may just not have been dumped with them.
    unknown = {resource.kind for resource in store.missing_kinds()} if absent else set()
    return [replace(claim, is_unknown=claim.kind in unknown) for claim in absent]


def _exists(store: ObjectStore, claim: AbsentClaim) -> bool:
    key = f"{claim.namespace}/{claim.name}"
    if claim.kind == RESOURCE_CLAIMS.kind:
        return store.get(RESOURCE_CLAIMS, key) is not None
    return store.get(PERSISTENT_VOLUME_CLAIMS, key) is not None


def missing_claims(store: ObjectStore, pod: Pod) -> Sequence[Wish]:
    """Return an edit for each claim that does not exist, which creates it."""
    return [claim.creation() for claim in absent_claims(store, pod)]


def _claims(pod: Pod) -> Iterator[AbsentClaim]:
    namespace = pod.metadata.namespace
    for index, volume in enumerate(pod.spec.volumes):
        path = ("spec", "volumes", index)
        if volume.persistent_volume_claim is not None:
            # An ephemeral volume's claim is made by a controller; its absence says nothing about the pod.
            name, kind = volume.persistent_volume_claim.claim_name, PERSISTENT_VOLUME_CLAIMS.kind
            yield AbsentClaim(kind, namespace, name, path, "VolumeBinding")
    for index, claim in enumerate(pod.spec.resource_claims):
        if claim.resource_claim_name:
            path = ("spec", "resourceClaims", index)
            name, kind = claim.resource_claim_name, RESOURCE_CLAIMS.kind
            yield AbsentClaim(kind, namespace, name, path, "DynamicResources")

"""The objects of a question, by kind and key."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any, Generic

from podium.objects.core import Pod
from podium.objects.resource_types import PODS, KubeObject, ObjectT, ResourceType
from podium.whatif.manifests import Manifest, read_manifest, resource_of

_ENDED = ("Succeeded", "Failed")


class StillLister(Generic[ObjectT]):
    """The objects of one kind. Implements `podium.framework.interface.Lister`.

    Attributes:
        is_asked: whether anybody has wanted to know of an object.
    """

    def __init__(self, objects: Mapping[str, ObjectT]) -> None:
        self._objects = objects
        self.is_asked = False

    def get(self, key: str) -> ObjectT | None:
        """The object of that key."""
        self.is_asked = True
        return self._objects.get(key)

    def list(self) -> Iterable[ObjectT]:
        """All of them, in order of namespace and name."""
        self.is_asked = True
        return self._objects.values()

    def in_namespace(self, namespace: str) -> Iterable[ObjectT]:
        """Those of one namespace."""
        self.is_asked = True
        return [item for item in self._objects.values() if item.metadata.namespace == namespace]


class World:
    """What lives in a cluster. Kinds that no scheduler reads are left out, and pods that have ended.

    Args:
        whole: the kinds of which all objects are known to be there, even if there are none.

    Invariant: the objects of a kind are in order of namespace and name, as an API server lists them.
    """

    def __init__(
        self, objects: Iterable[tuple[ResourceType[Any], KubeObject]], whole: Collection[ResourceType[Any]] = ()
    ) -> None:
        self._whole = frozenset(whole)
        self._listers: dict[ResourceType[Any], StillLister[Any]] = {}
        self._objects: dict[str, dict[str, Any]] = {}
        for resource, item in objects:
            if not (isinstance(item, Pod) and item.status.phase in _ENDED):
                self._objects.setdefault(resource.path, {})[item.key] = item
        for path, found in self._objects.items():
            self._objects[path] = dict(sorted(found.items(), key=_namespace_and_name))

    @classmethod
    def of(cls, manifests: Iterable[Manifest], whole: Collection[ResourceType[Any]] = ()) -> World:
        """The world of these objects. Pods that name no scheduler are nobody's: nothing is promised to them.

        Raises:
            ManifestError: one cannot be read.
        """
        return cls(
            (
                (resource, read_manifest(_unclaimed(manifest) if resource is PODS else manifest, resource))
                for manifest in manifests
                if (resource := resource_of(manifest)) is not None
            ),
            whole,
        )

    def objects(self, resource: ResourceType[ObjectT]) -> Mapping[str, ObjectT]:
        """The objects of one kind by key."""
        return self._objects.get(resource.path, {})

    def put_pod(self, pod: Pod) -> None:
        """Add a pod, or replace the one of its name."""
        self._objects.setdefault(PODS.path, {})[pod.key] = pod

    def drop_pod(self, pod: Pod) -> None:
        """Take a pod out."""
        del self._objects[PODS.path][pod.key]

    def lister(self, resource: ResourceType[ObjectT]) -> StillLister[ObjectT]:
        """The objects of one kind as plugins ask for them; it sees what becomes of the world later."""
        lister = self._listers.get(resource)
        if lister is None:
            lister = self._listers[resource] = StillLister(self._objects.setdefault(resource.path, {}))
        return lister

    def missed(self) -> list[ResourceType[Any]]:
        """The kinds that plugins have asked about, and of which there is nothing, so that answers may be wrong."""
        return [
            resource
            for resource, lister in self._listers.items()
            if lister.is_asked and resource not in self._whole and not self._objects[resource.path]
        ]


def _unclaimed(pod: Manifest) -> Manifest:
    """The pod; where it names no scheduler, without the name that an API server would have filled in."""
    spec = pod.get("spec")
    if not isinstance(spec, dict) or spec.get("schedulerName"):
        return pod
    return {**pod, "spec": {**spec, "schedulerName": ""}}


def _namespace_and_name(entry: tuple[str, KubeObject]) -> tuple[str, str]:
    metadata = entry[1].metadata
    return metadata.namespace, metadata.name

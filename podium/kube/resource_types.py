"""The resources that podium watches.

Owns how each is addressed and decoded; another kind is one more line.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from podium.kube.objects import Node, ObjectMeta, Pod


class KubeObject(Protocol):
    """What reflectors and stores need of an object."""

    @property
    def metadata(self) -> ObjectMeta:
        """Name, uid and resource version."""
        ...

    @property
    def key(self) -> str:
        """`<namespace>/<name>`, or the name where there is no namespace."""
        ...


ObjectT = TypeVar("ObjectT", bound=KubeObject)


@dataclass(frozen=True, slots=True)
class ResourceType(Generic[ObjectT]):
    """A kind, where its collection is served, and the type its objects are decoded to."""

    kind: str
    path: str
    type: type[ObjectT]
    field_selector: str = ""

    @property
    def plural(self) -> str:
        """The resource's name in paths, rules and logs."""
        return self.path.rpartition("/")[2]


PODS = ResourceType("Pod", "/api/v1/pods", Pod, field_selector="status.phase!=Succeeded,status.phase!=Failed")
NODES = ResourceType("Node", "/api/v1/nodes", Node)

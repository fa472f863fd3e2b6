"""Member clusters from dumps of their objects.

Owns that one member never spoils another: a dump that cannot be read is named, and the others answer. Two dumps of one
cluster count once, since a workload may go there only once. Never reads a file.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final

from podium.config import KubeSchedulerConfiguration, default_configuration
from podium.engine.cluster import Cluster
from podium.engine.errors import ClusterError
from podium.engine.files import LocatedManifest
from podium.engine.store import LATER_THAN_ALL_S
from podium.fleets.search import Member, waiting_pods
from podium.framework.contract.plugin import Plugin
from podium.insight.loading import Loader
from podium.objects.resource_types import NAMESPACES
from podium.plugins import IN_TREE

_SYSTEM_NAMESPACE: Final = "kube-system"


@dataclass
class LoadedFleet:
    """The members that could be loaded.

    Attributes:
        without: the members that could not, and why.
        read_errors: the objects that could not be read, each after the name of its member.
        missing_kinds: the kinds that plugins have read, and of which a member has no object.
    """

    members: list[Member] = field(default_factory=list)
    without: dict[str, str] = field(default_factory=dict)
    read_errors: list[str] = field(default_factory=list)

    def missing_kinds(self) -> Collection[str]:
        """Return the plural names of the kinds that answers depended on and of which a member has no object."""
        return {kind.plural for member in self.members for kind in member.cluster.store.missing_kinds()}


def load_fleet(
    objects_by_member: Mapping[str, Sequence[LocatedManifest]],
    config: KubeSchedulerConfiguration | None = None,
    classes: Mapping[str, type[Plugin]] = IN_TREE,
    now_s: float = LATER_THAN_ALL_S,
    configs: Mapping[str, KubeSchedulerConfiguration] = MappingProxyType({}),
) -> LoadedFleet:
    """Load the members from their objects.

    Args:
        config: decides in each member, whatever scheduler a pod names; a pod without a profile of its name is decided
            by the first one.
        now_s: the time of the question, in seconds since the epoch.
        configs: by the name of a member, what decides there instead of `config`.
    """
    fleet = LoadedFleet()
    names: dict[str, str] = {}
    for name, objects in objects_by_member.items():
        loader = Loader(configs.get(name) or config or default_configuration(), classes, now_s=now_s)
        try:
            cluster = loader.read(objects).cluster
        except ClusterError as error:
            fleet.without[name] = str(error)
            continue
        fleet.read_errors += [f"{name}: {error}" for error in loader.read_errors]
        identity = identity_of(cluster)
        if identity and identity in names:
            fleet.without[name] = same_cluster(names[identity])
            continue
        names[identity] = name
        # A dump does not change, so its name stands for its admission.
        fleet.members.append(Member(name, cluster, waiting_pods(cluster.pods), name))
    return fleet


def identity_of(cluster: Cluster) -> str:
    """Return what identifies a cluster, the uid of its system namespace; "" if it is not known."""
    namespace: Any = cluster.store.get(NAMESPACES, _SYSTEM_NAMESPACE)
    uid = namespace.metadata.uid if namespace is not None else ""
    # Without one in the manifest, it is made of the name.
    return "" if uid.startswith("Namespace/") else uid


def same_cluster(name: str) -> str:
    """Return why a member is left out that is the same cluster as another."""
    return f"it is the same cluster as {name}"

"""The table of resource types that the sandbox serves. Discovery, storage and routing read it."""

from __future__ import annotations

from dataclasses import dataclass

VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")


@dataclass(frozen=True, slots=True)
class ResourceType:
    """One served type. `storage` names its collection. Two types with the same collection are views of it."""

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool
    short_names: tuple[str, ...]
    subresources: tuple[str, ...]
    categories: tuple[str, ...]
    storage: str
    api_version: str
    group_resource: str
    list_kind: str

    @property
    def singular(self) -> str:
        """The singular name that kubectl accepts."""
        return self.kind.lower()

    @property
    def has_status(self) -> bool:
        """Return whether the type has a status subresource."""
        return "status" in self.subresources


def _type(
    group_version: str,
    plural: str,
    kind: str,
    *,
    short: str = "",
    sub: str = "",
    cluster: bool = False,
    every: bool = False,
    storage: str | None = None,
) -> ResourceType:
    group, _, version = group_version.rpartition("/")
    group_resource = f"{plural}.{group}" if group else plural
    return ResourceType(
        group=group,
        version=version,
        plural=plural,
        kind=kind,
        namespaced=not cluster,
        short_names=tuple(short.split()),
        subresources=tuple(sub.split()),
        categories=("all",) if every else (),
        storage=storage or group_resource,
        api_version=group_version,
        group_resource=group_resource,
        list_kind=f"{kind}List",
    )


RESOURCES: tuple[ResourceType, ...] = (
    _type("v1", "configmaps", "ConfigMap", short="cm"),
    _type("v1", "endpoints", "Endpoints", short="ep"),
    _type("v1", "events", "Event", short="ev"),
    _type("v1", "limitranges", "LimitRange", short="limits"),
    _type("v1", "namespaces", "Namespace", short="ns", sub="status", cluster=True),
    _type("v1", "nodes", "Node", short="no", sub="status", cluster=True),
    _type("v1", "persistentvolumeclaims", "PersistentVolumeClaim", short="pvc", sub="status"),
    _type("v1", "persistentvolumes", "PersistentVolume", short="pv", sub="status", cluster=True),
    _type("v1", "pods", "Pod", short="po", sub="binding eviction status", every=True),
    _type("v1", "replicationcontrollers", "ReplicationController", short="rc", sub="scale status", every=True),
    _type("v1", "resourcequotas", "ResourceQuota", short="quota", sub="status"),
    _type("v1", "secrets", "Secret"),
    _type("v1", "serviceaccounts", "ServiceAccount", short="sa", sub="token"),
    _type("v1", "services", "Service", short="svc", sub="status", every=True),
    _type("appgroup.diktyo.x-k8s.io/v1alpha1", "appgroups", "AppGroup", short="ag"),
    _type("apps/v1", "controllerrevisions", "ControllerRevision"),
    _type("apps/v1", "daemonsets", "DaemonSet", short="ds", sub="status", every=True),
    _type("apps/v1", "deployments", "Deployment", short="deploy", sub="scale status", every=True),
    _type("apps/v1", "replicasets", "ReplicaSet", short="rs", sub="scale status", every=True),
    _type("apps/v1", "statefulsets", "StatefulSet", short="sts", sub="scale status", every=True),
    _type("batch/v1", "jobs", "Job", sub="status", every=True),
    _type("cluster.karmada.io/v1alpha1", "clusters", "Cluster", sub="status", cluster=True),
    _type("coordination.k8s.io/v1", "leases", "Lease"),
    _type("events.k8s.io/v1", "events", "Event", short="ev", storage="events"),
    _type("networktopology.diktyo.x-k8s.io/v1alpha1", "networktopologies", "NetworkTopology", short="nt"),
    _type("node.k8s.io/v1", "runtimeclasses", "RuntimeClass", cluster=True),
    _type("policy/v1", "poddisruptionbudgets", "PodDisruptionBudget", short="pdb", sub="status"),
    _type("rbac.authorization.k8s.io/v1", "clusterrolebindings", "ClusterRoleBinding", cluster=True),
    _type("rbac.authorization.k8s.io/v1", "clusterroles", "ClusterRole", cluster=True),
    _type("rbac.authorization.k8s.io/v1", "rolebindings", "RoleBinding"),
    _type("rbac.authorization.k8s.io/v1", "roles", "Role"),
    _type("resource.k8s.io/v1", "deviceclasses", "DeviceClass", cluster=True),
    _type("resource.k8s.io/v1", "resourceclaims", "ResourceClaim", sub="status"),
    _type("resource.k8s.io/v1", "resourceclaimtemplates", "ResourceClaimTemplate"),
    _type("resource.k8s.io/v1", "resourceslices", "ResourceSlice", cluster=True),
    _type("resource.k8s.io/v1", "devicetaintrules", "DeviceTaintRule", sub="status", cluster=True),
    _type("scheduling.k8s.io/v1", "priorityclasses", "PriorityClass", short="pc", cluster=True),
    _type("scheduling.k8s.io/v1beta1", "podgroups", "PodGroup", sub="status"),
    _type("scheduling.k8s.io/v1beta1", "workloads", "Workload"),
    _type("kueue.x-k8s.io/v1beta1", "workloads", "Workload", short="wl", sub="status"),
    _type("scheduling.x-k8s.io/v1alpha1", "elasticquotas", "ElasticQuota", short="eq eqs", sub="status"),
    _type("scheduling.x-k8s.io/v1alpha1", "podgroups", "PodGroup", short="pg pgs", sub="status"),
    _type("security-profiles-operator.x-k8s.io/v1beta1", "seccompprofiles", "SeccompProfile", short="sp", sub="status"),
    _type("storage.k8s.io/v1", "csidrivers", "CSIDriver", cluster=True),
    _type("storage.k8s.io/v1", "csinodes", "CSINode", cluster=True),
    _type("storage.k8s.io/v1", "csistoragecapacities", "CSIStorageCapacity"),
    _type("storage.k8s.io/v1", "storageclasses", "StorageClass", short="sc", cluster=True),
    _type("storage.k8s.io/v1", "volumeattachments", "VolumeAttachment", sub="status", cluster=True),
    _type(
        "topology.node.k8s.io/v1alpha2",
        "noderesourcetopologies",
        "NodeResourceTopology",
        short="node-res-topo",
        cluster=True,
    ),
)

BY_PATH = {(r.group, r.version, r.plural): r for r in RESOURCES}
BY_KIND = {(r.api_version, r.kind): r for r in RESOURCES}


def _names() -> dict[str, ResourceType]:
    names: dict[str, ResourceType] = {}
    for resource in reversed(RESOURCES):
        for name in (resource.plural, resource.group_resource, resource.singular, *resource.short_names):
            names[name] = resource
    return names


BY_NAME = _names()


def resource_named(name: str) -> ResourceType:
    """Find a type by plural, singular, short name, `plural.group` or kind.

    Raises:
        KeyError: the sandbox does not serve the type.
    """
    return BY_NAME[name if name in BY_NAME else name.lower()]

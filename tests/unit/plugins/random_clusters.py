"""Random small clusters with something in them for every in-tree plugin to look at, and pods to come.

They are drawn as keywords of the builders, so that a failing one, shrunk, reads as the test that it should become.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import msgspec
from hypothesis import strategies as st

from podium.cluster import Snapshot
from podium.objects import resource_types
from podium.objects.core import Pod
from podium.objects.resource_types import ResourceType
from podium.objects.workloads import Namespace, Service
from tests import builders
from tests.builders import snapshot_of
from tests.unit.plugins import storage
from tests.unit.plugins.clusters import RecordingHandle

Json = dict[str, Any]
Strategy = st.SearchStrategy[Any]

GPU, DRIVER = "example.com/gpu", "disk.example.com"
FEATURE = "UserNamespacesHostNetworkSupport"
ZONE, HOST = "topology.kubernetes.io/zone", "kubernetes.io/hostname"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
KEYS, VALUES = (ZONE, "disk"), ("1", "2", "30", "ssd", "")
NODES, PODS = 5, 6


def some(elements: Strategy, count_max: int = 2) -> Strategy:
    return st.lists(elements, min_size=1, max_size=count_max)


def lists_of_size(elements: Strategy, least: int, count_max: int) -> Strategy:
    """Lists, as many long ones as short ones."""
    return st.integers(least, count_max).flatmap(lambda size: st.lists(elements, min_size=size, max_size=size))


def maybe(**optional_fields: Strategy) -> Strategy:
    return st.fixed_dictionaries({}, optional=optional_fields)


def either(first: str, second: str, elements: Strategy, other_drawn: Strategy | None = None) -> Strategy:
    """One of two keys, or both."""
    elements_by_name = {first: elements, second: elements if other_drawn is None else other_drawn}
    return st.one_of(
        *(
            st.fixed_dictionaries(
                {key: elements_by_name[key]}, optional={k: v for k, v in elements_by_name.items() if k != key}
            )
            for key in elements_by_name
        )
    )


keys = st.sampled_from(KEYS)
values = st.sampled_from(VALUES)
zones = st.sampled_from(("1", "2", ""))
amounts = st.integers(0, 4000)
millis = amounts.map(lambda amount: f"{amount}m")
node_labels = st.fixed_dictionaries(
    {}, optional={ZONE: zones, "disk": values, HOST: st.sampled_from(("h1", "h2", "h3"))}
)
pod_labels = maybe(app=st.sampled_from("ab"), tier=st.sampled_from("ab"))
own_labels = st.fixed_dictionaries({"app": st.sampled_from("ab")}, optional={"tier": st.sampled_from("ab")})
effects = st.sampled_from(("NoSchedule", "NoExecute", "PreferNoSchedule"))
taints = st.fixed_dictionaries({"key": keys, "effect": effects}, optional={"value": values})
tolerations = maybe(key=keys, operator=st.sampled_from(("Equal", "Exists", "Gt")), value=values, effect=effects)
images = st.sampled_from(("app:1", "app:latest", "db:1"))
image_sizes = st.sampled_from((100, 500, 2000)).map(lambda mebibytes: mebibytes << 20)
host_ports = st.fixed_dictionaries(
    {"hostPort": st.sampled_from((80, 443))},
    optional={
        "protocol": st.sampled_from(("TCP", "UDP")),
        "hostIP": st.sampled_from(("0.0.0.0", "10.0.0.1", "10.0.0.2")),
    },
)

# ---------------------------------------------------------------- affinity and spreading


def requirements(*operators: str, key: Strategy) -> Strategy:
    values = st.lists(st.sampled_from((*VALUES, "n1", "n2")), max_size=2)
    return st.fixed_dictionaries({"key": key, "operator": st.sampled_from(operators), "values": values})


node_terms = maybe(
    matchExpressions=some(requirements("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", key=keys)),
    matchFields=some(requirements("In", "NotIn", key=st.sampled_from(("metadata.name", "metadata.uid"))), 1),
)
valid_expressions = st.fixed_dictionaries({"key": keys, "operator": st.sampled_from(("Exists", "DoesNotExist"))})
preferences = st.fixed_dictionaries(
    {"weight": st.integers(0, 100), "preference": maybe(matchExpressions=some(valid_expressions))}
)
node_affinities = st.fixed_dictionaries(
    {},
    optional={
        REQUIRED: st.fixed_dictionaries({"nodeSelectorTerms": st.lists(node_terms, max_size=3)}),
        PREFERRED: some(preferences, 3),
    },
)
pod_expressions = st.fixed_dictionaries(
    {"key": st.sampled_from(("app", "tier")), "operator": st.sampled_from(("Exists", "DoesNotExist"))}
)
selectors = st.one_of(
    st.none(),
    st.just({"matchLabels": {"app": "a"}}),
    maybe(matchLabels=pod_labels, matchExpressions=some(pod_expressions)),
)
topologies = st.sampled_from((ZONE, HOST, "disk"))
pod_terms = st.fixed_dictionaries(
    {"topologyKey": topologies, "labelSelector": selectors},
    optional={"namespaces": some(st.sampled_from(("default", "other"))), "namespaceSelector": selectors},
)
pod_preferences = st.fixed_dictionaries({"weight": st.integers(1, 100), "podAffinityTerm": pod_terms})
pod_affinities = either(REQUIRED, PREFERRED, some(pod_terms), some(pod_preferences))
policies = st.sampled_from(("Honor", "Ignore"))
spread_constraints = st.fixed_dictionaries(
    {
        "maxSkew": st.integers(1, 2),
        "topologyKey": topologies,
        "whenUnsatisfiable": st.sampled_from(("DoNotSchedule", "ScheduleAnyway")),
        "labelSelector": selectors,
    },
    optional={
        "minDomains": st.integers(1, 3),
        "nodeAffinityPolicy": policies,
        "nodeTaintsPolicy": policies,
        "matchLabelKeys": some(st.sampled_from(("app", "tier")), 1),
    },
)

# ---------------------------------------------------------------- storage

CLAIMS, VOLUMES = ("c0", "c1", "c2"), ("v0", "v1", "v2")
sizes = st.sampled_from(("1Gi", "3Gi"))
modes = st.sampled_from(("ReadWriteOnce", "ReadWriteOncePod"))
claims = st.fixed_dictionaries(
    {"volume": st.sampled_from(("", "", *VOLUMES, *VOLUMES, "gone"))},
    optional={"size": sizes, "modes": some(modes, 1), "annotations": st.just({storage.SELECTED_NODE: "n0"})},
)
volumes = st.fixed_dictionaries(
    {
        "labels": st.sampled_from(("1", "2", "1__2", "")).map(lambda zone: {ZONE: zone} if zone else {}),
        "csi": st.sampled_from((None, (DRIVER, "h0"), (DRIVER, "h1"))),
        "reach": st.one_of(st.none(), st.fixed_dictionaries({ZONE: some(zones)})),
    },
    optional={"size": sizes, "modes": some(modes)},
)
topologies_allowed = st.fixed_dictionaries({ZONE: some(zones)})
classes = maybe(provisioner=st.just("kubernetes.io/no-provisioner"), topologies=some(topologies_allowed))
capacities = maybe(on=st.fixed_dictionaries({ZONE: values}), size=sizes, largest=sizes)
read_only = st.booleans()
claim_sources = st.sampled_from((*CLAIMS[:2], *CLAIMS)).map(lambda name: {"persistentVolumeClaim": {"claimName": name}})
disks = st.one_of(
    st.builds(lambda flag: {"gcePersistentDisk": {"pdName": "d", "readOnly": flag}}, read_only),
    st.just({"awsElasticBlockStore": {"volumeID": "d"}}),
    st.builds(lambda flag: {"iscsi": {"iqn": "d", "readOnly": flag}}, read_only),
    st.builds(lambda host: {"rbd": {"monitors": [host, "m"], "pool": "p", "image": "i"}}, values),
    st.just({"csi": {"driver": DRIVER}}),
)


def _with_names(sources: list[Json]) -> list[Json]:
    return [{"name": f"v{index}", **source} for index, source in enumerate(sources)]


# ---------------------------------------------------------------- whole clusters

nodes = st.fixed_dictionaries(
    {"labels": node_labels},
    optional={
        "cpu": millis,
        "memory": amounts.map(str),
        "pods": st.integers(0, 4),
        "taints": some(taints),
        "unschedulable": st.just(True),
        "images": st.dictionaries(images, image_sizes, min_size=1, max_size=2),
        "allocatable": st.fixed_dictionaries({GPU: st.integers(0, 4), "ephemeral-storage": amounts}),
        "status": st.just({"declaredFeatures": [FEATURE]}),
    },
)
wishes = st.one_of(
    st.just({}),
    st.just({"hostNetwork": True, "hostUsers": False}),
    st.fixed_dictionaries({"nodeSelector": st.dictionaries(keys, values)}),
    st.just({"resourceClaims": [{"name": "device", "resourceClaimName": "device"}]}),
)
modest: dict[str, Strategy] = {
    "requests": st.fixed_dictionaries(
        {}, optional={"cpu": millis, "memory": amounts, "ephemeral-storage": amounts, GPU: st.integers(0, 3)}
    ),
    "tolerations": some(tolerations),
    "host_ports": some(host_ports),
}
choosy = {
    "labels": pod_labels,
    "images": some(images),
    "affinity": maybe(nodeAffinity=node_affinities),
}
affinities = either("podAffinity", "podAntiAffinity", pod_affinities)
spreading = st.fixed_dictionaries({"topologySpreadConstraints": some(spread_constraints)})
claiming = st.fixed_dictionaries({"volumes": some(claim_sources).map(_with_names)})
storing = st.fixed_dictionaries({"volumes": some(st.one_of(disks, claim_sources), 3).map(_with_names)})


def pods(required_fields: dict[str, Strategy], also: dict[str, Strategy]) -> Strategy:
    """Pods that care for nodes, for other pods, or for volumes: those who want everything only ever get nothing."""
    return st.one_of(
        st.fixed_dictionaries({**required_fields, "spec": wishes}, optional={**modest, **choosy, **also}),
        st.fixed_dictionaries(
            {**required_fields, "labels": own_labels, "affinity": affinities},
            optional={**modest, "namespace": st.just("other"), "spec": spreading, **also},
        ),
        st.fixed_dictionaries(
            {**required_fields, "labels": own_labels, "spec": spreading}, optional={**modest, **also}
        ),
        st.fixed_dictionaries({**required_fields, "spec": claiming}, optional={**modest, **also}),
        st.fixed_dictionaries({**required_fields, "spec": storing}, optional={**modest, **also}),
    )


running_pods = pods({"node": st.integers(0, NODES - 1)}, {"terminating": st.just(True)})
new_pods = pods({}, {"node": st.sampled_from(("n0", "n1"))})


@dataclass(frozen=True, slots=True)
class RandomCluster:
    """Keywords of what is there; names and numbers follow from the position."""

    nodes: list[Json]
    running: list[Json]
    claims: list[Json]
    volumes: list[Json]
    storage_class: Json
    capacities: list[Json]
    limits: list[Json]
    namespaces: dict[str, dict[str, str]]
    services: list[dict[str, str]]

    def snapshot(self) -> Snapshot:
        node_objects = [builders.node(f"n{index}", **fields) for index, fields in enumerate(self.nodes)]
        running_pods = [
            builders.pod(f"p{index}", **{**fields, "node": f"n{fields['node'] % len(node_objects)}"})
            for index, fields in enumerate(self.running)
        ]
        return snapshot_of(*node_objects, *running_pods)

    def handle(self, snapshot: Snapshot) -> RecordingHandle:
        objects: dict[ResourceType[Any], Iterable[Any]] = {
            resource_types.PERSISTENT_VOLUME_CLAIMS: _make_each(storage.claim, "c", self.claims),
            resource_types.PERSISTENT_VOLUMES: _make_each(storage.volume, "v", self.volumes),
            resource_types.STORAGE_CLASSES: [storage.storage_class(**self.storage_class)],
            resource_types.CSI_DRIVERS: [storage.csi_driver()],
            resource_types.CSI_STORAGE_CAPACITIES: _make_each(storage.capacity, "room", self.capacities),
            resource_types.CSI_NODES: _make_each(storage.csi_node, "n", self.limits),
            resource_types.VOLUME_ATTACHMENTS: [storage.attachment("v0", "n0"), storage.attachment("v1", "n1")],
            resource_types.NAMESPACES: [
                msgspec.convert({"metadata": {"name": name, "labels": labels}}, Namespace)
                for name, labels in self.namespaces.items()
            ],
            resource_types.SERVICES: [
                msgspec.convert(
                    {"metadata": {"name": f"s{index}", "namespace": "default"}, "spec": {"selector": labels}}, Service
                )
                for index, labels in enumerate(self.services)
            ],
        }
        return RecordingHandle(snapshot, objects=objects)


def _make_each(make: Callable[..., Any], prefix: str, keywords: list[Json]) -> list[Any]:
    return [make(f"{prefix}{index}", **fields) for index, fields in enumerate(keywords)]


clusters = st.builds(
    RandomCluster,
    nodes=lists_of_size(nodes, 1, NODES),
    running=lists_of_size(running_pods, 0, PODS),
    claims=lists_of_size(claims, 2, len(CLAIMS)),
    volumes=lists_of_size(volumes, 2, len(VOLUMES)),
    storage_class=classes,
    capacities=st.lists(capacities, max_size=2),
    limits=lists_of_size(st.fixed_dictionaries({"limits": maybe(**{DRIVER: st.integers(0, 2)})}), NODES - 2, NODES),
    namespaces=st.fixed_dictionaries({"default": pod_labels}, optional={"other": pod_labels}),
    services=st.lists(pod_labels, max_size=1),
)


def incoming(keywords: Json) -> Pod:
    """The pod that looks for a node."""
    return builders.pod("new", **keywords)

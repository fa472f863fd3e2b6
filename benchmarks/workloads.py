"""What is measured, as data: a workload is a row in `WORKLOADS`.

To add one, write a function that makes the pod of a number, and a row. A workload that needs a server or a storm of
changes beside it gives `beside`; one that asks for a cluster that is not empty gives `before`.

Source: kubernetes test/integration/scheduler_perf (workloads and sizes), v1.36.2.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Any, Final, TypeAlias

from benchmarks import devices, gangs, nodes, pods, policies, slow_extender
from benchmarks.nodes import Json
from benchmarks.pods import HOSTNAME, MARK, ZONE
from tests.control_plane.servers import ControlPlane

PodOf: TypeAlias = Callable[[int, str], Json]
"""Makes the pod of a number, which belongs to an app: its label, and what its selectors ask for."""

Existing: TypeAlias = Callable[[int, int], Iterable[Json]]
"""Makes the objects, of any kind, that a cluster of so many nodes has before so many pods are measured."""

Beside: TypeAlias = Callable[[ControlPlane, int], AbstractContextManager[Mapping[str, Any]]]
"""What goes on beside the scheduler, from before its start to after its end, in a cluster of so many nodes.

Gives what is added to the KubeSchedulerConfiguration, such as `{"extenders": [...]}`.
"""


WARM_UP: Final = 20
"""Attempts of the engine alone before those that count; more than there are kinds of pods in one workload."""


class Place(Enum):
    """Where a workload can be measured."""

    API_SERVER = auto()
    ENGINE = auto()


def _nothing(node_count: int, pod_count: int) -> Iterable[Json]:
    del node_count, pod_count
    return ()


def _alone(plane: ControlPlane, node_count: int) -> AbstractContextManager[Mapping[str, Any]]:
    del plane, node_count
    return nullcontext({})


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """Pods of one kind, and the cluster that they come to.

    `pods` is how many a run has on a real API server unless told otherwise: as many as take kube-scheduler ten to
    fifteen seconds with 5,000 nodes. `running_per_node` pods of the same kind run already. `is_exclusive`: no two pods
    of an app share a node. `gates` are switched on in the API server and in the schedulers, and the API server also
    serves `apis`. `profile` is added to the profile of the engine alone.
    """

    name: str
    about: str
    pod_of: PodOf
    pods: int
    running_per_node: float = 0.2
    is_exclusive: bool = False
    existing: Existing = _nothing
    beside: Beside = _alone
    places: frozenset[Place] = frozenset(Place)
    gates: tuple[str, ...] = ()
    apis: tuple[str, ...] = ()
    profile: Mapping[str, Any] = field(default_factory=dict)

    @property
    def scheduler_flags(self) -> tuple[str, ...]:
        """What is added to a scheduler's command line."""
        return _switched_on("feature-gates", self.gates)

    @property
    def server_flags(self) -> tuple[str, ...]:
        """What is added to the API server's command line."""
        return self.scheduler_flags + _switched_on("runtime-config", self.apis)

    def pod(self, number: int) -> Json:
        """The measured pod of that number, as it is created."""
        return self.pod_of(number, self.name)

    def running_count(self, node_count: int) -> int:
        """Return how many pods of this kind run in a cluster of that size, unless told otherwise."""
        return int(node_count * self.running_per_node)

    def running(self, node_count: int, count: int, first: int = 0) -> Iterator[Json]:
        """That many pods of this kind, numbered from `first`, bound to nodes in turn."""
        for index in range(count):
            turn, node = divmod(index, node_count)
            # As one app, so many of them would leave no room for the measured pods.
            app = f"{self.name}-{turn}" if self.is_exclusive and index >= self.running_count(node_count) else self.name
            wire = self.pod_of(first + index, app)
            wire["metadata"]["name"] = f"running-{index:06}"
            yield pods.bind(wire, nodes.name(node))

    def objects_before(self, node_count: int, pod_count: int, running_count: int | None = None) -> Iterator[Json]:
        """Everything but the nodes that is there when the scheduler starts."""
        count = self.running_count(node_count) if running_count is None else running_count
        running = self.running(node_count, count, first=pod_count)
        return itertools.chain(running, self.existing(node_count, pod_count + count))

    def pods_that_fit(self, node_count: int, pod_count: int | None = None) -> int:
        """Return how many pods a run has in a cluster of that size."""
        count = pod_count or self.pods
        if not self.is_exclusive:
            return count
        return min(count, int(node_count * (1 - self.running_per_node)) - WARM_UP)


def _switched_on(flag: str, names: Sequence[str]) -> tuple[str, ...]:
    return (f"--{flag}={','.join(f'{name}=true' for name in names)}",) if names else ()


# ------------------------------------------------------------ pods


def _plain(number: int, app: str) -> Json:
    return pods.pod(f"{app}-{number:06}", app)


def _node_affinity(number: int, app: str) -> Json:
    return pods.pod(f"{app}-{number:06}", app, affinity=pods.zone_is_one_of(*nodes.ZONES[:2]))


def _zone_spread(number: int, app: str) -> Json:
    constraints = pods.spread(app, ZONE, "DoNotSchedule")
    return pods.pod(f"{app}-{number:06}", app, topologySpreadConstraints=constraints)


def _zone_spread_soft(number: int, app: str) -> Json:
    constraints = pods.spread(app, ZONE, "ScheduleAnyway")
    return pods.pod(f"{app}-{number:06}", app, topologySpreadConstraints=constraints)


def _pod_affinity(number: int, app: str) -> Json:
    return pods.pod(f"{app}-{number:06}", app, affinity=pods.near(app, ZONE))


def _pod_affinity_preferred(number: int, app: str) -> Json:
    return pods.pod(f"{app}-{number:06}", app, affinity=pods.rather_near(app, ZONE))


def _anti_affinity(number: int, app: str) -> Json:
    return pods.pod(f"{app}-{number:06}", app, affinity=pods.apart(app, HOSTNAME))


def _daemon_set(number: int, app: str) -> Json:
    return pods.pod(f"{app}-{number:06}", app, affinity=pods.node_is(nodes.name(number % _DAEMON_SET_NODES)))


_DAEMON_SET_NODES = 100
_MIXED: Final[tuple[PodOf, ...]] = (
    _plain,
    _node_affinity,
    _zone_spread,
    _zone_spread_soft,
    _pod_affinity,
    _pod_affinity_preferred,
)


def _mixed_pod(number: int, app: str) -> Json:
    kind = number % len(_MIXED)
    return _MIXED[kind](number, f"{app}-{kind}")


# ------------------------------------------------------------ preemption

_LOW_PRIORITY_PER_NODE = 4
_CPUS_PER_LOW_PRIORITY_POD = nodes.CPUS / _LOW_PRIORITY_PER_NODE * 0.9


def _high_priority(number: int, app: str) -> Json:
    """Three of the four pods on a node have to go for it."""
    return pods.pod(f"{app}-{number:06}", app, cpu=f"{int(nodes.CPUS * 0.75)}", priority=10)


def _full_of_low_priority(node_count: int, pod_count: int) -> Iterator[Json]:
    del pod_count
    for number in range(node_count * _LOW_PRIORITY_PER_NODE):
        low = pods.pod(f"low-{number:06}", "low", cpu=f"{_CPUS_PER_LOW_PRIORITY_POD:.1f}")
        yield pods.bind(low, nodes.name(number % node_count))


# ------------------------------------------------------------ pods that wait and do not go

_HELD = 2000
_TOO_BIG = 500


def _unschedulable(node_count: int, pod_count: int) -> Iterator[Json]:
    """Of a high priority, so that they are tried before all others, and could preempt."""
    del node_count, pod_count
    return (_mark(too_big(number, "too-big")) for number in range(_TOO_BIG))


def too_big(number: int, app: str) -> Json:
    """Make a pod that fits on no node."""
    return pods.pod(f"{app}-{number:06}", app, cpu=f"{nodes.CPUS + 1}", priority=10)


def _gated_pods(node_count: int, pod_count: int) -> Iterator[Json]:
    del node_count, pod_count
    gates = [{"name": "benchmark.invalid/hold"}]
    return (_mark(pods.pod(f"held-{index:06}", "held", schedulingGates=gates)) for index in range(_HELD))


def _mark(wire: Json) -> Json:
    wire["metadata"]["labels"] |= MARK
    return wire


# ------------------------------------------------------------ volumes

_DRIVER = "driver.invalid"
_VOLUMES_PER_NODE = 39
_CAPACITY: Final = {"storage": "1Gi"}
_ACCESS: Final = ["ReadWriteOnce"]


def _with_claim(number: int, app: str) -> Json:
    claim = {"name": "data", "persistentVolumeClaim": {"claimName": f"claim-{number:06}"}}
    return pods.pod(f"{app}-{number:06}", app, volumes=[claim])


def _bound_claims(node_count: int, pod_count: int) -> Iterator[Json]:
    """Yield the CSINode of each node, and a bound claim with its volume for each pod."""
    for number in range(node_count):
        name = nodes.name(number)
        driver = {"name": _DRIVER, "nodeID": name, "topologyKeys": None, "allocatable": {"count": _VOLUMES_PER_NODE}}
        yield _object("storage.k8s.io/v1", "CSINode", {"name": name}, spec={"drivers": [driver]})
    for number in range(pod_count):
        volume, claim = f"volume-{number:06}", f"claim-{number:06}"
        yield _object(
            "v1",
            "PersistentVolume",
            {"name": volume},
            spec={
                "accessModes": _ACCESS,
                "capacity": _CAPACITY,
                "csi": {"driver": _DRIVER, "volumeHandle": volume},
                "persistentVolumeReclaimPolicy": "Retain",
                "claimRef": {"kind": "PersistentVolumeClaim", "namespace": pods.NAMESPACE, "name": claim},
            },
            status={"phase": "Bound"},
        )
        yield _object(
            "v1",
            "PersistentVolumeClaim",
            {
                "name": claim,
                "namespace": pods.NAMESPACE,
                "annotations": {"pv.kubernetes.io/bind-completed": "yes"},
            },
            spec={"accessModes": _ACCESS, "resources": {"requests": _CAPACITY}, "volumeName": volume},
            status={"phase": "Bound", "accessModes": _ACCESS, "capacity": _CAPACITY},
        )


def _object(api_version: str, kind: str, metadata: Json, **fields: Json) -> Json:
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **fields}


# ------------------------------------------------------------ the table

_API_SERVER_ONLY: Final = frozenset({Place.API_SERVER})
_ENGINE_ONLY: Final = frozenset({Place.ENGINE})

WORKLOADS: Final[Mapping[str, Workload]] = {
    workload.name: workload
    for workload in (
        Workload(name="plain", about="requests and nothing else", pod_of=_plain, pods=3000),
        Workload(
            name="node-affinity",
            about="required node affinity to two of three zones",
            pod_of=_node_affinity,
            pods=2500,
        ),
        Workload(
            name="zone-spread",
            about="spread over zones, DoNotSchedule",
            pod_of=_zone_spread,
            pods=1000,
            running_per_node=1,
        ),
        Workload(
            name="zone-spread-soft",
            about="spread over zones, ScheduleAnyway",
            pod_of=_zone_spread_soft,
            pods=1000,
            running_per_node=1,
        ),
        Workload(
            name="pod-affinity",
            about="required affinity to pods of its kind, by zone",
            pod_of=_pod_affinity,
            pods=800,
            running_per_node=1,
        ),
        Workload(
            name="pod-affinity-preferred",
            about="preferred affinity to pods of its kind, by zone",
            pod_of=_pod_affinity_preferred,
            pods=800,
            running_per_node=1,
        ),
        Workload(
            name="anti-affinity",
            about="required anti-affinity to pods of its kind, by hostname",
            pod_of=_anti_affinity,
            pods=1200,
            is_exclusive=True,
        ),
        Workload(name="mixed", about="six kinds in turn", pod_of=_mixed_pod, pods=1200, running_per_node=1),
        Workload(name="daemon-set", about="each pod names its node", pod_of=_daemon_set, pods=3000),
        Workload(
            name="preemption",
            about="three low-priority pods have to go for each; all nodes are full of them",
            pod_of=_high_priority,
            pods=1000,
            running_per_node=0,
            is_exclusive=True,
            existing=_full_of_low_priority,
            places=_API_SERVER_ONLY,
        ),
        Workload(
            name="unschedulable",
            about=f"plain, after {_TOO_BIG:,} pods that fit nowhere",
            pod_of=_plain,
            pods=2000,
            existing=_unschedulable,
            places=_API_SERVER_ONLY,
        ),
        Workload(
            name="gated",
            about=f"plain, while {_HELD:,} pods are held by a scheduling gate",
            pod_of=_plain,
            pods=3000,
            existing=_gated_pods,
            places=_API_SERVER_ONLY,
        ),
        Workload(
            name="volumes",
            about="a bound claim for a CSI volume each",
            pod_of=_with_claim,
            pods=1500,
            running_per_node=0,
            existing=_bound_claims,
        ),
        Workload(
            name="devices",
            about="a claim for two devices each: CEL selectors, and the same PCIe root; eight devices on each node",
            pod_of=devices.pod_with_claim,
            pods=2000,
            running_per_node=0,
            existing=devices.claims_and_devices,
        ),
        Workload(
            name="gangs",
            about="gangs of three pods, and some of 200, each placed as a whole (gate GenericWorkload)",
            pod_of=gangs.pod_in_gang,
            pods=gangs.PODS,
            running_per_node=0,
            existing=gangs.pod_groups,
            places=_API_SERVER_ONLY,
            gates=gangs.GATES,
            apis=(gangs.API,),
        ),
        Workload(
            name="policies",
            about="plain, with NodeLoad, NodeResourceTopologyMatch and CapacityScheduling",
            pod_of=_plain,
            pods=3000,
            existing=policies.with_loads,
            places=_ENGINE_ONLY,
            profile=policies.ENGINE_PROFILE,
        ),
        Workload(
            name="policies-on-a-server",
            about="plain, with TargetLoadPacking, NodeResourceTopologyMatch and CapacityScheduling, for --peer-binary",
            pod_of=_plain,
            pods=2000,
            existing=policies.quotas_and_topologies,
            beside=policies.beside,
            places=_API_SERVER_ONLY,
        ),
        Workload(
            name="extender",
            about=f"plain, and an extender that takes {slow_extender.DELAY_S * 1e3:.0f} ms to filter",
            pod_of=_plain,
            pods=500,
            beside=slow_extender.beside,
            places=_API_SERVER_ONLY,
        ),
    )
}

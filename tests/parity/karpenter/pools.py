"""Questions about DaemonSets, limits of NodePools, and several NodePools.

Source: karpenter pkg/controllers/provisioning/suite_test.go and scheduling/suite_test.go (scenarios only), v1.15.0.
"""

from __future__ import annotations

from collections.abc import Iterator

from tests.parity.karpenter.questions import (
    MIXED,
    Question,
    replicas,
    selector,
    solve,
    taint,
    toleration,
)
from tests.unit.provisioner.clusters import (
    CAPACITY_TYPE,
    HOSTNAME,
    ZONE,
    Document,
    daemon_set,
    node,
    node_affinity,
    node_pool,
    pod,
    requirement,
    spread,
)
from tests.unit.provisioner.fleets import TYPES as SIZES
from tests.unit.provisioner.fleets import ago, machine


def questions() -> Iterator[Question]:
    """All questions of this module."""
    yield from _daemons()
    yield from _limits()
    yield from _several_pools()


def _daemons() -> Iterator[Question]:
    yield solve(
        "daemons",
        "A DaemonSet's pod has its place on a new node",
        pod("web", memory="1Gi"),
        daemon_set(cpu="2", memory="1Gi"),
        types=MIXED,
    )
    yield solve(
        "daemons", "A DaemonSet that no instance type has room for", pod("web"), daemon_set(cpu="10000"), types=MIXED
    )
    yield solve(
        "daemons",
        "A DaemonSet that tolerates the startup taint",
        pod("web"),
        daemon_set(cpu="2"),
        _starting(),
        types=MIXED,
    )
    yield solve(
        "daemons",
        "A DaemonSet that does not tolerate the NodePool's taint",
        pod("web", tolerations=[toleration("team")]),
        daemon_set(cpu="3"),
        node_pool(taints=[taint("team")]),
        types=MIXED,
    )
    yield solve(
        "daemons",
        "A DaemonSet that tolerates it",
        pod("web", tolerations=[toleration("team")]),
        daemon_set(cpu="3", tolerations=[toleration("team")]),
        node_pool(taints=[taint("team")]),
        types=MIXED,
    )
    yield solve(
        "daemons",
        "A taint that is only preferred does not keep a DaemonSet off",
        pod("web", cpu="500m"),
        daemon_set(cpu="3"),
        node_pool(taints=[taint("team", "PreferNoSchedule")]),
        types=MIXED,
    )
    yield solve(
        "daemons",
        "A DaemonSet for a label that no node has",
        pod("web"),
        daemon_set(cpu="3", **selector(team="red")),
        types=MIXED,
    )
    yield solve(
        "daemons",
        "A DaemonSet for the NodePool's label",
        pod("web", cpu="500m"),
        daemon_set(cpu="3", **selector(team="red")),
        node_pool(labels={"team": "red"}),
        types=MIXED,
    )
    arm = requirement("kubernetes.io/arch", "In", "arm64")
    yield solve(
        "daemons",
        "A DaemonSet for one architecture",
        replicas(2, cpu="1500m"),
        daemon_set(cpu="3", affinity=node_affinity(arm)),
        types=MIXED,
    )
    yield solve(
        "daemons",
        "A DaemonSet of which one of several terms fits",
        pod("web", cpu="500m"),
        daemon_set(
            cpu="3",
            affinity=node_affinity(requirement("team", "In", "x"), requirement("kubernetes.io/os", "In", "linux")),
        ),
        types=MIXED,
    )
    yield solve(
        "daemons",
        "A DaemonSet's preference that nothing meets",
        pod("web", cpu="500m"),
        daemon_set(cpu="3", affinity=node_affinity(preferences=[(1, requirement(ZONE, "In", "moon"))])),
        types=MIXED,
    )
    yield solve(
        "daemons",
        "NotIn of a label that no node has",
        pod("web", cpu="500m"),
        daemon_set(cpu="3", affinity=node_affinity(requirement("team", "NotIn", "x"))),
        types=MIXED,
    )
    yield solve(
        "daemons",
        "A host port that a DaemonSet uses",
        pod("web", ports=(8080,)),
        daemon_set(cpu="1", ports=(8080,)),
        types=MIXED,
    )
    yield solve(
        "daemons",
        "A host port of a DaemonSet that does not run there",
        pod("web", ports=(8080,), tolerations=[toleration("team")]),
        daemon_set(cpu="1", ports=(8080,)),
        node_pool(taints=[taint("team")]),
        types=MIXED,
    )
    for stage in ("claimed", "registered", "initialized"):
        yield solve(
            "daemons",
            f"A DaemonSet's pod is still to come to a node: {stage}",
            replicas(2, cpu="1500m"),
            daemon_set(cpu="2"),
            machine("new", 4, stage=stage),
            types=SIZES,
        )
    ready = requirement("karpenter.sh/initialized", "In", "true")
    yield solve(
        "daemons",
        "A DaemonSet for initialized nodes counts on new ones",
        pod("web"),
        daemon_set(cpu="3", affinity=node_affinity(ready)),
        types=MIXED,
    )


def _starting() -> Document:
    pool = node_pool()
    pool["spec"]["template"]["spec"]["startupTaints"] = [taint("booting")]
    return pool


def _limits() -> Iterator[Question]:
    old_node = machine("old", 4)
    yield solve(
        "limits",
        "A NodePool whose nodes are at its limit",
        pod("web", cpu="3"),
        old_node,
        pod("old", cpu="3", node="old"),
        node_pool(limits={"cpu": "4"}),
        types=SIZES,
    )
    yield solve(
        "limits",
        "A NodePool whose nodes are beyond its limit",
        pod("web", cpu="3"),
        old_node,
        pod("old", cpu="3", node="old"),
        node_pool(limits={"cpu": "3"}),
        types=SIZES,
    )
    yield solve("limits", "A pod that fits below the limit", pod("web", cpu="1750m"), node_pool(limits={"cpu": "2"}))
    yield solve(
        "limits", "A pod that does not fit below the limit", pod("web", cpu="2100m"), node_pool(limits={"cpu": "2"})
    )
    apart = replicas(2, cpu="1500m", labels={"app": "web"}, topologySpreadConstraints=[spread(HOSTNAME)])
    yield solve("limits", "One of two pods fits below the limit", apart, node_pool(limits={"cpu": "3"}))
    yield solve(
        "limits", "A limit of memory", replicas(2, cpu="1", memory="1500Mi"), node_pool(limits={"memory": "2Gi"})
    )
    yield solve(
        "limits",
        "A limit of a resource that pods request",
        _gpu_pod(),
        node_pool(limits={"example.com/gpu": "1"}),
        types=MIXED,
    )
    yield solve("limits", "A limit of nodes", apart, node_pool(limits={"nodes": "1"}))
    yield solve(
        "limits",
        "A limit of nodes that a NodeClaim has used up",
        replicas(2, cpu="3"),
        machine("old", 4, stage="claimed"),
        node_pool(limits={"nodes": "1"}),
        types=SIZES,
    )
    yield solve(
        "limits",
        "Another NodePool takes what is beyond the limit",
        apart,
        node_pool("one", limits={"cpu": "2"}, weight=10),
        node_pool("two"),
    )


def _gpu_pod() -> Document:
    document = pod("web")
    document["spec"]["containers"][0]["resources"]["requests"]["example.com/gpu"] = "1"
    return document


def _several_pools() -> Iterator[Question]:
    pools = [node_pool("one"), node_pool("two", labels={"team": "red"})]
    yield solve(
        "pools", "A pod chooses a NodePool by name", pod("web", **selector(**{"karpenter.sh/nodepool": "two"})), pools
    )
    yield solve("pools", "A pod chooses a NodePool by its label", pod("web", **selector(team="red")), pools)
    yield solve(
        "pools",
        "A NodePool with a taint that is only preferred comes last",
        pod("web"),
        node_pool("one", taints=[taint("x", "PreferNoSchedule")], weight=10),
        node_pool("two"),
    )
    weighted_pools = [node_pool("one", weight=10), node_pool("two", weight=90), node_pool("three")]
    yield solve("pools", "The heaviest NodePool is bought from", replicas(3), weighted_pools)
    yield solve(
        "pools",
        "A pod may name a lighter one",
        pod("web", **selector(**{"karpenter.sh/nodepool": "three"})),
        weighted_pools,
    )
    static = node_pool("still", replicas=3)
    yield solve(
        "pools",
        "A NodePool of a fixed size buys nothing for pods",
        pod("web"),
        static,
        featureGates={"StaticCapacity": True},
    )
    yield solve(
        "pools",
        "A NodePool of a fixed size beside another",
        pod("web"),
        static,
        node_pool("one"),
        featureGates={"StaticCapacity": True},
    )
    leaving_pool = node_pool("one")
    leaving_pool["metadata"] |= {"deletionTimestamp": ago(5), "finalizers": ["example.com/stay"]}
    yield solve("pools", "A NodePool that is being deleted buys nothing", pod("web"), leaving_pool, node_pool("two"))
    yield solve("pools", "Only a NodePool that is being deleted", pod("web"), leaving_pool)
    yield solve(
        "pools",
        "No NodePool at all but for one of a fixed size, and a node",
        pod("web"),
        static,
        node("own"),
        featureGates={"StaticCapacity": True},
    )
    empty = node_pool("one", requirements=[requirement("node.kubernetes.io/instance-type", "In", "none")])
    yield solve("pools", "A NodePool of which no instance type is left", pod("web"), empty)
    yield solve("pools", "A NodePool of which none is left, beside another", pod("web"), empty, node_pool("two"))
    contrary = node_pool(
        "one",
        requirements=[
            requirement("kubernetes.io/arch", "In", "arm64"),
            requirement("node.kubernetes.io/instance-type", "In", "small"),
        ],
    )
    yield solve("pools", "Requirements of a NodePool that contradict each other", replicas(2), contrary)
    yield solve(
        "pools",
        "A NodePool of a zone without offerings",
        pod("web"),
        node_pool("one", requirements=[requirement(ZONE, "In", "moon")]),
    )
    yield solve(
        "pools",
        "A pod that tolerates a NodePool's taint, and one that does not",
        pod("one", tolerations=[toleration("team")]),
        pod("two"),
        node_pool("one", taints=[taint("team")]),
    )
    yield solve(
        "pools",
        "A taint with a value that is tolerated",
        pod("web", tolerations=[{"key": "team", "operator": "Equal", "value": "true", "effect": "NoSchedule"}]),
        node_pool("one", taints=[taint("team")]),
    )
    yield solve(
        "pools",
        "A toleration of another effect",
        pod("web", tolerations=[{"key": "team", "operator": "Exists", "effect": "NoExecute"}]),
        node_pool("one", taints=[taint("team")]),
    )
    spot = node_pool("one", requirements=[requirement(CAPACITY_TYPE, "In", "spot")])
    yield solve(
        "pools",
        "A NodePool of spot, and a pod that demands on demand",
        pod("web", **selector(**{CAPACITY_TYPE: "on-demand"})),
        spot,
    )

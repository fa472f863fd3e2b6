"""Questions about packing, existing and planned nodes, DaemonSets, and limits of NodePools.

Source: karpenter pkg/controllers/provisioning/suite_test.go and scheduling/suite_test.go (scenarios only), v1.15.0.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from tests.parity.karpenter.questions import (
    MIXED,
    Question,
    disruption_budget,
    replicas,
    selector,
    sized_types,
    solve,
    taint,
)
from tests.unit.provisioner.clusters import (
    HOSTNAME,
    ZONE,
    Document,
    node,
    node_affinity,
    node_pool,
    owned_by,
    pod,
    requirement,
    spread,
)
from tests.unit.provisioner.fleets import TYPES as SIZES
from tests.unit.provisioner.fleets import ago, machine

NOT_READY: Final = "node.kubernetes.io/not-ready"


def questions() -> Iterator[Question]:
    """All questions of this module."""
    yield from _packing()
    yield from _containers()
    yield from _on_their_way()
    yield from _existing()
    yield from _leaving()


def _packing() -> Iterator[Question]:
    yield solve("packing", "A small pod gets the smallest instance type", pod("web", memory="100M"), types=MIXED)
    yield solve(
        "packing", "A larger pod still gets the smallest that takes it", pod("web", memory="2000M"), types=MIXED
    )
    yield solve("packing", "Several small pods share one node", replicas(5, cpu="10m", memory="10M"), types=MIXED)
    amd = selector(**{"kubernetes.io/arch": "amd64"})
    yield solve("packing", "A new node is bought when one is full", replicas(10, cpu="1m", memory="1800M", **amd))
    yield solve(
        "packing",
        "Small pods fill the gaps that large ones leave",
        replicas(10, "large", cpu="1m", memory="1800M", **amd),
        replicas(10, "small", cpu="1m", memory="400M", **amd),
    )
    yield solve(
        "packing",
        "Two pods of one core and of many",
        pod("one", cpu="4500m"),
        pod("two", cpu="1"),
        types=sized_types(5),
    )
    yield solve("packing", "The number of pods ends a node", replicas(11, cpu="1m", memory="1M", **amd))
    yield solve("packing", "More memory than any instance type has", pod("web", memory="2Ti"))
    yield solve("packing", "A pod that requests nothing", pod("web", cpu="0", memory="0"))
    overhead = pod("web", cpu="1")
    overhead["spec"]["overhead"] = {"cpu": "2"}
    yield solve("packing", "The overhead of a runtime class counts", overhead, types=MIXED)


def _container(cpu: str, **fields: Any) -> Document:
    return {"name": f"c{cpu}", "resources": {"requests": {"cpu": cpu, "memory": "10Mi"}}, **fields}


def _containers() -> Iterator[Question]:
    for sentence, containers in {
        "A dear init container decides": [_container("3")],
        "An init container that no node takes": [_container("10000")],
        "A sidecar before an init container counts with it": [
            _container("2", restartPolicy="Always"),
            _container("1500m"),
        ],
        "A sidecar after an init container does not count with it": [
            _container("1500m"),
            _container("2", restartPolicy="Always"),
        ],
    }.items():
        yield solve("containers", sentence, pod("web", initContainers=containers), types=sized_types(6))
    yield solve(
        "containers",
        "What the pod requests as a whole counts",
        pod("web", resources={"requests": {"cpu": "5"}}),
        types=sized_types(6),
    )
    limited = pod("web")
    limited["spec"]["containers"][0]["resources"] = {"limits": {"cpu": "3"}, "requests": {"cpu": "3"}}
    yield solve("containers", "Requests that are equal to limits", limited, types=sized_types(6))
    scaled = pod(
        "web",
        cpu="2",
        status={
            "phase": "Pending",
            "conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}],
        },
    )
    yield solve("containers", "A pod whose condition has a status, too", scaled, types=sized_types(6))
    yield solve(
        "containers",
        "A pod that is gated is not planned for",
        pod(
            "web",
            status={
                "phase": "Pending",
                "conditions": [{"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"}],
            },
        ),
        types=sized_types(6),
    )
    yield solve(
        "containers",
        "A pod that is nominated is not planned for",
        pod(
            "web",
            status={
                "phase": "Pending",
                "nominatedNodeName": "n",
                "conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}],
            },
        ),
        types=sized_types(6),
    )


def _on_their_way() -> Iterator[Question]:
    claim_only = machine("new", 4, stage="claimed")
    registered = machine("new", 4, stage="registered")
    for name, stage in (("A NodeClaim without a node", claim_only), ("A node that is not yet initialized", registered)):
        yield solve("on-their-way", f"{name} takes the pod", pod("web"), stage, types=SIZES)
        yield solve("on-their-way", f"{name} is too small", replicas(2, cpu="3"), stage, types=SIZES)
        yield solve(
            "on-their-way", f"{name} is in another zone", pod("web", **selector(**{ZONE: "zone-2"})), stage, types=SIZES
        )
        yield solve(
            "on-their-way",
            f"{name} counts for spreading over zones",
            replicas(4, cpu="100m", labels={"app": "web"}, topologySpreadConstraints=[spread()]),
            stage,
            types=SIZES,
        )
        yield solve(
            "on-their-way",
            f"{name} counts for spreading over hosts",
            replicas(4, cpu="100m", labels={"app": "web"}, topologySpreadConstraints=[spread(HOSTNAME)]),
            stage,
            types=SIZES,
        )
    for name, node_taint in (
        ("its own", taint("team")),
        ("the kubelet's", taint(NOT_READY, "NoExecute")),
        ("that of a cloud", taint("node.cloudprovider.kubernetes.io/uninitialized")),
    ):
        for stage in ("registered", "initialized"):
            node_parts = machine("new", 4, stage=stage)
            node_parts[1]["spec"]["taints"] = [node_taint]
            yield solve("on-their-way", f"A {stage} node has a taint: {name}", pod("web"), node_parts, types=SIZES)
    for stage in ("registered", "initialized"):
        node_parts = machine("new", 4, stage=stage, claim_spec={"startupTaints": [taint("booting")]})
        node_parts[1]["spec"]["taints"] = [taint("booting")]
        yield solve("on-their-way", f"A {stage} node has its startup taint", pod("web"), node_parts, types=SIZES)
    yield solve(
        "on-their-way",
        "Initialized nodes are tried first",
        pod("web"),
        machine("a", 4, stage="claimed"),
        machine("b", 4),
        types=SIZES,
    )
    unlaunched = machine("new", 4, stage="claimed")
    del unlaunched[0]["status"]["providerID"]
    yield solve(
        "on-their-way", "A NodeClaim that was never launched takes nothing", pod("web"), unlaunched, types=SIZES
    )
    zeroed = machine("new", 8, stage="registered")
    zeroed[0]["status"]["allocatable"]["example.com/gpu"] = "2"
    zeroed[1]["status"]["allocatable"]["example.com/gpu"] = "0"
    wanting = pod("web")
    wanting["spec"]["containers"][0]["resources"]["requests"]["example.com/gpu"] = "1"
    yield solve(
        "on-their-way", "The kubelet says none of a resource before it is initialized", wanting, zeroed, types=SIZES
    )
    ports = replicas(2, ports=(80,))
    yield solve("on-their-way", "Two pods of one host port share no node", ports, machine("new", 8), types=SIZES)


def _existing() -> Iterator[Question]:
    yield solve("existing", "A node of nobody takes the pod", pod("web"), node("own"))
    yield solve("existing", "A node of nobody takes several pods", replicas(4, cpu="500m"), node("own"))
    yield solve(
        "existing",
        "A cordoned node takes none",
        pod("web"),
        node("own", taints=[taint("node.kubernetes.io/unschedulable")]),
    )
    yield solve(
        "existing",
        "A label that only the NodePool offers",
        pod("web", **selector(team="red")),
        node("own"),
        node_pool(labels={"team": "red"}),
    )
    yield solve("existing", "A node that is full", pod("web"), node("own"), pod("old", cpu="3500m", node="own"))
    yield solve(
        "existing",
        "Pods that have ended leave room",
        pod("web"),
        node("own"),
        pod("old", cpu="3500m", node="own", status={"phase": "Succeeded"}),
    )
    yield solve(
        "existing",
        "A preference picks one of two nodes",
        pod("web", affinity=node_affinity(preferences=[(1, requirement(ZONE, "In", "zone-2"))])),
        node("a", zone="zone-1"),
        node("b", zone="zone-2"),
    )
    yield solve("existing", "Two pods, and room for one", replicas(2, cpu="3"), node("own"))


def _leaving() -> Iterator[Question]:
    deletion = {"deletionTimestamp": ago(10), "finalizers": ["karpenter.sh/termination"]}
    leaving = machine("old", 4, claim=deletion)

    def running(sentence: str, *parts: Document, **fields: Any) -> Question:
        metadata = {**owned_by("ReplicaSet", "web"), **fields.pop("metadata", {})}
        web = pod("web", node="old", labels={"app": "web"}, metadata=metadata, **fields)
        return solve("leaving", sentence, web, leaving, *parts, types=SIZES)

    ending = {"deletionTimestamp": ago(5), "deletionGracePeriodSeconds": 30, "finalizers": ["example.com/stay"]}
    yield running("A pod that runs is planned for")
    yield running("A pod that has ended is not", status={"phase": "Failed"})
    yield running("A pod of a DaemonSet is not", metadata=owned_by("DaemonSet", "agent"))
    yield running("A pod of a ReplicaSet that is ending is not", metadata={**ending, **owned_by("ReplicaSet", "web")})
    yield running("A pod of a StatefulSet that is ending is", metadata={**ending, **owned_by("StatefulSet", "web")})
    yield running(
        "A pod that must not be disrupted is not", metadata={"annotations": {"karpenter.sh/do-not-disrupt": "true"}}
    )
    for name, fields in {
        "maxUnavailable 0": {"maxUnavailable": 0},
        "maxUnavailable 0 %": {"maxUnavailable": "0%"},
        "minAvailable 100 %": {"minAvailable": "100%"},
    }.items():
        budget = disruption_budget()
        budget["spec"] = {"selector": budget["spec"]["selector"], **fields}
        yield running(f"A pod under a budget of {name} is not", budget)
    yield running(
        "A pod under two budgets is not",
        disruption_budget("one", disruptions=1),
        disruption_budget("two", disruptions=1),
    )
    yield running("A pod under a budget that is used up is", disruption_budget())

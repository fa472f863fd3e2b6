"""Questions about nodes that go, and what replaces them.

Source: karpenter pkg/controllers/disruption/*_test.go and nodeclaim/disruption/*_test.go (scenarios only), v1.15.0.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from tests.parity.karpenter.questions import (
    Question,
    consolidate,
    disruption_budget,
    gates,
    in_zone,
    replicas,
    selector,
    sized_types,
)
from tests.unit.provisioner.clusters import (
    CAPACITY_TYPE,
    HOSTNAME,
    Document,
    instance_type,
    node,
    node_affinity,
    owned_by,
    pod,
    pod_affinity,
    requirement,
    spread,
)
from tests.unit.provisioner.fleets import INSTANCE_TYPE, TYPES, ago, machine, node_pool

TYPE: Final = INSTANCE_TYPE


def running(name: str, on: str, cpu: str = "500m", **fields: Any) -> Document:
    """A pod of a ReplicaSet that runs on a node."""
    metadata = {**owned_by("ReplicaSet", "web"), **fields.pop("metadata", {})}
    return pod(name, cpu=cpu, node=on, labels={"app": "web"}, metadata=metadata, **fields)


def about(category: str, sentence: str, *parts: Any, types: Any = TYPES, **settings: Any) -> Question:
    """A question about this category."""
    return consolidate(category, sentence, *parts, types=types, **settings)


def questions() -> Iterator[Question]:
    """All questions of this module."""
    yield from _empty()
    yield from _deletions()
    yield from _replacements()
    yield from _spot()
    yield from _several()


def changed_pool() -> Document:
    """A NodePool that has changed since its nodes were bought."""
    pool = node_pool()
    pool["metadata"]["annotations"] = {"karpenter.sh/nodepool-hash": "new", "karpenter.sh/nodepool-hash-version": "v3"}
    return pool


def _empty() -> Iterator[Question]:
    yield about("empty", "Several empty nodes go at once", machine("one"), machine("two"))
    waiting = pod("web", cpu="3")
    yield about("empty", "A pod waits that one of the empty nodes takes", machine("one"), machine("two"), waiting)
    daemon = pod("agent", cpu="100m", node="one", metadata=owned_by("DaemonSet", "agent"))
    yield about("empty", "A node with a pod of a DaemonSet", machine("one"), daemon)
    deletion = {"deletionTimestamp": ago(5), "deletionGracePeriodSeconds": 30, "finalizers": ["example.com/stay"]}
    yield about(
        "empty",
        "A node with a pod of a ReplicaSet that is ending",
        machine("one"),
        running("web", "one", metadata=deletion),
    )
    stateful = pod("db", cpu="1", node="one", metadata={**deletion, **owned_by("StatefulSet", "db")})
    yield about("empty", "A node with a pod of a StatefulSet that is ending", machine("one"), stateful)
    yield about(
        "empty", "A node whose pods have ended", machine("one"), running("web", "one", status={"phase": "Failed"})
    )
    yield about(
        "empty",
        "An empty node that has drifted, too",
        machine(
            "one",
            claim={"annotations": {"karpenter.sh/nodepool-hash": "old", "karpenter.sh/nodepool-hash-version": "v3"}},
        ),
        changed_pool(),
    )


def _deletions() -> Iterator[Question]:
    full = [machine("one"), running("a", "one", "3500m")]
    yield about("deletions", "The pods of one node fit on the other", full, machine("two"), running("b", "two", "100m"))
    yield about("deletions", "They fit on a node of nobody", full, node("own", cpu="8"))
    yield about(
        "deletions",
        "A pod that nobody owns",
        machine("one"),
        machine("two"),
        pod("a", cpu="100m", node="one"),
        running("b", "two"),
    )
    yield about(
        "deletions",
        "They would have to go to a node that is not initialized",
        full,
        machine("two", 8, stage="registered"),
    )
    yield about(
        "deletions",
        "Initialized nodes take them before others",
        full,
        machine("two", 8),
        running("b", "two"),
        machine("three", 8, stage="registered"),
    )
    pending = pod("stuck", cpu="1000")
    yield about(
        "deletions",
        "A pod that waits for ever does not hold up",
        full,
        machine("two"),
        running("b", "two", "100m"),
        pending,
    )
    tied = running("tied", "one", **selector(**{HOSTNAME: "one"}))
    yield about(
        "deletions", "A pod that can go nowhere else", machine("one"), tied, machine("two"), running("b", "two", "100m")
    )
    wrong = node_pool("wrong", requirements=[requirement(TYPE, "In", "none")])
    yield about(
        "deletions",
        "Another NodePool has no instance types",
        full,
        machine("two"),
        running("b", "two", "100m"),
        node_pool(),
        wrong,
    )
    resting = machine("two", 8, pod_event_s_ago=5)
    yield about(
        "deletions",
        "The other node is still resting",
        machine("one", 4),
        running("a", "one", "500m"),
        resting,
        running("b", "two", "3"),
        node_pool(consolidate_after="1m"),
    )
    never = [node_pool(), node_pool("still", consolidate_after="Never")]
    yield about(
        "deletions",
        "The other node's NodePool never consolidates",
        machine("one", 4),
        running("a", "one"),
        machine("two", 8, pool="still"),
        running("b", "two"),
        *never,
    )
    own = pod_affinity("web", HOSTNAME, anti=True)
    apart = [running(f"web-{name}", name, "100m", affinity=own) for name in ("one", "two", "three")]
    yield about(
        "deletions", "Pods keep apart from each other", *(machine(name, 2) for name in ("one", "two", "three")), apart
    )
    zones = [machine(f"n{index}", 2, zone=f"zone-{index}") for index in (1, 2, 3)]
    spread_out = [
        running(f"web-{index}", f"n{index}", "100m", topologySpreadConstraints=[spread()]) for index in (1, 2, 3)
    ]
    yield about("deletions", "Pods are spread over zones", *zones, spread_out)
    running_pods = [running("a", "one", "100m"), running("b", "two", "100m")]
    yield about(
        "deletions",
        "A budget covers the pods of one of two nodes",
        machine("one"),
        machine("two"),
        running_pods,
        disruption_budget(),
    )


def _replacements() -> Iterator[Question]:
    for kind in ("on-demand", "spot"):
        yield about(
            "replacements",
            f"A smaller node will do: {kind}",
            machine("one", 16, capacity_type=kind),
            running("a", "one", "1500m"),
            **gates(SpotToSpotConsolidation=True),
        )
        yield about(
            "replacements",
            f"The cheapest node already: {kind}",
            machine("one", 1, capacity_type=kind),
            running("a", "one"),
            **gates(SpotToSpotConsolidation=True),
        )
    on_demand = node_pool(requirements=[requirement(CAPACITY_TYPE, "In", "on-demand")])
    yield about("replacements", "Only on-demand capacity", machine("one", 16), running("a", "one", "1500m"), on_demand)
    dear = [instance_type("c-4", 4, "8Gi", 50, price=0.4), instance_type("c-2", 2, "4Gi", 50, price=0.1)]
    for offering in dear[1]["offerings"]:
        if offering["requirements"][0]["values"] == ["spot"]:
            offering["price"] = 0.9
    yield about(
        "replacements", "Spot capacity of the replacement is dearer", machine("one", 4), running("a", "one"), types=dear
    )
    local = [instance_type("c-4", 4, "8Gi", 50, price=0.4), instance_type("c-2", 2, "4Gi", 50, price=0.1)]
    local[1]["offerings"][0]["price"] = 0.9
    yield about(
        "replacements",
        "On-demand capacity of the replacement is dearer in one zone",
        machine("one", 4),
        running("a", "one"),
        on_demand,
        types=local,
    )
    resting = machine("one", 16, pod_event_s_ago=5)
    yield about(
        "replacements",
        "A node that has just received a pod",
        resting,
        running("a", "one"),
        node_pool(consolidate_after="1m"),
    )
    two = replicas(2, "big", cpu="9")
    for document in two:
        document["spec"]["nodeName"] = "one"
        document["status"] = {"phase": "Running"}
    yield about(
        "replacements",
        "One node would become two",
        machine("one", 32, **{TYPE: "c-32"}),
        two,
        types=(*TYPES, instance_type("c-32", 32, "64Gi", 50)),
    )
    least = node_pool(requirements=[requirement(TYPE, "Exists", minValues=3)])
    for policy in ("Strict", "BestEffort"):
        yield about(
            "replacements",
            f"Cheaper instance types are fewer than minValues: {policy}",
            machine("one", 4),
            running("a", "one", "1500m"),
            least,
            minValuesPolicy=policy,
        )
    preferring = node_affinity(preferences=[(1, in_zone("zone-1"))])
    for policy in ("Respect", "Ignore"):
        yield about(
            "replacements",
            f"A pod with a preference: {policy}",
            machine("one", 8),
            running("a", "one", affinity=preferring),
            machine("two", 8, zone="zone-2"),
            running("b", "two"),
            preferencePolicy=policy,
        )
    reserved = [instance_type("c-2", 2, "4Gi", 50, reserved={"r": 1}), *TYPES[2:]]
    for kind in ("on-demand", "spot"):
        yield about(
            "replacements",
            f"Reserved capacity replaces a node: {kind}",
            machine("one", 2, capacity_type=kind),
            running("a", "one"),
            types=reserved,
        )
    full = [instance_type("c-2", 2, "4Gi", 50, reserved={"r": 0}), *TYPES[2:]]
    yield about(
        "replacements",
        "A reservation that is full replaces nothing",
        machine("one", 2),
        running("a", "one"),
        types=full,
    )
    leaving = machine("old", 4, claim={"deletionTimestamp": ago(5), "finalizers": ["karpenter.sh/termination"]})
    yield about(
        "replacements",
        "A node that was bought for pods of a leaving node",
        leaving,
        running("a", "old", "3"),
        machine("new", 4),
        running("b", "new", "100m"),
    )


def _spot() -> Iterator[Question]:
    for count in (10, 30):
        for gate in (True, False):
            types = sized_types(count)
            name = f"size-{count:02d}"
            parts = machine("one", count, capacity_type="spot", **{TYPE: name})
            yield about(
                "spot",
                f"{count} instance types, and the gate is {'on' if gate else 'off'}",
                parts,
                running("a", "one"),
                types=types,
                **gates(SpotToSpotConsolidation=gate),
            )
    cheapest = machine("one", 10, capacity_type="spot", **{TYPE: "size-10"})
    yield about(
        "spot",
        "The node is of one of the 15 cheapest",
        cheapest,
        running("a", "one"),
        types=sized_types(30),
        **gates(SpotToSpotConsolidation=True),
    )
    for least in (5, 20):
        pool = node_pool(requirements=[requirement(TYPE, "Exists", minValues=least)])
        largest = machine("one", 30, capacity_type="spot", **{TYPE: "size-30"})
        yield about(
            "spot",
            f"minValues is {least}",
            largest,
            running("a", "one"),
            pool,
            types=sized_types(30),
            **gates(SpotToSpotConsolidation=True),
        )


def _several() -> Iterator[Question]:
    def fleet(kinds: Mapping[str, str], size: int = 4, cpu: str = "500m") -> list[Any]:
        return [
            part
            for name, kind in kinds.items()
            for part in (machine(name, size, capacity_type=kind), running(f"web-{name}", name, cpu))
        ]

    spot_gate = gates(SpotToSpotConsolidation=True)
    yield about("several", "Three on-demand nodes become one", fleet(dict.fromkeys("abc", "on-demand"), cpu="1200m"))
    yield about("several", "Three spot nodes become one", fleet(dict.fromkeys("abc", "spot"), cpu="1200m"), **spot_gate)
    yield about(
        "several",
        "Nodes of both kinds become one",
        fleet({"a": "spot", "b": "on-demand", "c": "on-demand"}, cpu="1200m"),
    )
    yield about(
        "several",
        "Two of the cheapest type do not become one of it",
        fleet(dict.fromkeys("ab", "on-demand"), size=1, cpu="400m"),
    )
    yield about(
        "several", "Two nodes of which one takes both pods", fleet(dict.fromkeys("ab", "on-demand"), size=2, cpu="800m")
    )
    mixed = [machine("a", 16), running("wa", "a", "1"), machine("b", 1), running("wb", "b", "700m")]
    yield about("several", "A large and a small node", *mixed)
    yield about(
        "several",
        "The best ratio goes first",
        *(
            part
            for index, size in enumerate((2, 4, 8, 16))
            for part in (machine(f"n{index}", size), running(f"web-{index}", f"n{index}", "300m"))
        ),
        node_pool(nodes="1"),
    )
    balanced = node_pool(policy="Balanced")
    yield about("several", "Balanced: an oversized node", machine("one", 16), running("a", "one"), balanced)
    yield about(
        "several",
        "Balanced: a well-packed node",
        machine("one", 4),
        [running(f"a-{index}", "one", "400m") for index in range(8)],
        machine("two", 16),
        running("b", "two", "8"),
        balanced,
    )
    yield about(
        "several",
        "Balanced: several nodes that are little used",
        fleet(dict.fromkeys("abcd", "on-demand"), cpu="300m"),
        balanced,
    )
    yield about(
        "several",
        "Balanced beside another policy",
        machine("a", 16, pool="one"),
        running("wa", "a"),
        machine("b", 16, pool="two"),
        running("wb", "b"),
        node_pool("one", policy="Balanced"),
        node_pool("two"),
    )

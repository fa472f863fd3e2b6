"""Questions about labels, preferences and kinds of instance types.

Source: karpenter pkg/controllers/provisioning/scheduling/suite_test.go (scenarios only), v1.15.0.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from tests.parity.karpenter.questions import MIXED, Question, replicas, selector, sized_types, solve
from tests.unit.provisioner.clusters import (
    CAPACITY_TYPE,
    HOSTNAME,
    ZONE,
    Document,
    instance_type,
    node_affinity,
    node_pool,
    pod,
    requirement,
)

ARCH, SYSTEM, TYPE = "kubernetes.io/arch", "kubernetes.io/os", "node.kubernetes.io/instance-type"
CPU = "karpenter.kwok.sh/instance-cpu"
TEAM = node_pool(requirements=[requirement("team", "In", "red", "blue")])
PLAIN = node_pool(labels={"team": "red"})

# What a pod demands of the label `team`, of NodePools that leave it open, offer two values, or have one.
_DEMANDS: Final[dict[str, Document]] = {
    "In a value": requirement("team", "In", "red"),
    "In another value": requirement("team", "In", "green"),
    "NotIn a value": requirement("team", "NotIn", "red"),
    "NotIn another value": requirement("team", "NotIn", "green"),
    "Exists": requirement("team", "Exists"),
    "DoesNotExist": requirement("team", "DoesNotExist"),
}
_SIZES: Final[dict[str, Document]] = {
    "Gt": requirement(CPU, "Gt", "4"),
    "Lt": requirement(CPU, "Lt", "3"),
    "Gte": requirement(CPU, "Gte", "4"),
    "Lte": requirement(CPU, "Lte", "3"),
}


def questions() -> Iterator[Question]:
    """All questions of this module."""
    yield from _custom_labels()
    yield from _well_known_labels()
    yield from _validation()
    yield from _preferences()
    yield from _kinds()


def _custom_labels() -> Iterator[Question]:
    for name, demand in _DEMANDS.items():
        web = pod("web", affinity=node_affinity(demand))
        yield solve("labels", f"{name} of a label that no NodePool has", web)
        yield solve("labels", f"{name} of a label for which a NodePool offers two values", web, TEAM)
        yield solve("labels", f"{name} of a label that a NodePool puts on its nodes", web, PLAIN)
    yield solve(
        "labels",
        "A node selector picks one of the values that a NodePool offers",
        pod("web", **selector(team="blue")),
        TEAM,
    )
    yield solve(
        "labels", "A node selector conflicts with the label of a NodePool", pod("web", **selector(team="blue")), PLAIN
    )
    red, blue = pod("one", **selector(team="red")), pod("two", **selector(team="blue"))
    yield solve("labels", "Pods with different selectors share no node", red, blue, TEAM)
    flexible_pod = pod("three", affinity=node_affinity(requirement("team", "In", "blue", "red")))
    yield solve("labels", "A pod that takes either value goes with one that takes one", red, flexible_pod, TEAM)
    exists = pod("four", affinity=node_affinity(requirement("team", "Exists")))
    yield solve("labels", "Exists keeps the value that another pod has chosen", blue, exists, TEAM)


def _well_known_labels() -> Iterator[Question]:
    in_two = node_pool(requirements=[requirement(ZONE, "In", "zone-2")])
    yield solve("well-known", "A NodePool of one zone buys there", pod("web"), in_two)
    yield solve("well-known", "A selector picks the zone", pod("web", **selector(**{ZONE: "zone-2"})))
    yield solve(
        "well-known",
        "A selector for a zone that the NodePool lacks",
        pod("web", **selector(**{ZONE: "zone-1"})),
        in_two,
    )
    yield solve("well-known", "A selector for a zone that is nowhere", pod("web", **selector(**{ZONE: "moon"})))
    yield solve("well-known", "A selector for a hostname", pod("web", **selector(**{HOSTNAME: "red-node"})))
    for name, demand in _SIZES.items():
        yield solve(
            "well-known",
            f"{name} of a number that instance types have",
            pod("web", affinity=node_affinity(demand)),
            types=sized_types(6),
        )
        pool = node_pool(requirements=[demand])
        yield solve(
            "well-known", f"{name} of a number that a NodePool asks for", pod("web"), pool, types=sized_types(6)
        )
    yield solve(
        "well-known",
        "A region that no instance type has",
        pod("web", **selector(**{"topology.kubernetes.io/region": "north"})),
    )
    yield solve(
        "well-known",
        "The old name of the zone means the zone",
        pod("web", **selector(**{"failure-domain.beta.kubernetes.io/zone": "zone-2"})),
    )
    yield solve(
        "well-known",
        "The old names of architecture and instance type",
        pod("web", **selector(**{"beta.kubernetes.io/arch": "amd64", "beta.kubernetes.io/instance-type": "default"})),
    )
    affinity = node_affinity(
        requirement(ZONE, "In", "zone-1", "zone-3"), preferences=[(1, requirement(ZONE, "NotIn", "zone-3"))]
    )
    pool = node_pool(requirements=[requirement(ZONE, "NotIn", "zone-2"), requirement(CAPACITY_TYPE, "In", "on-demand")])
    yield solve(
        "well-known",
        "Selectors, requirements and preferences are combined",
        pod("web", affinity=affinity, **selector(**{CAPACITY_TYPE: "on-demand"})),
        pool,
    )


def _validation() -> Iterator[Question]:
    for key in (
        "karpenter.sh/nodepool-hash",
        "karpenter.sh/anything",
        "karpenter.kwok.sh/anything",
        "kubernetes.io/hostname",
    ):
        yield solve("validation", f"A selector for {key}", pod("web", **selector(**{key: "x"})))
    for key in ("node.kubernetes.io/team", "team.node.kubernetes.io/x", "kops.k8s.io/group"):
        pool = node_pool(requirements=[requirement(key, "In", "x", "y")])
        yield solve(
            "validation", f"A selector for {key}, which the NodePool offers", pod("web", **selector(**{key: "x"})), pool
        )
    yield solve(
        "validation", "A capacity type that does not exist", pod("web", **selector(**{CAPACITY_TYPE: "borrowed"}))
    )
    absent = node_affinity(requirement("karpenter.sh/nodepool", "DoesNotExist"))
    yield solve("validation", "A pod that avoids nodes of Karpenter", pod("web", affinity=absent), pod("other"))
    yield solve("validation", "A NodePool that is not ready", pod("web"), node_pool(ready=False))
    yield solve(
        "validation",
        "A NodePool that is not ready, beside one that is",
        pod("web"),
        node_pool("one", ready=False),
        node_pool("two"),
    )


def _preferences() -> Iterator[Question]:
    impossible = requirement(ZONE, "In", "moon")
    yield solve("preferences", "The last required term is not given up", pod("web", affinity=node_affinity(impossible)))
    terms = (
        impossible,
        requirement(ZONE, "In", "sun"),
        requirement(ZONE, "In", "zone-2"),
        requirement(ZONE, "In", "zone-1"),
    )
    yield solve(
        "preferences", "Required terms are given up one after the other", pod("web", affinity=node_affinity(*terms))
    )
    affinity = node_affinity(preferences=[(1, impossible), (1, requirement(TYPE, "In", "none"))])
    yield solve("preferences", "All preferences are given up", pod("web", affinity=affinity))
    lighter = node_affinity(
        preferences=[(100, impossible), (50, requirement(ZONE, "In", "zone-1")), (1, requirement(ZONE, "In", "zone-2"))]
    )
    yield solve("preferences", "The heaviest preference that can be met is met", pod("web", affinity=lighter))
    against = node_affinity(requirement(ZONE, "In", "zone-1"), preferences=[(1, requirement(ZONE, "In", "zone-2"))])
    yield solve("preferences", "A preference against a requirement gives way", pod("web", affinity=against))
    among = node_affinity(
        preferences=[(1, requirement(ZONE, "In", "zone-1")), (1, requirement(ZONE, "NotIn", "zone-1"))]
    )
    yield solve("preferences", "Preferences that contradict each other", pod("web", affinity=among))
    for policy in ("Respect", "Ignore"):
        yield solve(
            "preferences",
            f"A preference that can be met, with the policy {policy}",
            pod("web", affinity=node_affinity(preferences=[(1, requirement(ZONE, "In", "zone-3"))])),
            preferencePolicy=policy,
        )


def _kinds() -> Iterator[Question]:
    def each_in(key: str, *values: str) -> list[Document]:
        return [pod(f"web-{value}", **selector(**{key: value})) for value in values]

    yield solve("kinds", "More than any instance type has", pod("web", cpu="512"), types=MIXED)
    yield solve("kinds", "A million cores, which may be a typing error", pod("web", cpu="1000000"), types=MIXED)
    yield solve("kinds", "Architectures share no node", each_in(ARCH, "arm64", "amd64"), types=MIXED)
    yield solve("kinds", "Operating systems share no node", each_in(SYSTEM, "windows", "linux"), types=MIXED)
    yield solve("kinds", "Instance types share no node", each_in(TYPE, "small", "default"), types=MIXED)
    yield solve("kinds", "Zones share no node", each_in(ZONE, "zone-1", "zone-2"), types=MIXED)
    yield solve(
        "kinds",
        "An instance type is excluded",
        pod("web", affinity=node_affinity(requirement(TYPE, "NotIn", "single", "small"))),
        types=MIXED,
    )
    yield solve(
        "kinds",
        "An operating system is excluded",
        pod("web", affinity=node_affinity(requirement(SYSTEM, "NotIn", "linux"))),
        types=MIXED,
    )
    yield solve(
        "kinds",
        "A NodePool of one architecture",
        pod("web"),
        node_pool(requirements=[requirement(ARCH, "In", "arm64")]),
        types=MIXED,
    )
    devices = [_using(f"web-{name}", {f"example.com/{name}": "1"}) for name in ("gpu", "fpga")]
    yield solve("kinds", "Devices that no one instance type has go to two nodes", devices, types=MIXED)
    yield solve(
        "kinds",
        "Devices that no one instance type has, for one pod",
        _using("web", {"example.com/gpu": "1", "example.com/fpga": "1"}),
        types=MIXED,
    )
    yield solve(
        "kinds",
        "A resource that nobody has, of which none is asked for",
        _using("web", {"example.com/none": "0"}),
        types=MIXED,
    )
    yield solve("kinds", "A resource that nobody has", _using("web", {"example.com/none": "1"}), types=MIXED)
    family = "karpenter.kwok.sh/instance-family"
    types = [instance_type(f"{kind}-{size}x", size, f"{4 * size}Gi", 50) for kind in ("m5", "c5") for size in (2, 4)]
    yield solve("kinds", "A family of instance types is chosen", pod("web", **selector(**{family: "c5"})), types=types)
    yield solve("kinds", "A family that no instance type is of", pod("web", **selector(**{family: "x1"})), types=types)
    overridden = instance_type("flexible", 4, "8Gi", 50, price=0.2)
    overridden["offerings"][0]["CapacityOverride"] = {"example.com/gpu": "1"}
    yield solve(
        "kinds",
        "An offering that has more than its instance type",
        _using("web", {"example.com/gpu": "1"}),
        types=(overridden, *MIXED),
    )
    unavailable = instance_type("flexible", 4, "8Gi", 50, price=0.2)
    unavailable["offerings"][0] |= {"CapacityOverride": {"example.com/gpu": "1"}, "Available": False}
    yield solve(
        "kinds",
        "An offering that has more and is not available",
        _using("web", {"example.com/gpu": "1"}),
        types=(unavailable, TYPES_OF_NOTHING),
    )
    yield solve(
        "kinds",
        "Many small pods of both architectures",
        replicas(6, cpu="500m"),
        replicas(3, "arm", cpu="2", **selector(**{ARCH: "arm64"})),
        types=MIXED,
    )


TYPES_OF_NOTHING: Final = instance_type("tiny", 1, "1Gi", 50, price=0.1)


def _using(name: str, resources: Document) -> Document:
    """A pod that requests more than cores and memory."""
    document = pod(name)
    document["spec"]["containers"][0]["resources"]["requests"] |= resources
    return document

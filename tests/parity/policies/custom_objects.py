"""Custom objects and metrics of drawn questions: quotas, NUMA nodes, applications, networks and loads."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from tests.parity.cross.drawing import Json
from tests.parity.policies.clusters import GPU, HUGE, NIC

WORKLOADS = ("p1", "p2", "p3", "p4")
_POLICIES = ("single-numa-node", "single-numa-node", "single-numa-node", "restricted", "best-effort", "none")


def quota(random: Random, namespace: str) -> Json:
    spec: Json = {}
    for field, probability in (("min", 0.85), ("max", 0.6)):
        if random.random() < probability:
            spec[field] = {
                resource: random.choice(amounts)
                for resource, amounts, likelihood in (
                    ("cpu", ("0", "500m", "1", "2", "3500m", "6", "20"), 0.95),
                    ("memory", ("0", "512Mi", "1Gi", "4Gi", "8Gi", "40Gi"), 0.95),
                    ("ephemeral-storage", ("10Gi", "100Gi"), 0.7),
                    ("pods", ("1", "3", "10"), 0.2),
                    (GPU, ("0", "1", "2", "7"), 0.5),
                    (HUGE, ("0", "64Mi"), 0.2),
                )
                if random.random() < likelihood
            }
    return {
        "apiVersion": "scheduling.x-k8s.io/v1alpha1",
        "kind": "ElasticQuota",
        "metadata": {"name": f"quota-{namespace}", "namespace": namespace, "uid": f"uid-{namespace}"},
        "spec": spec,
    }


def topologies(random: Random, on: list[Json]) -> Iterator[Json]:
    for node in on:
        if random.random() < 0.12:
            continue
        count = random.choice((1, 2, 2, 2, 3, 4, 8))
        zones = [_zone(random, number, count) for number in range(count)]
        if random.random() < 0.1:
            zones.insert(random.randrange(count), {"name": "die-0", "type": "Die", "resources": []})
        item: Json = {
            "apiVersion": "topology.node.k8s.io/v1alpha2",
            "kind": "NodeResourceTopology",
            "metadata": {"name": node["metadata"]["name"]},
            "zones": zones,
        }
        if random.random() < 0.3:
            item["topologyPolicies"] = [
                random.choice(("SingleNUMANodePodLevel", "SingleNUMANodeContainerLevel", "BestEffort", "Restricted"))
            ]
        if random.random() < 0.85:
            item["attributes"] = [
                {"name": "topologyManagerPolicy", "value": random.choice(_POLICIES)},
                *({"name": "topologyManagerScope", "value": value} for value in _values(random, "container", "pod")),
                *({"name": "topologyManagerMaxNUMANodes", "value": value} for value in _values(random, "16", "1", "x")),
            ]
        yield item


def _values(random: Random, *values: str) -> list[str]:
    return [random.choice(values)] if random.random() < 0.5 else []


def _zone(random: Random, number: int, count: int) -> Json:
    amounts = (
        ("cpu", ("0", "1", "2", "3500m", "4", "8"), 0.97),
        ("memory", ("0", "512Mi", "1Gi", "4Gi", "16Gi"), 0.95),
        (GPU, ("0", "1", "2", "4"), 0.4),
        (NIC, ("0", "1"), 0.2),
        (HUGE, ("0", "64Mi"), 0.2),
    )
    resources = [
        {"name": resource, "capacity": amount, "allocatable": amount, "available": amount}
        for resource, choices, probability in amounts
        if random.random() < probability
        for amount in (random.choice(choices),)
    ]
    zone: Json = {"name": f"node-{number}", "type": "Node", "resources": resources}
    if random.random() < 0.8:
        zone["costs"] = [
            {"name": f"node-{neighbour}", "value": 10 if neighbour == number else random.choice((12, 20, 21, 32))}
            for neighbour in range(count)
            if random.random() < 0.95
        ]
    return zone


def power_model(random: Random, on: list[Json]) -> Json:
    return {
        node["metadata"]["name"]: {
            "k0": random.choice((0, 300, 471.7)),
            "k1": random.choice((0, 10, -60.5, -91.50493019588365)),
            "k2": random.choice((0, -0.05, 0.01, 0.02, -0.07186049052516227)),
        }
        for node in on
        if random.random() < 0.9
    }


def metrics(random: Random, on: list[Json]) -> Json:
    by_node = {
        node["metadata"]["name"]: {"metrics": list(_loads(random)), "tags": {}, "metadata": {"dataCenter": ""}}
        for node in on
        if random.random() < 0.9
    }
    window = {"duration": "15m", "start": 1599999100, "end": random.choice((1600000000, 4000000000))}
    return {"timestamp": 1600000000, "window": window, "source": "Prometheus", "data": {"NodeMetricsMap": by_node}}


def _loads(random: Random) -> Iterator[Json]:
    kinds = [
        (kind, operator)
        for kind in ("CPU", "Memory", "Bandwidth", "Unknown")
        for operator in ("AVG", "STD", "Latest", "", "Unknown")
        if random.random() < {"CPU": 0.55, "Memory": 0.55}.get(kind, 0.05)
    ]
    random.shuffle(kinds)
    if kinds and random.random() < 0.1:
        kinds.append(random.choice(kinds))
    for kind, operator in kinds:
        high = 60 if operator == "STD" else random.choice((100, 100, 100, 140))
        value = random.choice(
            (0, 0.001, 50, 100, -5, round(random.uniform(0, high), 4), round(random.uniform(0, high), 2))
        )
        if operator == "AVG" or random.random() < 0.6:
            value = round(random.uniform(0, high), 4)
        yield {"name": "m", "type": kind, "operator": operator, "rollup": "15m", "value": value}


def app_group(random: Random) -> Json:
    def workload(name: str) -> Json:
        return {"kind": "Deployment", "apiVersion": "apps/v1", "namespace": "default", "name": name, "selector": name}

    workloads = [
        {
            "workload": workload(name),
            "dependencies": [
                {
                    "workload": workload(dependency),
                    "minBandwidth": "10Mi",
                    "maxNetworkCost": random.choice((0, 5, 20, 60)),
                }
                for dependency in WORKLOADS
                if dependency != name and random.random() < 0.5
            ],
        }
        for name in WORKLOADS
    ]
    order = [
        {"workload": workload(name), "index": number + 1} for number, name in enumerate(random.sample(WORKLOADS, 4))
    ]
    return {
        "apiVersion": "appgroup.diktyo.x-k8s.io/v1alpha1",
        "kind": "AppGroup",
        "metadata": {"name": "app", "namespace": "default", "uid": "uid-app"},
        "spec": {"numMembers": 4, "topologySortingAlgorithm": "KahnSort", "workloads": workloads},
        "status": {"topologyOrder": sorted(order, key=lambda entry: entry["workload"]["selector"])},
    }


def network_topology(random: Random) -> Json:
    def origins(prefix: str) -> list[Json]:
        origin_costs = [
            {
                "origin": f"{prefix}-{origin}",
                "costList": [
                    {"destination": f"{prefix}-{destination}", "networkCost": random.choice((0, 1, 5, 10, 20, 50, 90))}
                    for destination in random.sample(range(3), 3)
                    if destination != origin and random.random() < 0.85
                ],
            }
            for origin in range(3)
            if random.random() < 0.9
        ]
        random.shuffle(origin_costs)
        return origin_costs

    topologies = [
        {"topologyKey": f"topology.kubernetes.io/{prefix}", "originList": origins(prefix)}
        for prefix in ("region", "zone")
    ]
    weights = [{"name": "UserDefined", "topologyList": topologies}]
    return {
        "apiVersion": "networktopology.diktyo.x-k8s.io/v1alpha1",
        "kind": "NetworkTopology",
        "metadata": {"name": "nt", "namespace": "default", "uid": "uid-nt"},
        "spec": {"configmapName": "none", "weights": weights},
    }

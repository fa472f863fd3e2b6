"""NetworkOverhead: satisfied and violated dependencies, and costs, between regions and zones."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from random import Random
from typing import Any

import msgspec
import pytest

from podium.framework.contract.cycle_state import CycleState
from podium.framework.contract.status import Code, PluginError
from podium.framework.profile.plugin_args import typed_args
from podium.objects.core import Node, Pod
from podium.plugins.contrib.app_groups import GROUP_LABEL, WORKLOAD_LABEL, AppGroup, NetworkTopology
from podium.plugins.contrib.network_overhead import NetworkOverhead
from podium.testing import RecordingHandle, check_contract
from tests.builders import node, pod, snapshot_of

KEYS = {"region": "topology.kubernetes.io/region", "zone": "topology.kubernetes.io/zone"}
Costs = Mapping[tuple[str, str], int]


def group(*dependencies: tuple[str, str, int], name: str = "shop", namespace: str = "default") -> AppGroup:
    """Each dependency: the selector of a workload, of the one that it depends on, and the highest cost."""
    workloads = [
        {
            "workload": {"name": selector, "selector": selector},
            "dependencies": [{"workload": {"selector": dependency}, "maxNetworkCost": limit}],
        }
        for selector, dependency, limit in dependencies
    ]
    metadata = {"name": name, "namespace": namespace}
    return msgspec.convert({"metadata": metadata, "spec": {"workloads": workloads}}, AppGroup)


def topology(
    regions: Costs | None = None, zones: Costs | None = None, weights: str = "UserDefined", name: str = "nt-default"
) -> NetworkTopology:
    """Costs by origin and destination, in the given order."""

    def origins(costs: Costs) -> list[dict[str, Any]]:
        names = dict.fromkeys(origin for origin, _ in costs)
        return [
            {
                "origin": origin,
                "costList": [
                    {"destination": destination, "networkCost": cost}
                    for (start, destination), cost in costs.items()
                    if start == origin
                ],
            }
            for origin in names
        ]

    lists = [
        {"topologyKey": KEYS[kind], "originList": origins(costs)}
        for kind, costs in (("zone", zones or {}), ("region", regions or {}))
    ]
    spec = {"weights": [{"name": weights, "topologyList": lists}]}
    return msgspec.convert({"metadata": {"name": name, "namespace": "default"}, "spec": spec}, NetworkTopology)


def member(name: str, workload: str, on: str = "", namespace: str = "default") -> Pod:
    return pod(name, node=on, namespace=namespace, labels={GROUP_LABEL: "shop", WORKLOAD_LABEL: workload})


def place(name: str, region: str | None = None, zone: str | None = None) -> Node:
    return node(name, region=region, zone=zone)


WEB = member("web", "web")
GROUP = group(("web", "db", 10))


class Attempt:
    """One attempt at a pod, in a cluster of these objects."""

    def __init__(self, *items: Any, incoming: Pod = WEB, args: Any = None) -> None:
        self.incoming = incoming
        objects_placed = [
            item for item in items if isinstance(item, Node) or (isinstance(item, Pod) and item.node_name)
        ]
        self.snapshot = snapshot_of(*(item for item in objects_placed if isinstance(item, Node)))
        pods_known = [
            item for item in objects_placed if isinstance(item, Pod) and item.node_name in self.snapshot.row_of
        ]
        self.snapshot = snapshot_of(*(item for item in objects_placed if isinstance(item, Node)), *pods_known)
        handle = RecordingHandle(self.snapshot, [*items, incoming])
        self.plugin = NetworkOverhead(typed_args(NetworkOverhead, args), handle)
        self.state = CycleState()
        _, self.status = self.plugin.pre_filter(self.state, incoming, self.snapshot)

    def rejections(self) -> dict[str, str]:
        order = self.snapshot.order
        verdicts = self.plugin.filter_rows(self.state, self.incoming, self.snapshot, order)
        by_table = {}
        for row, verdict in zip(order.tolist(), [0] * len(order) if verdicts is None else verdicts, strict=True):
            if verdict:
                status = self.plugin.explain(self.state, self.incoming, int(verdict))
                assert status.code is Code.UNSCHEDULABLE
                by_table[self.snapshot.name(row)] = status.message
        one_by_one = {
            self.snapshot.name(row): status.message
            for row in order.tolist()
            if (status := self.plugin.filter(self.state, self.incoming, self.snapshot.node(row))) is not None
        }
        assert one_by_one == by_table
        return by_table

    def costs(self) -> dict[str, int]:
        rows = self.snapshot.order
        scores = self.plugin.score_rows(self.state, self.incoming, self.snapshot, rows)
        table = {self.snapshot.name(row): int(score) for row, score in zip(rows.tolist(), scores, strict=True)}
        plugin, state = self.plugin, self.state
        assert {
            name: plugin.score(state, self.incoming, self.snapshot.node(self.snapshot.row_of[name])) for name in table
        } == table
        return table


def text(name: str, satisfied: int, violated: int) -> str:
    return (
        f"Node {name} does not meet several network requirements from Workload dependencies: "
        f"Satisfied: {satisfied} Violated: {violated}"
    )


@pytest.mark.long
def test_it_keeps_the_contract() -> None:
    check_contract(NetworkOverhead)
    check_contract(NetworkOverhead, {"whenMissing": "Reject"})


def test_the_nearer_the_better_and_nodes_beyond_the_limit_are_rejected() -> None:
    nodes = [place("host", "r1", "z1"), place("same", "r1", "z1"), place("near", "r1", "z2"), place("far", "r1", "z3")]
    nodes += [place("abroad", "r2", "z1"), place("unknown", "r3", "z9")]
    costs = topology({("r2", "r1"): 40}, {("z2", "z1"): 5, ("z3", "z1"): 20})
    attempt = Attempt(*nodes, GROUP, costs, member("db-1", "db", "host"))
    assert attempt.costs() == {"host": 0, "same": 1, "near": 5, "far": 20, "abroad": 40, "unknown": 100}
    assert attempt.rejections() == {"far": text("far", 0, 1), "abroad": text("abroad", 0, 1)}


def test_as_many_satisfied_as_violated_dependencies_are_enough() -> None:
    nodes = [place("a", "r1", "z1"), place("b", "r1", "z2")]
    members = [member("db-1", "db", "a"), member("db-2", "db", "b"), member("db-3", "db", "b")]
    attempt = Attempt(*nodes, GROUP, topology(zones={("z1", "z2"): 99, ("z2", "z1"): 99}), *members)
    assert attempt.rejections() == {"a": text("a", 1, 2)}
    assert attempt.costs() == {"a": 198, "b": 99}


def test_nodes_without_region_and_zone_are_far_from_all_but_their_own_pods() -> None:
    nodes = [place("bare"), place("also-bare"), place("zoned", "r1", "z1")]
    attempt = Attempt(*nodes, GROUP, topology(), member("db-1", "db", "bare"))
    assert attempt.costs() == {"bare": 0, "also-bare": 100, "zoned": 100}
    assert attempt.rejections() == {name: text(name, 0, 1) for name in ("also-bare", "zoned")}


def test_zones_without_regions_are_compared_as_in_one_region() -> None:
    nodes = [place("a", zone="z1"), place("b", zone="z2")]
    attempt = Attempt(*nodes, GROUP, topology(zones={("z2", "z1"): 7}), member("db-1", "db", "a"))
    assert attempt.costs() == {"a": 0, "b": 7}


def test_a_zone_overrides_a_region_of_the_same_name() -> None:
    nodes = [place("a", "x", "q"), place("b", "y", "x"), place("c", "x", "x")]
    costs = topology({("x", "y"): 3}, {("x", "y"): 8})
    assert Attempt(*nodes, GROUP, costs, member("db-1", "db", "b")).costs() == {"a": 3, "b": 0, "c": 8}


@pytest.mark.parametrize("weights", ["UserDefined", "NetperfCosts"])
def test_lists_need_not_be_sorted(weights: str) -> None:
    nodes = [place(f"n{index}", "r", f"z{index}") for index in range(5)]
    costs = topology(zones={(f"z{index}", "z0"): index for index in (4, 1, 3, 2)}, weights=weights)
    attempt = Attempt(*nodes, GROUP, costs, member("db-1", "db", "n0"), args={"weightsName": weights})
    assert attempt.costs() == {f"n{index}": index for index in range(5)}


def test_only_the_chosen_costs_count() -> None:
    nodes = [place("a", "r", "z1"), place("b", "r", "z2")]
    costs = topology(zones={("z2", "z1"): 7}, weights="Other", name="mine")
    args = {"weightsName": "UserDefined", "networkTopologyName": "mine"}
    assert Attempt(*nodes, GROUP, costs, member("db-1", "db", "a"), args=args).costs() == {"a": 0, "b": 100}
    args["weightsName"] = "Other"
    assert Attempt(*nodes, GROUP, costs, member("db-1", "db", "a"), args=args).costs() == {"a": 0, "b": 7}


def test_pods_of_all_namespaces_count_also_terminating_ones_but_not_pending_ones() -> None:
    nodes = [place("a", "r", "z1"), place("b", "r", "z1")]
    leaving = pod("db-2", node="a", terminating=True, labels={GROUP_LABEL: "shop", WORKLOAD_LABEL: "db"})
    neighbours = [member("db-1", "db", "a", "elsewhere"), leaving, member("db-3", "db"), member("web-2", "web", "a")]
    assert Attempt(*nodes, GROUP, topology(), *neighbours).costs() == {"a": 0, "b": 2}


@pytest.mark.parametrize(
    ("items", "incoming"),
    [
        ((GROUP, topology(), member("db-1", "db", "a")), pod("plain")),
        ((GROUP, topology(), member("db-1", "db", "a")), member("cache", "cache")),
        ((GROUP, topology()), WEB),
        ((GROUP, topology(), member("db-1", "db")), WEB),
        ((topology(), member("db-1", "db", "a")), WEB),
        ((group(("web", "db", 1), namespace="other"), topology(), member("db-1", "db", "a")), WEB),
    ],
    ids=["no group", "no dependencies", "no pods", "no placed pods", "no AppGroup", "AppGroup elsewhere"],
)
def test_without_anything_to_be_near_to_all_nodes_are_equal(items: Iterable[Any], incoming: Pod) -> None:
    attempt = Attempt(place("a", "r", "z1"), place("b", "r", "z2"), *items, incoming=incoming)
    assert attempt.status is None
    assert (attempt.rejections(), attempt.costs()) == ({}, {"a": 0, "b": 0})


def test_without_a_network_topology_no_cost_is_known() -> None:
    nodes = [place("a", "r", "z1"), place("b", "r", "z2")]
    attempt = Attempt(*nodes, GROUP, member("db-1", "db", "a"))
    assert (attempt.rejections(), attempt.costs()) == ({}, {"a": 0, "b": 100})


@pytest.mark.parametrize(
    ("items", "missing"),
    [((topology(),), "AppGroup shop"), ((GROUP,), "NetworkTopology nt-default")],
)
def test_pods_are_rejected_while_an_object_is_missing_if_the_args_say_so(items: Iterable[Any], missing: str) -> None:
    attempt = Attempt(place("a"), *items, args={"whenMissing": "Reject", "namespaces": ["x", "default"]})
    assert attempt.status is not None
    assert attempt.status.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE
    assert attempt.status.message == f"{missing} not found in the namespaces x, default"


def test_people_are_told_which_dependencies_cost_too_much() -> None:
    nodes = [
        place("a", "r1", "z1"),
        place("b", "r1", "z2"),
        place("c", "r1", "z2"),
        place("bare"),
        place("other", "r2"),
    ]
    members = [member("db-1", "db", "a"), member("db-2", "db", "bare"), member("cache", "cache", "a")]
    attempt = Attempt(*nodes, GROUP, topology({("r2", "r1"): 40}, {("z2", "z1"): 20}), *members)
    snapshot = attempt.snapshot
    rows = snapshot.order[[snapshot.order.tolist().index(snapshot.row_of[name]) for name in ("b", "c", "other")]]
    assert attempt.plugin.rejection_details(WEB, snapshot, rows) == {
        "db in r1 z1 costs 20, at most 10": 2,
        "db in r1 z1 costs 40, at most 10": 1,
        "db in a node without region and zone costs 100, at most 10": 3,
    }
    assert attempt.plugin.rejection_details(pod("plain"), snapshot, rows) == {}
    assert attempt.plugin.notes() == ()


def test_people_are_told_that_no_costs_are_known() -> None:
    notes = Attempt(place("a"), args={"namespaces": ["x", "y"]}).plugin.notes()
    assert notes == ("the NetworkTopology nt-default is missing in the namespaces x, y, so no costs are known",)


def test_the_first_namespace_that_has_the_group_counts() -> None:
    nodes = [place("a", "r", "z1"), place("b", "r", "z2")]
    groups = [group(("web", "cache", 1), namespace="first"), GROUP]
    attempt = Attempt(*nodes, *groups, topology(), member("db-1", "db", "a"), args={"namespaces": ["first", "default"]})
    assert attempt.costs() == {"a": 0, "b": 0}


def test_a_pod_on_a_node_that_is_gone_ends_the_attempt() -> None:
    attempt = Attempt(place("a"), GROUP, topology(), member("db-1", "db", "gone"))
    assert attempt.status is not None
    assert attempt.status.code is Code.ERROR
    assert attempt.status.message == 'pod hostname not found: nodeinfo not found for node name "gone"'


def test_without_prefilter_the_attempt_ends() -> None:
    attempt = Attempt(place("a"))
    with pytest.raises(PluginError, match="not eligible due to failed to read from cycleState"):
        attempt.plugin.score(CycleState(), WEB, attempt.snapshot.node(0))


def test_dry_runs_see_the_numbers_of_prefilter() -> None:
    nodes = [place("a", "r", "z1"), place("b", "r", "z2")]
    attempt = Attempt(*nodes, GROUP, topology(zones={("z2", "z1"): 99}), member("db-1", "db", "a"))
    extensions = attempt.plugin.pre_filter_extensions()
    assert extensions is not None
    view = attempt.snapshot.node(0)
    assert extensions.remove_pod(attempt.state, WEB, member("db-1", "db", "a"), view) is None
    assert extensions.add_pod(attempt.state, WEB, member("db-1", "db", "a"), view) is None
    assert attempt.rejections() == {"b": text("b", 0, 1)}


def naive(attempt: Attempt, pods: list[Pod], limit: int, costs: NetworkTopology) -> dict[str, tuple[int, int, int]]:
    """Node by node and pod by pod, as upstream counts."""
    (weights,) = costs.spec.weights
    results = {}
    for row in attempt.snapshot.order.tolist():
        node_view = attempt.snapshot.node(row)
        region, zone = (node_view.labels.get(key, "") for key in KEYS.values())
        cost_by_pair = {}
        for key, origin in zip(KEYS.values(), (region, zone), strict=True):
            for item in weights.costs_from(key, origin) if origin else ():
                cost_by_pair[origin, item.destination] = item.network_cost
        satisfied = violated = cost = 0
        for neighbour in pods:
            neighbours_node = attempt.snapshot.node(attempt.snapshot.row_of[neighbour.node_name])
            other_region, other_zone = (neighbours_node.labels.get(key, "") for key in KEYS.values())
            if neighbours_node.row == row:
                satisfied += 1
            elif not other_region and not other_zone:
                violated, cost = violated + 1, cost + 100
            elif (region, zone) == (other_region, other_zone):
                satisfied, cost = satisfied + 1, cost + 1
            else:
                pair = (zone, other_zone) if region == other_region else (region, other_region)
                if pair in cost_by_pair:
                    satisfied += cost_by_pair[pair] <= limit
                    violated += cost_by_pair[pair] > limit
                cost += cost_by_pair.get(pair, 100)
        results[node_view.name] = satisfied, violated, cost
    return results


@pytest.mark.parametrize("seed", range(30))
def test_many_pods_are_counted_as_one_by_one(seed: int) -> None:
    random = Random(seed)
    values = [None, "x", "y", "z"]
    nodes = [place(f"n{index}", random.choice(values), random.choice(values)) for index in range(8)]
    pairs = [(a, b) for a in "xyz" for b in "xyz" if random.random() < 0.6]
    costs = topology({pair: random.randrange(30) for pair in pairs}, {pair: random.randrange(30) for pair in pairs})
    pods = [member(f"db-{index}", "db", f"n{random.randrange(8)}") for index in range(random.randrange(1, 12))]
    attempt = Attempt(*nodes, GROUP, costs, *pods)
    naive_results = naive(attempt, pods, 10, costs)
    assert attempt.costs() == {name: numbers[2] for name, numbers in naive_results.items()}
    assert attempt.rejections() == {
        name: text(name, satisfied, violated)
        for name, (satisfied, violated, _) in naive_results.items()
        if violated > satisfied
    }


def test_absurd_costs_do_not_wrap_around_and_negative_ones_are_named() -> None:
    """Two times the largest integer is -2 upstream, and the farthest node would be the best."""
    costs = {("far", "here"): 2**63 - 1, ("odd", "here"): -(2**63)}
    pods = [member(f"db{number}", "db", "a") for number in range(2)]
    places = [place("a", "here"), place("b", "far"), place("c", "odd")]
    attempt = Attempt(GROUP, topology(costs), *places, *pods)
    by_node = attempt.costs()
    assert by_node["c"] < by_node["a"] < by_node["b"]
    assert attempt.plugin.notes() == (
        "NetworkTopology default/nt-default: spec.weights[0]: networkCost of odd to here: is negative",
    )

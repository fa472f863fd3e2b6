"""NodeResourceTopologyMatch in whole attempts: both scopes of filtering, refusals, details, and both forms."""

from __future__ import annotations

from typing import Any

import pytest

from podium.framework import PluginError
from podium.framework.contract.cluster_event import ActionType
from podium.framework.contract.cycle_state import CycleState
from podium.objects.resource_types import PODS
from podium.plugins.contrib.node_resource_topology_match.plugin import NodeResourceTopologyMatch
from podium.testing import check_contract
from tests.unit.plugins.contrib.node_resource_topology_match.numa_bench import (
    COUNT,
    POLICY,
    SCOPE,
    cluster,
    guaranteed_pod,
    node,
    pod,
    reason,
    scores,
    topology,
    zone,
)

BIG = {"cpu": "4", "memory": "4Gi"}
TWO = (zone(0, cpu="4", memory="8Gi"), zone(1, cpu="6", memory="8Gi"))


@pytest.mark.long
@pytest.mark.parametrize("strategy", ["LeastAllocated", "MostAllocated", "BalancedAllocation", "LeastNUMANodes"])
def test_it_keeps_the_contract(strategy: str) -> None:
    check_contract(NodeResourceTopologyMatch, {"scoringStrategy": {"type": strategy}})
    check_contract(NodeResourceTopologyMatch, {"preemptionMode": "Enabled", "cacheResyncPeriodSeconds": 5})


def test_it_registers_topologies_under_upstreams_name() -> None:
    world = cluster(node("n1"))
    plugin = world.profiles["default-scheduler"].plugins["NodeResourceTopologyMatch"]
    events = [registration.event for registration in plugin.events_to_register()]
    assert [(event.resource.value, event.action) for event in events] == [
        ("Pod", ActionType.DELETE),
        ("Node", ActionType.ADD | ActionType.UPDATE_NODE_ALLOCATABLE),
        ("noderesourcetopologies.v1alpha2.topology.node.k8s.io", ActionType.ADD | ActionType.UPDATE),
    ]


def test_containers_are_aligned_one_by_one_and_the_pod_as_a_whole() -> None:
    by_container = cluster(node("n1", "20"), topology("n1", *TWO))
    by_pod = cluster(node("n1", "20"), topology("n1", *TWO, **{POLICY: "single-numa-node", SCOPE: "pod"}))
    double_pod = guaranteed_pod("a/x", BIG, BIG)
    assert reason(by_container, double_pod) == ""
    assert reason(by_pod, double_pod) == "cannot align pod"
    assert reason(by_container, guaranteed_pod("a/x", BIG, BIG, BIG)) == "cannot align container"
    assert reason(by_container, guaranteed_pod("a/x", {"cpu": "7"})) == "cannot align container"


def test_init_containers_and_sidecars_are_aligned_but_keep_nothing() -> None:
    """Sidecars keep running, but upstream does not take their requests off, either."""
    world = cluster(node("n1", "20"), topology("n1", *TWO))
    assert reason(world, guaranteed_pod("a/x", {"cpu": "1"}, init=({"cpu": "7"},))) == "cannot align init container"
    too_large = ({"cpu": "7", "sidecar": "x"},)
    assert reason(world, guaranteed_pod("a/x", {"cpu": "1"}, init=too_large)) == "cannot align sidecar container"
    assert reason(world, guaranteed_pod("a/x", {"cpu": "6"}, {"cpu": "4"}, init=({"cpu": "6", "sidecar": "x"},))) == ""


def test_only_guaranteed_pods_have_cpu_of_their_own() -> None:
    world = cluster(node("n1", "20", **{"example.com/gpu": "2"}), topology("n1", zone(0, cpu="1", gpu="1")))
    assert reason(world, pod("a/burstable", "7")) == ""
    assert reason(world, pod("a/burstable", requests={"cpu": "7", "example.com/gpu": "2"})) == "cannot align container"
    assert reason(world, pod("a/best-effort", requests={})) == ""
    assert reason(world, guaranteed_pod("a/x", {"cpu": "7"})) == "cannot align container"


def test_resources_that_no_numa_node_lists_may_belong_to_the_host() -> None:
    world = cluster(
        node("n1", "20", **{"example.com/nic": "1", "hugepages-2Mi": "1Gi"}),
        topology("n1", zone(0, cpu="4", memory="4Gi")),
    )
    assert reason(world, guaranteed_pod("a/x", {"cpu": "1", "example.com/nic": "1", "ephemeral-storage": "1Gi"})) == ""
    assert reason(world, guaranteed_pod("a/x", {"cpu": "1", "hugepages-2Mi": "2Mi"})) == "cannot align container"


@pytest.mark.parametrize("policy", ["none", "best-effort", "restricted"])
def test_other_policies_refuse_nothing(policy: str) -> None:
    world = cluster(node("n1", "20"), topology("n1", *TWO, **{POLICY: policy}))
    assert reason(world, guaranteed_pod("a/x", {"cpu": "7"})) == ""


def test_nodes_without_a_topology_pass_with_score_0() -> None:
    world = cluster(node("n1"), node("n2"), topology("n2", *TWO))
    incoming_pod = guaranteed_pod("a/x", {"cpu": "2", "memory": "4Gi"})
    assert reason(world, incoming_pod) == ""
    assert scores(world, incoming_pod)["n1"] == 0
    assert scores(world, incoming_pod)["n2"] > 0
    assert set(scores(world, pod("a/burstable")).values()) == {100}


def test_a_topology_that_cannot_be_read_is_named_with_its_field() -> None:
    world = cluster(node("n1"), topology("n1", zone(0, cpu="four")))
    text = reason(world, guaranteed_pod("a/x", {"cpu": "1"}))
    assert text.startswith("NodeResourceTopology n1: zones[0].resources[cpu].available: ")


def test_details_name_the_container_the_resource_and_the_most_that_is_left() -> None:
    world = cluster(node("n1", "20"), topology("n1", *TWO))
    incoming_pod = guaranteed_pod("a/x", {"cpu": "1"}, {"cpu": "7"})
    world.schedule(incoming_pod)
    plugin: Any = world.profiles["default-scheduler"].plugins["NodeResourceTopologyMatch"]
    _, item = world.read(incoming_pod)
    snapshot = world.engine.cache.snapshot()
    assert dict(plugin.rejection_details(item, snapshot, snapshot.order)) == {
        "NUMA: container c1 requests cpu 7 of one NUMA node, of which one has 6 at most": 1
    }
    _, item = world.read(guaranteed_pod("a/y", {"cpu": "1", "hugepages-2Mi": "2Mi"}))
    [text] = plugin.rejection_details(item, snapshot, snapshot.order)
    assert text == "NUMA: container c0 requests hugepages-2Mi, which no NUMA node has"


def test_answers_are_kept_until_the_topology_or_the_node_changes() -> None:
    world = cluster(node("n1", "20"), node("n2", "20"), topology("n1", *TWO), topology("n2", *TWO))
    incoming_pod = guaranteed_pod("a/x", {"cpu": "5"})
    assert reason(world, incoming_pod) == ""
    world.replace(topology("n1", zone(0, cpu="4", memory="8Gi")))
    assert reason(world, incoming_pod) == "cannot align container"
    assert reason(world, incoming_pod, "n2") == ""
    world.replace(topology("n1", *TWO))
    assert reason(world, incoming_pod) == ""


def test_both_forms_agree_after_changes() -> None:
    world = cluster(
        *(node(f"n{number}", "20") for number in range(4)), *(topology(f"n{number}", *TWO) for number in range(4))
    )
    plugin: Any = world.profiles["default-scheduler"].plugins["NodeResourceTopologyMatch"]
    snapshot, state = world.engine.cache.snapshot(), CycleState()
    for cpu in ("2", "5", "7"):
        _, item = world.read(guaranteed_pod("a/x", {"cpu": cpu}, {"cpu": "1"}))
        for _ in range(2):
            verdicts = plugin.filter_rows(state, item, snapshot, snapshot.order)
            by_row = (
                [None] * 4 if verdicts is None else [plugin.explain(state, item, v) if v else None for v in verdicts]
            )
            assert by_row == [plugin.filter(state, item, snapshot.node(row)) for row in snapshot.order.tolist()]
            together = plugin.score_rows(state, item, snapshot, snapshot.order).tolist()
            assert together == [plugin.score(state, item, snapshot.node(row)) for row in snapshot.order.tolist()]
        plugin.reserve(state, item, "n2")
        world.store.put(PODS, item)


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (
            {"scoringStrategy": {"resources": []}},
            'scoringStrategy.type: Invalid value: "": invalid ScoringStrategyType',
        ),
        ({"scoringStrategy": {"type": "X"}}, 'scoringStrategy.type: Invalid value: "X": invalid ScoringStrategyType'),
        ({"preemptionMode": "On"}, 'preemptionMode: Invalid value: "On": invalid PreemptionMode'),
        ({"cachePeriod": 3}, "cachePeriod: unknown field"),
        ({"kind": "Other"}, "want args to be of type NodeResourceTopologyMatchArgs, got Other"),
    ],
)
def test_args_are_refused_in_upstreams_words(args: Any, words: str) -> None:
    with pytest.raises(PluginError) as caught:
        cluster(node("n1"), **args)
    assert words in str(caught.value)


def test_a_missing_definition_rejects_if_the_args_say_so() -> None:
    world = cluster(node("n1"), whenMissing="Reject")
    plugin: Any = world.profiles["default-scheduler"].plugins["NodeResourceTopologyMatch"]
    incoming_pod = guaranteed_pod("a/x", {"cpu": "1"})
    assert reason(world, incoming_pod) == ""
    plugin.handle.is_missing = lambda resource: resource.plural == "noderesourcetopologies"
    assert "noderesourcetopologies.topology.node.k8s.io is not installed" in reason(world, incoming_pod)
    assert reason(world, pod("a/best-effort", requests={})) == ""


def test_the_number_of_numa_nodes_is_read() -> None:
    world = cluster(node("n1"), topology("n1", *TWO, **{COUNT: "2"}), scoringStrategy={"type": "LeastNUMANodes"})
    assert scores(world, guaranteed_pod("a/x", {"cpu": "1"}))["n1"] == 75


def test_what_is_odd_about_topologies_is_named_with_object_and_field() -> None:
    odd = {POLICY: "strict", COUNT: "1"}
    world = cluster(
        node("n1"),
        topology("a", zone(0, cpu="-1"), {"name": "node-1", "type": "Node"}, policies=("Restricted",), **odd),
        topology("b", {"name": "socket-0", "type": "Socket"}),
        topology("c", zone(0, cpu="four")),
        topology("d", *TWO),
    )
    plugin: Any = world.profiles["default-scheduler"].plugins["NodeResourceTopologyMatch"]
    *notes, unreadable = plugin.notes()
    assert notes == [
        "NodeResourceTopology a: topologyPolicies[0]: Restricted is ignored",
        "NodeResourceTopology a: attributes[topologyManagerPolicy]: strict is ignored",
        "NodeResourceTopology a: attributes[topologyManagerMaxNUMANodes]: 1 is ignored",
        "NodeResourceTopology a: zones[node-0].resources[cpu].available: is negative",
        "NodeResourceTopology a: zones[node-1].resources: is empty",
        "NodeResourceTopology b: zones: none is a NUMA node, of the type Node and named node-0 to node-63",
    ]
    assert unreadable.startswith("NodeResourceTopology c: zones[0].resources[cpu].available: ")


def test_a_negative_amount_on_one_node_does_not_fail_the_attempt() -> None:
    nrt = topology("n1", zone(0, cpu="8", memory="8Gi"), zone(1, cpu="-1", memory="8Gi"))
    world = cluster(node("n1", "20"), node("n2", "20"), nrt, scoringStrategy={"type": "BalancedAllocation"})
    assert world.place(guaranteed_pod("a/x", {"cpu": "3", "memory": "3Gi"})).node


def test_thousands_of_topologies_and_zones_give_few_notes() -> None:
    topologies = [topology(f"n{number}", zone(0, cpu="-1")) for number in range(30)]
    world = cluster(node("n1", "20"), topology("n1x", *(zone(number, cpu="1") for number in range(3000))), *topologies)
    plugin: Any = world.profiles["default-scheduler"].plugins["NodeResourceTopologyMatch"]
    assert len(plugin.notes()) == 11
    assert plugin.notes()[-1] == "there is more of the kind"

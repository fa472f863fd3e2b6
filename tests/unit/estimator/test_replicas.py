"""Vectors of Karmada's own estimator, and what it is known to do."""

import pytest
from msgspec import convert

from podium.estimator.errors import EstimateError
from podium.estimator.requirements import MAX_INT32, NodeClaim
from tests.builders import node, pod
from tests.unit.estimator.members import asking, assumptions, claim, member, part

GPU = "example.com/gpu"


def _machines(**of):
    """Three machines of 8 cpu and 16 memory units, partly taken; `of` adds fields to one of them."""
    machines = [
        node(f"m{number}", cpu="8", memory="16", **{"pods": 11, **of.get(f"m{number}", {})}) for number in (1, 2, 3)
    ]
    pods_by_machine = {"m1": ((1, 3), (3, 3), (2, 4)), "m2": ((4, 8), (1, 3))}
    pods = [
        pod(f"{name}-{index}", cpu=str(cpu), memory=str(memory), node=name)
        for name, sizes in pods_by_machine.items()
        for index, (cpu, memory) in enumerate(sizes)
    ]
    return member(*machines, *pods)


ONE = {"cpu": "1", "memory": "2"}
LABELS = {"m1": {"labels": {"a": "1"}}, "m2": {"labels": {"a": "3", "b": "2"}}}
A_ABOVE_0 = convert(
    {
        "hardNodeAffinity": {
            "nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "Gt", "values": ["0"]}]}]
        }
    },
    NodeClaim,
)
KEY_1 = convert({"tolerations": [{"key": "key1", "operator": "Equal", "value": "value1"}]}, NodeClaim)
TAINTS = {"m1": {"taints": ["key1=value1:NoSchedule"]}, "m2": {"taints": ["key2=value2:NoSchedule"]}}


@pytest.mark.parametrize(
    ("of", "node_claim", "by_node"),
    [
        ({}, None, {"m1": 2, "m2": 2, "m3": 8}),
        ({"m1": {"pods": 4}, "m2": {"pods": 3}}, None, {"m1": 1, "m2": 1, "m3": 8}),
        (LABELS, claim(node_selector={"a": "3"}), {"m1": 0, "m2": 2, "m3": 0}),
        (LABELS, A_ABOVE_0, {"m1": 2, "m2": 2, "m3": 0}),
        (TAINTS, KEY_1, {"m1": 2, "m2": 0, "m3": 8}),
    ],
    ids=["plain", "pods", "nodeSelector", "affinity", "toleration"],
)
def test_replicas_of_one_cpu_and_two_memory(of, node_claim, by_node):
    machines, requirements = _machines(**of), asking(**ONE, claim=node_claim)
    assert machines.max_available_replicas(requirements) == sum(by_node.values())
    assert {
        explanation.node: explanation.replicas for explanation in machines.explain_replicas(requirements)
    } == by_node


def test_cluster_without_nodes_has_room_for_nothing():
    assert member().max_available_replicas(asking("1")) == 0


def test_replica_without_requirements_takes_a_pods_place_and_tolerates_no_taint():
    cluster = member(node("n1", pods=10), node("n2", pods=5, taints=["a=b:NoSchedule"]), pod(node="n1"))
    assert cluster.max_available_replicas(None) == 9


def test_cordoned_node_is_open_to_who_tolerates_it():
    cluster = member(node("n1", cpu="4", unschedulable=True))
    tolerant_claim = convert({"tolerations": [{"operator": "Exists"}]}, NodeClaim)
    assert cluster.max_available_replicas(asking("1")) == 0
    assert cluster.max_available_replicas(asking("1", claim=tolerant_claim)) == 4


def test_affinity_without_terms_matches_no_node_and_a_broken_term_does_not_spoil_the_others():
    cluster = member(node("n1", cpu="4", labels={"a": "1"}))
    empty = convert({"hardNodeAffinity": {"nodeSelectorTerms": []}}, NodeClaim)
    malformed_term = {"matchExpressions": [{"key": "a", "operator": "Near", "values": ["1"]}]}
    good = {"matchExpressions": [{"key": "a", "operator": "Exists"}]}
    node_claim = convert({"hardNodeAffinity": {"nodeSelectorTerms": [malformed_term, good]}}, NodeClaim)
    assert cluster.max_available_replicas(asking("1", claim=empty)) == 0
    assert cluster.max_available_replicas(asking("1", claim=node_claim)) == 4


def test_resource_that_no_node_has_leaves_no_room_and_an_uncounted_one_does_not_matter():
    cluster = member(node("n1", cpu="4"))
    assert cluster.max_available_replicas(asking("1", gpu="1")) == 0
    assert cluster.max_available_replicas(asking("1", storage="1Gi", pods="3")) == 4


def test_running_sidecar_counts_as_an_init_container_and_overhead_on_top():
    sidecar = {"name": "s", "restartPolicy": "Always", "resources": {"requests": {"cpu": "3"}}}
    running = pod(node="n1", cpu="2", spec={"initContainers": [sidecar], "overhead": {"cpu": "500m"}})
    assert member(node("n1", cpu="8"), running).max_available_replicas(asking("500m")) == 9


def test_pod_of_an_unknown_node_counts_when_the_node_appears():
    cluster = member(pod(node="n1", cpu="3"))
    cluster.put(node("n1", cpu="4"))
    assert cluster.max_available_replicas(asking("1")) == 1


def test_estimate_follows_pods_and_nodes():
    cluster, running = member(node("n1", cpu="4")), pod(node="n1", cpu="3")
    estimates = [cluster.max_available_replicas(asking("1"))]
    cluster.put(running)
    estimates.append(cluster.max_available_replicas(asking("1")))
    cluster.put(node("n1", cpu="6"))
    estimates.append(cluster.max_available_replicas(asking("1")))
    cluster.drop_pod(running)
    estimates.append(cluster.max_available_replicas(asking("1")))
    cluster.drop_node("n1")
    estimates.append(cluster.max_available_replicas(asking("1")))
    assert estimates == [4, 1, 3, 6, 0]


def test_pod_that_has_ended_or_waits_for_a_node_takes_nothing():
    finished_pod = pod("done", cpu="3", node="n1", status={"phase": "Succeeded"})
    assert member(node("n1", cpu="4"), finished_pod, pod("waiting", cpu="3")).max_available_replicas(asking("1")) == 4


def test_sum_over_nodes_saturates():
    crowded = [node(f"n{index}", pods=MAX_INT32) for index in range(2)]
    assert member(*crowded).max_available_replicas(None) == MAX_INT32


def test_assumed_workload_counts_only_with_its_gate():
    on_the_way = [assumptions(part(2, "1"))]
    nodes = node("n1", cpu="4")
    assert member(nodes).max_available_replicas(asking("1"), on_the_way) == 4
    honouring = member(nodes, scheduling_overcommit_protection=True)
    assert honouring.max_available_replicas(asking("1"), on_the_way) == 2


def test_unreadable_amount_is_an_error_that_names_it():
    with pytest.raises(EstimateError, match=r"^failed to estimate replicas: resourceRequest\[cpu\]: .*abc"):
        member(node("n1")).max_available_replicas(asking("abc"))


def test_explanation_says_what_runs_out_or_keeps_away():
    gpu = {GPU: "1"}
    cluster = member(
        node("cpu", cpu="2", memory="64Gi", allocatable=gpu),
        node("gpu", cpu="64", memory="64Gi", allocatable=gpu),
        node("full", pods=0, allocatable=gpu),
        node("cordoned", unschedulable=True),
        node("tainted", taints=["soft:PreferNoSchedule", "a=b:NoExecute"]),
        node("elsewhere", labels={"disk": "hdd"}),
    )
    cluster.put(pod(node="cpu", cpu="2"))
    requirements = asking("1", gpu="1", claim=claim(node_selector={"disk": "hdd"}))
    limits = {explanation.node: explanation.limit for explanation in cluster.explain_replicas(asking("1", gpu="1"))}
    assert limits == {
        "cpu": "cpu",
        "gpu": GPU,
        "full": "pods",
        "cordoned": "cordoned",
        "tainted": "taint a=b:NoExecute",
        "elsewhere": GPU,
    }
    assert {
        explanation.limit
        for explanation in cluster.explain_replicas(requirements)
        if explanation.node in ("cpu", "gpu")
    } == {"affinity"}


def test_answers_follow_the_cluster_whatever_was_asked_before():
    small_cluster = member(node("n1", cpu="4"))
    requirements = asking(cpu="1")
    assert small_cluster.max_available_replicas(requirements) == 4
    assert small_cluster.max_available_replicas(asking(cpu="2")) == 2
    small_cluster.put(pod("p1", cpu="3", node="n1"))
    assert small_cluster.max_available_replicas(requirements) == 1
    small_cluster.put(node("n2", cpu="2"))
    assert small_cluster.max_available_replicas(requirements) == 3
    small_cluster.put(node("n2", cpu="2", taints=["a=b:NoSchedule"]))
    assert small_cluster.max_available_replicas(requirements) == 1
    small_cluster.drop_node("n1")
    assert small_cluster.max_available_replicas(requirements) == 0


def test_cluster_that_stands_still_is_looked_at_once():
    idle_cluster = member(node("n1", cpu="4"))
    assert idle_cluster.capacity() is idle_cluster.capacity()
    first_capacity = idle_cluster.capacity()
    idle_cluster.put(node("n1", cpu="8"))
    assert idle_cluster.capacity() is not first_capacity

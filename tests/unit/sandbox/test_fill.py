"""The sample cluster keeps its promise: the pods fit whatever a scheduler does, the three others never do."""

import functools

import pytest

from podium.sandbox.fill import GPU, priority_classes, unplaceable_pods, varied_nodes, varied_pods
from podium.sandbox.quantities import parse_quantity
from podium.sandbox.store import Store

SIZES = [(5, 50), (6, 60), (7, 70), (8, 80), (9, 90), (13, 130), (16, 160), (31, 310), (50, 500)]


amount = functools.cache(parse_quantity)


def requests(pod):
    return {name: amount(value) for name, value in pod["spec"]["containers"][0]["resources"]["requests"].items()}


def allows(pod, node):
    labels, spec = node["metadata"]["labels"], pod["spec"]
    if any(labels.get(key) != value for key, value in spec.get("nodeSelector", {}).items()):
        return False
    affinity = spec.get("affinity", {}).get("nodeAffinity", {})
    node_selector = affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
    if node_selector:
        (expression,) = node_selector["nodeSelectorTerms"][0]["matchExpressions"]
        inside = labels.get(expression["key"]) in expression["values"]
        if inside is not (expression["operator"] == "In"):
            return False
    hard = [taint for taint in node["spec"].get("taints", []) if taint["effect"] == "NoSchedule"]
    return all(any(t["key"] == taint["key"] for t in spec.get("tolerations", [])) for taint in hard)


def pools(nodes, pods):
    """Each distinct set of nodes that a pod is limited to."""
    return {frozenset(i for i, node in enumerate(nodes) if allows(pod, node)) for pod in pods}


@pytest.mark.parametrize(("node_count", "pod_count"), SIZES)
@pytest.mark.parametrize("seed", [0, 1])
def test_every_pool_has_room_for_all_pods_that_may_enter_it_whatever_is_placed_first(node_count, pod_count, seed):
    nodes, pods = varied_nodes(node_count, seed), varied_pods(pod_count, seed)
    total = [{name: amount(value) for name, value in node["status"]["allocatable"].items()} for node in nodes]
    reach = [frozenset(i for i, node in enumerate(nodes) if allows(pod, node)) for pod in pods]
    for pool in set(reach):
        assert pool, "a pod is limited to no node at all"
        entering = [pod for pod, own in zip(pods, reach, strict=True) if own & pool]
        needs_port = any(
            "ports" in pod["spec"]["containers"][0] for pod, own in zip(pods, reach, strict=True) if own == pool
        )
        for name in ("cpu", "memory", GPU):
            amounts = [requests(pod).get(name, 0) for pod in entering]
            if not any(amounts):
                continue
            largest = max(amounts)
            spare = sorted(total[i].get(name, 0) - largest for i in pool)
            # The one other pod with the same host port may keep a pod off the roomiest node.
            assert sum(amounts) <= sum(spare[:-1] if needs_port else spare), (name, len(pool))
        assert len(entering) <= 109 * len(pool)


def test_at_most_two_pods_share_a_host_port():
    ports = [port["hostPort"] for pod in varied_pods(1000) for port in pod["spec"]["containers"][0].get("ports", [])]
    assert len(ports) == 80
    assert max(ports.count(port) for port in ports) == 2


@pytest.mark.parametrize("node_count", [5, 50])
def test_no_node_takes_an_unplaceable_pod(node_count):
    nodes = varied_nodes(node_count)
    largest = max(amount(node["status"]["allocatable"]["cpu"]) for node in nodes)
    too_big, *limited = unplaceable_pods()
    assert requests(too_big)["cpu"] > largest
    assert not any(allows(pod, node) for pod in limited for node in nodes)


def test_the_sample_is_varied_and_a_seed_repeats_it():
    pods, nodes = varied_pods(50, 3), varied_nodes(10, 3)
    assert pods == varied_pods(50, 3)
    assert nodes == varied_nodes(10, 3)
    assert pods != varied_pods(50, 4)
    assert len(pools(nodes, pods)) >= 4
    assert {node["metadata"]["labels"]["topology.kubernetes.io/zone"] for node in nodes} == {
        "zone-a",
        "zone-b",
        "zone-c",
    }
    assert len({pod["metadata"]["name"] for pod in pods}) == 50


def test_the_store_takes_the_whole_sample():
    store = Store()
    for obj in [*priority_classes(), *varied_nodes(5), *varied_pods(50), *unplaceable_pods()]:
        store.create(obj)
    assert len(store.list("pods", field_selector="spec.schedulerName=podium")) == 53
    assert {pod["spec"]["priority"] for pod in store.list("pods")} == {0, 10, 1000}


CHOICES = {
    "packing": lambda free: min(free, key=lambda i: (free[i], i)),
    "spreading": lambda free: max(free, key=lambda i: (free[i], i)),
    "filling from the end": max,
}


def place(pods, nodes, choose):
    """Give each pod in turn one of the nodes it fits on; returns how many pods found none."""
    free_amounts = [
        {name: amount(value) for name, value in node["status"]["allocatable"].items()} | {"ports": set()}
        for node in nodes
    ]
    unplaced = 0
    for pod in pods:
        amounts = requests(pod)
        ports = {port["hostPort"] for port in pod["spec"]["containers"][0].get("ports", [])}
        free = {
            i: free_amounts[i]["cpu"]
            for i, node in enumerate(nodes)
            if all(free_amounts[i].get(name, 0) >= value for name, value in amounts.items())
            and free_amounts[i]["pods"] >= 1
            and not ports & free_amounts[i]["ports"]
            and allows(pod, node)
        }
        if not free:
            unplaced += 1
            continue
        target = free_amounts[choose(free)]
        for name, value in amounts.items():
            target[name] -= value
        target["pods"] -= 1
        target["ports"] |= ports
    return unplaced


@pytest.mark.parametrize("choice", CHOICES)
@pytest.mark.parametrize(("node_count", "pod_count"), [(5, 50), (7, 70), (20, 200)])
def test_schedulers_of_any_taste_place_all_pods_but_the_unplaceable(choice, node_count, pod_count):
    for seed in range(2):
        pods = varied_pods(pod_count, seed) + unplaceable_pods()
        # The most demanding pods last is the worst case for the rest.
        limited = sorted(pods, key=lambda pod: "nodeSelector" in pod["spec"] or "affinity" in pod["spec"])
        for order in (pods, limited):
            assert place(order, varied_nodes(node_count, seed), CHOICES[choice]) == 3

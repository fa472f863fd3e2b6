"""Vectors of Karmada's simulator, and a plain first fit to compare with."""

from random import Random

import pytest

from podium.estimator.component_sets import max_available_sets
from podium.estimator.free_capacity import UniformCapacity
from podium.estimator.requirements import MAX_INT32, Component
from tests.builders import node, pod
from tests.unit.estimator.members import assumptions, claim, member, part

GIB = 1 << 30


def _room(*sizes, pods=1000):
    return UniformCapacity([{"cpu": cpu * 1000, "memory": memory * GIB} for cpu, memory in sizes], pods)


@pytest.mark.parametrize(
    ("sizes", "components", "sets"),
    [
        ([(4, 8)], [part(1, "1", "1Gi")], 4),
        ([(4, 8)], [part(2, "1", "1Gi")], 2),
        ([(10, 10)], [part(1, "2", "2Gi"), part(1, "3", "3Gi")], 2),
        ([(6, 6), (6, 6)], [part(2, "3", "3Gi"), part(1, "2", "2Gi")], 1),
        ([(2, 8)], [part(1, "3")], 0),
        ([(4, 8)], [part(2, "1", "2Gi")], 2),
        ([(8, 16)], [part(2, "1", "2Gi"), part(1, "2", "4Gi")], 2),
        ([(2, 8), (2, 8)], [part(3, "1")], 1),
        ([(1, 64), (4, 64), (8, 64)], [part(2, "500m", "1Gi"), part(1, "2", "4Gi")], 4),
        ([(1, 64)] * 4, [part(1, "2")], 0),
    ],
)
def test_whole_sets_fit_first_fit(sizes, components, sets):
    assert max_available_sets(_room(*sizes), components) == sets


def test_answer_stops_at_the_bound():
    assert max_available_sets(_room((1000, 1000)), [part(1, "1")], sets_max=3) == 3


def test_nothing_to_place_fits_without_limit_and_at_once():
    assert max_available_sets(_room((4, 8)), [part(0, "1"), None]) == MAX_INT32


def test_negative_number_of_replicas_never_fits():
    assert max_available_sets(_room((4, 8)), [part(1, "1"), part(-5, "1")]) == 0


def test_component_without_requirements_takes_a_pods_place():
    assert max_available_sets(_room((4, 8), pods=10), [Component(replicas=2)]) == 5


def test_hundreds_of_thousands_of_sets_are_placed_at_once():
    assert (
        max_available_sets(_room(*[(10**6, 10**6)] * 50, pods=10**6), [part(1, "1"), part(2, "1m")]) == 50 * 10**6 // 3
    )


@pytest.mark.parametrize("seed", range(60))
def test_sets_are_those_of_plain_first_fit(seed):
    random = Random(seed)
    sizes = [(random.randint(0, 12), random.randint(0, 12)) for _ in range(random.randint(1, 8))]
    components = [
        part(random.randint(0, 4), str(random.randint(0, 4)), f"{random.randint(0, 4)}Gi")
        for _ in range(random.randint(1, 4))
    ]
    if not any(component.replicas for component in components):
        components.append(part(1, "1", "0Gi"))
    assert max_available_sets(_room(*sizes, pods=9), components) == _plain_first_fit(sizes, 9, components)


def _plain_first_fit(sizes, pods, components):
    free_sizes = [[pods, cpu * 1000, memory * GIB] for cpu, memory in sizes]
    sets = 0
    while True:
        for component in components:
            request = component.replica_requirements.resource_request
            need = [1, int(request["cpu"]) * 1000, int(request["memory"].removesuffix("Gi")) * GIB]
            for _ in range(component.replicas):
                fitting = (
                    free for free in free_sizes if all(have >= want for have, want in zip(free, need, strict=True))
                )
                first_fit = next(fitting, None)
                if first_fit is None:
                    return sets
                first_fit[:] = [have - want for have, want in zip(first_fit, need, strict=True)]
        sets += 1


# ---------------------------------------------------------------- in a cluster


def test_running_pods_count():
    cluster = member(node("n1", cpu="4", memory="8Gi", pods=10), pod(node="n1", cpu="1", memory="2Gi"))
    assert cluster.max_available_component_sets([part(1, "1", "1Gi")]) == 3


def test_component_goes_where_its_claim_lets_it():
    nodes = [node(f"n{index}", cpu="4", labels={"region": region}) for index, region in enumerate(("east", "west"))]
    assert (
        member(*nodes).max_available_component_sets([part(1, "1", claim=claim(node_selector={"region": "west"}))]) == 4
    )


def test_cluster_without_nodes_takes_no_set_and_no_components_are_no_limit():
    assert member().max_available_component_sets([]) == 0
    assert member(node("n1")).max_available_component_sets([]) == MAX_INT32


@pytest.mark.parametrize(
    ("cpu", "on_the_way", "sets"),
    [
        ("4", [assumptions(part(1, "1"))], 3),
        ("6", [assumptions(part(1, "1")), assumptions(part(1, "2"))], 3),
        ("4", [assumptions(part(1, "9"))], 4),
    ],
    ids=["one", "two", "too big"],
)
def test_assumed_workloads_are_placed_first_as_far_as_they_fit(cpu, on_the_way, sets):
    cluster = member(node("n1", cpu=cpu), scheduling_overcommit_protection=True)
    assert cluster.max_available_component_sets([part(1, "1")], "default", on_the_way) == sets

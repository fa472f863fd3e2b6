"""What all plans over one cluster share."""

from __future__ import annotations

from podium.provisioner.provisioning.plan_basis import PlanBasis
from podium.provisioner.provisioning.solve import Solver
from podium.provisioner.state.reading import read_objects
from podium.provisioner.state.settings import Settings
from tests.unit.provisioner.clusters import (
    Document,
    as_pod,
    catalogue,
    daemon_set,
    managed_node,
    node,
    node_claim,
    node_pool,
    pod,
    requirement,
)


def basis(*objects: Document) -> PlanBasis:
    return PlanBasis(read_objects(objects), catalogue(), Settings())


def test_pools_are_tried_by_weight_and_those_without_types_are_skipped() -> None:
    plan_basis = basis(
        node_pool("light", weight=1),
        node_pool("heavy", weight=9),
        node_pool("none", requirements=[requirement("kubernetes.io/arch", "In", "s390x")]),
    )
    assert [template.name for template, _ in plan_basis.templates] == ["heavy", "light"]
    assert list(plan_basis.skipped) == ["none"]


def test_pods_of_a_node_are_those_bound_to_it_even_if_they_have_ended() -> None:
    plan_basis = basis(node("n"), pod("b", node="n"), pod("a", node="n", status={"phase": "Failed"}), pod("waits"))
    (state,) = plan_basis.nodes
    assert [pod.metadata.name for pod in plan_basis.pods_on(state)] == ["a", "b"]
    assert [pod.metadata.name for pod in state.pods] == ["b"]


def test_a_claim_without_a_node_has_no_pods() -> None:
    plan_basis = basis(node_claim())
    assert plan_basis.pods_on(plan_basis.nodes[0]) == ()


def test_room_is_what_pods_and_coming_daemons_leave() -> None:
    plan_basis = basis(node("n", cpu="4"), pod("a", node="n", cpu="1"), daemon_set(cpu="500m"), node_pool())
    room = plan_basis.room(plan_basis.nodes[0])
    assert room.free["cpu"] == 2500
    assert plan_basis.room(plan_basis.nodes[0]) is room


def test_a_pod_without_its_volumes_is_planned_without_constraints() -> None:
    plan_basis = basis(node_pool())
    claim = {"name": "data", "persistentVolumeClaim": {"claimName": "gone"}}
    prepared_pod = plan_basis.prepare(as_pod(pod("a", volumes=[claim])))
    assert not prepared_pod.has_volumes
    assert plan_basis.prepare(as_pod(pod("b"))).has_volumes


def test_one_plan_does_not_change_the_next() -> None:
    plan_basis = basis(node_claim(), managed_node(), node_pool(limits={"cpu": "8"}))
    pods = [as_pod(pod(f"p{index}", cpu="3")) for index in range(3)]

    def plan_sizes() -> tuple[list[int], int, int]:
        results = Solver(plan_basis, nodes=plan_basis.nodes, pods=pods).solve()
        return (
            [len(existing_node.pods) for existing_node in results.existing],
            len(results.claims),
            len(results.refusals),
        )

    assert plan_sizes() == plan_sizes() == ([1], 1, 1)

"""Plans by podium's own rules name the right nodes and pods.

With the planned nodes added, podium places exactly the planned pods, and it needs every one of these nodes.

The test checks every twentieth recorded cluster; `python -m tests.parity.test_placed_plans` checks all of them.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from podium.engine.cluster import Cluster
from podium.provisioner.planners.placed_plans import plan_with_podium
from podium.provisioner.provisioning.plan import NodePlan
from podium.provisioner.provisioning.plan_basis import PlanBasis
from podium.provisioner.reports.cases import SOLVE, Cases, read_settings
from podium.provisioner.state.reading import read_objects, time_of
from tests.parity.plans import rows

_EVERY = 20


def clusters() -> Iterator[tuple[Mapping[str, Any], PlanBasis]]:
    """Yield the recorded clusters in which every node is ready and none is leaving."""
    cases = Cases()
    for row in rows():
        if row.get("kind", SOLVE) != SOLVE:
            continue
        if "id" not in row:
            cases.answer(row)
            continue
        settings = read_settings(row.get("settings") or {})
        basis = PlanBasis(read_objects(row["objects"]), cases.catalogue_of(row), settings)
        if not any(node.is_leaving or (node.claim is not None and not node.is_initialized) for node in basis.nodes):
            yield row, basis


def faults_of(row: Mapping[str, Any], basis: PlanBasis) -> list[str]:
    """Return a message for each statement of the cluster's plan that does not hold."""
    cluster = Cluster.load(row["objects"])
    bound_keys = {pod.key for pod in cluster.pods if pod.node_name}
    plan = plan_with_podium(basis, cluster, time_of(row["now"], "now"))
    planned_keys = {pod.key for pods in (*plan.existing.values(), *(node.pods for node in plan.nodes)) for pod in pods}
    faults = []
    placed_keys = _placed_with(row, plan.nodes) - bound_keys
    if placed_keys != planned_keys:
        faults.append(f"{row['id']}: podium and the plan differ about {sorted(placed_keys ^ planned_keys)}")
    if plan.unschedulable.keys() & placed_keys:
        faults.append(f"{row['id']}: podium places some of the unschedulable {sorted(plan.unschedulable)}")
    for node in plan.nodes:
        other_nodes = [candidate for candidate in plan.nodes if candidate is not node]
        if _placed_with(row, other_nodes) - bound_keys >= planned_keys:
            faults.append(f"{row['id']}: {node.name} is not needed")
    return faults


def _placed_with(row: Mapping[str, Any], planned_nodes: Iterable[NodePlan]) -> set[str]:
    """Return the recorded pods that have a node after podium has scheduled with these nodes added."""
    recorded_names = {manifest["metadata"]["name"] for manifest in row["objects"] if manifest["kind"] == "Pod"}
    nodes = [manifest for node in planned_nodes for manifest in node.node.manifests(node.name)]
    cluster = Cluster.load([*row["objects"], *nodes])
    if cluster.nodes:
        cluster.place_all()
    return {pod.key for pod in cluster.pods if pod.node_name and pod.metadata.name in recorded_names}


def test_podium_places_exactly_the_planned_pods_and_needs_every_planned_node() -> None:
    sample = list(itertools.islice(clusters(), 0, None, _EVERY))
    assert len(sample) > 10
    assert [fault for row, basis in sample for fault in faults_of(row, basis)] == []


if __name__ == "__main__":
    all_faults = [fault for row, basis in clusters() for fault in faults_of(row, basis)]
    sys.exit("\n".join(all_faults) or None)

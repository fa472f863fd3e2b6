"""A plan by podium's own rules is true: just these nodes let podium place just these pods, and all of them are needed.

Asked of every twentieth recorded cluster; `python -m tests.parity.test_placed_plans` asks of all of them.
"""

from __future__ import annotations

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
    """The recorded clusters whose nodes are all ready and stay."""
    cases = Cases()
    for row in rows():
        if row.get("kind", SOLVE) != SOLVE:
            continue
        if "id" not in row:
            cases.answer(row)
            continue
        settings = read_settings(row.get("settings") or {})
        basis = PlanBasis(read_objects(row["objects"]), cases.catalogue_of(row), settings)
        if not any(each.is_leaving or (each.claim is not None and not each.is_initialized) for each in basis.nodes):
            yield row, basis


def untruths(row: Mapping[str, Any], basis: PlanBasis) -> list[str]:
    """What the plan for a cluster says that does not hold."""
    cluster = Cluster.load(row["objects"])
    before = {each.key for each in cluster.pods if each.node_name}
    plan = plan_with_podium(basis, cluster, time_of(row["now"], "now"))
    promised = {pod.key for pods in (*plan.existing.values(), *(node.pods for node in plan.nodes)) for pod in pods}
    found = []
    placed = _placed_with(row, plan.nodes) - before
    if placed != promised:
        found.append(f"{row['id']}: podium places {sorted(placed ^ promised)} otherwise")
    if plan.unschedulable.keys() & placed:
        found.append(f"{row['id']}: not all are pending of {sorted(plan.unschedulable)}")
    for node in plan.nodes:
        others = [other for other in plan.nodes if other is not node]
        if _placed_with(row, others) - before >= promised:
            found.append(f"{row['id']}: {node.name} can be left out")
    return found


def _placed_with(row: Mapping[str, Any], bought: Iterable[NodePlan]) -> set[str]:
    """The pods that have a node once these nodes are there, DaemonSets' pods on them aside."""
    own = {each["metadata"]["name"] for each in row["objects"] if each["kind"] == "Pod"}
    nodes = [manifest for node in bought for manifest in node.node.manifests(node.name)]
    cluster = Cluster.load([*row["objects"], *nodes])
    if cluster.nodes:
        cluster.place_all()
    return {each.key for each in cluster.pods if each.node_name and each.metadata.name in own}


def test_podium_then_places_what_the_plan_says() -> None:
    asked = [each for index, each in enumerate(clusters()) if index % _EVERY == 0]
    assert len(asked) > 10
    assert [each for row, basis in asked for each in untruths(row, basis)] == []


if __name__ == "__main__":
    wrong = [each for row, basis in clusters() for each in untruths(row, basis)]
    sys.exit("\n".join(wrong) or None)

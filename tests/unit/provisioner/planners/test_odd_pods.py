"""Plans by podium's own rules with objects that have no meaning: they stop no other pod."""

from __future__ import annotations

import pytest

from podium.engine.configurations import Configurations
from podium.plugins import IN_TREE
from podium.provisioner.planners.placing_planner import PlacingPlanner
from podium.provisioner.planners.planner import Planner
from podium.provisioner.state.reading import read_objects
from podium.provisioner.state.settings import Settings
from tests.unit.provisioner.clusters import (
    NOW,
    TYPES,
    Document,
    catalogue,
    managed_node,
    node_affinity,
    node_claim,
    node_pool,
    pod,
    requirement,
    spread,
)


def plan(*documents: Document) -> tuple[list[str], dict[str, str]]:
    """The names of the pods that nodes are bought for, and why others stay."""
    config = Configurations(IN_TREE).of(
        {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    )
    karpenter = Planner(catalogue(*TYPES[:2]), Settings(), in_own_words=True)
    planner = PlacingPlanner(karpenter, config, IN_TREE, any_scheduler=True)
    result = planner.plan(read_objects([node_pool(), *documents]), NOW)
    return sorted(pod.metadata.name for node in result.nodes for pod in node.pods), result.reasons


@pytest.mark.parametrize("operator", ["Near", "Gt"])
@pytest.mark.parametrize("spreads", [[], [spread(nodeAffinityPolicy="Honor")]])
def test_a_demand_without_meaning_stops_no_other_pod(operator: str, spreads: list[Document]) -> None:
    affinity = node_affinity(requirement("disk", operator, "abc"))
    odd = pod("odd", affinity=affinity, labels={"app": "web"}, topologySpreadConstraints=spreads)
    bought_for, reasons = plan(odd, pod("web"))
    assert (bought_for, list(reasons)) == (["web"], ["default/odd"])


def test_a_node_and_a_node_claim_of_one_name_that_are_not_of_one_machine_stop_nothing() -> None:
    agent = pod("agent", cpu="100m")
    daemon_set = {
        "kind": "DaemonSet",
        "metadata": {"name": "agent", "namespace": "kube-system", "uid": "agent"},
        "spec": {"template": {"spec": agent["spec"]}},
    }
    documents = (managed_node("n1", machine="one"), node_claim("n1", machine="other"), daemon_set)
    assert plan(*documents, pod("web", cpu="3500m", memory="3Gi"))[0] == []
    assert plan(*documents, *(pod(f"web-{index}", cpu="3", memory="1Gi") for index in range(3)))[0] != []

from __future__ import annotations

from typing import Any

import pytest

from podium.cluster import Snapshot
from podium.cluster.pod_groups import PodGroupState
from podium.framework.contract.status import PluginError
from podium.objects.core import Pod
from podium.objects.resource_types import POD_GROUPS
from podium.plugins.topology_placement_generator import TopologyPlacementGenerator
from tests.builders import node, pod, pod_group, snapshot_of
from tests.unit.plugins.clusters import RecordingHandle

SNAPSHOT = snapshot_of(
    *(node(name, labels={"rack": rack}) for name, rack in (("n1", "a"), ("n2", "b"), ("n3", "a"))), node("bare")
)


def placements(*scheduled: Pod, topology: str = "rack", snapshot: Snapshot = SNAPSHOT) -> Any:
    """The placements as node names, or the message."""
    groups = [pod_group("gang", topology=topology)]
    plugin = TopologyPlacementGenerator(None, RecordingHandle(objects={POD_GROUPS: groups}))
    state = PodGroupState(assigned={pod.uid: pod for pod in scheduled})
    placement_list, status = plugin.generate_placements("default/gang", state, snapshot)
    return (
        status.message
        if status
        else {placement.name: [snapshot.name(row) for row in placement.rows] for placement in placement_list}
    )


def test_every_domain_is_a_placement_and_nodes_without_the_label_are_in_none() -> None:
    assert placements() == {"a": ["n1", "n3"], "b": ["n2"]}


def test_a_group_without_a_topology_may_use_all_nodes() -> None:
    assert placements(topology="") == {"": ["n1", "n2", "n3", "bare"]}


def test_running_pods_decide_the_domain() -> None:
    assert placements(pod(node="n3")) == {"a": ["n1", "n3"]}
    assert placements(pod("a", node="n1"), pod("b", node="n3")) == {"a": ["n1", "n3"]}


@pytest.mark.parametrize(
    ("scheduled", "problem"),
    [
        ([pod("x", node="n1"), pod("y", node="n2")], "more than 1 domain found for pod group: a, b"),
        ([pod("x", node="bare")], "no topology domain found for pod default/x"),
        ([pod("x", node="gone")], 'getting node for pod default/x: nodeinfo not found for node name "gone"'),
    ],
)
def test_running_pods_without_one_common_domain_are_an_error(scheduled: list[Pod], problem: str) -> None:
    assert placements(*scheduled) == f"cannot determine domain for already scheduled pods: {problem}"


def test_a_group_that_is_gone_is_an_error() -> None:
    plugin = TopologyPlacementGenerator(None, RecordingHandle())
    _, status = plugin.generate_placements("default/gang", PodGroupState(), SNAPSHOT)
    assert status is not None
    assert status.message == 'podgroup.scheduling.k8s.io "gang" not found'


def test_without_the_feature_gate_the_plugin_is_refused() -> None:
    handle = RecordingHandle()
    handle.pod_groups = None  # type: ignore[assignment]
    with pytest.raises(PluginError, match="GenericWorkload"):
        TopologyPlacementGenerator(None, handle)

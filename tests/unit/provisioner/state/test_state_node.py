"""Nodes as Nodes and NodeClaims together describe them."""

from __future__ import annotations

from podium.provisioner.state.reading import read_objects
from podium.provisioner.state.state_node import StateNode, leaving, state_nodes
from tests.unit.provisioner.clusters import ZONE, Document, managed_node, node, node_claim, owned_by, pod

STARTUP = {"key": "example.com/agent", "effect": "NoSchedule"}
NOT_READY = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}
OWN = {"key": "gpu", "value": "a", "effect": "NoSchedule"}


def nodes(*objects: Document) -> tuple[StateNode, ...]:
    return state_nodes(read_objects(objects))


def test_a_node_without_claim_speaks_for_itself() -> None:
    (state_node,) = nodes(node("n", taints=[NOT_READY], zone="zone-1"))
    assert (state_node.name, state_node.is_registered, state_node.is_initialized) == ("n", True, True)
    assert [taint.key for taint in state_node.taints] == ["node.kubernetes.io/not-ready"]
    assert state_node.labels[ZONE] == "zone-1"


def test_a_claim_speaks_until_its_node_is_registered() -> None:
    (alone,) = nodes(node_claim())
    assert (alone.name, alone.hostname, alone.is_registered) == ("claim-1", "claim-1", False)
    assert alone.allocatable["cpu"] == 4000
    unregistered = managed_node()
    unregistered["metadata"]["labels"]["karpenter.sh/registered"] = "false"
    (state_node,) = nodes(node_claim(), unregistered)
    assert state_node.name == "claim-1"
    (registered,) = nodes(node_claim(), managed_node())
    assert (registered.name, registered.hostname) == ("node-1", "node-1")


def test_passing_taints_do_not_count_until_the_node_is_initialised() -> None:
    claim = node_claim()
    claim["spec"] = {"startupTaints": [STARTUP]}
    taints = [STARTUP, NOT_READY, OWN, {"key": "readiness.k8s.io/net", "effect": "NoSchedule"}]
    (state_node,) = nodes(claim, managed_node(initialized=False, taints=taints))
    assert [taint.key for taint in state_node.taints] == ["gpu"]
    (state_node,) = nodes(claim, managed_node(taints=taints))
    assert len(state_node.taints) == 4


def test_the_claim_fills_in_what_the_node_does_not_know_yet() -> None:
    bare = managed_node(initialized=False)
    bare["status"] = {"allocatable": {"cpu": "0"}, "capacity": {}}
    (state_node,) = nodes(node_claim(cpu="8"), bare)
    assert (state_node.allocatable["cpu"], state_node.capacity["cpu"], state_node.capacity["nodes"]) == (8000, 8000, 1)


def test_pods_take_of_their_node_until_they_end() -> None:
    finished_pod = pod("c", node="node-1", status={"phase": "Succeeded"})
    daemon = pod("b", node="node-1", metadata=owned_by("DaemonSet", "agent"))
    (state_node,) = nodes(node(cpu="4"), pod("a", node="node-1"), daemon, finished_pod)
    assert (state_node.available["cpu"], state_node.available["pods"]) == (2000, 108)
    assert state_node.daemon_requests["cpu"] == 1000


def test_a_managed_node_that_is_not_known_yet_is_no_node() -> None:
    nameless = managed_node(machine="")
    typeless = managed_node(initialized=False)
    del typeless["metadata"]["labels"]["node.kubernetes.io/instance-type"]
    typeless["metadata"]["labels"]["karpenter.sh/initialized"] = ""
    assert nodes(nameless) == nodes(typeless) == nodes(node_claim(machine="")) == ()


def test_a_node_leaves_with_its_claim() -> None:
    deletion = {"deletionTimestamp": "2026-05-01T00:00:00Z"}
    assert len(leaving(nodes(node_claim(**deletion), managed_node()))) == 1
    terminating = node_claim()
    terminating["status"]["conditions"] = [{"type": "InstanceTerminating", "status": "True"}]
    assert len(leaving(nodes(terminating, managed_node()))) == 1
    unmanaged = node()
    unmanaged["metadata"].update(deletion)
    assert len(leaving(nodes(unmanaged))) == 1
    assert leaving(nodes(node_claim(), managed_node())) == ()

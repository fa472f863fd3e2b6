"""Nodes as Nodes and NodeClaims together describe them."""

from __future__ import annotations

from podium.provisioner.state.reading import read_objects
from podium.provisioner.state.state_node import StateNode, leaving, state_nodes
from tests.unit.provisioner.clusters import ZONE, Document, managed, node, node_claim, owned_by, pod

STARTUP = {"key": "example.com/agent", "effect": "NoSchedule"}
NOT_READY = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}
OWN = {"key": "gpu", "value": "a", "effect": "NoSchedule"}


def nodes(*objects: Document) -> tuple[StateNode, ...]:
    return state_nodes(read_objects(objects))


def test_a_node_without_claim_speaks_for_itself() -> None:
    (found,) = nodes(node("n", taints=[NOT_READY], zone="zone-1"))
    assert (found.name, found.is_registered, found.is_initialized) == ("n", True, True)
    assert [taint.key for taint in found.taints] == ["node.kubernetes.io/not-ready"]
    assert found.labels[ZONE] == "zone-1"


def test_a_claim_speaks_until_its_node_is_registered() -> None:
    (alone,) = nodes(node_claim())
    assert (alone.name, alone.hostname, alone.is_registered) == ("claim-1", "claim-1", False)
    assert alone.allocatable["cpu"] == 4000
    unregistered = managed()
    unregistered["metadata"]["labels"]["karpenter.sh/registered"] = "false"
    (joined,) = nodes(node_claim(), unregistered)
    assert joined.name == "claim-1"
    (registered,) = nodes(node_claim(), managed())
    assert (registered.name, registered.hostname) == ("node-1", "node-1")


def test_passing_taints_do_not_count_until_the_node_is_initialised() -> None:
    claim = node_claim()
    claim["spec"] = {"startupTaints": [STARTUP]}
    taints = [STARTUP, NOT_READY, OWN, {"key": "readiness.k8s.io/net", "effect": "NoSchedule"}]
    (found,) = nodes(claim, managed(initialized=False, taints=taints))
    assert [taint.key for taint in found.taints] == ["gpu"]
    (found,) = nodes(claim, managed(taints=taints))
    assert len(found.taints) == 4


def test_the_claim_fills_in_what_the_node_does_not_know_yet() -> None:
    bare = managed(initialized=False)
    bare["status"] = {"allocatable": {"cpu": "0"}, "capacity": {}}
    (found,) = nodes(node_claim(cpu="8"), bare)
    assert (found.allocatable["cpu"], found.capacity["cpu"], found.capacity["nodes"]) == (8000, 8000, 1)


def test_pods_take_of_their_node_until_they_end() -> None:
    ended = pod("c", node="node-1", status={"phase": "Succeeded"})
    daemon = pod("b", node="node-1", metadata=owned_by("DaemonSet", "agent"))
    (found,) = nodes(node(cpu="4"), pod("a", node="node-1"), daemon, ended)
    assert (found.available["cpu"], found.available["pods"]) == (2000, 108)
    assert found.daemon_requests["cpu"] == 1000


def test_a_managed_node_that_is_not_known_yet_is_no_node() -> None:
    nameless = managed(machine="")
    typeless = managed(initialized=False)
    del typeless["metadata"]["labels"]["node.kubernetes.io/instance-type"]
    typeless["metadata"]["labels"]["karpenter.sh/initialized"] = ""
    assert nodes(nameless) == nodes(typeless) == nodes(node_claim(machine="")) == ()


def test_a_node_leaves_with_its_claim() -> None:
    gone = {"deletionTimestamp": "2026-05-01T00:00:00Z"}
    assert len(leaving(nodes(node_claim(**gone), managed()))) == 1
    terminating = node_claim()
    terminating["status"]["conditions"] = [{"type": "InstanceTerminating", "status": "True"}]
    assert len(leaving(nodes(terminating, managed()))) == 1
    unmanaged = node()
    unmanaged["metadata"].update(gone)
    assert len(leaving(nodes(unmanaged))) == 1
    assert leaving(nodes(node_claim(), managed())) == ()

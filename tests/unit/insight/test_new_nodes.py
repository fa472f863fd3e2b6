from podium.insight import Cluster
from podium.insight.new_nodes import daemons_alike, devices_alike, without_daemons
from podium.insight.steps import AddNodes, carry_out_steps
from podium.insight.what_if import outcome_of
from podium.objects.requests import node_allocatable
from tests import builders
from tests.device_manifests import claiming, device_class, devices, exactly, resource_claim, resource_slice
from tests.manifests import node, pod
from tests.workload_manifests import SCHEDULER, with_owner, workload


def _allocatable(cluster, new):
    (like,) = cluster.nodes
    amounts, pods = node_allocatable(without_daemons(cluster, new, like))
    return amounts["cpu"], pods


def _agent(name="agent-x", of="agent"):
    return with_owner(pod(name, "1500m", node="n1", scheduler=SCHEDULER), "DaemonSet", of)


def test_known_daemons_leave_less_of_a_new_node():
    daemon_set = workload("DaemonSet", "agent", cpu="500m")
    assert _allocatable(Cluster.load([node("n1"), daemon_set]), builders.node("new", cpu="4")) == (3500, 109)


def test_daemons_that_do_not_select_the_new_node_leave_all_of_it():
    daemon_set = workload("DaemonSet", "agent", pod_spec={"nodeSelector": {"disk": "ssd"}})
    cluster = Cluster.load([node("n1"), daemon_set])
    assert _allocatable(cluster, builders.node("new", cpu="4")) == (4000, 110)
    assert _allocatable(cluster, builders.node("new", cpu="4", labels={"disk": "ssd"})) == (3000, 109)


def test_daemons_of_unknown_daemon_sets_run_as_on_the_node_that_it_is_like():
    new = builders.node("new", cpu="4")
    assert _allocatable(Cluster.load([node("n1"), _agent()]), new) == (2500, 109)
    assert _allocatable(Cluster.load([node("n1"), with_owner(pod("web-x", node="n1"), "ReplicaSet", "web")]), new) == (
        4000,
        110,
    )


def test_a_daemon_whose_daemon_set_is_known_counts_once():
    cluster = Cluster.load([node("n1"), _agent(), workload("DaemonSet", "agent", cpu="500m")])
    assert _allocatable(cluster, builders.node("new", cpu="4")) == (3500, 109)


def test_daemons_never_leave_less_than_nothing():
    cluster = Cluster.load([node("n1"), workload("DaemonSet", "agent", cpu="9")])
    assert _allocatable(cluster, builders.node("new", cpu="4", pods=0)) == (0, 0)


def test_daemons_for_a_new_node_may_run_on_that_only():
    cluster = Cluster.load([node("n1"), _agent(), pod("bare", node="n1")])
    (like,) = cluster.nodes
    (daemon,) = daemons_alike(cluster, "new", like)
    assert (daemon.metadata.name, daemon.node_name) == ("agent-x-new", "")
    for name in ("other", "new"):
        cluster.add(node(name))
    assert cluster.evaluate(daemon).node == "new"
    cluster.remove("Node", "new")
    assert cluster.evaluate(daemon).node is None


def _gpus(node_name):
    return resource_slice(f"gpus-{node_name}", devices(2), node=node_name)


def test_a_new_node_has_the_devices_of_the_one_that_it_is_like():
    cluster = Cluster.load([node("n1"), node("n2"), _gpus("n1"), resource_slice("shared", devices(1))])
    (manifest,) = devices_alike(cluster, "new", cluster.nodes[0])
    assert (manifest["spec"]["nodeName"], len(manifest["spec"]["devices"])) == ("new", 2)
    assert manifest["spec"]["pool"]["name"] != "n1"
    assert [*devices_alike(cluster, "new", cluster.nodes[1])] == []


def _claiming(name):
    return pod(name, scheduler=SCHEDULER, resourceClaims=claiming(name))


def _full_cluster():
    """One node with two devices, both of which another pod has."""
    claims = [resource_claim(name, exactly(count=2)) for name in ("old", "new")]
    cluster = Cluster.load([node("n1"), _gpus("n1"), device_class(), *claims])
    assert cluster.place(_claiming("old")).node == "n1"
    return cluster


def test_adding_a_node_is_a_fix_for_a_pod_that_lacks_devices():
    fixes = _full_cluster().fixes(_claiming("new"), most=50)
    texts = [[edit.text for edit in fix.edits] for fix in fixes.fixes]
    assert ["add a node like n1"] in texts


def test_devices_count_on_nodes_that_a_question_adds():
    cluster = _full_cluster()
    cluster.put_pending(cluster.read_pod(_claiming("new")))
    outcome = outcome_of(carry_out_steps(cluster, [AddNodes(1, "n1")]))
    assert [(move.pod, move.after) for move in outcome.placed] == [("default/new", "n1-like-1")]
    assert not outcome.pending

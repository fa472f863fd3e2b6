import pytest

from podium.engine.derivation.daemon_nodes import DaemonNodes
from tests.builders import node
from tests.workload_manifests import workload

TOLERATION = [{"key": "team", "operator": "Exists"}]


def _node_names(*nodes, **spec):
    return [new_pod.name for new_pod in DaemonNodes(workload("DaemonSet", pod_spec=spec)).for_new_pods(nodes)]


def test_a_daemon_runs_on_all_nodes_that_it_tolerates():
    nodes = node("plain"), node("tainted", taints=["team=a:NoSchedule"]), node("draining", taints=["team=a:NoExecute"])
    assert _node_names(*nodes) == ["plain"]
    assert _node_names(*nodes, tolerations=TOLERATION) == ["plain", "tainted", "draining"]
    assert _node_names(node("soft", taints=["team=a:PreferNoSchedule"])) == ["soft"]


@pytest.mark.parametrize(
    "key", ["unschedulable", "not-ready", "unreachable", "disk-pressure", "memory-pressure", "pid-pressure"]
)
def test_node_condition_taints_do_not_keep_daemons_off(key):
    effect = "NoExecute" if key in ("not-ready", "unreachable") else "NoSchedule"
    assert _node_names(node("n1", taints=[f"node.kubernetes.io/{key}:{effect}"])) == ["n1"]


def test_only_a_daemon_of_the_hosts_network_runs_without_a_network():
    lonely = node("n1", taints=["node.kubernetes.io/network-unavailable:NoSchedule"])
    assert _node_names(lonely) == []
    assert _node_names(lonely, hostNetwork=True) == ["n1"]


def test_node_name_selector_and_affinity_select_the_nodes():
    nodes = node("n1", labels={"disk": "ssd"}), node("n2", labels={"disk": "hdd"}), node("n3")
    assert _node_names(*nodes, nodeName="n2") == ["n2"]
    assert _node_names(*nodes, nodeSelector={"disk": "ssd"}) == ["n1"]
    term = {"matchExpressions": [{"key": "disk", "operator": "NotIn", "values": ["ssd"]}]}
    affinity = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    assert _node_names(*nodes, affinity={"nodeAffinity": affinity}) == ["n2", "n3"]


def test_a_daemon_stays_on_a_node_with_a_new_no_schedule_taint_but_not_no_execute():
    daemons = DaemonNodes(workload("DaemonSet"))
    nodes = node("tainted", taints=["team=a:NoSchedule"]), node("draining", taints=["team=a:NoExecute"])
    assert [existing_pod.name for existing_pod in daemons.for_existing_pods(nodes)] == ["tainted"]
    assert daemons.for_new_pods(nodes) == []

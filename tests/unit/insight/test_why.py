from podium.insight import Cluster
from tests.manifests import HOSTNAME, node, pod

SCHEDULER = "default-scheduler"
TAINT = {"key": "team", "value": "a", "effect": "NoSchedule"}


def web(name="web", cpu="1", **more):
    return pod(name, cpu, scheduler=SCHEDULER, **more)


def blockers(found):
    return {name: [(each.plugin, each.text) for each in blocker] for name, blocker in found.blockers.items()}


def test_every_blocker_of_a_node_is_named_not_only_the_first():
    bad = node("n1", "1", unschedulable=True, taints=[TAINT])
    found = Cluster.load([bad]).why(web(cpu="2", nodeSelector={"disk": "ssd"}))
    assert blockers(found)["n1"] == [
        ("NodeUnschedulable", "node(s) were unschedulable"),
        ("TaintToleration", "node(s) had untolerated taint(s) (team=a:NoSchedule)"),
        ("NodeAffinity", "node(s) didn't match Pod's node affinity/selector (disk=ssd)"),
        ("NodeResourcesFit", "Insufficient cpu"),
    ]
    assert found.blockers["n1"][-1].detail == "asks for 2 cpu, 1 left"
    assert found.one_edit_away == ()


def test_nodes_are_grouped_by_what_keeps_the_pod_off():
    nodes = [node(f"n{index}", "1", taints=[TAINT] if index else []) for index in range(5)]
    found = Cluster.load(nodes).why(web(cpu="2"))
    assert [(group.plugin, len(group.nodes), group.examples) for group in found.groups] == [
        ("NodeResourcesFit", 5, ("n0", "n1", "n2")),
        ("TaintToleration", 4, ("n1", "n2", "n3")),
    ]
    assert found.one_edit_away == ("n0",)


def test_a_pre_filter_that_rejects_the_pod_keeps_it_off_all_nodes():
    claim = [{"name": "data", "persistentVolumeClaim": {"claimName": "missing"}}]
    found = Cluster.load([node("n1"), node("n2", unschedulable=True)]).why(web(volumes=claim))
    assert 'persistentvolumeclaim "missing" not found' in dict(blockers(found)["n1"]).values()
    assert ("NodeUnschedulable", "node(s) were unschedulable") in blockers(found)["n2"]


def test_pods_nominated_to_a_node_count_there():
    first = web("first", "4", priority=10, status={"nominatedNodeName": "n1"})
    found = Cluster.load([node("n1", "4"), first]).why(web(cpu="2"))
    assert blockers(found)["n1"] == [("NodeResourcesFit", "Insufficient cpu")]


def test_a_node_outside_the_prefilter_nodes_has_that_blocker():
    terms = [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n2"]}]}]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    found = Cluster.load([node("n1"), node("n2")]).why(web(affinity={"nodeAffinity": required}))
    assert (found.node, list(found.blockers)) == ("n2", ["n1"])
    assert found.verdict == "n2 is the only node that fits"


def test_scores_say_why_the_winner_won():
    found = Cluster.load([node("n1", "2"), node("n2", "8")]).why(web())
    assert [score.node for score in found.scores] == ["n2", "n1"]
    first, second = found.scores
    assert first.total == sum(first.plugins.values())
    gain = first.plugins["NodeResourcesFit"] - second.plugins["NodeResourcesFit"]
    assert found.verdict.startswith(f"n2 beats n1 by {first.total - second.total}: ")
    assert f"NodeResourcesFit +{gain}" in found.verdict
    assert (found.preemption, found.message) == ("", "")


def test_equal_scores_are_named_as_a_tie():
    found = Cluster.load([node("n1"), node("n2")]).why(web())
    assert "have the same score; the tie was broken in favour of" in found.verdict


def test_a_bound_pod_is_asked_about_as_if_it_were_pending():
    cluster = Cluster.load([node("n1", "1"), node("n2", "8", unschedulable=True), web(node="n1")])
    (bound,) = cluster.pods
    found = cluster.why(bound, "n2")
    assert (found.bound_to, found.node, found.asked) == ("n1", "n1", "n2")
    assert list(found.blockers) == ["n2"]
    assert [pod.node_name for pod in cluster.pods] == ["n1"]


def test_preemption_verdict_names_node_and_victims():
    cluster = Cluster.load([node("n1", "1"), web("low", node="n1")])
    found = cluster.why(web("high", priority=5))
    assert found.preemption == "Preemption would make room on n1 by evicting default/low"
    assert found.as_dict()["victims"] == ["default/low"]
    assert Cluster.load([node("n1", "1")]).why(web(cpu="9")).preemption.startswith("Preemption does not help: ")


def test_json_answer_has_every_part():
    found = Cluster.load([node("n1", "1"), node("n2", "4")]).why(web(cpu="2", nodeSelector={HOSTNAME: "n1"})).as_dict()
    assert found["blockers"]["n1"][0]["detail"] == "asks for 2 cpu, 1 left"
    assert found["groups"][0]["examples"]
    assert (found["node"], found["nodes"], found["one_edit_away"]) == (None, 2, ["n1", "n2"])
    assert found["message"].startswith("0/2 nodes are available")

from podium.insight import Cluster
from tests.manifests import HOSTNAME, node, pod

SCHEDULER = "default-scheduler"
TAINT = {"key": "team", "value": "a", "effect": "NoSchedule"}


def web(name="web", cpu="1", **fields):
    return pod(name, cpu, scheduler=SCHEDULER, **fields)


def blockers(answer):
    return {name: [(reason.plugin, reason.text) for reason in blocker] for name, blocker in answer.blockers.items()}


def test_every_blocker_of_a_node_is_named_not_only_the_first():
    bad = node("n1", "1", unschedulable=True, taints=[TAINT])
    answer = Cluster.load([bad]).why(web(cpu="2", nodeSelector={"disk": "ssd"}))
    assert blockers(answer)["n1"] == [
        ("NodeUnschedulable", "node(s) were unschedulable"),
        ("TaintToleration", "node(s) had untolerated taint(s) (team=a:NoSchedule)"),
        ("NodeAffinity", "node(s) didn't match Pod's node affinity/selector (disk=ssd)"),
        ("NodeResourcesFit", "Insufficient cpu"),
    ]
    assert answer.blockers["n1"][-1].detail == "asks for 2 cpu, 1 left"
    assert answer.one_edit_away == ()


def test_nodes_are_grouped_by_what_keeps_the_pod_off():
    nodes = [node(f"n{index}", "1", taints=[TAINT] if index else []) for index in range(5)]
    answer = Cluster.load(nodes).why(web(cpu="2"))
    assert [(group.plugin, len(group.nodes), group.examples) for group in answer.groups] == [
        ("NodeResourcesFit", 5, ("n0", "n1", "n2")),
        ("TaintToleration", 4, ("n1", "n2", "n3")),
    ]
    assert answer.one_edit_away == ("n0",)


def test_a_pre_filter_that_rejects_the_pod_keeps_it_off_all_nodes():
    claim = [{"name": "data", "persistentVolumeClaim": {"claimName": "missing"}}]
    answer = Cluster.load([node("n1"), node("n2", unschedulable=True)]).why(web(volumes=claim))
    assert 'persistentvolumeclaim "missing" not found' in dict(blockers(answer)["n1"]).values()
    assert ("NodeUnschedulable", "node(s) were unschedulable") in blockers(answer)["n2"]


def test_pods_nominated_to_a_node_count_there():
    first = web("first", "4", priority=10, status={"nominatedNodeName": "n1"})
    answer = Cluster.load([node("n1", "4"), first]).why(web(cpu="2"))
    assert blockers(answer)["n1"] == [("NodeResourcesFit", "Insufficient cpu")]


def test_a_node_outside_the_prefilter_nodes_has_that_blocker():
    terms = [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n2"]}]}]
    requirement = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    answer = Cluster.load([node("n1"), node("n2")]).why(web(affinity={"nodeAffinity": requirement}))
    assert (answer.node, list(answer.blockers)) == ("n2", ["n1"])
    assert answer.verdict == "n2 is the only node that fits"


def test_scores_say_why_the_winner_won():
    answer = Cluster.load([node("n1", "2"), node("n2", "8")]).why(web())
    assert [score.node for score in answer.scores] == ["n2", "n1"]
    first, second = answer.scores
    assert first.total == sum(first.plugins.values())
    gain = first.plugins["NodeResourcesFit"] - second.plugins["NodeResourcesFit"]
    assert answer.verdict.startswith(f"n2 beats n1 by {first.total - second.total}: ")
    assert f"NodeResourcesFit +{gain}" in answer.verdict
    assert (answer.preemption, answer.message) == ("", "")


def test_equal_scores_are_named_as_a_tie():
    answer = Cluster.load([node("n1"), node("n2")]).why(web())
    assert "have the same score; the tie was broken in favour of" in answer.verdict


def test_a_bound_pod_is_asked_about_as_if_it_were_pending():
    cluster = Cluster.load([node("n1", "1"), node("n2", "8", unschedulable=True), web(node="n1")])
    (bound_pod,) = cluster.pods
    answer = cluster.why(bound_pod, "n2")
    assert (answer.bound_to, answer.node, answer.asked) == ("n1", "n1", "n2")
    assert list(answer.blockers) == ["n2"]
    assert [pod.node_name for pod in cluster.pods] == ["n1"]


def test_preemption_verdict_names_node_and_victims():
    cluster = Cluster.load([node("n1", "1"), web("low", node="n1")])
    answer = cluster.why(web("high", priority=5))
    assert answer.preemption == "Preemption would make room on n1 by evicting default/low"
    assert answer.as_dict()["victims"] == ["default/low"]
    assert Cluster.load([node("n1", "1")]).why(web(cpu="9")).preemption.startswith("Preemption does not help: ")


def test_json_answer_has_every_part():
    answer = Cluster.load([node("n1", "1"), node("n2", "4")]).why(web(cpu="2", nodeSelector={HOSTNAME: "n1"})).as_dict()
    assert answer["blockers"]["n1"][0]["detail"] == "asks for 2 cpu, 1 left"
    assert answer["groups"][0]["examples"]
    assert (answer["node"], answer["nodes"], answer["one_edit_away"]) == (None, 2, ["n1", "n2"])
    assert answer["message"].startswith("0/2 nodes are available")

from podium.engine.cluster import Cluster
from podium.recording.shadow.comparison import Comparison, Verdict, compare
from tests.manifests import node, nodes, pod

SCHEDULER = "default-scheduler"
TAINT = {"key": "team", "value": "a", "effect": "NoSchedule"}


def web(name="web", cpu="1", **more):
    return pod(name, cpu, scheduler=SCHEDULER, **more)


def compared(objects, chosen, asked=None, percentage=0) -> Comparison:
    cluster = Cluster.load(objects)
    read = cluster.read_pod(asked or web())
    return compare(cluster.evaluate(read), read, chosen, percentage)


def test_the_node_that_podium_would_choose_is_the_same_node():
    found = compared([node("n1", "16"), node("n2", "2")], "n1")
    assert (found.verdict, found.choice, found.gap) == (Verdict.SAME_NODE, "n1", 0)
    assert found.verdict.agrees


def test_another_node_of_the_top_score_is_as_good():
    found = {chosen: compared(nodes(3), chosen).verdict for chosen in ("node-0", "node-1", "node-2")}
    assert sorted(each.value for each in found.values()) == ["same node", "same score", "same score"]


def test_a_lower_score_says_by_how_much_and_by_which_plugin():
    labelled = [node("n1", labels={"disk": "ssd"}), node("n2")]
    preference = {"matchExpressions": [{"key": "disk", "operator": "In", "values": ["ssd"]}]}
    preferred = {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "preference": preference}]}
    found = compared(labelled, "n2", web(affinity={"nodeAffinity": preferred}))
    assert (found.verdict, found.choice, found.plugin) == (Verdict.LOWER_SCORE, "n1", "NodeAffinity")
    assert found.gap == 200
    assert dict(found.by_plugin) == {"NodeAffinity": 200}
    assert (found.feasible, found.better, found.may_be_sampled) == (2, 1, False)
    assert not found.verdict.agrees


def test_a_node_that_a_filter_rejects_is_refused_by_its_plugin():
    found = compared([node("n1"), node("n2", taints=[TAINT])], "n2")
    assert (found.verdict, found.plugin) == (Verdict.REFUSED, "TaintToleration")
    assert found.reasons == ("node(s) had untolerated taint(s)",)
    assert found.choice == "n1"


def test_a_node_is_refused_where_the_pod_fits_nowhere():
    found = compared([node("n1", "1"), node("n2", "1")], "n2", web(cpu="4"))
    assert (found.verdict, found.plugin, found.choice) == (Verdict.REFUSED, "NodeResourcesFit", None)


def test_a_node_is_refused_where_a_pre_filter_rejects_the_pod():
    claim = [{"name": "data", "persistentVolumeClaim": {"claimName": "missing"}}]
    found = compared([node("n1")], "n1", web(volumes=claim))
    assert (found.verdict, found.reasons) == (Verdict.REFUSED, ('persistentvolumeclaim "missing" not found',))


def test_unknown_node_is_refused():
    found = compared([node("n1")], "n9")
    assert (found.verdict, found.reasons) == (Verdict.REFUSED, ("the node was not known",))


def test_the_node_of_a_daemon_set_pod_is_the_same_node():
    terms = [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n2"]}]}]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    asked = web(affinity={"nodeAffinity": required})
    assert compared([node("n1"), node("n2")], "n2", asked).verdict is Verdict.SAME_NODE
    assert compared([node("n1"), node("n2")], "n1", asked).verdict is Verdict.REFUSED


def test_the_node_that_a_pod_is_nominated_to_is_the_same_node_whatever_its_score():
    asked = web(status={"nominatedNodeName": "n2"})
    assert compared([node("n1", "16"), node("n2", "2")], "n2", asked).verdict is Verdict.SAME_NODE


def test_a_sample_of_the_nodes_may_miss_the_better_ones():
    better = [node(f"big-{each:03}", "32") for each in range(20)]
    others = [node(f"small-{each:03}", "16") for each in range(130)]
    found = compared([*better, *others], "small-000", web(cpu="4"), percentage=60)
    assert (found.verdict, found.better, found.feasible) == (Verdict.LOWER_SCORE, 20, 150)
    assert found.may_be_sampled
    # 135 of 150 nodes cannot leave out 20, and neither can all of them.
    assert not compared([*better, *others], "small-000", web(cpu="4"), percentage=90).may_be_sampled
    assert not compared([*better, *others], "small-000", web(cpu="4"), percentage=100).may_be_sampled


def test_json_leaves_out_what_says_nothing():
    found = compared([node("n1", "16"), node("n2", "2")], "n1").to_json()
    assert found.keys() == {"chosen", "verdict", "podium", "score", "podium_score", "feasible_nodes"}

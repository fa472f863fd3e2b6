from podium.engine.cluster import Cluster
from podium.recording.shadow.comparison import Comparison, Verdict, compare
from tests.manifests import node, nodes, pod

SCHEDULER = "default-scheduler"
TAINT = {"key": "team", "value": "a", "effect": "NoSchedule"}


def web(name="web", cpu="1", **fields):
    return pod(name, cpu, scheduler=SCHEDULER, **fields)


def compare_choice(objects, choice, pending_pod=None, percentage=0) -> Comparison:
    cluster = Cluster.load(objects)
    read = cluster.read_pod(pending_pod or web())
    return compare(cluster.evaluate(read), read, choice, percentage)


def test_the_node_that_podium_would_choose_is_the_same_node():
    comparison = compare_choice([node("n1", "16"), node("n2", "2")], "n1")
    assert (comparison.verdict, comparison.choice, comparison.gap) == (Verdict.SAME_NODE, "n1", 0)
    assert comparison.verdict.agrees


def test_another_node_of_the_top_score_is_as_good():
    verdicts = {choice: compare_choice(nodes(3), choice).verdict for choice in ("node-0", "node-1", "node-2")}
    assert sorted(verdict.value for verdict in verdicts.values()) == ["same node", "same score", "same score"]


def test_a_lower_score_says_by_how_much_and_by_which_plugin():
    nodes_with_label = [node("n1", labels={"disk": "ssd"}), node("n2")]
    preference = {"matchExpressions": [{"key": "disk", "operator": "In", "values": ["ssd"]}]}
    affinity = {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "preference": preference}]}
    comparison = compare_choice(nodes_with_label, "n2", web(affinity={"nodeAffinity": affinity}))
    assert (comparison.verdict, comparison.choice, comparison.plugin) == (Verdict.LOWER_SCORE, "n1", "NodeAffinity")
    assert comparison.gap == 200
    assert dict(comparison.by_plugin) == {"NodeAffinity": 200}
    assert (comparison.feasible, comparison.better, comparison.may_be_sampled) == (2, 1, False)
    assert not comparison.verdict.agrees


def test_a_node_that_a_filter_rejects_is_refused_by_its_plugin():
    comparison = compare_choice([node("n1"), node("n2", taints=[TAINT])], "n2")
    assert (comparison.verdict, comparison.plugin) == (Verdict.REFUSED, "TaintToleration")
    assert comparison.reasons == ("node(s) had untolerated taint(s)",)
    assert comparison.choice == "n1"


def test_a_node_is_refused_where_the_pod_fits_nowhere():
    comparison = compare_choice([node("n1", "1"), node("n2", "1")], "n2", web(cpu="4"))
    assert (comparison.verdict, comparison.plugin, comparison.choice) == (Verdict.REFUSED, "NodeResourcesFit", None)


def test_a_node_is_refused_where_a_pre_filter_rejects_the_pod():
    claim = [{"name": "data", "persistentVolumeClaim": {"claimName": "missing"}}]
    comparison = compare_choice([node("n1")], "n1", web(volumes=claim))
    assert (comparison.verdict, comparison.reasons) == (Verdict.REFUSED, ('persistentvolumeclaim "missing" not found',))


def test_unknown_node_is_refused():
    comparison = compare_choice([node("n1")], "n9")
    assert (comparison.verdict, comparison.reasons) == (Verdict.REFUSED, ("the node was not known",))


def test_the_node_of_a_daemon_set_pod_is_the_same_node():
    terms = [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n2"]}]}]
    requirement = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    pending_pod = web(affinity={"nodeAffinity": requirement})
    assert compare_choice([node("n1"), node("n2")], "n2", pending_pod).verdict is Verdict.SAME_NODE
    assert compare_choice([node("n1"), node("n2")], "n1", pending_pod).verdict is Verdict.REFUSED


def test_the_node_that_a_pod_is_nominated_to_is_the_same_node_whatever_its_score():
    pending_pod = web(status={"nominatedNodeName": "n2"})
    assert compare_choice([node("n1", "16"), node("n2", "2")], "n2", pending_pod).verdict is Verdict.SAME_NODE


def test_a_sample_of_the_nodes_may_miss_the_better_ones():
    better = [node(f"big-{number:03}", "32") for number in range(20)]
    small_nodes = [node(f"small-{number:03}", "16") for number in range(130)]
    comparison = compare_choice([*better, *small_nodes], "small-000", web(cpu="4"), percentage=60)
    assert (comparison.verdict, comparison.better, comparison.feasible) == (Verdict.LOWER_SCORE, 20, 150)
    assert comparison.may_be_sampled
    # 135 of 150 nodes cannot leave out 20, and neither can all of them.
    assert not compare_choice([*better, *small_nodes], "small-000", web(cpu="4"), percentage=90).may_be_sampled
    assert not compare_choice([*better, *small_nodes], "small-000", web(cpu="4"), percentage=100).may_be_sampled


def test_json_leaves_out_what_says_nothing():
    comparison = compare_choice([node("n1", "16"), node("n2", "2")], "n1").to_json()
    assert comparison.keys() == {"chosen", "verdict", "podium", "score", "podium_score", "feasible_nodes"}

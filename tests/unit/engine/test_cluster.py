from __future__ import annotations

import gc
import json
import subprocess
import sys
from weakref import WeakSet

import pytest

from podium import Cluster
from podium.engine import ClusterError, ManifestError
from podium.framework import FilterPlugin, ScorePlugin, unschedulable
from podium.framework.contract.status import ScheduleError
from podium.insight.evaluate import Evaluator
from podium.objects.core import Pod
from tests.manifests import node, pod

_LOADED_BY_OTHERS = ("aiohttp", "httptools", "ssl", "rich", "prometheus_client", "asyncio", "anyio", "structlog")


def web(name="web", cpu="1", **fields):
    return pod(name, cpu, scheduler="default-scheduler", **fields)


def two_nodes():
    return Cluster.load([node("n1", "2"), node("n2", "4"), web("old", "1", node="n1")])


def on(cluster):
    """Where each pod of the cluster counts."""
    return {pod.metadata.name: pod.node_name for pod in cluster.pods}


# ---------------------------------------------------------------- loading


@pytest.mark.long
def test_importing_the_library_loads_no_network_code():
    script = (
        "import podium, sys; podium.Cluster.load([]); "
        f"print([name for name in {_LOADED_BY_OTHERS} if name in sys.modules])"
    )
    assert subprocess.run([sys.executable, "-c", script], capture_output=True, text=True).stdout.strip() == "[]"


def test_a_cluster_is_loaded_from_a_file(tmp_path):
    path = tmp_path / "dump.json"
    path.write_text(json.dumps({"kind": "List", "apiVersion": "v1", "items": [node("n1"), web(node="n1")]}))
    cluster = Cluster.load(path)
    assert ([node.name for node in cluster.nodes], on(cluster)) == (["n1"], {"web": "n1"})


def test_a_manifest_that_cannot_be_read_is_named_with_its_field():
    with pytest.raises(ManifestError, match=r"objects\[1\]: Pod default/web: spec.priority: expected"):
        Cluster.load([node("n1"), web(priority="high")])


def test_a_list_as_kubectl_prints_it_is_loaded():
    cluster = Cluster.load(
        {
            "kind": "List",
            "apiVersion": "v1",
            "items": [node("n1"), {"kind": "PodList", "apiVersion": "v1", "items": [web()]}],
        }
    )
    assert (len(cluster.nodes), on(cluster)) == (1, {"web": ""})


@pytest.mark.parametrize("objects", [["n1"], [{"kind": "Node"}], [None]])
def test_content_that_is_no_manifest_is_refused(objects):
    with pytest.raises(ManifestError, match=r"objects\[0\]"):
        Cluster.load(objects)


def test_a_priority_class_gives_pods_their_priority():
    urgent = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "urgent"}, "value": 7}
    cluster = Cluster.load([node("n1"), urgent])
    assert cluster.place(web(priorityClassName="urgent")).pod.priority == 7


def test_a_configuration_is_given_as_it_is_written():
    profile = {"schedulerName": "mine", "plugins": {"filter": {"disabled": [{"name": "NodeResourcesFit"}]}}}
    config = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    cluster = Cluster.load([node("n1", "1")], {**config, "profiles": [profile]})
    assert cluster.place(pod("big", "9", scheduler="mine")).node == "n1"
    with pytest.raises(ClusterError, match="no profile is named 'default-scheduler', only mine"):
        cluster.place(web())


def test_plugins_of_ones_own_run_besides_the_default_ones():
    class NotOnTheFirst(FilterPlugin):
        name = "NotOnTheFirst"

        def filter(self, state, pod, node):
            return unschedulable("the first") if node.name == "n1" else None

    class LastFirst(ScorePlugin):
        name = "LastFirst"

        def score(self, state, pod, node):
            return int(node.name[1:])

    cluster = Cluster.load([node("n1"), node("n2"), node("n3")], plugins=[NotOnTheFirst, LastFirst])
    answer = cluster.evaluate(web()).as_dict()
    assert answer["filter"]["n1"]["reasons"] == ["the first"]
    assert answer["scores"]["n3"]["plugins"]["LastFirst"] == 3


# ---------------------------------------------------------------- asking and placing


def test_an_evaluation_is_what_podium_evaluate_prints():
    objects = [node("n1", "2"), node("n2", "4"), web("old", node="n1")]
    line = json.dumps({"id": "1", "objects": objects, "pod": web()}).encode()
    answer = Evaluator().answer_line(line, "")
    assert Cluster.load(objects).evaluate(web()).as_dict() == {key: answer[key] for key in answer if key != "id"}


def test_an_evaluation_stays_as_it_was_when_the_cluster_changes():
    cluster = two_nodes()
    evaluation_before = cluster.evaluate(web()).as_dict()
    evaluation = cluster.evaluate(web())
    cluster.remove("Node", "n2")
    cluster.place(web("other"))
    assert evaluation.as_dict() == evaluation_before
    assert cluster.evaluate(web()).as_dict() != evaluation_before


def test_a_pod_that_is_placed_counts_and_one_that_is_taken_back_does_not():
    cluster = two_nodes()
    evaluation_before = cluster.evaluate(web(cpu="3")).as_dict()
    placement = cluster.place(web(cpu="3"))
    assert (placement.node, placement.message, on(cluster)) == ("n2", "", {"old": "n1", "web": "n2"})
    refusal = cluster.place(web("more", "3"))
    assert (refusal.node, refusal.message[:30]) == (None, "0/2 nodes are available: 2 Ins")
    cluster.undo(placement)
    assert on(cluster) == {"old": "n1"}
    assert cluster.evaluate(web(cpu="3")).as_dict() == evaluation_before
    with pytest.raises(ClusterError, match="was not placed on a node here"):
        cluster.undo(placement)


def test_a_pending_pod_waits_again_after_its_placement_is_taken_back():
    cluster = Cluster.load([node("n1"), web()])
    (placement,) = cluster.place_all()
    assert on(cluster) == {"web": "n1"}
    cluster.undo(placement)
    assert on(cluster) == {"web": ""}


def test_a_placement_cannot_be_taken_back_in_another_cluster():
    cluster = two_nodes()
    placement = cluster.place(web())
    fork = cluster.fork()
    fork.remove("Node", "n1")
    with pytest.raises(ClusterError):
        fork.undo(placement)
    cluster.undo(placement)


def test_a_pod_that_counts_already_is_not_placed_again():
    cluster = two_nodes()
    with pytest.raises(ClusterError, match="default/old counts on a node already"):
        cluster.place(web("old"))


@pytest.mark.parametrize("start_time", ["soon", "", "2026-13-45T99:99:99Z", 5, -1e300, True, {"a": [1]}, []])
def test_a_running_pod_whose_start_time_cannot_be_read_makes_room_as_any_other(start_time):
    running = web("old", "1", node="n1") | {"status": {"phase": "Running", "startTime": start_time}}
    placement = Cluster.load([node("n1", "1"), running]).place(web(priority=5))
    assert (placement.nominated_node, [victim.metadata.name for victim in placement.victims]) == ("n1", ["old"])


def test_a_gated_pod_is_not_tried():
    placement = two_nodes().place(web(schedulingGates=[{"name": "later"}]))
    assert placement.node is None
    assert "scheduling gates" in placement.message


def test_nothing_can_be_asked_where_there_is_no_node():
    with pytest.raises(ScheduleError, match="no nodes available"):
        Cluster.load([]).evaluate(web())


def test_pending_pods_are_placed_by_priority():
    cluster = Cluster.load([node("n1", "1"), web("a"), web("b", priority=5)])
    assert [(placement.pod.metadata.name, placement.node) for placement in cluster.place_all()] == [
        ("b", "n1"),
        ("a", None),
    ]


def test_a_queue_is_in_the_order_of_the_configured_plugin():
    config = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"plugins": {"queueSort": {"enabled": [{"name": "QOSSort"}], "disabled": [{"name": "*"}]}}}],
    }
    amounts = {"cpu": "1", "memory": "1Gi"}
    resources = {"z-guaranteed": {"requests": amounts, "limits": amounts}, "b-burstable": {"requests": amounts}}
    pods = [
        web(name, containers=[{"name": "main", "resources": resources.get(name, {})}])
        for name in ("a-best-effort", "b-burstable", "z-guaranteed")
    ]

    def names(placements):
        return [placement.pod.metadata.name for placement in placements]

    queue = ["z-guaranteed", "b-burstable", "a-best-effort"]
    assert names(Cluster.load([node("n1"), *pods], config=config).place_all()) == queue
    assert names(Cluster.load([node("n1")], config=config).place(pods)) == queue


def test_place_only_names_victims_and_place_all_evicts_them():
    cluster = Cluster.load([node("n1", "1"), web("low", node="n1")])
    urgent = web("urgent", priority=5)
    placement = cluster.place(urgent)
    assert (placement.node, placement.nominated_node, [victim.metadata.name for victim in placement.victims]) == (
        None,
        "n1",
        ["low"],
    )
    assert on(cluster) == {"low": "n1"}
    cluster.place_all([urgent])
    assert on(cluster) == {"urgent": ""}
    assert cluster.place(web("later")).node is None, "the room is kept"
    assert cluster.place(urgent).node == "n1"


def test_a_nominated_pod_that_no_preemption_helps_any_more_loses_its_nomination():
    cluster = Cluster.load([node("n1", "2"), web("low", "2", node="n1")])
    urgent = web("urgent", "2", priority=5)
    cluster.place_all([urgent])
    assert cluster.place(web("later")).node is None, "the room is kept"
    cluster.place_all([web("between", "1", priority=7), urgent])
    assert on(cluster) == {"between": "n1", "urgent": ""}
    assert cluster.place(web("later")).node == "n1"


def test_pods_of_lower_priority_lose_their_nomination_to_a_node_where_another_preempts():
    pods = [web("low", "1", node="n1"), web("other", "1", node="n1", priority=4)]
    cluster = Cluster.load([node("n1", "2"), *pods])
    cluster.place_all([web("urgent", "1", priority=3), web("first", "2", priority=5)])
    cluster.remove("Pod", "first")
    assert cluster.place(web("later", "2")).node == "n1"


def test_a_drain_moves_what_can_go_elsewhere():
    daemon = web("agent", "0", node="n1")
    daemon["metadata"]["ownerReferences"] = [{"kind": "DaemonSet", "uid": "d"}]
    cluster = Cluster.load([node("n1"), node("n2", "1"), daemon, web("a", node="n1"), web("b", node="n1", priority=1)])
    placements = cluster.drain("n1")
    assert [(move.pod.metadata.name, move.node) for move in placements] == [("b", "n2"), ("a", None)]
    assert on(cluster) == {"agent": "n1", "a": "", "b": "n2"}
    assert next(node.spec.unschedulable for node in cluster.nodes if node.name == "n1")


# ---------------------------------------------------------------- changing


def test_objects_are_added_replaced_and_removed():
    cluster = two_nodes()
    cluster.add(node("n3", "8"))
    assert cluster.place(web(cpu="5")).node == "n3"
    cluster.replace(node("n1", "9"))
    assert cluster.place(web("other", "8")).node == "n1"
    cluster.replace(web("old", "1", node="n2"))
    cluster.remove("Node", "n3")
    assert ([node.name for node in cluster.nodes], on(cluster)["old"]) == (["n1", "n2"], "n2")
    cluster.remove("Pod", "old")
    assert "old" not in on(cluster)


def test_other_objects_count_from_the_next_question_on():
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "data"},
        "spec": {"volumeName": "v", "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    }
    asking = web(volumes=[{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}])
    cluster = Cluster.load([node("n1")])
    missing = 'persistentvolumeclaim "data" not found'
    assert missing in cluster.place(asking).message
    cluster.add(claim)
    assert missing not in cluster.place(asking).message


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda cluster: cluster.add(node("n1")), "Node n1 already exists"),
        (lambda cluster: cluster.replace(node("n9")), "there is no Node n9"),
        (lambda cluster: cluster.remove("Pod", "old", "elsewhere"), "there is no Pod elsewhere/old"),
        (lambda cluster: cluster.remove("ConfigMap", "c"), "no scheduler reads objects of kind 'ConfigMap'"),
        (lambda cluster: cluster.remove("Node", "n1", "default"), "namespace: objects of kind Node have none"),
        (lambda cluster: cluster.add({"kind": "Node"}), "with apiVersion and kind"),
        (lambda cluster: cluster.add("n3"), "with apiVersion and kind"),
        (lambda cluster: cluster.place(node("n3")), "kind: expected a Pod, got a Node"),
        (lambda cluster: cluster.place({**web(), "apiVersion": "apps/v1", "kind": "Deployment"}), "kind"),
        (lambda cluster: cluster.drain("n9"), "there is no Node n9"),
    ],
)
def test_a_change_that_makes_no_sense_is_refused_and_changes_nothing(change, words):
    cluster = two_nodes()
    state_before = (cluster.nodes, cluster.pods, cluster.evaluate(web()).as_dict())
    with pytest.raises(ManifestError, match=words):
        change(cluster)
    assert (cluster.nodes, cluster.pods, cluster.evaluate(web()).as_dict()) == state_before


# ---------------------------------------------------------------- forks


def test_a_fork_its_original_and_its_siblings_go_their_own_ways():
    cluster = two_nodes()
    fork, sibling = cluster.fork(), cluster.fork()
    fork.remove("Node", "n2")
    cluster.add(node("n3", "9"))
    below = fork.fork()
    below.add(web("new", node="n1"))
    evaluation = [[node.name for node in every.nodes] for every in (cluster, fork, sibling, below)]
    assert evaluation == [["n1", "n2", "n3"], ["n1"], ["n1", "n2"], ["n1"]]
    winners = [every.evaluate(web(cpu="1")).node for every in (cluster, fork, sibling, below)]
    assert winners == ["n3", "n1", "n2", None]


def test_a_cluster_may_be_forked_before_each_of_many_changes():
    """As a shadow does, which looks at each state; the states that nobody looks at any more are forgotten."""
    cluster, earlier = Cluster.load([node("n1", "2"), node("n2", "4")]), WeakSet()
    term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "web"}}}
    apart = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    spread = [{"maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule", **term}]
    target = web("asked", labels={"app": "web"}, affinity=apart, topologySpreadConstraints=spread)
    for number in range(1000):
        earlier.add(cluster.fork()._state)
        cluster.add(web(f"web-{number}", node=f"n{1 + number % 2}", labels={"app": "web"}, affinity=apart))
        if number:
            cluster.remove("Pod", f"web-{number - 1}")
    assert cluster.evaluate(target).node == "n1"
    gc.collect()
    assert len(earlier) < 100


def test_a_node_that_goes_takes_no_pod_with_it():
    cluster = two_nodes()
    cluster.remove("Node", "n1")
    cluster.add(node("n1", "2"))
    assert cluster.place(web(cpu="2")).node == "n2", "the old pod counts again"


def test_the_type_of_a_pod_does_not_matter():
    cluster = two_nodes()
    assert isinstance(cluster.read_pod(web()), Pod)
    assert cluster.evaluate(cluster.read_pod(web())).as_dict() == cluster.evaluate(web()).as_dict()


# ---------------------------------------------------------------- commit and discard


def names(cluster):
    return [node.name for node in cluster.nodes]


def test_committed_changes_appear_in_the_original_cluster():
    cluster = Cluster.load([node("n1")])
    trial, sibling = cluster.fork(), cluster.fork()
    trial.add(node("n2"))
    trial.commit()
    assert names(cluster) == names(trial) == ["n1", "n2"]
    assert names(sibling) == ["n1"]
    trial.add(node("n3"))
    assert names(cluster) == ["n1", "n2"]
    trial.commit()
    assert names(cluster) == ["n1", "n2", "n3"]
    cluster.remove("Node", "n1")
    assert names(trial) == ["n1", "n2", "n3"]


def test_fork_is_not_committed_to_a_cluster_that_has_changed():
    cluster = Cluster.load([node("n1")])
    trial = cluster.fork()
    trial.add(node("n2"))
    cluster.add(node("n3"))
    with pytest.raises(ClusterError, match="has changed since this one was forked"):
        trial.commit()
    assert names(cluster) == ["n1", "n3"]


def test_discarded_changes_are_gone():
    cluster = Cluster.load([node("n1")])
    trial = cluster.fork()
    trial.add(node("n2"))
    trial.discard()
    assert names(trial) == ["n1"]
    trial.add(node("n3"))
    assert (names(trial), names(cluster)) == (["n1", "n3"], ["n1"])
    trial.commit()
    trial.remove("Node", "n1")
    trial.discard()
    assert names(trial) == names(cluster) == ["n1", "n3"]


def test_only_forks_are_committed_or_discarded():
    cluster = Cluster.load([node("n1")])
    with pytest.raises(ClusterError, match="was not forked"):
        cluster.commit()
    with pytest.raises(ClusterError, match="is not a fork"):
        cluster.discard()
    orphan = Cluster.load([node("n1")]).fork()
    with pytest.raises(ClusterError, match="any that still exists"):
        orphan.commit()

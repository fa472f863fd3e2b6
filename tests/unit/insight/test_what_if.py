import pytest

from podium.config import default_configuration
from podium.engine.errors import ClusterError
from podium.engine.files import LocatedManifest
from podium.insight import Cluster
from podium.insight.steps import (
    AddNodes,
    Apply,
    Drain,
    Remove,
    Scale,
    UseProfiles,
    carry_out_steps,
    read_steps,
    remove_of,
    scale_of,
)
from podium.insight.what_if import Spread, outcome_of
from tests.manifests import ZONE, node, pod

SCHEDULER = "default-scheduler"


def web(name="web", cpu="1", owner="web-5d", **fields):
    manifest = pod(name, cpu, scheduler=SCHEDULER, labels={"app": "web"}, **fields)
    if owner:
        manifest["metadata"]["ownerReferences"] = [
            {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": owner, "uid": owner, "controller": True}
        ]
    return manifest


def zone_node(name, zone, cpu="4"):
    return node(name, cpu, labels={ZONE: zone})


def after(objects, *steps):
    cluster = Cluster.load(objects)
    placements = [(pod.key, pod.node_name) for pod in cluster.pods]
    answer = outcome_of(carry_out_steps(cluster, steps))
    assert [(pod.key, pod.node_name) for pod in cluster.pods] == placements
    return answer


def test_drain_moves_pods_and_leaves_pending_what_does_not_fit_elsewhere():
    objects = [
        zone_node("n1", "a"),
        zone_node("n2", "b", "2"),
        web("small", "1", node="n1"),
        web("large", "3", node="n1"),
    ]
    answer = after(objects, Drain("n1"))
    (move,) = answer.moved
    assert (move.replaces, move.before, move.after) == ("default/small", "n1", "n2")
    (pending,) = answer.pending
    assert (pending.replaces, pending.before) == ("default/large", "n1")
    assert "Insufficient cpu" in pending.why
    assert "node(s) were unschedulable" in pending.why


def test_pending_pods_get_the_nodes_that_are_added():
    objects = [node("n1", "1"), web("old", node="n1"), web("new-1"), web("new-2")]
    answer = after(objects, AddNodes(2, "n1"))
    assert {move.after for move in answer.placed} == {"n1-like-1", "n1-like-2"}
    assert not answer.pending
    assert answer.before[""]["cpu"].percent == 100
    assert (answer.after[""]["cpu"].requested, answer.after[""]["cpu"].allocatable) == (3000, 3000)


def test_utilisation_and_spread_are_given_by_zone():
    objects = [zone_node("n1", "a"), zone_node("n2", "b"), web("one", "2", node="n1"), web("two", "1", node="n1")]
    answer = after(objects, Drain("n1"))
    assert [answer.before[zone]["cpu"].percent for zone in ("a", "b")] == [75, 0]
    assert [answer.after[zone]["cpu"].percent for zone in ("a", "b")] == [0, 75]
    assert answer.spread["default/ReplicaSet/web-5d"] == (Spread({"a": 2}, 1), Spread({"b": 2}, 1))


def test_preempted_pods_come_back_as_pending_ones_if_they_have_a_controller():
    objects = [node("n1", "1"), web("low", node="n1"), web("bare", "1", owner="", node="n2"), node("n2", "1")]
    urgent = web("urgent", priority=10)
    answer = after(objects, Apply("urgent.yaml", [LocatedManifest(urgent, "urgent.yaml")]))
    ((victim, by),) = [(preemption.pod, preemption.by) for preemption in answer.preempted]
    assert by == "default/urgent"
    assert [move.pod for move in answer.placed] == ["default/urgent"]
    if victim == "default/low":
        assert [(entry.replaces, entry.before) for entry in answer.pending] == [("default/low", "n1")]
    else:
        assert answer.gone == ["default/bare"]


def test_scaling_copies_pods_or_deletes_pending_and_young_ones_first():
    objects = [node("n1", "4"), web("web-a", node="n1"), web("web-b", node="n1")]
    up = after(objects, Scale("default", "Deployment", "web", 5))
    assert (len(up.placed), len(up.pending)) == (2, 1)
    down = after([*objects, web("web-c", "9")], Scale("default", "ReplicaSet", "web-5d", 1))
    assert down.gone == ["default/web-b", "default/web-c"]
    with pytest.raises(
        ClusterError, match="there is no workload default/Deployment/other here; add it with an apply step"
    ):
        after(objects, Scale("default", "Deployment", "other", 5))
    with pytest.raises(ClusterError, match=r"there is no workload .* did you mean default/Deployment/web\?$"):
        after(objects, Scale("default", "Deployment", "wbe", 5))


def test_a_deployment_is_found_through_its_replica_set():
    above = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "shop", "uid": "s", "controller": True}
    replica_set = {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {"name": "web-5d", "namespace": "default", "ownerReferences": [above]},
    }
    objects = [node("n1"), web("web-a", node="n1"), replica_set]
    assert after(objects, Scale("default", "Deployment", "shop", 0)).gone == ["default/web-a"]


def test_removed_objects_are_gone_and_pods_of_a_removed_node_come_back():
    daemon = web("agent", owner="", node="n1")
    daemon["metadata"]["ownerReferences"] = [
        {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "d", "uid": "d", "controller": True}
    ]
    objects = [node("n1"), node("n2"), web("web-a", node="n1"), daemon, web("bare", owner="", node="n1")]
    answer = after(objects, Remove("Node", "", "n1"))
    (move,) = answer.moved
    assert (move.replaces, move.before, move.after) == ("default/web-a", "n1", "n2")
    assert sorted(answer.gone) == ["default/agent", "default/bare", "default/web-a"]
    assert after(objects, Remove("Pod", "default", "bare")).gone == ["default/bare"]
    assert after(objects, Remove("Deployment", "default", "web")).gone == ["default/web-a"]
    with pytest.raises(ClusterError, match=r"there is no Deployment x with pods$"):
        after(objects, Remove("Deployment", "", "x"))
    with pytest.raises(
        ClusterError, match=r"there is no Deployment wbe with pods; did you mean default/Deployment/web\?"
    ):
        after(objects, Remove("Deployment", "", "wbe"))
    with pytest.raises(ClusterError, match=r"there is no pod default/bear; did you mean default/bare\?"):
        after(objects, Remove("Pod", "default", "bear"))
    with pytest.raises(ClusterError, match="remove Service/x: there is no Service default/x"):
        after(objects, Remove("Service", "", "x"))


def test_an_applied_workload_has_the_pods_of_its_template():
    template = {"metadata": {"labels": {"app": "web"}}, "spec": web()["spec"]}
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "shop"},
        "spec": {"replicas": 3, "template": template},
    }
    answer = after([node("n1")], Apply("d.yaml", [LocatedManifest(deployment, "d.yaml")]))
    assert [move.pod.startswith("default/shop-") for move in answer.placed] == [True] * 3
    twice = after([node("n1")], *[Apply("d.yaml", [LocatedManifest(deployment, "d.yaml")])] * 2)
    assert len(twice.placed) == 3


@pytest.mark.parametrize(
    ("replicas", "pods"), [(None, 2), (0, 0), ("3", "'3'"), (1.5, "1.5"), (-2, "-2"), (True, "True")]
)
def test_a_workload_s_number_of_pods_is_checked_and_stays_without_one(replicas, pods):
    objects = [node("n1"), web("web-a", node="n1"), web("web-b", node="n1")]
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web"},
        "spec": {"replicas": replicas, "template": {"spec": web()["spec"]}},
    }
    step = Apply("d.yaml", [LocatedManifest(deployment, "d.yaml: document 1")])
    if isinstance(pods, int):
        answer = after(objects, step)
        remaining_count = 2 - len(answer.gone)
        assert remaining_count + len(answer.placed) == pods
        return
    with pytest.raises(ClusterError, match=rf"d.yaml: document 1: spec.replicas: {pods} is not a number of pods"):
        after(objects, step)


def test_applied_objects_replace_those_of_their_name():
    larger = node("n1", "8")
    answer = after([node("n1", "1"), web(cpu="4")], Apply("n.yaml", [LocatedManifest(larger, "n.yaml")]))
    assert [move.after for move in answer.placed] == ["n1"]


def test_another_configuration_decides_from_there_on():
    cluster = [node("n1", unschedulable=True), web()]
    config = default_configuration()
    configurations = []

    def rebuilt(world, configuration):
        configurations.append(configuration)
        return world

    answer = after(cluster, UseProfiles("c.yaml", config, rebuilt))
    assert configurations == [config]
    assert [entry.pod for entry in answer.still_pending] == ["default/web"]


def test_pods_of_unknown_schedulers_stay_pending():
    answer = after([node("n1"), pod("other", scheduler="theirs")], AddNodes(1, "n1"))
    waiting = [(entry.pod, entry.why) for entry in answer.still_pending]
    assert waiting == [("default/other", "no profile is named 'theirs'")]


def test_steps_are_read_from_a_document():
    document = {
        "steps": [
            {"drain": "n1"},
            {"addNodes": {"count": 2, "like": "n1"}},
            {"scale": "shop/Deployment/web=3"},
            {"remove": "Pod/shop/web"},
            {"apply": "x.yaml"},
        ]
    }
    steps = read_steps(document, {"apply": lambda name: Apply(name, [])})
    assert steps == [
        Drain("n1"),
        AddNodes(2, "n1"),
        Scale("shop", "Deployment", "web", 3),
        Remove("Pod", "shop", "web"),
        Apply("x.yaml", []),
    ]
    assert [step.text for step in steps] == [
        "drain n1",
        "add 2 nodes like n1",
        "scale shop/Deployment/web to 3",
        "remove Pod/shop/web",
        "apply x.yaml",
    ]


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ("x", "expected a list of steps"),
        ({"steps": [{"drain": "n"}], "config": "x"}, "an object with steps alone"),
        ({"steps": [{"jump": "x"}]}, r"steps\[0\].jump: unknown step; known are drain, addNodes, scale, remove"),
        ({"steps": [{"drian": "x"}]}, r"steps\[0\].drian: unknown step; did you mean drain\?"),
        ([{"drain": "n", "remove": "Pod/a"}], r"steps\[0\]: expected one of .*, got drain, remove in one"),
        ([[]], r"steps\[0\]: expected one of .*, got \[\]"),
        ([{"drain": 1}], r"steps\[0\].drain: expected a string"),
        ([{"drain": "n"}, {"scale": "x"}], r"steps\[1\].scale: expected NAMESPACE/KIND/NAME=N"),
        ([{"addNodes": {"count": 0, "like": "n"}}], r"steps\[0\].addNodes: expected a positive count"),
        ([{"addNodes": {"cuont": 2, "like": "n"}}], r"steps\[0\].addNodes: expected .*, got \{'cuont': 2"),
    ],
)
def test_steps_that_cannot_be_read_are_named(document, message):
    with pytest.raises(ClusterError, match=message):
        read_steps(document, {})


@pytest.mark.parametrize("text", ["web=3", "a/b/c=x", "a//c=1"])
def test_scales_that_cannot_be_read_are_refused(text):
    with pytest.raises(ClusterError, match="scale: expected"):
        scale_of(text)


def test_removals_name_a_kind_and_an_object():
    assert remove_of("Node/n1") == Remove("Node", "", "n1")
    with pytest.raises(ClusterError, match="remove: expected"):
        remove_of("n1")


def test_unknown_nodes_are_refused_with_the_nearest_names():
    with pytest.raises(ClusterError, match=r"there is no node node-2; did you mean node-1\?"):
        after([node("node-1")], Drain("node-2"))


def test_pods_are_placed_in_the_order_of_the_configured_queue_sort():
    config = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"plugins": {"queueSort": {"enabled": [{"name": "QOSSort"}], "disabled": [{"name": "*"}]}}}],
    }
    amounts = {"cpu": "1", "memory": "1Gi"}
    guaranteed = {"name": "main", "resources": {"requests": amounts, "limits": amounts}}
    pods = [web("burstable", owner=""), web("guaranteed", owner="", containers=[guaranteed])]
    step = Apply("pods.yaml", [LocatedManifest(manifest, "pods.yaml") for manifest in pods])
    outcome = outcome_of(carry_out_steps(Cluster.load([node("n1", "1")], config=config), [step]))
    assert [pending.pod for pending in outcome.pending] == ["default/burstable"]

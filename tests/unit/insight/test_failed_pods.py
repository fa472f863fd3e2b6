"""A pod that could not be placed is tried again only after a change that may help it: its message is that of then."""

from podium.engine.files import LocatedManifest
from podium.insight import Cluster
from podium.insight.steps import Apply, Drain, Scale, carry_out_steps
from podium.insight.trial import Trial
from tests.manifests import node, pod
from tests.workload_manifests import SCHEDULER, priority_class, ready, with_owner, workload


def _pod(name, cpu="1", **fields):
    return pod(name, cpu, scheduler=SCHEDULER, **fields)


def _web(name, where, **fields):
    return with_owner(_pod(name, node=where, labels={"app": "web"}, status=ready(), **fields), "ReplicaSet", "web")


def _after(objects, *steps):
    return carry_out_steps(Cluster.load(objects), steps)


def _apply(*manifests):
    return Apply("it.yaml", [LocatedManifest(manifest, "it.yaml") for manifest in manifests])


def test_the_end_of_a_pod_without_ports_does_not_help_one_that_lacks_a_port():
    """When it was tried, the victim was still there, of lower priority than it."""
    high = {"priorityClassName": "high", "host_port": 80}
    front = workload("ReplicaSet", "front", 2, pod_spec=high, cpu="2")
    cluster = [node("n1", "2"), priority_class("high", 10), _pod("victim", node="n1", status=ready())]
    trial = _after(cluster, _apply(front))
    assert [preemption.pod for preemption in trial.preempted] == ["default/victim"]
    (why,) = trial.why.values()
    assert "preemption: 0/1 nodes are available: 1 node(s) didn't have free ports for the requested pod ports" in why


def test_the_end_of_a_pod_helps_one_that_lacks_what_that_had():
    pods = [_web("web-a", "n1"), _web("web-b", "n1")]
    cluster = [node("n1", "3"), *pods, workload("ReplicaSet", replicas=2), _pod("large", "2")]
    trial = _after(cluster, Scale("default", "ReplicaSet", "web", 1))
    assert not trial.why
    assert {pod.metadata.name: pod.node_name for pod in trial.world.pods}["large"] == "n1"


def test_a_pod_that_is_placed_helps_one_that_wants_to_be_near_it():
    term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "web"}}}
    near = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    # It is tried first.
    friend = _pod("friend", affinity=near, priority=5)
    trial = _after([node("n1")], _apply(friend), _apply(workload("ReplicaSet", replicas=1)))
    assert sorted(pod.node_name for pod in trial.world.pods) == ["n1", "n1"]
    trial = _after([node("n1"), friend], _apply(workload("ReplicaSet", "other", replicas=1)))
    assert sorted(pod.node_name for pod in trial.world.pods) == ["", "n1"]


def test_a_pod_is_tried_again_once_the_pod_of_a_job_is_gone():
    """Only then the replacement of that is there, which takes from the memory."""
    job = with_owner(_pod("sum-a", memory="2Gi", node="n1", status=ready()), "Job", "sum")
    sum_ = workload("Job", "sum", parallelism=1, pod_spec={"memory": "2Gi"})
    web = workload("ReplicaSet", replicas=1, cpu="3", pod_spec={"memory": "2Gi"})
    cluster = [node("n1"), node("n2", "2", memory="3Gi"), job, sum_, _web("web-a", "n1", cpu="3", memory="2Gi"), web]
    trial = _after(cluster, Drain("n1"))
    (why,) = trial.why.values()
    assert "1 Insufficient cpu, 1 Insufficient memory, 1 node(s) were unschedulable" in why


def _waiting(name, cpu, **fields):
    status = {"phase": "Pending", **({"nominatedNodeName": fields.pop("nominated")} if "nominated" in fields else {})}
    return _pod(name, cpu, status=status, **fields)


def test_the_end_of_a_nomination_helps_the_pods_that_it_kept_off_the_node():
    """The nominated pod is tried last, and nothing else changes after it has lost its nomination."""
    cluster = [node("n1", "4"), _pod("runs", "3", node="n1", priority=10, status=ready())]
    trial = _after([*cluster, _waiting("early", "1"), _waiting("late", "3", nominated="n1")], _apply(_pod("huge", "9")))
    nodes = {pod.metadata.name: pod.node_name for pod in trial.world.pods}
    assert nodes == {"runs": "n1", "early": "n1", "late": "", "huge": ""}
    assert not any(pod.status.nominated_node_name for pod in trial.world.pods)


def test_the_end_of_a_nomination_helps_no_pod_of_higher_priority():
    cluster = [node("n1", "4"), _pod("runs", "3", node="n1", priority=10, status=ready())]
    attempts = []

    class Watched(Trial):
        def _note(self, placement):
            attempts.append(placement.pod.metadata.name)
            return super()._note(placement)

    trial = Watched(Cluster.load([*cluster, _waiting("first", "2", priority=5), _waiting("late", "3", nominated="n1")]))
    trial.settle()
    assert attempts == ["first", "late", "late"]

"""Pods that are deleted count on their nodes until they have ended; what replaces them may come before that."""

import pytest

from podium.engine.files import LocatedManifest
from podium.insight import Cluster
from podium.insight.steps import Apply, Drain, Remove, Scale, carry_out_steps
from podium.lib.time_limit import UNLIMITED
from tests.looks import after_looks
from tests.manifests import ZONE, node, pod
from tests.workload_manifests import (
    SCHEDULER,
    budget,
    claim_template,
    priority_class,
    ready,
    storage,
    with_owner,
    workload,
)

SELF = {"labelSelector": {"matchLabels": {"app": "web"}}, "topologyKey": ZONE}
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
NEAR = {"affinity": {"podAffinity": {REQUIRED: [SELF]}}}
AWAY = {"affinity": {"podAntiAffinity": {REQUIRED: [SELF]}}}
AT_ONCE = ("ReplicaSet", "ReplicationController", "CloneSet")
WHEN_GONE = ("StatefulSet", "Job")


def _node(name, zone, cpu="16"):
    return node(name, cpu, labels={ZONE: zone})


def _web(name, where, kind, cpu="1", **fields):
    item = pod(name, cpu, node=where, labels={"app": "web"}, scheduler=SCHEDULER, status=ready(), **fields)
    return with_owner(item, kind, "web")


def _workload(kind, replicas, **pod_spec):
    fields = {"selector": {"app": "web"}} if kind == "ReplicationController" else {}
    if kind == "Job":
        return workload(kind, parallelism=replicas, pod_spec=pod_spec)
    return workload(kind, replicas=replicas, pod_spec=pod_spec, **fields)


def _after(objects, *steps, limit=UNLIMITED):
    return carry_out_steps(Cluster.load(objects), steps, limit)


def _apply(*manifests):
    return Apply("it.yaml", [LocatedManifest(manifest, "it.yaml") for manifest in manifests])


def _nodes(trial):
    return sorted(pod.node_name for pod in trial.world.pods)


def _drain(kind, affinity, *, excluded_nodes):
    """The node of the only pod that is not on one of the others, once n1 in zone a was drained of a pod."""
    pods = [_web(f"web-{number}", where, kind, **affinity) for number, where in enumerate(["n1", *excluded_nodes])]
    cluster = [_node("n1", "a"), _node("n2", "a"), _node("n3", "b", "4"), *pods]
    trial = _after([*cluster, _workload(kind, len(pods), **affinity)], Drain("n1"))
    assert not any(pod.is_terminating for pod in trial.world.pods)
    (where,) = (pod.node_name for pod in trial.world.pods if pod.node_name not in excluded_nodes)
    return where


@pytest.mark.parametrize("kind", AT_ONCE)
def test_a_replacement_wants_to_be_near_a_pod_that_is_still_ending(kind):
    assert _drain(kind, NEAR, excluded_nodes=["n3"]) == "n2"


@pytest.mark.parametrize("kind", WHEN_GONE)
def test_a_pod_that_comes_only_when_the_old_one_is_gone_is_not_near_that(kind):
    pods = [_web("web-0", "n1", kind, **NEAR), _web("web-1", "n3", kind, **NEAR)]
    cluster = [_node("n1", "a"), _node("n2", "a"), _node("n3", "b", "4"), *pods, _workload(kind, 2, **NEAR)]
    assert _nodes(_after(cluster, Drain("n1"))) == ["n3", "n3"]


@pytest.mark.parametrize("kind", AT_ONCE)
def test_a_replacement_keeps_away_from_a_pod_that_is_still_ending(kind):
    assert _drain(kind, AWAY, excluded_nodes=[]) == "n3"


@pytest.mark.parametrize("kind", WHEN_GONE)
def test_a_pod_that_comes_only_when_the_old_one_is_gone_may_take_its_zone(kind):
    assert _drain(kind, AWAY, excluded_nodes=[]) == "n2"


@pytest.mark.parametrize("kind", ["StatefulSet", "ReplicaSet", "Job"])
def test_a_workload_of_which_only_a_pod_is_known_replaces_it(kind):
    trial = _after([_node("n1", "a"), _node("n2", "a"), _web("web-0", "n1", kind)], Drain("n1"))
    assert _nodes(trial) == ["n2"]


def test_a_replacement_that_fits_nowhere_else_waits_until_the_old_pod_is_gone():
    replica_set = _workload("ReplicaSet", 1, **AWAY)
    trial = _after([_node("n1", "a"), _node("n2", "a"), _web("web-0", "n1", "ReplicaSet"), replica_set], Drain("n1"))
    assert _nodes(trial) == ["n2"]


def test_spreading_does_not_count_pods_that_are_ending():
    constraint = {"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule"}
    spread = {"topologySpreadConstraints": [{**constraint, "labelSelector": SELF["labelSelector"]}]}
    pods = [_web("web-0", "n1", "ReplicaSet", **spread), _web("web-1", "n3", "ReplicaSet", **spread)]
    cluster = [_node("n1", "a"), _node("n2", "a", "4"), _node("n3", "b"), *pods, _workload("ReplicaSet", 2, **spread)]
    assert _nodes(_after(cluster, Drain("n1"))) == ["n2", "n3"]


@pytest.mark.parametrize(
    ("strategy", "where"),
    [
        ({"type": "Recreate"}, "n1"),
        ({"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}}, "n3"),
    ],
)
def test_a_rolling_update_does_not_wait_until_old_pods_are_gone(strategy, where):
    old = workload("Deployment", replicas=1, pod_spec=AWAY, strategy=strategy)
    cluster = [_node("n1", "a"), _node("n3", "b", "4")]
    first = [*cluster, old, with_owner(_workload("ReplicaSet", 1, **AWAY), "Deployment", "web")]
    new = workload("Deployment", replicas=1, cpu="2", pod_spec=AWAY, strategy=strategy)
    trial = _after([*first, _web("web-0", "n1", "ReplicaSet", **AWAY)], _apply(new))
    assert _nodes(trial) == [where]


def test_an_updated_daemon_waits_until_the_old_one_is_gone_unless_it_may_surge():
    for strategy in ({}, {"updateStrategy": {"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}}):
        old, new = (workload("DaemonSet", cpu=cpu, **strategy) for cpu in ("1", "2"))
        cluster = [_node("n1", "a"), _node("n2", "b"), old]
        daemons = [_web(f"web-{number}", f"n{number}", "DaemonSet") for number in (1, 2)]
        trial = _after([*cluster, *daemons], _apply(new))
        assert _nodes(trial) == ["n1", "n2"]
        assert not {"web-1", "web-2"} & {pod.metadata.name for pod in trial.world.pods}


def test_the_replacement_of_a_preempted_pod_keeps_away_from_it():
    """It is on its node until the preemptor comes."""
    web = [_web("web-0", "n1", "ReplicaSet", "4", **AWAY), _workload("ReplicaSet", 1, **AWAY)]
    cluster = [_node("n1", "a", "4"), _node("n2", "a"), _node("n3", "b", "4"), *web]
    pinned = pod(
        "vip", "4", scheduler=SCHEDULER, priorityClassName="high", nodeSelector={"kubernetes.io/hostname": "n1"}
    )
    trial = _after([*cluster, priority_class("high", 1000)], _apply(pinned))
    assert [preemption.pod for preemption in trial.preempted] == ["default/web-0"]
    assert _nodes(trial) == ["n1", "n3"]


def test_a_pod_that_is_ending_is_not_preempted():
    drained = [_web(f"web-{number}", "n1", "ReplicaSet", "4") for number in range(2)]
    high = _workload("ReplicaSet", 2, priorityClassName="high", priority=1000)
    cluster = [_node("n1", "a", "8"), _node("n2", "a", "1"), *drained, high, priority_class("high", 1000)]
    trial = _after(cluster, Drain("n1"))
    assert not trial.preempted
    assert _nodes(trial) == ["", "n2"]


def test_claims_and_devices_stay_with_a_pod_until_it_has_ended():
    """A volume that only one pod may use keeps the replacement waiting, and is free then."""
    claim = {**claim_template(size="5Gi")["spec"], "accessModes": ["ReadWriteOncePod"]}
    claim_base = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "data", "namespace": "default"},
    }
    volume = {"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]}
    bound_claim = {**claim_base, "spec": claim}
    cluster = [_node("n1", "a"), _node("n2", "a"), *storage("10Gi"), bound_claim]
    running = _after(cluster, _apply(_workload("ReplicaSet", 1, **volume))).world
    (where,) = _nodes(carry_out_steps(running, []))
    assert _nodes(carry_out_steps(running, [Drain(where)])) == [{"n1": "n2", "n2": "n1"}[where]]


def test_budgets_look_at_replacements_that_are_ready_and_not_at_pods_that_end():
    pods = [_web(f"web-{number}", "n1", "ReplicaSet") for number in range(3)]
    cluster = [_node("n1", "a"), _node("n2", "b"), *pods, _workload("ReplicaSet", 3)]
    trial = _after([*cluster, budget({"app": "web"}, maxUnavailable=1)], Drain("n1"))
    assert _nodes(trial) == ["n2"] * 3
    assert not trial.blocks


@pytest.mark.parametrize("step", [Scale("default", "ReplicaSet", "web", 1), Remove("ReplicaSet", "default", "web")])
def test_what_waits_for_a_deleted_pod_gets_its_place(step):
    pods = [_web(f"web-{number}", "n1", "ReplicaSet") for number in range(2)]
    waiting = pod("waiting", "3", scheduler=SCHEDULER)
    trial = _after([_node("n1", "a", "4"), *pods, waiting, _workload("ReplicaSet", 2)], step)
    assert {pod.metadata.name: pod.node_name for pod in trial.world.pods}["waiting"] == "n1"


def test_nothing_is_left_ending_when_the_time_is_up():
    pods = [_web(f"web-{number}", "n1", "ReplicaSet") for number in range(9)]
    cluster = [_node("n1", "a"), _node("n2", "b"), *pods, _workload("ReplicaSet", 9)]
    for looks in (3, 7, 12):
        trial = _after(cluster, Drain("n1"), limit=after_looks(looks))
        assert trial.is_partial
        assert not any(pod.is_terminating for pod in trial.world.pods)

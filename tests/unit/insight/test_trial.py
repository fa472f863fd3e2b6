import pytest

from podium.engine.derivation.admission import RefusedError
from podium.engine.errors import ClusterError
from podium.engine.files import LocatedManifest
from podium.insight import Cluster
from podium.insight.loading import node_named
from podium.insight.steps import AddNodes, Apply, Drain, Remove, Scale, carry_out_steps
from podium.insight.trial import Trial
from tests.device_manifests import device_class, devices, exactly, resource_slice
from tests.manifests import node, nodes, pod
from tests.workload_manifests import (
    SCHEDULER,
    budget,
    claim_template,
    claims_from,
    device_claim_template,
    limit_range,
    priority_class,
    quota,
    ready,
    runtime_class,
    storage,
    with_owner,
    workload,
)


def _pod(name, cpu="1", **fields):
    return pod(name, cpu, scheduler=SCHEDULER, **fields)


def _web(name, of="web", kind="ReplicaSet", **fields):
    return with_owner(_pod(name, labels={"app": of}, **fields), kind, of)


def _after(objects, *steps):
    return carry_out_steps(Cluster.load(objects), steps)


def _apply(*manifests):
    return Apply("it.yaml", [LocatedManifest(manifest, "it.yaml") for manifest in manifests])


def _nodes_of_pods(trial):
    return {pod.metadata.name: pod.node_name for pod in trial.world.pods}


def _count(trial):
    """Return how many pods have a node, and how many lack one."""
    nodes = [bool(pod.node_name) for pod in trial.world.pods]
    return nodes.count(True), nodes.count(False)


def _refusals(trial):
    return [refusal.reason for refusal in trial.refusals.values()]


# ---------------------------------------------------------------- StatefulSets and claims


def test_an_applied_stateful_set_gets_a_claim_for_each_pod():
    database = workload("StatefulSet", "db", 2, volumeClaimTemplates=[claim_template(size="5Gi")])
    trial = _after([*nodes(2), *storage("10Gi")], _apply(database))
    assert set(_nodes_of_pods(trial)) == {"db-0", "db-1"}
    assert all(_nodes_of_pods(trial).values())
    claims = {claim["metadata"]["name"] for claim in _claims(trial)}
    assert claims == {"data-db-0", "data-db-1"}


def _claims(trial):
    return [trial.world.manifest_of("PersistentVolumeClaim", f"data-db-{number}") for number in range(2)]


def test_a_stateful_set_whose_claims_do_not_fit_stops_at_its_first_pending_pod():
    database = workload("StatefulSet", "db", 3, volumeClaimTemplates=[claim_template(size="20Gi")])
    trial = _after([*nodes(2), *storage("10Gi")], _apply(database))
    assert _nodes_of_pods(trial) == {"db-0": ""}
    assert "did not have enough free storage" in trial.why["default/db-0"]


def test_a_parallel_stateful_set_has_all_pods_pending():
    database = workload("StatefulSet", "db", 3, cpu="99", podManagementPolicy="Parallel")
    assert _count(_after(nodes(2), _apply(database))) == (0, 3)


def test_a_scaled_stateful_set_gets_a_claim_of_its_own():
    database = workload("StatefulSet", "db", 1, volumeClaimTemplates=[claim_template(size="5Gi")])
    trial = _after([*nodes(2), *storage("10Gi")], _apply(database), Scale("default", "StatefulSet", "db", 2))
    assert {claim["metadata"]["name"] for claim in _claims(trial)} == {"data-db-0", "data-db-1"}
    volumes = [pod.spec.volumes[0].persistent_volume_claim for pod in trial.world.pods]
    assert sorted(volume.claim_name for volume in volumes if volume is not None) == ["data-db-0", "data-db-1"]


def test_the_claim_of_an_ephemeral_volume_goes_with_its_pod():
    spec = claim_template()["spec"]
    volume = {"name": "data", "ephemeral": {"volumeClaimTemplate": {"spec": spec}}}
    trial = _after([*nodes(1), *storage("10Gi")], _apply(_pod("scratch", volumes=[volume])))
    assert trial.world.manifest_of("PersistentVolumeClaim", "scratch-data")["spec"]["volumeName"]
    trial.delete(trial.world.pods[0])
    trial.settle()
    with pytest.raises(Exception, match="there is no PersistentVolumeClaim default/scratch-data"):
        trial.world.manifest_of("PersistentVolumeClaim", "scratch-data")


def test_pods_with_claims_from_a_template_get_devices_and_give_them_back():
    objects = [
        *nodes(1),
        device_class(),
        resource_slice("gpus", devices(2), node="node-0"),
        device_claim_template("gpu", exactly()),
    ]
    train = workload("Deployment", "train", 3, pod_spec={"resourceClaims": claims_from("gpu")})
    trial = _after(objects, _apply(train))
    assert _count(trial) == (2, 1)
    trial.delete(next(pod for pod in trial.world.pods if pod.node_name))
    trial.settle()
    assert _count(trial) == (2, 1)
    Scale("default", "Deployment", "train", 2).carry_out(trial)
    trial.settle()
    assert _count(trial) == (2, 0)


# ---------------------------------------------------------------- DaemonSets


def test_daemons_run_on_each_node_and_on_those_that_are_added():
    tainted = node("tainted", taints=[{"key": "team", "effect": "NoSchedule"}])
    trial = _after([node("n1"), tainted, workload("DaemonSet", "agent")], AddNodes(2, "n1"))
    assert sorted(_nodes_of_pods(trial).values()) == ["n1", "n1-like-1", "n1-like-2"]
    trial = _after([node("n1"), tainted], _apply(workload("DaemonSet", "agent")))
    assert list(_nodes_of_pods(trial).values()) == ["n1"]


def test_a_daemon_runs_on_a_cordoned_node():
    trial = _after([node("n1", unschedulable=True)], _apply(workload("DaemonSet", "agent")))
    assert list(_nodes_of_pods(trial).values()) == ["n1"]


def test_daemons_stay_on_a_node_that_is_drained():
    daemon = _web("agent-x", "agent", "DaemonSet", node="n1")
    trial = _after([node("n1"), node("n2"), daemon], Drain("n1"))
    assert _nodes_of_pods(trial) == {"agent-x": "n1"}


# ---------------------------------------------------------------- drains


def test_a_bare_pod_is_evicted_for_good():
    trial = _after([node("n1"), node("n2"), _pod("bare", node="n1"), _web("web-a", node="n1")], Drain("n1"))
    assert "bare" not in _nodes_of_pods(trial)
    assert list(_nodes_of_pods(trial).values()) == ["n2"]
    assert list(trial.predecessors.values()) == ["default/web-a"]


def test_budgets_let_pods_go_one_after_the_other_as_replacements_become_ready():
    pods = [_web(f"web-{number}", node="n1", status=ready()) for number in range(3)]
    objects = [node("n1"), node("n2"), *pods, workload("ReplicaSet", replicas=3)]
    trial = _after([*objects, budget({"app": "web"}, minAvailable=2)], Drain("n1"))
    assert list(_nodes_of_pods(trial).values()) == ["n2", "n2", "n2"]
    assert not trial.blocks


def test_a_drain_says_which_budgets_block_it():
    pods = [_web(f"web-{number}", node="n1", status=ready()) for number in range(2)]
    objects = [node("n1"), node("n2", "1"), *pods, workload("ReplicaSet", replicas=2)]
    trial = _after([*objects, budget({"app": "web"}, minAvailable=2)], Drain("n1"))
    assert [(entry.pod, entry.budgets) for entry in trial.blocks] == [
        ("default/web-0", ("default/budget",)),
        ("default/web-1", ("default/budget",)),
    ]
    assert list(_nodes_of_pods(trial).values()) == ["n1", "n1"]


def test_a_pod_of_two_budgets_is_never_evicted():
    budgets = [budget({"app": "web"}, name, minAvailable=0) for name in ("one", "two")]
    trial = _after([node("n1"), node("n2"), _web("web-a", node="n1", status=ready()), *budgets], Drain("n1"))
    assert [entry.budgets for entry in trial.blocks] == [("default/one", "default/two")]


def test_a_pending_pod_needs_no_leave_of_a_budget():
    waiting = _web("web-a", node="n1", status={"phase": "Pending"})
    trial = _after([node("n1"), node("n2"), waiting, budget({"app": "web"}, minAvailable=1)], Drain("n1"))
    assert list(_nodes_of_pods(trial).values()) == ["n2"]


# ---------------------------------------------------------------- scaling down


def _aged_pod(name, node, since="2026-01-01T00:00:00Z", of="web-5d"):
    item = _web(name, of, node=node, status=ready(since))
    item["metadata"]["creationTimestamp"] = since
    return item


AGED = [
    _aged_pod("old-1", "n1"),
    _aged_pod("old-2", "n1"),
    _aged_pod("young", "n2", "2026-01-31T23:00:00Z"),
    _aged_pod("now", "n3", "2026-02-01T00:00:00Z", of="other"),
]


def test_a_deployment_gives_up_doubled_up_nodes_and_a_bare_replica_set_young_pods():
    bare = workload("ReplicaSet", "web-5d", 3)
    trial = _after([*(node(f"n{n}") for n in (1, 2, 3)), *AGED, bare], Scale("default", "ReplicaSet", "web-5d", 2))
    assert "young" not in _nodes_of_pods(trial)
    of_deployment = with_owner(bare, "Deployment", "web"), workload("Deployment", replicas=3)
    trial = _after(
        [*(node(f"n{n}") for n in (1, 2, 3)), *AGED, *of_deployment], Scale("default", "Deployment", "web", 2)
    )
    assert "young" in _nodes_of_pods(trial)
    assert len({"old-1", "old-2"} & _nodes_of_pods(trial).keys()) == 1


def test_the_cost_of_deletion_counts_before_the_nodes():
    pods = [_aged_pod("old-1", "n1"), _aged_pod("old-2", "n1"), _aged_pod("cheap", "n2")]
    pods[2]["metadata"]["annotations"] = {"controller.kubernetes.io/pod-deletion-cost": "-1"}
    replica_set = with_owner(workload("ReplicaSet", "web-5d", 3), "Deployment", "web")
    objects = [node("n1"), node("n2"), *pods, replica_set, workload("Deployment", replicas=3)]
    assert "cheap" not in _nodes_of_pods(_after(objects, Scale("default", "Deployment", "web", 2)))


@pytest.mark.parametrize("classes", [[], [priority_class("high", 7), priority_class("low", -1, globalDefault=True)]])
@pytest.mark.parametrize("kind", ["Deployment", "ReplicaSet", "StatefulSet"])
def test_a_workload_of_which_only_pods_are_known_has_their_priority(kind, classes):
    name = "web-5d" if kind == "Deployment" else "web"
    pods = [_web("web-0", name, "ReplicaSet" if kind == "Deployment" else kind, node="node-0", priority=7)]
    trial = _after([*nodes(2), *pods, *classes], Scale("default", kind, "web", 2))
    assert [pod.priority for pod in trial.world.pods] == [7, 7]
    assert _count(trial) == (2, 0)


@pytest.mark.parametrize("kind", ["Deployment", "StatefulSet", "ReplicaSet", "Job", "ReplicationController"])
def test_workloads_without_pods_can_be_scaled(kind):
    selector = {"selector": {"app": "web"}} if kind == "ReplicationController" else {}
    empty = {"parallelism": 0} if kind == "Job" else {"replicas": 0}
    trial = _after([*nodes(2), workload(kind, **empty, **selector)], Scale("default", kind, "web", 3))
    assert _count(trial) == (3, 0)


ROLLOUT = {**workload("Rollout", replicas=0), "apiVersion": "argoproj.io/v1alpha1"}
CLONE_SET = {**workload("CloneSet", replicas=0), "apiVersion": "apps.kruise.io/v1alpha1"}
CRON_JOB = workload("CronJob", jobTemplate={"spec": {"template": workload("Job")["spec"]["template"]}})


@pytest.mark.parametrize("manifest", [ROLLOUT, CLONE_SET])
@pytest.mark.parametrize("kind", [str, str.lower])
def test_workloads_without_pods_whose_controller_is_not_known_can_be_scaled(manifest, kind):
    scale = Scale("default", kind(manifest["kind"]), "web", 3)
    assert _count(_after([*nodes(2), manifest], scale)) == (3, 0)
    assert _count(_after(nodes(2), _apply(manifest), scale)) == (3, 0)
    assert _count(_after([*nodes(2), manifest], scale, Drain("node-0"))) == (3, 0)
    fewer = Scale("default", manifest["kind"], "web", 1)
    assert _count(_after([*nodes(2), manifest], scale, fewer)) == (1, 0)


def test_a_kind_that_has_no_number_of_replicas_says_so():
    with pytest.raises(ClusterError, match="a CronJob has no number of replicas"):
        _after([*nodes(2), CRON_JOB], Scale("default", "CronJob", "web", 3))
    with pytest.raises(ClusterError, match="there is no workload default/Rollout/other here"):
        _after([*nodes(2), ROLLOUT], Scale("default", "Rollout", "other", 3))


# ---------------------------------------------------------------- what the API server does


def test_a_priority_class_of_the_cluster_counts_for_what_is_applied():
    objects = [node("n1", "1"), _web("low", node="n1"), priority_class("urgent", 1000)]
    trial = _after(objects, _apply(workload("Deployment", "high", pod_spec={"priorityClassName": "urgent"})))
    assert [(preemption.pod, preemption.node) for preemption in trial.preempted] == [("default/low", "n1")]


def test_a_class_that_others_of_its_kind_show_to_be_missing_is_refused():
    objects = [*nodes(1), priority_class("other", 1), runtime_class("other")]
    for field, message in (
        ({"priorityClassName": "urgent"}, "no PriorityClass with name urgent was found"),
        ({"runtimeClassName": "kata"}, 'pod rejected: RuntimeClass "kata" not found'),
    ):
        trial = _after(objects, _apply(workload("Deployment", pod_spec=field)))
        (reason,) = _refusals(trial)
        assert reason.endswith(f"is forbidden: {message}")
        assert _nodes_of_pods(trial) == {}


def test_overhead_of_a_runtime_class_counts():
    objects = [node("n1", "4"), runtime_class(overhead={"podFixed": {"cpu": "1"}})]
    assert _count(_after(objects, _apply(workload("Deployment", replicas=4)))) == (4, 0)
    trial = _after(objects, _apply(workload("Deployment", replicas=4, pod_spec={"runtimeClassName": "kata"})))
    assert _count(trial) == (2, 2)


def test_a_limit_range_fills_in_and_refuses():
    bare = workload("Deployment", replicas=3, pod_spec={"containers": [{"name": "main"}]})
    defaults = {"type": "Container", "defaultRequest": {"cpu": "2"}}
    assert _count(_after([node("n1", "4"), limit_range(defaults)], _apply(bare))) == (2, 1)
    cpu_maximum = limit_range({"type": "Container", "max": {"cpu": "1"}})
    (reason,) = _refusals(_after([node("n1"), cpu_maximum], _apply(workload("Job", cpu="2"))))
    assert "must be less than or equal to cpu limit of 1" in reason
    limited = {"containers": [{"name": "main", "resources": {"limits": {"cpu": "2"}}}]}
    (reason,) = _refusals(_after([node("n1"), cpu_maximum], _apply(workload("Job", pod_spec=limited))))
    assert reason.endswith("is forbidden: maximum cpu usage per Container is 1, but limit is 2")


def test_a_quota_lets_only_some_pods_exist_until_others_are_gone():
    objects = [*nodes(1), workload("ReplicaSet", "old", 2), quota(hard={"pods": "3"}, usage={"pods": "2"})]
    objects += [_web(f"old-{number}", "old", node="node-0") for number in range(2)]
    trial = _after(objects, _apply(workload("Deployment", replicas=2)))
    assert _count(trial) == (3, 0)
    (reason,) = _refusals(trial)
    assert "exceeded quota: quota, requested: pods=1, used: pods=3, limited: pods=3" in reason
    Scale("default", "ReplicaSet", "old", 1).carry_out(trial)
    trial.settle()
    assert _count(trial) == (3, 0)
    assert trial.refusals == {}


@pytest.mark.parametrize("change", [_apply(quota(hard={"pods": "5"})), Remove("ResourceQuota", "", "quota")])
def test_pods_are_created_once_a_quota_allows_them(change):
    trial = _after([*nodes(1), quota(hard={"pods": "1"})], _apply(workload("Deployment", replicas=3)), change)
    assert _count(trial) == (3, 0)
    assert trial.refusals == {}


def test_a_quota_that_is_applied_counts_from_then_on():
    trial = _after(nodes(1), _apply(_pod("old"), quota(hard={"pods": "2"}), workload("Deployment", replicas=3)))
    assert _count(trial) == (2, 0)


def test_pods_that_a_class_that_is_applied_allows_are_created():
    objects = [*nodes(1), priority_class("other", 1)]
    deployment = workload("Deployment", pod_spec={"priorityClassName": "urgent"})
    assert _count(_after(objects, _apply(deployment))) == (0, 0)
    assert _count(_after(objects, _apply(deployment), _apply(priority_class("urgent", 5)))) == (1, 0)


def test_a_quota_for_storage_keeps_the_pod_of_a_stateful_set_from_being_created():
    database = workload("StatefulSet", "db", 2, volumeClaimTemplates=[claim_template(size="5Gi")])
    objects = [*nodes(1), *storage("10Gi"), quota(hard={"requests.storage": "8Gi"})]
    trial = _after(objects, _apply(database))
    assert _nodes_of_pods(trial) == {"db-0": "node-0"}
    (reason,) = _refusals(trial)
    assert reason.startswith('persistentvolumeclaims "data-db-1" is forbidden: exceeded quota: quota')


def test_pods_that_were_refused_before_are_created_once_there_is_room():
    failure = {"conditions": [{"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate"}]}
    pods = [_web("web-a", node="node-0"), _web("other-a", "other", node="node-0")]
    workloads = [workload("ReplicaSet", replicas=3, status=failure), workload("ReplicaSet", "other", 1)]
    objects = [*nodes(1), *pods, *workloads, quota(hard={"pods": "2"})]
    trial = _after(objects, Scale("default", "ReplicaSet", "other", 0))
    assert _count(trial) == (2, 0)
    assert _refusals(trial)
    trial = _after(objects, _apply(quota(hard={"pods": "4"})))
    assert _count(trial) == (4, 0)
    assert not _refusals(trial)


WAITING = "waiting for ephemeral volume controller to create the persistentvolumeclaim"


def _scratch(replicas, size="5Gi"):
    volume = {"name": "data", "ephemeral": {"volumeClaimTemplate": {"spec": claim_template(size=size)["spec"]}}}
    return workload("ReplicaSet", replicas=replicas, pod_spec={"volumes": [volume]})


def test_a_pod_waits_for_the_claim_of_its_ephemeral_volume_that_a_quota_refuses():
    limit = quota(hard={"persistentvolumeclaims": "1"})
    trial = _after([*nodes(2), *storage("10Gi"), limit], _apply(_scratch(2)))
    assert _count(trial) == (1, 1)
    assert [WAITING in why for why in trial.why.values()] == [True]
    larger = quota(hard={"persistentvolumeclaims": "2"})
    assert _count(_after([*nodes(2), *storage("10Gi"), limit], _apply(_scratch(2)), _apply(larger))) == (2, 0)


def test_a_pod_waits_for_the_claim_of_its_ephemeral_volume_that_a_limit_range_refuses():
    limits = limit_range({"type": "PersistentVolumeClaim", "max": {"storage": "4Gi"}})
    trial = _after([*nodes(2), *storage("10Gi"), limits], _apply(_scratch(1)))
    assert _count(trial) == (0, 1)
    assert [WAITING in why for why in trial.why.values()] == [True]


def test_a_pod_that_is_refused_by_itself_is_an_error():
    trial = Trial(Cluster.load([*nodes(1), quota(hard={"pods": "0"})]))
    with pytest.raises(RefusedError, match='pods "x" is forbidden: exceeded quota'):
        trial.create(_pod("x"))


# ---------------------------------------------------------------- rollouts


def _roll(strategy, room, pods=4):
    """Return the pods of each size after an update of a Deployment whose nodes hold so many of them."""
    web = workload("Deployment", replicas=pods, strategy=strategy)
    update = workload("Deployment", replicas=pods, strategy=strategy, cpu="1001m")
    trial = _after([node("n1", f"{room * 1001}m")], _apply(web), _apply(update))
    sizes = [pod.spec.containers[0].resources.requests["cpu"] for pod in trial.world.pods if pod.node_name]
    return sizes.count("1"), sizes.count("1001m"), _count(trial)[1]


def test_a_rollout_needs_room_for_its_surge():
    surge = {"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}
    assert _roll(surge, room=5) == (0, 4, 0)
    assert _roll(surge, room=4) == (4, 0, 1)


def test_a_rollout_that_may_give_up_pods_first_needs_no_room():
    assert _roll({"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}}, room=4) == (0, 4, 0)
    assert _roll({"type": "Recreate"}, room=4) == (0, 4, 0)


def test_a_rollout_replaces_the_pods_of_a_replica_set_that_is_not_known():
    old = [_web(f"web-5d-{letter}", "web-5d", node="node-0") for letter in "ab"]
    trial = _after([*nodes(1), workload("Deployment", replicas=2), *old], _apply(workload("Deployment", cpu="2")))
    assert _count(trial) == (2, 0)
    assert not _nodes_of_pods(trial).keys() & {"web-5d-a", "web-5d-b"}


def test_an_update_of_a_stateful_set_stops_at_its_partition():
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"partition": 1}}
    old, new = (workload("StatefulSet", "db", 3, cpu=cpu, updateStrategy=strategy) for cpu in ("1", "2"))
    trial = _after(nodes(1), _apply(old), _apply(new))
    sizes = {pod.metadata.name: pod.spec.containers[0].resources.requests["cpu"] for pod in trial.world.pods}
    assert sizes == {"db-0": "1", "db-1": "2", "db-2": "2"}


def test_an_update_of_daemons_waits_where_one_does_not_fit():
    old, new = (workload("DaemonSet", "agent", cpu=cpu) for cpu in ("1", "99"))
    trial = _after(nodes(3), _apply(old), _apply(new))
    assert _count(trial) == (2, 1)


# ---------------------------------------------------------------- Jobs and others


@pytest.mark.parametrize(
    ("spec", "count"),
    [({"parallelism": 3, "completions": 2}, 2), ({"parallelism": 2, "suspend": True}, 0), ({"parallelism": 2}, 2)],
)
def test_jobs_have_the_pods_that_they_allow(spec, count):
    assert _count(_after(nodes(1), _apply(workload("Job", **spec)))) == (count, 0)


def test_a_resumed_job_gets_its_pods():
    suspended, resumed = (workload("Job", parallelism=2, suspend=is_so) for is_so in (True, False))
    assert _count(_after(nodes(1), _apply(suspended), _apply(resumed))) == (2, 0)
    assert _count(_after(nodes(1), _apply(resumed), _apply(suspended))) == (0, 0)


def test_a_removed_workload_is_not_replaced():
    trial = _after(nodes(1), _apply(workload("Deployment", replicas=2)), Remove("Deployment", "default", "web"))
    assert _nodes_of_pods(trial) == {}


def test_classes_and_limits_can_be_removed():
    deployment = workload("Deployment", pod_spec={"runtimeClassName": "kata"})
    objects = [node("n1", "1"), runtime_class(overhead={"podFixed": {"cpu": "1"}}), runtime_class("other")]
    assert _count(_after(objects, _apply(deployment))) == (0, 1)
    (reason,) = _refusals(_after(objects, Remove("RuntimeClass", "", "kata"), _apply(deployment)))
    assert reason.endswith('RuntimeClass "kata" not found')
    trial = _after([node("n1"), limit_range({"type": "Pod", "min": {"cpu": "2"}})], _apply(workload("Job")))
    assert _refusals(trial)
    Remove("LimitRange", "default", "limits").carry_out(trial)
    trial.settle()
    assert _count(trial) == (1, 0)


def test_the_pods_of_a_removed_node_come_back_elsewhere():
    trial = _after([node("n1"), node("n2"), _web("web-a", node="n1")], Remove("Node", "", "n1"))
    assert list(_nodes_of_pods(trial).values()) == ["n2"]


def test_gated_pods_and_those_of_no_profile_say_so():
    gated_pod, foreign_pod = _pod("gated", schedulingGates=[{"name": "wait"}]), pod("other", scheduler="other")
    trial = _after(nodes(1), _apply(gated_pod, foreign_pod))
    assert trial.why["default/gated"] == "Scheduling is blocked due to non-empty scheduling gates"
    assert trial.why["default/other"] == "no profile is named 'other'"


def test_a_trial_leaves_the_cluster_as_it_was():
    cluster = Cluster.load([node("n1"), node("n2"), _web("web-a", node="n1")])
    trial = Trial(cluster)
    trial.drain(node_named(trial.world, "n1"))
    assert [(node.name, node.spec.unschedulable) for node in cluster.nodes] == [("n1", False), ("n2", False)]
    assert [pod.node_name for pod in cluster.pods] == ["n1"]
    assert cluster.admission.objects.is_unknown("ReplicaSet")


def test_pods_that_wait_are_tried_by_their_age():
    young, old = _pod("a"), _pod("b")
    young["metadata"]["creationTimestamp"] = "2026-03-01T12:00:00Z"
    old["metadata"]["creationTimestamp"] = "2026-03-01T11:00:00Z"
    trial = _after([node("n1", "1"), young, old], _apply(_pod("huge", "9")))
    assert _nodes_of_pods(trial) == {"a": "", "b": "n1", "huge": ""}

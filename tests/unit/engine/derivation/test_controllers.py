import pytest

from podium.engine.derivation.controllers import (
    ReplicaSetState,
    Sync,
    SyncContext,
    desired_replicas,
    sync_daemon_set,
    sync_deployment,
    sync_job,
    sync_replica_set,
    sync_stateful_set,
)
from tests.builders import node, pod
from tests.workload_manifests import names_of, ready, workload

CONTEXT = SyncContext(now_s=0.0, restarts=lambda pod: (0, 0), serial=1)
UNREADY = ready(is_ready=False)


def _pods(*names, nodes="n1", status=None):
    return [pod(name, node=nodes, status=status) for name in names]


def _keys(*names):
    return {f"default/{name}" for name in names}


def _deletions(sync):
    return [pod.metadata.name for pod in sync.delete]


# ---------------------------------------------------------------- ReplicaSets


def test_a_replica_set_creates_what_is_missing_under_new_names():
    new_pods = sync_replica_set(workload("ReplicaSet", replicas=3), _pods("web-a"), [], CONTEXT).create
    names = names_of(new_pods)
    assert len(set(names)) == 2
    assert all(name.startswith("web-") for name in names)
    second_sync = sync_replica_set(
        workload("ReplicaSet", replicas=3), [], [], SyncContext(0.0, CONTEXT.restarts, serial=2)
    )
    assert not {*names} & {*names_of(second_sync.create)}


def test_pods_that_end_are_not_counted():
    pods = [*_pods("web-a"), pod("web-b", node="n1", terminating=True)]
    assert len(sync_replica_set(workload("ReplicaSet", replicas=2), pods, [], CONTEXT).create) == 1
    assert not sync_replica_set(workload("ReplicaSet", replicas=1), pods, [], CONTEXT).delete


def test_a_replica_set_deletes_pending_pods_first():
    pods = [*_pods("web-a", "web-b"), *_pods("web-c", nodes="")]
    assert _deletions(sync_replica_set(workload("ReplicaSet", replicas=2), pods, [], CONTEXT)) == ["web-c"]


def test_the_number_of_replicas_is_one_unless_it_is_given():
    assert desired_replicas(workload("ReplicaSet")) == 1
    assert desired_replicas(workload("ReplicaSet", replicas=0)) == 0
    assert desired_replicas(workload("ReplicaSet", replicas=10**9)) == 100_000


# ---------------------------------------------------------------- StatefulSets


def _stateful(pods, replicas=3, outdated=(), **spec):
    return sync_stateful_set(workload("StatefulSet", "db", replicas, **spec), pods, outdated)


def test_a_stateful_set_creates_one_pod_after_the_other():
    assert names_of(_stateful([]).create) == ["db-0"]
    assert names_of(_stateful(_pods("db-0")).create) == ["db-1"]
    assert names_of(_stateful(_pods("db-0", "db-2")).create) == ["db-1"]


def test_a_stateful_set_stops_at_its_first_pending_pod():
    assert _stateful([*_pods("db-0"), *_pods("db-1", nodes="")]).create == ()
    assert _stateful(_pods("db-0", status=UNREADY)).create == ()


def test_a_parallel_stateful_set_creates_all_pods_at_once():
    pods = _pods("db-0", nodes="")
    assert names_of(_stateful(pods, podManagementPolicy="Parallel").create) == ["db-1", "db-2"]


def test_ordinals_may_start_elsewhere():
    assert names_of(_stateful([], ordinals={"start": 5}).create) == ["db-5"]
    assert _deletions(_stateful(_pods("db-4", "db-5", "db-6", "db-7"), ordinals={"start": 5})) == ["db-4"]


def test_a_stateful_set_deletes_its_highest_ordinals_one_by_one_or_at_once():
    pods = _pods("db-0", "db-1", "db-2", "db-10")
    assert _deletions(_stateful(pods, 1)) == ["db-10"]
    assert _deletions(_stateful(pods, 1, podManagementPolicy="Parallel")) == ["db-10", "db-2", "db-1"]


def test_an_unready_pod_blocks_the_deletion_of_those_above_it_but_not_its_own():
    assert _deletions(_stateful([*_pods("db-0", "db-1"), *_pods("db-2", status=UNREADY)], 1)) == ["db-2"]
    pods = [*_pods("db-0"), *_pods("db-1", "db-2", status=UNREADY)]
    assert _stateful(pods, 1).delete == ()


@pytest.mark.parametrize("policy", ["OrderedReady", "Parallel"])
def test_a_stateful_set_waits_for_a_pod_that_is_ending(policy):
    database = workload("StatefulSet", "db", 2, podManagementPolicy=policy)
    ending = pod("db-1", node="n1", terminating=True)
    assert sync_stateful_set(database, [*_pods("db-0"), ending], _keys("db-1")) == Sync()
    smaller = workload("StatefulSet", "db", 1, podManagementPolicy=policy)
    assert sync_stateful_set(smaller, [*_pods("db-0"), ending], _keys("db-1")) == Sync()
    deletions = _deletions(sync_stateful_set(smaller, [*_pods("db-0"), ending], _keys("db-0")))
    # In order, what is new comes after the last pod is gone.
    assert deletions == (["db-0"] if policy == "Parallel" else [])


def test_a_rolling_update_replaces_the_highest_ordinal_first_down_to_its_partition():
    pods = _pods("db-0", "db-1", "db-2")
    all_old = _keys("db-0", "db-1", "db-2")
    assert _deletions(_stateful(pods, outdated=all_old)) == ["db-2"]
    assert _deletions(_stateful(pods, outdated=_keys("db-0", "db-1"))) == ["db-1"]
    partition = {"type": "RollingUpdate", "rollingUpdate": {"partition": 2}}
    assert _deletions(_stateful(pods, outdated=all_old, updateStrategy=partition)) == ["db-2"]
    assert _stateful(pods, outdated=_keys("db-0", "db-1"), updateStrategy=partition).delete == ()
    assert _stateful(pods, outdated=all_old, updateStrategy={"type": "OnDelete"}).delete == ()


def test_a_rolling_update_waits_until_new_pods_are_ready():
    pods = [*_pods("db-0", "db-1"), *_pods("db-2", status=UNREADY)]
    parallel = {"podManagementPolicy": "Parallel"}
    assert _stateful(pods, outdated=_keys("db-0", "db-1"), **parallel).delete == ()
    assert _deletions(_stateful(pods, outdated=_keys("db-2"), **parallel)) == ["db-2"]


# ---------------------------------------------------------------- DaemonSets


def _daemons(nodes, pods=(), outdated=(), pod_spec=None, **spec):
    daemon_set = workload("DaemonSet", "agent", pod_spec=pod_spec, **spec)
    return sync_daemon_set(daemon_set, pods, nodes, outdated, CONTEXT)


def _target(manifest):
    affinity = manifest["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    return affinity["nodeSelectorTerms"][0]["matchFields"][0]["values"][0]


def test_a_daemon_set_has_one_pod_for_each_node():
    nodes = [node("n1"), node("n2"), node("tainted", taints=["team=a:NoSchedule"])]
    assert [_target(manifest) for manifest in _daemons(nodes).create] == ["n1", "n2"]
    assert [_target(manifest) for manifest in _daemons(nodes, _pods("agent-a")).create] == ["n2"]
    tolerations = {"tolerations": [{"operator": "Exists"}]}
    assert [_target(manifest) for manifest in _daemons(nodes, pod_spec=tolerations).create] == ["n1", "n2", "tainted"]


def test_a_pending_daemon_counts_for_the_node_that_it_is_meant_for():
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}
    affinity = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    pending = pod("agent-a", affinity={"nodeAffinity": affinity})
    assert _daemons([node("n1")], [pending]).create == ()


def test_a_daemon_comes_when_the_last_one_of_its_node_is_gone_or_beside_it_if_there_may_be_two():
    ending = pod("agent-1", node="n1", terminating=True)
    agent = workload("DaemonSet", "agent")
    assert sync_daemon_set(agent, [ending], [node("n1")], (), CONTEXT) == Sync()
    surging = workload("DaemonSet", "agent", updateStrategy={"rollingUpdate": {"maxSurge": 1}})
    assert len(sync_daemon_set(surging, [ending], [node("n1")], (), CONTEXT).create) == 1


def test_an_update_of_daemons_counts_a_node_whose_daemon_is_ending():
    pods = [pod("agent-1", node="n1", terminating=True), pod("agent-2", node="n2")]
    sync = sync_daemon_set(workload("DaemonSet", "agent"), pods, [node("n1"), node("n2")], _keys("agent-2"), CONTEXT)
    assert sync == Sync()


def test_daemons_on_nodes_that_drive_them_away_are_deleted():
    pods = _pods("agent-a"), _pods("agent-b", nodes="n2"), _pods("agent-c", nodes="gone")
    nodes = [node("n1", taints=["team=a:NoSchedule"]), node("n2", taints=["team=a:NoExecute"])]
    assert _deletions(_daemons(nodes, [tainted_node for (tainted_node,) in pods])) == ["agent-c", "agent-b"]


@pytest.mark.parametrize(
    ("strategy", "deletions"),
    [
        ({}, ["agent-0"]),
        ({"rollingUpdate": {"maxUnavailable": 2}}, ["agent-0", "agent-1"]),
        ({"rollingUpdate": {"maxUnavailable": "50%"}}, ["agent-0", "agent-1"]),
        ({"rollingUpdate": {"maxUnavailable": 0}}, ["agent-0"]),
        ({"type": "OnDelete"}, []),
    ],
)
def test_an_update_of_daemons_keeps_to_its_limit(strategy, deletions):
    nodes = [node(f"n{index}") for index in range(4)]
    pods = [pod(f"agent-{index}", node=f"n{index}") for index in range(4)]
    outdated = {pod.key for pod in pods}
    assert _deletions(_daemons(nodes, pods, outdated, updateStrategy=strategy)) == deletions


def test_an_update_of_daemons_waits_for_new_pods_and_replaces_unready_old_ones_at_once():
    nodes = [node(f"n{index}") for index in range(3)]
    old = [pod(f"agent-{index}", node=f"n{index}", status=UNREADY if index == 1 else {}) for index in range(2)]
    new = pod("agent-2", node="n2", status=UNREADY)
    outdated = {outdated_pod.key for outdated_pod in old}
    assert _deletions(_daemons(nodes, [*old, new], outdated)) == ["agent-1"]


# ---------------------------------------------------------------- Jobs


def _job(pods=(), status=None, **spec):
    return sync_job(workload("Job", "sum", status=status, **spec), pods, CONTEXT)


@pytest.mark.parametrize(
    ("spec", "status", "count"),
    [
        ({}, {}, 1),
        ({"parallelism": 3}, {}, 3),
        ({"parallelism": 3, "completions": 2}, {}, 2),
        ({"parallelism": 3, "completions": 8}, {"succeeded": 6}, 2),
        ({"parallelism": 3, "completions": 8}, {"succeeded": 8}, 0),
        ({"parallelism": 3}, {"succeeded": 1}, 0),
        ({"parallelism": 3, "suspend": True}, {}, 0),
        ({"parallelism": 3}, {"conditions": [{"type": "Complete", "status": "True"}]}, 0),
        ({"parallelism": 3}, {"conditions": [{"type": "Failed", "status": "True"}]}, 0),
        ({"parallelism": 3}, {"conditions": [{"type": "Failed", "status": "False"}]}, 3),
        ({"parallelism": 0}, {}, 0),
    ],
)
def test_a_job_has_as_many_pods_as_it_allows(spec, status, count):
    assert len(_job(status=status, **spec).create) == count


def test_a_suspended_job_has_no_pods_and_a_smaller_one_fewer():
    pods = _pods("sum-a", "sum-b")
    assert _deletions(_job(pods, suspend=True)) == ["sum-a", "sum-b"]
    assert _deletions(_job(pods, parallelism=1)) == ["sum-b"]
    assert not _job(pods, parallelism=2).delete


def test_a_job_replaces_pods_that_are_being_deleted_only_when_they_are_gone():
    pods = [*_pods("train-a"), pod("train-b", node="n1", terminating=True)]
    assert sync_job(workload("Job", "train", parallelism=2), pods, CONTEXT) == Sync()
    assert _deletions(sync_job(workload("Job", "train", parallelism=0), pods, CONTEXT)) == ["train-a"]


def test_pods_of_an_indexed_job_have_the_free_indexes():
    key = "batch.kubernetes.io/job-completion-index"
    running = pod("sum-1-x", node="n1", metadata={"annotations": {key: "1"}})
    spec = {"completionMode": "Indexed", "completions": 7, "parallelism": 3}
    new_pods = _job([running], {"succeeded": 3, "completedIndexes": "0,2-3"}, **spec).create
    assert [new_pod["metadata"]["annotations"][key] for new_pod in new_pods] == ["4", "5"]
    assert [name.rpartition("-")[0] for name in names_of(new_pods)] == ["sum-4", "sum-5"]


# ---------------------------------------------------------------- Deployments


def _state(name, replicas, ready_pods=None):
    return ReplicaSetState(workload("ReplicaSet", name, replicas), replicas if ready_pods is None else ready_pods)


def _rollout(new, *old, replicas=4, pod_count=0, **strategy):
    return sync_deployment(workload("Deployment", replicas=replicas, strategy=strategy), new, old, pod_count)


def test_a_deployment_without_old_pods_has_all_pods_of_its_new_template():
    assert _rollout(_state("new", 0)) == {"new": 4}
    assert _rollout(_state("new", 6)) == {"new": 4}
    assert _rollout(_state("new", 4), _state("old", 0)) == {}


@pytest.mark.parametrize(
    ("update", "first"),
    [
        ({}, {"new": 1}),
        ({"maxSurge": 2}, {"new": 2}),
        ({"maxSurge": "100%"}, {"new": 4}),
        ({"maxSurge": 0, "maxUnavailable": 1}, {"old": 3}),
        ({"maxSurge": 0, "maxUnavailable": "50%"}, {"old": 2}),
        ({"maxSurge": 0, "maxUnavailable": 0}, {"old": 3}),
    ],
)
def test_a_rollout_surges_before_it_gives_up_old_pods(update, first):
    assert _rollout(_state("new", 0), _state("old", 4), rollingUpdate=update) == first


def test_a_rollout_waits_until_new_pods_are_ready():
    update = {"maxSurge": 1, "maxUnavailable": 0}
    assert _rollout(_state("new", 1, 0), _state("old", 4), rollingUpdate=update) == {}
    assert _rollout(_state("new", 1), _state("old", 4), rollingUpdate=update) == {"old": 3}


def test_unready_old_pods_go_first():
    update = {"maxSurge": 0, "maxUnavailable": 1}
    states = _state("older", 2, 2), _state("old", 2, 1)
    assert _rollout(_state("new", 0), *states, rollingUpdate=update) == {"old": 1}


def test_recreation_ends_all_old_pods_before_it_creates_new_ones():
    assert _rollout(_state("new", 0), _state("old", 4), type="Recreate") == {"old": 0}
    assert _rollout(_state("new", 0), _state("old", 0), pod_count=1, type="Recreate") == {}
    assert _rollout(_state("new", 0), _state("old", 0), type="Recreate") == {"new": 4}

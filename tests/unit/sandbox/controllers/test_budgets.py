import pytest


def budget_status(bench, **spec):
    manifest = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "b"}}
    bench.store.create(manifest | {"spec": {"selector": {"matchLabels": {"app": "web"}}} | spec})
    bench.settle()
    status = bench.store.get("pdb", "b")["status"]
    return status["disruptionsAllowed"], status["currentHealthy"], status["desiredHealthy"], status["expectedPods"]


@pytest.mark.parametrize(
    ("spec", "counts"),
    [
        ({"minAvailable": 3}, (1, 4, 3, 4)),
        ({"minAvailable": "60%"}, (1, 4, 3, 4)),
        ({"maxUnavailable": 1}, (1, 4, 3, 4)),
        ({"maxUnavailable": "60%"}, (3, 4, 1, 4)),
        ({"minAvailable": 5}, (0, 4, 5, 4)),
        ({}, (0, 4, 0, 0)),
    ],
)
def test_a_budget_allows_what_its_workload_can_spare(bench, workload, spec, counts):
    bench.store.create(workload("Deployment", replicas=4))
    bench.settle(running=True)
    assert budget_status(bench, **spec) == counts


def test_a_share_of_pods_without_a_workload_allows_nothing(bench, workload):
    bench.store.create(workload("ReplicaSet", replicas=2))
    bench.settle(running=True)
    bench.store.delete("replicasets", "web", grace_period_s=0)
    bare = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "bare", "labels": {"app": "web"}}}
    bench.store.create(bare | {"spec": {"containers": [{"name": "main", "image": "web:1"}]}})
    bench.settle(running=True)
    assert budget_status(bench, maxUnavailable=1)[0] == 0


def test_pods_that_go_or_are_not_ready_are_not_healthy(bench, workload):
    bench.store.create(workload("ReplicaSet", replicas=3))
    bench.settle(running=True)
    going, unready, _ = sorted(bench.names())
    bench.store.delete("pods", going)
    bench.set_phase(unready, "Running", conditions=[])
    assert budget_status(bench, minAvailable=1)[:2] == (0, 1)


def test_the_status_follows_the_pods(bench, workload):
    bench.store.create(workload("Deployment", replicas=2))
    bench.settle()
    assert budget_status(bench, minAvailable=1)[0] == 0
    bench.settle(running=True)
    assert bench.store.get("pdb", "b")["status"]["disruptionsAllowed"] == 1

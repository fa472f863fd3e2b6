import pytest


def allowed(world, **spec):
    manifest = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "b"}}
    world.store.create(manifest | {"spec": {"selector": {"matchLabels": {"app": "web"}}} | spec})
    world.settle()
    status = world.store.get("pdb", "b")["status"]
    return status["disruptionsAllowed"], status["currentHealthy"], status["desiredHealthy"], status["expectedPods"]


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"minAvailable": 3}, (1, 4, 3, 4)),
        ({"minAvailable": "60%"}, (1, 4, 3, 4)),
        ({"maxUnavailable": 1}, (1, 4, 3, 4)),
        ({"maxUnavailable": "60%"}, (3, 4, 1, 4)),
        ({"minAvailable": 5}, (0, 4, 5, 4)),
        ({}, (0, 4, 0, 0)),
    ],
)
def test_a_budget_allows_what_its_workload_can_spare(world, workload, spec, expected):
    world.store.create(workload("Deployment", replicas=4))
    world.settle(running=True)
    assert allowed(world, **spec) == expected


def test_a_share_of_pods_without_a_workload_allows_nothing(world, workload):
    world.store.create(workload("ReplicaSet", replicas=2))
    world.settle(running=True)
    world.store.delete("replicasets", "web", grace_period_s=0)
    bare = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "bare", "labels": {"app": "web"}}}
    world.store.create(bare | {"spec": {"containers": [{"name": "main", "image": "web:1"}]}})
    world.settle(running=True)
    assert allowed(world, maxUnavailable=1)[0] == 0


def test_pods_that_go_or_are_not_ready_are_not_healthy(world, workload):
    world.store.create(workload("ReplicaSet", replicas=3))
    world.settle(running=True)
    going, unready, _ = sorted(world.names())
    world.store.delete("pods", going)
    world.set_phase(unready, "Running", conditions=[])
    assert allowed(world, minAvailable=1)[:2] == (0, 1)


def test_the_status_follows_the_pods(world, workload):
    world.store.create(workload("Deployment", replicas=2))
    world.settle()
    assert allowed(world, minAvailable=1)[0] == 0
    world.settle(running=True)
    assert world.store.get("pdb", "b")["status"]["disruptionsAllowed"] == 1

def test_there_are_as_many_pods_as_replicas_whatever_happens_to_them(world, workload):
    world.store.create(workload("ReplicaSet", replicas=3))
    world.settle(running=True)
    deleted, failed, _ = sorted(world.names())
    world.store.delete("pods", deleted)
    world.set_phase(failed, "Failed")
    world.settle()
    assert len(world.names() - {failed}) == 3
    world.store.update(workload("ReplicaSet", replicas=0))
    world.settle()
    assert world.names() == {failed}
    assert world.store.get("replicasets", "web")["status"]["replicas"] == 0


def test_pods_without_a_node_go_first(world, workload):
    world.store.create(workload("ReplicaSet", replicas=1))
    world.settle(running=True)
    runs = world.names()
    world.store.update(workload("ReplicaSet", replicas=2))
    world.settle()
    world.store.update(workload("ReplicaSet", replicas=1))
    world.settle()
    assert world.names() == runs


def test_a_pod_that_is_refused_is_told_and_tried_again(world, workload, monkeypatch):
    later = []
    monkeypatch.setattr(
        "asyncio.get_running_loop", lambda: type("Loop", (), {"call_later": lambda *a: later.append(a)})
    )
    manifest = workload("ReplicaSet", replicas=1)
    manifest["spec"]["template"]["spec"]["priorityClassName"] = "urgent"
    world.store.create(manifest)
    world.settle()
    [failure] = world.store.get("replicasets", "web")["status"]["conditions"]
    assert "no PriorityClass with name urgent" in failure["message"]
    assert len(later) == 1
    urgent = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "urgent"}}
    world.store.create(urgent)
    [(delay_s, try_again, *entry)] = later
    assert delay_s == 1.0
    try_again(*entry)
    world.settle()
    assert len(world.pods()) == 1
    assert "conditions" not in world.store.get("replicasets", "web")["status"]


def test_a_pod_that_is_relabelled_is_let_go_and_replaced(world, workload):
    world.store.create(workload("ReplicaSet", replicas=1))
    world.settle()
    [pod] = world.pods()
    world.store.patch("pods", pod["metadata"]["name"], {"metadata": {"labels": {"app": "debug"}}})
    world.settle()
    assert len(world.pods()) == 2
    world.store.delete("replicasets", "web")
    world.settle()
    assert world.names() == {pod["metadata"]["name"]}

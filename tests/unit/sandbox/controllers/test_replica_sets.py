import pytest


def test_there_are_as_many_pods_as_replicas_whatever_happens_to_them(bench, workload):
    bench.store.create(workload("ReplicaSet", replicas=3))
    bench.settle(running=True)
    first_name, second_name, _ = sorted(bench.names())
    bench.store.delete("pods", first_name)
    bench.set_phase(second_name, "Failed")
    bench.settle()
    assert len(bench.names() - {second_name}) == 3
    bench.store.update(workload("ReplicaSet", replicas=0))
    bench.settle()
    assert bench.names() == {second_name}
    assert bench.store.get("replicasets", "web")["status"]["replicas"] == 0


def test_pods_without_a_node_go_first(bench, workload):
    bench.store.create(workload("ReplicaSet", replicas=1))
    bench.settle(running=True)
    runs = bench.names()
    bench.store.update(workload("ReplicaSet", replicas=2))
    bench.settle()
    bench.store.update(workload("ReplicaSet", replicas=1))
    bench.settle()
    assert bench.names() == runs


@pytest.mark.parametrize("kind", ["Deployment", "ReplicaSet"])
def test_only_a_deployment_gives_up_a_node_with_several_of_its_pods_first(bench, workload, kind):
    bench.store.create(workload(kind, replicas=3))
    bench.settle()
    oldest, *younger_pods = bench.pods()
    bench.run(oldest, node="n2")
    for pod in younger_pods:
        bench.run(pod, node="n1")
        cost = {"metadata": {"annotations": {"controller.kubernetes.io/pod-deletion-cost": "0"}}}
        bench.store.patch("pods", pod["metadata"]["name"], cost)
    bench.settle()
    # The pod that is alone on its node has been ready for the shortest time.
    alone = bench.store.get("pods", oldest["metadata"]["name"])
    ready = {"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T11:59:59Z"}
    bench.store.update(alone | {"status": alone["status"] | {"conditions": [ready]}}, subresource="status")
    for pod in younger_pods:
        stored_pod = bench.store.get("pods", pod["metadata"]["name"])
        since = ready | {"lastTransitionTime": "2026-01-01T09:00:00Z"}
        bench.store.update(
            stored_pod | {"status": stored_pod["status"] | {"conditions": [since]}}, subresource="status"
        )
    bench.store.patch(kind, "web", {"spec": {"replicas": 2}})
    bench.settle()
    assert (oldest["metadata"]["name"] in bench.names()) == (kind == "Deployment")


def test_a_refused_pod_gets_an_event_and_another_try(bench, workload):
    manifest = workload("ReplicaSet", replicas=1)
    manifest["spec"]["template"]["spec"]["priorityClassName"] = "urgent"
    bench.store.create(manifest)
    bench.settle()
    [failure] = bench.store.get("replicasets", "web")["status"]["conditions"]
    assert "no PriorityClass with name urgent" in failure["message"]
    urgent = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "urgent"}}
    bench.store.create(urgent)
    bench.settle()
    assert bench.pods() == []
    bench.pass_time(1)
    bench.settle()
    assert len(bench.pods()) == 1
    assert "conditions" not in bench.store.get("replicasets", "web")["status"]


def test_a_pod_that_is_relabelled_is_let_go_and_replaced(bench, workload):
    bench.store.create(workload("ReplicaSet", replicas=1))
    bench.settle()
    [pod] = bench.pods()
    bench.store.patch("pods", pod["metadata"]["name"], {"metadata": {"labels": {"app": "debug"}}})
    bench.settle()
    assert len(bench.pods()) == 2
    bench.store.delete("replicasets", "web")
    bench.settle()
    assert bench.names() == {pod["metadata"]["name"]}

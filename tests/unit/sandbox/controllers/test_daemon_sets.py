from podium.sandbox.controllers.daemon_nodes import target_node

UNSCHEDULABLE = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}


def add_node(bench, name, *taints, **labels):
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}}
    bench.store.create(node | {"spec": {"taints": list(taints)}})


def on_nodes(bench):
    return sorted(target_node(pod) for pod in bench.pods())


def start(bench):
    """Bind every pod to the node that it is meant for, and have it ready."""
    for pod in bench.pods():
        if "nodeName" not in pod["spec"]:
            bench.run(pod, node=target_node(pod))
    bench.settle()


def test_every_node_gets_one_pod_also_a_node_that_comes_later(bench, workload):
    add_node(bench, "n1")
    add_node(bench, "n2", UNSCHEDULABLE)
    bench.store.create(workload("DaemonSet"))
    bench.settle()
    assert on_nodes(bench) == ["n1", "n2"]
    add_node(bench, "n3")
    bench.settle()
    assert on_nodes(bench) == ["n1", "n2", "n3"]
    start(bench)
    status = bench.store.get("daemonsets", "web")["status"]
    assert (status["desiredNumberScheduled"], status["numberReady"], status["numberUnavailable"]) == (3, 3, 0)


def test_a_pod_is_meant_for_its_node_and_tolerates_what_daemons_do(bench, workload):
    add_node(bench, "n1")
    manifest = workload("DaemonSet")
    manifest["spec"]["template"]["spec"]["hostNetwork"] = True
    bench.store.create(manifest)
    bench.settle()
    [pod] = bench.pods()
    tolerated = {
        (toleration["key"].rpartition("/")[2], toleration["effect"]) for toleration in pod["spec"]["tolerations"]
    }
    assert tolerated == {
        *(("not-ready", "NoExecute"), ("unreachable", "NoExecute"), ("disk-pressure", "NoSchedule")),
        *(("memory-pressure", "NoSchedule"), ("pid-pressure", "NoSchedule"), ("unschedulable", "NoSchedule")),
        ("network-unavailable", "NoSchedule"),
    }
    assert not any("tolerationSeconds" in toleration for toleration in pod["spec"]["tolerations"])


def test_nodes_are_selected_by_label_and_taint_and_pods_follow_their_changes(bench, workload):
    add_node(bench, "n1", disk="ssd")
    add_node(bench, "n2", disk="hdd")
    add_node(bench, "n3", {"key": "dedicated", "value": "a", "effect": "NoSchedule"}, disk="ssd")
    manifest = workload("DaemonSet")
    manifest["spec"]["template"]["spec"]["nodeSelector"] = {"disk": "ssd"}
    bench.store.create(manifest)
    bench.settle()
    assert on_nodes(bench) == ["n1"]
    start(bench)
    bench.store.patch("nodes", "n2", {"metadata": {"labels": {"disk": "ssd"}}})
    bench.store.patch("nodes", "n1", {"spec": {"taints": [{"key": "full", "effect": "NoSchedule"}]}})
    bench.settle()
    # A taint NoSchedule does not drive a pod away, NoExecute does.
    assert on_nodes(bench) == ["n1", "n2"]
    bench.store.patch("nodes", "n1", {"spec": {"taints": [{"key": "full", "effect": "NoExecute"}]}})
    bench.settle()
    assert on_nodes(bench) == ["n2"]


def test_a_pod_goes_with_its_node_and_an_ended_one_is_replaced(bench, workload):
    add_node(bench, "n1")
    add_node(bench, "n2")
    bench.store.create(workload("DaemonSet"))
    bench.settle()
    start(bench)
    bench.store.delete("nodes", "n2")
    bench.settle()
    assert on_nodes(bench) == ["n1"]
    [finished_name] = bench.names()
    bench.set_phase(finished_name, "Failed")
    bench.settle()
    assert on_nodes(bench) == ["n1"]
    assert bench.names() != {finished_name}


def test_a_heartbeat_wakes_nobody(bench, workload):
    add_node(bench, "n1")
    bench.store.create(workload("DaemonSet"))
    bench.settle()
    revision = bench.store.revision
    ready = {"conditions": [{"type": "Ready", "status": "True"}]}
    bench.store.update(bench.store.get("nodes", "n1") | {"status": ready}, subresource="status")
    bench.settle()
    assert bench.store.revision == revision + 1


def test_a_rolling_update_replaces_as_many_at_a_time_as_may_be_unavailable(bench, workload):
    for number in range(3):
        add_node(bench, f"n{number}")
    bench.store.create(workload("DaemonSet"))
    bench.settle()
    start(bench)
    bench.store.update(workload("DaemonSet", image="web:2"))
    bench.settle()
    for old_count in (2, 1, 0):
        images = [pod["spec"]["containers"][0]["image"] for pod in bench.pods()]
        assert (images.count("web:1"), len(images)) == (old_count, 2)
        for pod in bench.store.list("pods"):
            if "deletionTimestamp" in pod["metadata"]:
                bench.store.delete("pods", pod["metadata"]["name"], grace_period_s=0)
        bench.settle()
        start(bench)
    assert bench.store.get("daemonsets", "web")["status"]["updatedNumberScheduled"] == 3


def test_the_pods_of_a_daemon_set_go_with_it(bench, workload):
    add_node(bench, "n1")
    bench.store.create(workload("DaemonSet"))
    bench.settle()
    bench.store.delete("daemonsets", "web")
    bench.settle()
    assert bench.names() == set()

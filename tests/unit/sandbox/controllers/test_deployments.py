def images(bench):
    return [pod["spec"]["containers"][0]["image"] for pod in bench.pods()]


def test_pods_come_with_their_owners_and_the_status_follows(bench, workload):
    bench.store.create(workload("Deployment", replicas=3))
    bench.settle()
    deployment = bench.store.get("deployments", "web")
    assert (deployment["status"]["replicas"], deployment["status"]["availableReplicas"]) == (3, 0)
    bench.settle(running=True)
    deployment = bench.store.get("deployments", "web")
    assert (deployment["status"]["updatedReplicas"], deployment["status"]["availableReplicas"]) == (3, 3)
    assert {condition["type"]: condition["status"] for condition in deployment["status"]["conditions"]} == {
        "Available": "True",
        "Progressing": "True",
    }
    [replica_set] = bench.store.list("replicasets")
    assert replica_set["metadata"]["ownerReferences"][0]["uid"] == deployment["metadata"]["uid"]
    assert bench.pods()[0]["metadata"]["ownerReferences"][0]["name"] == replica_set["metadata"]["name"]


def test_a_new_template_replaces_the_pods_and_the_old_one_returns_by_a_rollback(bench, workload):
    bench.store.create(workload("Deployment", replicas=4))
    bench.settle(running=True)
    for image, revision in (("web:2", "2"), ("web:1", "3")):
        bench.store.update(workload("Deployment", replicas=4, image=image))
        bench.settle(running=True)
        assert images(bench) == [image] * 4
        assert bench.store.get("deployments", "web")["metadata"]["annotations"] == {
            "deployment.kubernetes.io/revision": revision
        }
    assert len(bench.store.list("replicasets")) == 2


def test_a_rolling_update_stops_where_the_new_pods_do_not_come_up(bench, workload):
    bench.store.create(workload("Deployment", replicas=4))
    bench.settle(running=True)
    bench.store.update(workload("Deployment", replicas=4, image="web:2"))
    bench.settle()
    assert sorted(images(bench)) == ["web:1"] * 3 + ["web:2"] * 2


def test_recreate_waits_until_the_old_pods_are_gone(bench, workload):
    recreate = {"type": "Recreate"}
    bench.store.create(workload("Deployment", replicas=2, strategy=recreate))
    bench.settle(running=True)
    bench.store.update(workload("Deployment", replicas=2, image="web:2", strategy=recreate))
    bench.settle(running=True)
    assert images(bench) == ["web:2"] * 2


def test_a_paused_deployment_scales_and_does_not_roll(bench, workload):
    bench.store.create(workload("Deployment", replicas=1))
    bench.settle(running=True)
    bench.store.update(workload("Deployment", replicas=2, image="web:2", paused=True))
    bench.settle(running=True)
    assert images(bench) == ["web:1"] * 2


def test_old_replica_sets_are_kept_up_to_their_limit(bench, workload):
    for number in range(4):
        manifest = workload("Deployment", replicas=1, image=f"web:{number}", revisionHistoryLimit=2)
        (bench.store.update if number else bench.store.create)(manifest)
        bench.settle(running=True)
    assert len(bench.store.list("replicasets")) == 3

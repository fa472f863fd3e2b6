def images(world):
    return [pod["spec"]["containers"][0]["image"] for pod in world.pods()]


def test_pods_come_with_their_owners_and_the_status_follows(world, workload):
    world.store.create(workload("Deployment", replicas=3))
    world.settle()
    made = world.store.get("deployments", "web")
    assert (made["status"]["replicas"], made["status"]["availableReplicas"]) == (3, 0)
    world.settle(running=True)
    made = world.store.get("deployments", "web")
    assert (made["status"]["updatedReplicas"], made["status"]["availableReplicas"]) == (3, 3)
    assert {each["type"]: each["status"] for each in made["status"]["conditions"]} == {
        "Available": "True",
        "Progressing": "True",
    }
    [replica_set] = world.store.list("replicasets")
    assert replica_set["metadata"]["ownerReferences"][0]["uid"] == made["metadata"]["uid"]
    assert world.pods()[0]["metadata"]["ownerReferences"][0]["name"] == replica_set["metadata"]["name"]


def test_a_new_template_replaces_the_pods_and_the_old_one_returns_by_a_rollback(world, workload):
    world.store.create(workload("Deployment", replicas=4))
    world.settle(running=True)
    for image, revision in (("web:2", "2"), ("web:1", "3")):
        world.store.update(workload("Deployment", replicas=4, image=image))
        world.settle(running=True)
        assert images(world) == [image] * 4
        assert world.store.get("deployments", "web")["metadata"]["annotations"] == {
            "deployment.kubernetes.io/revision": revision
        }
    assert len(world.store.list("replicasets")) == 2


def test_a_rolling_update_stops_where_the_new_pods_do_not_come_up(world, workload):
    world.store.create(workload("Deployment", replicas=4))
    world.settle(running=True)
    world.store.update(workload("Deployment", replicas=4, image="web:2"))
    world.settle()
    assert sorted(images(world)) == ["web:1"] * 3 + ["web:2"] * 2


def test_recreate_waits_until_the_old_pods_are_gone(world, workload):
    recreate = {"type": "Recreate"}
    world.store.create(workload("Deployment", replicas=2, strategy=recreate))
    world.settle(running=True)
    world.store.update(workload("Deployment", replicas=2, image="web:2", strategy=recreate))
    world.settle(running=True)
    assert images(world) == ["web:2"] * 2


def test_a_paused_deployment_scales_and_does_not_roll(world, workload):
    world.store.create(workload("Deployment", replicas=1))
    world.settle(running=True)
    world.store.update(workload("Deployment", replicas=2, image="web:2", paused=True))
    world.settle(running=True)
    assert images(world) == ["web:1"] * 2


def test_old_replica_sets_are_kept_up_to_their_limit(world, workload):
    for number in range(4):
        manifest = workload("Deployment", replicas=1, image=f"web:{number}", revisionHistoryLimit=2)
        (world.store.update if number else world.store.create)(manifest)
        world.settle(running=True)
    assert len(world.store.list("replicasets")) == 3

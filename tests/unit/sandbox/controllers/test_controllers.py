def test_what_an_owner_has_goes_with_it(world, workload):
    world.store.create(workload("Deployment", replicas=2))
    world.settle()
    world.store.delete("deployments", "web")
    world.settle()
    assert world.store.list("replicasets") == []
    assert world.store.list("pods") == []


def test_a_pod_may_name_an_owner_that_is_made_up(world, workload):
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "ghost", "uid": "1", "controller": True}
    metadata = {"name": "a", "ownerReferences": [owner]}
    spec = workload("Deployment")["spec"]["template"]["spec"]
    world.store.create({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})
    world.settle()
    assert world.names() == {"a"}


def test_pods_of_the_selector_that_nobody_controls_are_taken_over(world, workload):
    template = workload("ReplicaSet")["spec"]["template"]
    metadata = template["metadata"] | {"name": "bare"}
    world.store.create({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"]})
    world.store.create(workload("ReplicaSet", replicas=2))
    world.settle()
    assert len(world.names()) == 2
    assert "bare" in world.names()


def test_every_namespace_gets_its_default_service_account(world):
    world.store.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}})
    world.settle()
    assert world.store.get("serviceaccounts", "default", "team")


def test_a_namespace_that_is_deleted_stays_empty(world, workload):
    world.store.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}})
    world.store.create(workload("Deployment", replicas=2), namespace="team")
    world.settle()
    world.store.delete("namespaces", "team")
    world.settle()
    assert world.store.list("pods", "team") == world.store.list("serviceaccounts", "team") == []


def test_a_workload_beyond_the_history_is_still_looked_after(workload):
    from podium.sandbox.controllers import Controllers
    from podium.sandbox.store import Store

    store = Store(history_limit=2)
    controllers = Controllers(store)
    controllers.work()
    store.create(workload("ReplicaSet", replicas=9))
    for _ in range(4):
        controllers.work()
    store.compact()
    for pod in store.list("pods")[:5]:
        store.delete("pods", pod["metadata"]["name"], grace_period_s=0)
    store.compact()
    for _ in range(4):
        controllers.work()
    assert len(store.list("pods")) == 9

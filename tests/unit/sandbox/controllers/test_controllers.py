import asyncio
import contextlib

from podium.sandbox.controllers import Controllers
from podium.sandbox.store import Store
from tests.virtual_time import VirtualTimeLoop


def test_what_an_owner_has_goes_with_it(bench, workload):
    bench.store.create(workload("Deployment", replicas=2))
    bench.settle()
    bench.store.delete("deployments", "web")
    bench.settle()
    assert bench.store.list("replicasets") == []
    assert bench.store.list("pods") == []


def test_a_pod_may_name_an_owner_that_is_made_up(bench, workload):
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "ghost", "uid": "1", "controller": True}
    metadata = {"name": "a", "ownerReferences": [owner]}
    spec = workload("Deployment")["spec"]["template"]["spec"]
    bench.store.create({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})
    bench.settle()
    assert bench.names() == {"a"}


def test_pods_of_the_selector_that_nobody_controls_are_taken_over(bench, workload):
    template = workload("ReplicaSet")["spec"]["template"]
    metadata = template["metadata"] | {"name": "bare"}
    bench.store.create({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"]})
    bench.store.create(workload("ReplicaSet", replicas=2))
    bench.settle()
    assert len(bench.names()) == 2
    assert "bare" in bench.names()


def test_every_namespace_gets_its_default_service_account(bench):
    bench.store.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}})
    bench.settle()
    assert bench.store.get("serviceaccounts", "default", "team")


def test_a_namespace_that_is_deleted_stays_empty(bench, workload):
    bench.store.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}})
    bench.store.create(workload("Deployment", replicas=2), namespace="team")
    bench.settle()
    bench.store.delete("namespaces", "team")
    bench.settle()
    assert bench.store.list("pods", "team") == bench.store.list("serviceaccounts", "team") == []


def test_a_workload_beyond_the_history_is_still_looked_after(workload):
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


def test_a_change_is_acted_upon_only_after_others_have_heard_of_it(workload):
    async def watch_pods():
        store = Store()
        controllers = asyncio.create_task(Controllers(store).run())
        await asyncio.sleep(1.0)
        store.create(workload("ReplicaSet", replicas=3))
        counts = []
        for pause_s in (0.005, 0.1):
            await asyncio.sleep(pause_s)
            counts.append(len(store.list("pods")))
        controllers.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await controllers
        return counts

    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        assert runner.run(watch_pods()) == [0, 3]

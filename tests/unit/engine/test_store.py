from podium.engine.store import ObjectStore
from podium.objects.resource_types import NODES, PODS, SERVICES
from tests.manifests import node, pod


def _pod_in(namespace, name):
    return {**pod(name), "metadata": {"name": name, "namespace": namespace}}


def test_objects_are_in_order_of_namespace_then_name():
    store = ObjectStore.of([_pod_in("b", "a"), _pod_in("a-b", "x"), _pod_in("a", "z"), node("n2"), node("n1")])
    assert list(store.objects(PODS)) == ["a/z", "a-b/x", "b/a"]
    assert list(store.objects(NODES)) == ["n1", "n2"]


def test_pods_that_have_ended_and_unknown_kinds_are_left_out():
    finished_pods = [pod("done", status={"phase": "Succeeded"}), pod("failed", status={"phase": "Failed"})]
    store = ObjectStore.of(
        [*finished_pods, pod("runs"), {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}}]
    )
    assert list(store.objects(PODS)) == ["default/runs"]


def test_lister_sees_changes_of_the_store():
    store = ObjectStore.of([pod("a")])
    pods, services = store.lister(PODS), store.lister(SERVICES)
    (first,) = pods.list()
    store.drop(PODS, first)
    assert (list(pods.list()), pods.get("default/a"), list(services.list())) == ([], None, [])
    store.put(PODS, first)
    assert pods.get("default/a") is first


def test_pod_without_a_scheduler_name_belongs_to_no_profile():
    store = ObjectStore.of([pod("a", scheduler=None), pod("b", scheduler="default-scheduler")])
    assert [pod.spec.scheduler_name for pod in store.objects(PODS).values()] == ["", "default-scheduler"]


def test_a_fork_and_its_original_go_their_own_ways():
    store = ObjectStore.of([pod("a"), pod("c")])
    (first, _) = store.objects(PODS).values()
    fork, second_fork = store.fork(), store.fork()
    fork.drop(PODS, first)
    (new_pod,) = ObjectStore.of([pod("b")]).objects(PODS).values()
    store.put(PODS, new_pod)
    answer = [
        [pod_on_store.metadata.name for pod_on_store in every.lister(PODS).list()]
        for every in (store, fork, second_fork)
    ]
    assert answer == [["a", "b", "c"], ["c"], ["a", "c"]]

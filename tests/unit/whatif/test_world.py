from podium.objects.resource_types import NODES, PODS, SERVICES
from podium.whatif.world import World
from tests.unit.whatif.manifests import node, pod


def _pod_in(namespace, name):
    return {**pod(name), "metadata": {"name": name, "namespace": namespace}}


def test_objects_are_in_order_of_namespace_then_name():
    world = World.of([_pod_in("b", "a"), _pod_in("a-b", "x"), _pod_in("a", "z"), node("n2"), node("n1")])
    assert list(world.objects(PODS)) == ["a/z", "a-b/x", "b/a"]
    assert list(world.objects(NODES)) == ["n1", "n2"]


def test_pods_that_have_ended_and_unknown_kinds_are_left_out():
    ended = [pod("done", status={"phase": "Succeeded"}), pod("failed", status={"phase": "Failed"})]
    world = World.of([*ended, pod("runs"), {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}}])
    assert list(world.objects(PODS)) == ["default/runs"]


def test_lister_sees_what_becomes_of_the_world():
    world = World.of([pod("a")])
    pods, services = world.lister(PODS), world.lister(SERVICES)
    (first,) = pods.list()
    world.drop_pod(first)
    assert (list(pods.list()), pods.get("default/a"), list(services.list())) == ([], None, [])
    world.put_pod(first)
    assert pods.get("default/a") is first


def test_pod_that_names_no_scheduler_is_nobodys():
    world = World.of([pod("a"), pod("b", schedulerName="default-scheduler")])
    assert [each.spec.scheduler_name for each in world.objects(PODS).values()] == ["", "default-scheduler"]

"""Devices for resource claims on nodes that are bought."""

from podium.engine.cluster import Cluster
from podium.provisioner.planners.placed_plans import plan_with_podium
from podium.provisioner.provisioning.plan import Plan
from podium.provisioner.provisioning.plan_basis import PlanBasis
from podium.provisioner.state.reading import read_objects
from podium.provisioner.state.settings import Settings
from tests.gang_manifests import UPSTREAM, group
from tests.unit.provisioner.clusters import NOW, catalogue, instance_type, node_pool, pod

DRIVER = "gpu.example.com"
PLAIN = instance_type("c-4", 4, "8Gi")


def _with_devices(name: str, devices, price: float = 5.0):
    return {**instance_type(name, 16, "64Gi", 20, price=price), "devices": {DRIVER: devices}}


def _gpus(count: int, model: str = "a100"):
    return {"count": count, "attributes": {"model": model}}


def _class(**spec):
    selectors = [{"cel": {"expression": f'device.driver == "{DRIVER}"'}}]
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": {"name": "gpu"},
        "spec": {"selectors": selectors, **spec},
    }


def _request(count: int = 1, model: str = ""):
    selectors = [{"cel": {"expression": f'device.attributes["{DRIVER}"].model == "{model}"'}}] if model else []
    return {"name": "gpu", "exactly": {"deviceClassName": "gpu", "count": count, "selectors": selectors}}


def _template(count: int = 1, model: str = ""):
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": "gpus", "namespace": "default"},
        "spec": {"spec": {"devices": {"requests": [_request(count, model)]}}},
    }


def _claiming(name: str, **fields):
    return pod(name, resourceClaims=[{"name": "gpu", "resourceClaimTemplateName": "gpus"}], **fields)


def _plan(*objects, types) -> Plan:
    cluster = Cluster.load([{"apiVersion": "v1", **manifest} for manifest in objects])
    kinds = ("Pod", "Node", "DaemonSet")
    read = read_objects([*(manifest for manifest in objects if manifest["kind"] in kinds), node_pool()])
    return plan_with_podium(PlanBasis(read, catalogue(*types), Settings()), cluster, NOW)


def _bought(plan: Plan) -> list[str]:
    return [node.node.instance_type.name for node in plan.nodes]


def test_a_node_with_devices_is_bought_for_a_claim():
    plan = _plan(_class(), _template(), _claiming("train"), types=(PLAIN, _with_devices("g-16", _gpus(4))))
    assert (_bought(plan), plan.unschedulable) == (["g-16"], {})
    use_before, use_after = plan.devices
    assert (use_before.published, use_after.published, use_after.allocated) == ({}, {DRIVER: 4}, {DRIVER: 1})


def test_the_devices_of_one_node_serve_several_pods_and_no_more():
    pods = [_claiming(f"train-{index}") for index in range(5)]
    plan = _plan(_class(), _template(), *pods, types=(_with_devices("g-16", _gpus(4)),))
    assert (_bought(plan), plan.unschedulable) == (["g-16", "g-16"], {})
    assert sum(len(node.pods) for node in plan.nodes) == 5


def test_selectors_choose_the_instance_type():
    types = (_with_devices("a-16", _gpus(4)), _with_devices("h-16", _gpus(4, "h100"), price=9.0))
    plan = _plan(_class(), _template(model="h100"), _claiming("train"), types=types)
    assert (_bought(plan), plan.unschedulable) == (["h-16"], {})


def test_a_claim_that_no_instance_type_can_meet_buys_nothing():
    plan = _plan(_class(), _template(count=8), _claiming("train"), types=(_with_devices("g-16", _gpus(4)),))
    assert plan.nodes == ()
    assert "cannot allocate all claims" in plan.unschedulable["default/train"].by_pool["pool"]


def test_an_extended_resource_of_a_class_is_served_by_devices():
    pods = [pod(f"train-{index}") for index in range(2)]
    for manifest in pods:
        requests = manifest["spec"]["containers"][0]["resources"]["requests"]
        requests["example.com/gpu"] = "2"
        manifest["spec"]["containers"][0]["resources"]["limits"] = {"example.com/gpu": "2"}
    device_class = _class(extendedResourceName="example.com/gpu")
    plan = _plan(device_class, *pods, types=(PLAIN, _with_devices("g-16", _gpus(4))))
    assert (_bought(plan), plan.unschedulable) == (["g-16"], {})


def test_counters_that_devices_share_are_counted():
    consumption = [{"counterSet": "chip", "counters": {"memory": {"value": "40Gi"}}}]
    devices = {
        "devices": [{"name": name, "consumesCounters": consumption} for name in ("half-0", "half-1", "half-2")],
        "sharedCounters": [{"name": "chip", "counters": {"memory": {"value": "80Gi"}}}],
    }
    pods = [_claiming(f"train-{index}") for index in range(3)]
    plan = _plan(_class(), _template(), *pods, types=(_with_devices("g-16", devices),))
    assert (_bought(plan), plan.unschedulable) == (["g-16", "g-16"], {})


def test_a_gang_with_claims_is_planned_as_a_whole():
    members = [_claiming(f"train-{index}", schedulingGroup={"podGroupName": "train"}) for index in range(6)]
    types = (_with_devices("g-16", _gpus(4)), _with_devices("g-32", _gpus(8), price=12.0))
    plan = _plan(_class(), _template(), group(UPSTREAM, 6), *members, types=types)
    assert (_bought(plan), plan.gangs[0].starts) == (["g-16", "g-16"], True)


def test_a_gang_whose_claims_no_node_meets_buys_nothing():
    members = [_claiming(f"train-{index}", schedulingGroup={"podGroupName": "train"}) for index in range(2)]
    plan = _plan(_class(), _template(count=8), group(UPSTREAM, 2), *members, types=(_with_devices("g-16", _gpus(4)),))
    assert plan.nodes == ()
    assert plan.gangs[0].text.startswith("0 of 2 members fit; ")

import pytest

from podium.fleets.fit import AT_ONCE_MAX
from podium.fleets.search import ask_all
from tests.gang_manifests import UPSTREAM, group
from tests.manifests import HOSTNAME, ZONE, node, pod
from tests.unit.fleets.fleets import ask, fleet_of, reasons
from tests.workload_manifests import (
    claim_template,
    claims_from,
    device_claim_template,
    limit_range,
    priority_class,
    quota,
    storage,
    workload,
)

APART = {
    "podAntiAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [
            {"labelSelector": {"matchLabels": {"app": "web"}}, "topologyKey": HOSTNAME}
        ]
    }
}
SCHEDULER = "default-scheduler"


def _nodes(count, cpu="4", **fields):
    return [node(f"n{number}", cpu, memory="64Gi", **fields) for number in range(count)]


def _running(name, where, cpu="1", **fields):
    return pod(name, cpu, node=where, scheduler=SCHEDULER, **fields)


def test_a_workload_fits_where_all_of_its_pods_have_a_node_and_each_is_named():
    answer = ask({"small": _nodes(1, "2"), "large": _nodes(2, "2")}, workload("Deployment", replicas=3))
    assert answer.best == "large"
    assert sorted(answer.fits[0].nodes.values()) in (["n0", "n0", "n1"], ["n0", "n1", "n1"])
    (rejection,) = answer.rejections
    assert (rejection.cluster, rejection.placed_count, rejection.reason) == (
        "small",
        2,
        "0/1 nodes are available: 1 Insufficient cpu.",
    )


def test_sums_that_fit_are_not_enough_if_pods_must_lie_apart():
    web = workload("Deployment", replicas=3, pod_spec={"affinity": APART})
    answer = ask({"two": _nodes(2, "64"), "three": _nodes(3)}, web)
    assert [cluster.cluster for cluster in answer.fits] == ["three"]
    assert "didn't match pod anti-affinity rules" in reasons(answer)["two"]


def test_spread_constraints_and_host_ports_count():
    spread = [
        {
            "maxSkew": 1,
            "topologyKey": ZONE,
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchLabels": {"app": "web"}},
        }
    ]
    lopsided = [*_nodes(1, "1", labels={ZONE: "a"}), node("m", "64", labels={ZONE: "b"})]
    even = [node("a", "2", labels={ZONE: "a"}), node("b", "2", labels={ZONE: "b"})]
    members = {"lopsided": lopsided, "even": even}
    answer = ask(members, workload("Deployment", replicas=4, pod_spec={"topologySpreadConstraints": spread}))
    assert [cluster.cluster for cluster in answer.fits] == ["even"]
    answer = ask(members, *(pod(f"p{number}", scheduler=SCHEDULER, host_port=80) for number in range(3)))
    assert not answer
    assert set(reasons(answer).values()) == {
        "0/2 nodes are available: 2 node(s) didn't have free ports for the requested pod ports."
    }


def test_pending_pods_take_their_places_first_unless_they_are_less_important():
    full = [*_nodes(1, "2"), pod("waits", "2", scheduler=SCHEDULER)]
    assert not ask({"m": full}, workload("Deployment", replicas=1))
    assert ask({"m": full}, workload("Deployment", replicas=1, pod_spec={"priority": 5}))
    too_large = [*_nodes(1, "2"), pod("waits", "3", scheduler=SCHEDULER)]
    assert ask({"m": too_large}, workload("Deployment", replicas=1))


def test_nothing_is_preempted():
    answer = ask({"m": [*_nodes(1, "2"), _running("low", "n0", "2")]}, workload("Job", pod_spec={"priority": 100}))
    assert reasons(answer) == {"m": "0/1 nodes are available: 1 Insufficient cpu."}


def test_the_same_question_has_the_same_answer_again():
    fleet = fleet_of({"m": _nodes(3, "2")})
    assert ask(fleet, workload("Deployment", replicas=5)).fits == ask(fleet, workload("Deployment", replicas=5)).fits
    assert ask(fleet, workload("Deployment", replicas=6))
    assert not fleet.members[0].cluster.pods


def test_many_pods_are_tried_in_a_copy():
    count = AT_ONCE_MAX + 10
    fleet = fleet_of({"m": _nodes(2, str(count // 2))})
    assert ask(fleet, workload("Deployment", replicas=count))
    assert not ask(fleet, workload("Deployment", replicas=count + 1))
    assert ask(fleet, workload("Deployment", replicas=count))


def test_claims_of_a_stateful_set_need_storage():
    database = workload("StatefulSet", "db", 2, volumeClaimTemplates=[claim_template(size="5Gi")])
    members = {"little": [*_nodes(2), *storage("1Gi")], "enough": [*_nodes(2), *storage("100Gi")]}
    answer = ask(members, database)
    assert [cluster.cluster for cluster in answer.fits] == ["enough"]
    assert "did not have enough free storage" in reasons(answer)["little"]


def test_a_group_is_placed_in_one_domain_or_not_at_all():
    ring = group(UPSTREAM, 3, "ring", schedulingConstraints={"topology": [{"key": ZONE}]})
    members = [
        pod(f"r{number}", "1", scheduler=SCHEDULER, schedulingGroup={"podGroupName": "ring"}) for number in range(3)
    ]
    scattered = [node(f"n{number}", "2", labels={ZONE: f"z{number}"}) for number in range(3)]
    together = [node("a", "1", labels={ZONE: "a"}), *_nodes(2, "2", labels={ZONE: "b"})]
    answer = ask({"scattered": scattered, "together": together}, ring, *members)
    assert [cluster.cluster for cluster in answer.fits] == ["together"]
    assert set(answer.fits[0].nodes.values()) == {"n0", "n1"}
    assert answer.rejections[0].placed_count == 2


def test_a_group_that_no_scheduler_would_try_fits_nowhere():
    important = group(UPSTREAM, 2, "ring", priority=1_000)
    members = [
        pod(f"r{number}", "1", scheduler=SCHEDULER, schedulingGroup={"podGroupName": "ring"}) for number in (1, 2)
    ]
    answer = ask({"m1": _nodes(2)}, important, *members)
    assert reasons(answer) == {
        "m1": "all pods in a single pod group should have the same priority as the pod group's priority, got 0 and 1000"
    }


def test_devices_are_counted_and_given_back():
    claims = device_claim_template("gpu", {"name": "gpu", "exactly": {"deviceClassName": "gpu", "count": 1}})
    trainer = workload("Job", "train", parallelism=2, completions=2, pod_spec={"resourceClaims": claims_from("gpu")})
    device_class = {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": "gpu"}, "spec": {}}
    fleet = fleet_of({f"with-{count}": [*_nodes(1), device_class, _slice(count)] for count in (1, 2)})
    for _ in range(2):
        answer = ask(fleet, trainer, claims)
        assert [cluster.cluster for cluster in answer.fits] == ["with-2"]


def _slice(count):
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": "gpus"},
        "spec": {
            "driver": "gpu.example.com",
            "nodeName": "n0",
            "pool": {"name": "n0", "generation": 1, "resourceSliceCount": 1},
            "devices": [{"name": f"gpu-{number}"} for number in range(count)],
        },
    }


def test_what_the_api_server_of_a_member_would_refuse_is_a_reason():
    members = {
        "quota": [*_nodes(3), quota(hard={"pods": "2"}, usage={"pods": "0"})],
        "limits": [*_nodes(3), limit_range({"type": "Container", "max": {"cpu": "500m"}})],
        "free": _nodes(3),
    }
    answer = ask(members, workload("Deployment", replicas=3))
    assert [cluster.cluster for cluster in answer.fits] == ["free"]
    assert "exceeded quota" in reasons(answer)["quota"]
    assert "must be less than or equal to cpu limit of 500m" in reasons(answer)["limits"]


def test_the_priority_is_that_of_the_members_class():
    waiting = pod("waits", "2", scheduler=SCHEDULER, priority=50)
    members = {
        "high": [*_nodes(1, "2"), waiting, priority_class("train", 100)],
        "low": [*_nodes(1, "2"), waiting, priority_class("train", 10)],
    }
    answer = ask(members, workload("Job", pod_spec={"priorityClassName": "train"}))
    assert [cluster.cluster for cluster in answer.fits] == ["high"]


def test_a_member_without_nodes_says_so():
    fleet = fleet_of({"m": _nodes(1)})
    fleet.members[0].cluster.remove("Node", "n0")
    assert reasons(ask(fleet, workload("Job"))) == {"m": "the cluster has no nodes"}


@pytest.mark.parametrize("kind", ["Deployment", "ReplicaSet", "StatefulSet"])
def test_objects_that_come_with_the_workload_leave_no_trace(kind):
    fleet = fleet_of({"m": _nodes(2)})
    state = {resource.kind: dict(fleet.members[0].cluster.store.objects(resource)) for resource in _kinds(fleet)}
    assert ask(fleet, workload(kind, replicas=2))
    assert {resource.kind: dict(fleet.members[0].cluster.store.objects(resource)) for resource in _kinds(fleet)} == {
        **{resource.kind: {} for resource in _kinds(fleet)},
        **state,
    }


def _kinds(fleet):
    return fleet.members[0].cluster.store.listed_kinds


def test_a_question_without_members_is_answered_by_none():
    from podium.fleets.search import FleetQuestion
    from tests.unit.fleets.fleets import workload_of

    assert not ask_all(FleetQuestion(workload_of(workload("Job"))), [], {"gone": "no such file"})

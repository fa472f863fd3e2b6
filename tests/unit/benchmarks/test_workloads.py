import itertools
from collections import Counter

import msgspec
import pytest

from benchmarks import nodes
from benchmarks.pods import MARK, NAMESPACE, SCHEDULER_NAME
from benchmarks.workloads import WORKLOADS
from podium.objects.core import Pod


def decoded(wire: object) -> Pod:
    return msgspec.convert(wire, Pod)


@pytest.mark.parametrize("name", WORKLOADS)
def test_pods_of_a_workload_wait_for_the_measured_scheduler(name: str) -> None:
    pods = [decoded(WORKLOADS[name].pod(number)) for number in range(3)]
    assert len({each.key for each in pods}) == 3
    assert {each.metadata.namespace for each in pods} == {NAMESPACE}
    assert {each.spec.scheduler_name for each in pods} == {SCHEDULER_NAME}
    assert {each.node_name for each in pods} == {""}


@pytest.mark.parametrize("name", WORKLOADS)
def test_what_is_there_before_has_names_of_its_own_and_is_not_counted(name: str) -> None:
    workload = WORKLOADS[name]
    before = list(workload.objects_before(10, 3))
    measured = [workload.pod(number) for number in range(3)]
    names = Counter((each["kind"], each["metadata"]["name"]) for each in itertools.chain(before, measured))
    assert set(names.values()) == {1}
    pods = [each["metadata"]["labels"] for each in before if each["kind"] == "Pod"]
    assert all(labels.items() >= MARK.items() for labels in pods)
    assert not any(each["metadata"]["labels"].items() >= MARK.items() for each in measured)


def test_a_workload_adds_to_the_plain_pod() -> None:
    plain, affine = WORKLOADS["plain"].pod(0)["spec"], WORKLOADS["node-affinity"].pod(0)["spec"]
    assert {**plain, "affinity": affine["affinity"]} == affine


def test_running_pods_are_bound_to_nodes_in_turn() -> None:
    running = [decoded(each) for each in WORKLOADS["plain"].running(4, 6)]
    assert [each.node_name for each in running] == [nodes.name(number) for number in (0, 1, 2, 3, 0, 1)]
    assert {each.status.phase for each in running} == {"Running"}


def test_pods_that_keep_apart_and_run_leave_room_for_those_that_are_measured() -> None:
    apps = [each["metadata"]["labels"]["app"] for each in WORKLOADS["anti-affinity"].running(10, 22)]
    assert Counter(apps) == {"anti-affinity": 2, "anti-affinity-0": 8, "anti-affinity-1": 10, "anti-affinity-2": 2}


def test_there_are_no_more_pods_that_keep_apart_than_nodes_for_them() -> None:
    workload = WORKLOADS["anti-affinity"]
    running = int(100 * workload.running_per_node)
    assert workload.pods_that_fit(100) + running < 100
    assert workload.pods_that_fit(100, 5) == 5
    assert WORKLOADS["plain"].pods_that_fit(100) == WORKLOADS["plain"].pods


def test_mixed_pods_take_turns_in_the_kinds() -> None:
    apps = [WORKLOADS["mixed"].pod(number)["metadata"]["labels"]["app"] for number in range(12)]
    assert apps[:6] == apps[6:]
    assert len(set(apps)) == 6


def test_low_priority_pods_leave_no_room_for_a_preemptor_on_any_node() -> None:
    workload = WORKLOADS["preemption"]
    low = [decoded(each) for each in workload.objects_before(3, 1)]
    used = Counter[str]()
    for each in low:
        used[each.node_name] += float(each.spec.containers[0].resources.requests["cpu"])  # type: ignore[assignment]
    need = float(workload.pod(0)["spec"]["containers"][0]["resources"]["requests"]["cpu"])
    assert len(used) == 3
    assert all(nodes.CPUS - need < amount <= nodes.CPUS for amount in used.values())


def test_each_pod_with_a_volume_finds_its_claim_and_the_claim_its_volume() -> None:
    workload = WORKLOADS["volumes"]
    before = list(workload.objects_before(2, 2))
    by_kind = {kind: [each for each in before if each["kind"] == kind] for kind in ("PersistentVolumeClaim", "CSINode")}
    claims = {each["metadata"]["name"]: each["spec"]["volumeName"] for each in by_kind["PersistentVolumeClaim"]}
    volumes = {each["metadata"]["name"]: each for each in before if each["kind"] == "PersistentVolume"}
    for number in range(2):
        claim = workload.pod(number)["spec"]["volumes"][0]["persistentVolumeClaim"]["claimName"]
        assert volumes[claims[claim]]["spec"]["claimRef"]["name"] == claim
    assert len(by_kind["CSINode"]) == 2

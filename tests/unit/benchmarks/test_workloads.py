import itertools
from collections import Counter

import msgspec
import pytest

from benchmarks import nodes
from benchmarks.pods import MARK, NAMESPACE, SCHEDULER_NAME
from benchmarks.workloads import WORKLOADS
from podium.objects.core import Pod


def decode(wire: object) -> Pod:
    return msgspec.convert(wire, Pod)


@pytest.mark.parametrize("name", WORKLOADS)
def test_pods_of_a_workload_wait_for_the_measured_scheduler(name: str) -> None:
    pods = [decode(WORKLOADS[name].pod(number)) for number in range(3)]
    assert len({pod.key for pod in pods}) == 3
    assert {pod.metadata.namespace for pod in pods} == {NAMESPACE}
    assert {pod.spec.scheduler_name for pod in pods} == {SCHEDULER_NAME}
    assert {pod.node_name for pod in pods} == {""}


@pytest.mark.parametrize("name", WORKLOADS)
def test_what_is_there_before_has_names_of_its_own_and_is_not_counted(name: str) -> None:
    workload = WORKLOADS[name]
    objects_before = list(workload.objects_before(10, 3))
    measured = [workload.pod(number) for number in range(3)]
    names = Counter(
        (document["kind"], document["metadata"]["name"]) for document in itertools.chain(objects_before, measured)
    )
    assert set(names.values()) == {1}
    pods = [document["metadata"]["labels"] for document in objects_before if document["kind"] == "Pod"]
    assert all(labels.items() >= MARK.items() for labels in pods)
    assert not any(document["metadata"]["labels"].items() >= MARK.items() for document in measured)


def test_a_workload_adds_to_the_plain_pod() -> None:
    plain, affine = WORKLOADS["plain"].pod(0)["spec"], WORKLOADS["node-affinity"].pod(0)["spec"]
    assert {**plain, "affinity": affine["affinity"]} == affine


def test_running_pods_are_bound_to_nodes_in_turn() -> None:
    running = [decode(document) for document in WORKLOADS["plain"].running(4, 6)]
    assert [pod.node_name for pod in running] == [nodes.name(number) for number in (0, 1, 2, 3, 0, 1)]
    assert {pod.status.phase for pod in running} == {"Running"}


def test_pods_that_keep_apart_and_run_leave_room_for_those_that_are_measured() -> None:
    apps = [document["metadata"]["labels"]["app"] for document in WORKLOADS["anti-affinity"].running(10, 22)]
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
    low = [decode(document) for document in workload.objects_before(3, 1)]
    cpus_by_node = Counter[str]()
    for pod in low:
        cpus_by_node[pod.node_name] += float(pod.spec.containers[0].resources.requests["cpu"])  # type: ignore[assignment]
    need = float(workload.pod(0)["spec"]["containers"][0]["resources"]["requests"]["cpu"])
    assert len(cpus_by_node) == 3
    assert all(nodes.CPUS - need < amount <= nodes.CPUS for amount in cpus_by_node.values())


def test_each_pod_with_a_volume_finds_its_claim_and_the_claim_its_volume() -> None:
    workload = WORKLOADS["volumes"]
    objects_before = list(workload.objects_before(2, 2))
    by_kind = {
        kind: [document for document in objects_before if document["kind"] == kind]
        for kind in ("PersistentVolumeClaim", "CSINode")
    }
    claims = {
        document["metadata"]["name"]: document["spec"]["volumeName"] for document in by_kind["PersistentVolumeClaim"]
    }
    volumes = {
        document["metadata"]["name"]: document for document in objects_before if document["kind"] == "PersistentVolume"
    }
    for number in range(2):
        claim = workload.pod(number)["spec"]["volumes"][0]["persistentVolumeClaim"]["claimName"]
        assert volumes[claims[claim]]["spec"]["claimRef"]["name"] == claim
    assert len(by_kind["CSINode"]) == 2

from collections import Counter

from benchmarks.workloads import WORKLOADS

GANGS = WORKLOADS["gangs"]


def min_counts(pod_count: int) -> dict[str, int]:
    groups = list(GANGS.objects_before(1000, pod_count))
    return {group["metadata"]["name"]: group["spec"]["schedulingPolicy"]["gang"]["minCount"] for group in groups}


def test_there_are_300_gangs_of_three_and_three_of_200() -> None:
    assert Counter(min_counts(GANGS.pods).values()) == {3: 300, 200: 3}


def test_every_pod_belongs_to_a_gang_that_exactly_its_pods_complete() -> None:
    members = Counter(GANGS.pod(number)["spec"]["schedulingGroup"]["podGroupName"] for number in range(GANGS.pods))
    assert members == min_counts(GANGS.pods)


def test_a_gang_that_is_cut_short_is_complete_without_the_pods_that_are_left_out() -> None:
    assert min_counts(7) == {"small-0000": 3, "small-0001": 3, "small-0002": 1}


def test_gangs_need_a_gate_in_both_and_an_api_in_the_server() -> None:
    gate, api = "--feature-gates=GenericWorkload=true", "--runtime-config=scheduling.k8s.io/v1beta1=true"
    assert (GANGS.scheduler_flags, GANGS.server_flags) == ((gate,), (gate, api))
    assert WORKLOADS["plain"].server_flags == ()

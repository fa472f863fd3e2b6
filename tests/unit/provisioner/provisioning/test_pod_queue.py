"""The order of waiting pods, and when to stop."""

from podium.provisioner.provisioning.pod_queue import PodQueue
from tests.unit.provisioner.clusters import as_pod, pod


def names(queue: PodQueue) -> list[str]:
    pod_names = []
    while (pod := queue.pop()) is not None:
        pod_names.append(pod.metadata.name)
    return pod_names


def test_large_pods_come_first_then_old_ones_then_by_uid() -> None:
    at = "2026-05-01T00:00:0{}Z".format
    queue = PodQueue(
        as_pod(pod(name, cpu=cpu, memory=memory, metadata={"creationTimestamp": at(second), "uid": uid}))
        for name, cpu, memory, second, uid in [
            ("d", "1", "1Gi", 2, "a"),
            ("c", "1", "1Gi", 1, "c"),
            ("b", "1", "1Gi", 1, "b"),
            ("e", "1", "1Mi", 0, "a"),
            ("a", "2", "1Mi", 9, "z"),
        ]
    )
    assert names(queue) == ["a", "b", "c", "d", "e"]


def test_a_round_without_success_is_the_last() -> None:
    queue = PodQueue(as_pod(pod(name)) for name in "abc")
    pod_names = []
    while (candidate := queue.pop()) is not None:
        pod_names.append(candidate.metadata.name)
        if len(pod_names) != 2:
            queue.push(candidate)
    # c was pushed after b was planned, and nothing was planned since: it is not tried a second time.
    assert pod_names == ["a", "b", "c", "a"]

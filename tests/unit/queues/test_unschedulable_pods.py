from __future__ import annotations

from collections.abc import Iterable

from podium.framework.queued_pod import QueuedPodInfo
from podium.queues.unschedulable_pods import UnschedulablePods
from tests.unit.queues.builders import pod


def info(name: str, *rejectors: str, pending: Iterable[str] = (), gate: str = "") -> QueuedPodInfo:
    return QueuedPodInfo(
        pod(name), 0.0, unschedulable_plugins=set(rejectors), pending_plugins=set(pending), gating_plugin=gate
    )


def holding(*infos: QueuedPodInfo) -> UnschedulablePods:
    pods = UnschedulablePods()
    for each in infos:
        pods.push(each)
    return pods


def names(infos: Iterable[QueuedPodInfo]) -> list[str]:
    return [each.pod.metadata.name for each in infos]


def test_pods_are_found_by_any_of_their_rejectors() -> None:
    pods = holding(info("a", "Fit"), info("b", "Taints", "Fit"), info("c", pending=["Claims"]))
    assert names(pods.rejected_by(["Fit"])) == ["a", "b"]
    assert names(pods.rejected_by(["Taints", "Fit"])) == ["b", "a"]
    assert names(pods.rejected_by(["Claims"])) == ["c"]
    assert names(pods.rejected_by(["Ports"])) == []


def test_a_removed_pod_is_not_found_any_more() -> None:
    first = info("a", "Fit")
    pods = holding(first, info("b", "Fit"))
    assert pods.remove(first.key) is first
    assert pods.remove(first.key) is None
    assert pods.get(first.key) is None
    assert names(pods.rejected_by(["Fit"])) == ["b"]
    assert names(pods) == ["b"]


def test_a_pod_pushed_again_is_known_by_its_new_rejectors() -> None:
    changing = info("a", "Fit")
    pods = holding(changing)
    changing.unschedulable_plugins = {"Gates"}
    changing.gating_plugin = "Gates"
    pods.push(changing)
    assert names(pods.rejected_by(["Fit"])) == []
    assert names(pods.rejected_by(["Gates"])) == ["a"]
    assert (len(pods), pods.gated_count) == (1, 1)


def test_gated_pods_are_counted_apart() -> None:
    gated = info("a", "Gates", gate="Gates")
    pods = holding(gated, info("b", "Fit"))
    assert (len(pods), pods.gated_count) == (2, 1)
    pods.remove(gated.key)
    assert (len(pods), pods.gated_count) == (1, 0)

from __future__ import annotations

from collections.abc import Iterable, Mapping

from podium.framework.contract.queued_pod import QueuedPodInfo
from podium.queues.unschedulable_pods import UnschedulablePods
from tests.builders import pod
from tests.unit.queues.builders import PROFILE

LABEL_READERS = {PROFILE: frozenset({"Spread"})}


def info(
    name: str,
    *rejectors: str,
    pending: Iterable[str] = (),
    gate: str = "",
    labels: Mapping[str, str] | None = None,
    priority: int | None = None,
) -> QueuedPodInfo:
    return QueuedPodInfo(
        pod(name, labels=labels, priority=priority),
        0.0,
        unschedulable_plugins=set(rejectors),
        pending_plugins=set(pending),
        gating_plugin=gate,
    )


def holding(*infos: QueuedPodInfo) -> UnschedulablePods:
    pods = UnschedulablePods(LABEL_READERS)
    for info in infos:
        pods.push(info)
    return pods


def names(infos: Iterable[QueuedPodInfo]) -> list[str]:
    return [info.pod.metadata.name for info in infos]


def classes(pods: UnschedulablePods, *plugins: str) -> list[list[str]]:
    return [names(alike.pods.values()) for alike in pods.rejected_by(plugins)]


def test_pods_are_found_by_any_of_their_rejectors() -> None:
    pods = holding(info("a", "Fit"), info("b", "Taints", "Fit"), info("c", pending=["Claims"]))
    assert classes(pods, "Fit") == [["a"], ["b"]]
    assert classes(pods, "Taints", "Fit") == [["b"], ["a"]]
    assert classes(pods, "Claims") == [["c"]]
    assert classes(pods, "Ports") == []


def test_pods_that_were_rejected_alike_and_have_one_spec_are_a_class() -> None:
    pods = holding(info("a", "Fit"), info("b", "Fit"), info("c", pending=["Fit"]), info("d", "Fit", priority=1))
    pods.push(info("e", "Fit"))
    assert classes(pods, "Fit") == [["a", "b", "e"], ["c"], ["d"]]


def test_labels_tell_pods_apart_only_where_a_rejector_sees_them() -> None:
    pods = holding(
        info("a", "Fit", labels={"index": "1"}),
        info("b", "Fit", labels={"index": "2"}),
        info("c", "Fit", "Spread", labels={"index": "1"}),
        info("d", "Fit", "Spread", labels={"index": "2"}),
        info("e", "Fit", "Spread", labels={"index": "2"}),
    )
    assert classes(pods, "Fit") == [["a", "b"], ["c"], ["d", "e"]]


def test_a_removed_pod_is_not_found_any_more() -> None:
    first = info("a", "Fit")
    pods = holding(first, info("b", "Fit"))
    assert pods.remove(first.key) is first
    assert pods.remove(first.key) is None
    assert pods.get(first.key) is None
    assert classes(pods, "Fit") == [["b"]]
    assert names(pods) == ["b"]


def test_a_pod_pushed_again_is_known_by_its_new_rejectors() -> None:
    changing = info("a", "Fit")
    pods = holding(changing)
    changing.unschedulable_plugins = {"Gates"}
    changing.gating_plugin = "Gates"
    pods.push(changing)
    assert classes(pods, "Fit") == []
    assert classes(pods, "Gates") == [["a"]]
    assert (len(pods), pods.gated_count) == (1, 1)


def test_gated_pods_are_counted_apart() -> None:
    gated_info = info("a", "Gates", gate="Gates")
    pods = holding(gated_info, info("b", "Fit"))
    assert (len(pods), pods.gated_count) == (2, 1)
    pods.remove(gated_info.key)
    assert (len(pods), pods.gated_count) == (1, 0)

"""Nodes, waiting pods and zones over time, from the changes that watches show."""

from __future__ import annotations

from typing import Any

import pytest

from podium.objects.resource_types import NODES, PODS
from podium.recording import timeline
from podium.recording.entries import MONOTONIC, NOW, PUT, REMOVE
from podium.recording.timeline import ABSENT, NODES_MAX, SAMPLES_MAX, Timeline, UtilizationRecorder, read_timeline
from tests.builders import node, pod

SECOND = 1_000_000_000
ZONE = "topology.kubernetes.io/zone"


def read(*entries: Any, seconds: float | None = None) -> Timeline:
    return read_timeline(entries, ["podium"], seconds=seconds)


def test_pod_waits_and_then_fills_its_node() -> None:
    timeline = read(
        (NOW, 1000 * SECOND),
        (MONOTONIC, 5 * SECOND),
        (PUT, NODES.path, node("n1", cpu="4", memory="8Gi", labels={ZONE: "a"})),
        (PUT, PODS.path, pod("web", uid="u", cpu="1", memory="4Gi")),
        (MONOTONIC, 30 * SECOND),
        (PUT, PODS.path, pod("web", uid="u", cpu="1", memory="4Gi", node="n1")),
        (MONOTONIC, 30 * SECOND),
        (REMOVE, PODS.path, "default/web"),
        (MONOTONIC, 30 * SECOND),
    )
    assert timeline.started_s == 1000.0
    assert (timeline.times_s[0], timeline.times_s[-1]) == (0.0, 90.0)
    assert len(timeline.times_s) <= SAMPLES_MAX + 1

    def at(time_s: float) -> int:
        return next(index for index, at_s in enumerate(timeline.times_s) if at_s >= time_s)

    (line,) = timeline.nodes
    assert (line.name, line.zone) == ("n1", "a")
    assert (line.cpu[0], line.cpu[at(20)], line.cpu[at(50)], line.cpu[-1]) == (ABSENT, 0, 25, 0)
    assert (line.memory[at(20)], line.memory[at(50)]) == (0, 50)
    assert (timeline.pending[at(20)], timeline.pending[at(50)], timeline.pending[-1]) == (1, 0, 0)
    assert (timeline.zones["a"][at(20)], timeline.zones["a"][at(50)], timeline.zones["a"][-1]) == (0, 1, 0)
    assert [wait for wait in timeline.waits_s if wait] == [(30.0, 30.0)]
    assert timeline.bound_count == 1


def test_pods_of_others_do_not_wait_and_pods_that_ended_take_nothing() -> None:
    timeline = read(
        (MONOTONIC, 0),
        (PUT, NODES.path, node("n1", cpu="4")),
        (PUT, PODS.path, pod("other", scheduler="other")),
        (PUT, PODS.path, pod("done", cpu="1", node="n1", status={"phase": "Succeeded"})),
        (MONOTONIC, SECOND),
    )
    assert set(timeline.pending) == {0}
    assert timeline.nodes[0].cpu[-1] == 0


def test_pod_that_was_created_again_has_not_waited_for_long() -> None:
    timeline = read(
        (MONOTONIC, 0),
        (PUT, PODS.path, pod("web", uid="one")),
        (MONOTONIC, 60 * SECOND),
        (PUT, PODS.path, pod("web", uid="two")),
        (MONOTONIC, SECOND),
        (PUT, PODS.path, pod("web", uid="two", node="n1")),
    )
    assert [wait for wait in timeline.waits_s if wait] == [(1.0, 1.0)]


def test_node_that_goes_is_absent_afterwards() -> None:
    timeline = read(
        (MONOTONIC, 0),
        (PUT, NODES.path, node("n1", cpu="4")),
        (MONOTONIC, SECOND),
        (REMOVE, NODES.path, "n1"),
        (MONOTONIC, SECOND),
    )
    assert (timeline.nodes[0].cpu[len(timeline.times_s) // 4], timeline.nodes[0].cpu[-1]) == (0, ABSENT)


def test_a_part_of_the_time_is_read() -> None:
    entries = [(MONOTONIC, SECOND)] * 10
    assert read(*entries, seconds=3.0).times_s[-1] == 3.0


@pytest.mark.long
def test_large_clusters_and_long_times_take_no_more_room() -> None:
    recorder = UtilizationRecorder(["podium"])
    for index in range(3 * NODES_MAX):
        recorder.put(NODES, node(f"n{index:04}", cpu="4", labels={ZONE: "ab"[index % 2]}))
    for day in range(4):
        recorder.advance_to(day * 86_400.0)
    timeline = recorder.timeline()
    assert (len(timeline.nodes), timeline.nodes_count) == (NODES_MAX, 3 * NODES_MAX)
    assert {line.zone for line in timeline.nodes} == {"a", "b"}
    assert len(timeline.times_s) <= SAMPLES_MAX + 1
    assert timeline.times_s[-1] == 3 * 86_400.0


def test_waits_beyond_a_number_are_thinned_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timeline, "WAITS_MAX", 10)
    recorder = UtilizationRecorder(["podium"])
    for at in range(100):
        recorder.advance_to(float(at))
        recorder.put(PODS, pod(f"web-{at}"))
        recorder.advance_to(at + 0.5)
        recorder.put(PODS, pod(f"web-{at}", node="n1"))
    bound_timeline = recorder.timeline()
    assert bound_timeline.bound_count == 100
    assert bound_timeline.waits_count <= 10
    assert {wait for wait in bound_timeline.waits_s if wait} == {(0.5, 0.5)}


def test_quantity_that_cannot_be_read_counts_as_nothing() -> None:
    recorder = UtilizationRecorder(["podium"], clock=lambda: 5.0)
    recorder.put(NODES, node("n1", cpu="much"))
    recorder.put(PODS, pod("web", cpu="some", node="n1"))
    timeline = recorder.timeline()
    assert (timeline.nodes[0].cpu[-1], timeline.zones) == (0, {"": [1]})

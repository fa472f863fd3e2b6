"""External events have their times, and consequences of preemptions are left out."""

from __future__ import annotations

from typing import Any

from podium.objects.resource_types import PODS
from podium.recording.entries import MONOTONIC, PUT, REMOVE, RESUME
from podium.recording.external_events import ExternalEvents, read_external_events
from tests.builders import pod
from tests.unit.recording.contents import decision_entry

SECOND = 1_000_000_000


def external_events(*entries: Any) -> ExternalEvents:
    return read_external_events(entries)


def test_changes_have_the_time_that_their_handlers_read() -> None:
    events = external_events(
        (PUT, PODS.path, pod("first", uid="a")),
        (MONOTONIC, 5 * SECOND),
        (RESUME, 1),
        (PUT, PODS.path, pod("second", uid="b")),
        (MONOTONIC, 3 * SECOND),
    )
    assert len(events.initial) == 1
    assert [change.at_s for change in events.changes] == [3.0]
    assert events.ended_s == 3.0


def test_typical_time_until_a_binding_is_seen() -> None:
    events = external_events(
        (RESUME, 1),
        (MONOTONIC, SECOND),
        decision_entry("a", "n1"),
        (MONOTONIC, SECOND // 4),
        (PUT, PODS.path, pod("web", uid="a", node="n1")),
    )
    assert events.recorded_nodes == {"a": "n1"}
    assert events.bound_after_s == 0.25


def test_end_of_a_victim_is_left_out_and_that_of_another_pod_is_not() -> None:
    events = external_events(
        (RESUME, 1),
        (MONOTONIC, SECOND),
        decision_entry("a", victims=("default/victim",)),
        (MONOTONIC, SECOND // 2),
        (REMOVE, PODS.path, "default/victim"),
        (REMOVE, PODS.path, "default/other"),
        (MONOTONIC, SECOND),
        (REMOVE, PODS.path, "default/victim"),
        (MONOTONIC, 1),
    )
    assert [change.entry[2] for change in events.changes] == ["default/other", "default/victim"]
    assert events.gone_after_s == 0.5

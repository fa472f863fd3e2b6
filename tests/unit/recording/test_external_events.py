"""What came from outside has its time, and what followed from a preemption is left out."""

from __future__ import annotations

from typing import Any

from podium.objects.resource_types import PODS
from podium.recording.entries import DECIDED, MONOTONIC, PUT, REMOVE, RESUME, Decision
from podium.recording.external_events import ExternalEvents, read_external_events
from tests.builders import pod

SECOND = 1_000_000_000


def outside(*entries: Any) -> ExternalEvents:
    return read_external_events(entries)


def decided(uid: str, node: str = "", victims: tuple[str, ...] = ()) -> Any:
    return (DECIDED, *Decision(uid, "default/web", "Suggested" if node else "DoesNotFit", node, 3, 2, 0, None, victims))


def test_changes_have_the_time_that_their_handlers_read() -> None:
    found = outside(
        (PUT, PODS.path, pod("first", uid="a")),
        (MONOTONIC, 5 * SECOND),
        (RESUME, 1),
        (PUT, PODS.path, pod("second", uid="b")),
        (MONOTONIC, 3 * SECOND),
    )
    assert len(found.initial) == 1
    assert [each.at_s for each in found.changes] == [3.0]
    assert found.ended_s == 3.0


def test_typical_time_until_a_binding_is_seen() -> None:
    found = outside(
        (RESUME, 1),
        (MONOTONIC, SECOND),
        decided("a", "n1"),
        (MONOTONIC, SECOND // 4),
        (PUT, PODS.path, pod("web", uid="a", node="n1")),
    )
    assert found.recorded_nodes == {"a": "n1"}
    assert found.bound_after_s == 0.25


def test_end_of_a_victim_is_left_out_and_that_of_another_pod_is_not() -> None:
    found = outside(
        (RESUME, 1),
        (MONOTONIC, SECOND),
        decided("a", victims=("default/victim",)),
        (MONOTONIC, SECOND // 2),
        (REMOVE, PODS.path, "default/victim"),
        (REMOVE, PODS.path, "default/other"),
        (MONOTONIC, SECOND),
        (REMOVE, PODS.path, "default/victim"),
        (MONOTONIC, 1),
    )
    assert [each.entry[2] for each in found.changes] == ["default/other", "default/victim"]
    assert found.gone_after_s == 0.5

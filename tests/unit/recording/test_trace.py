"""Spans begin and end where the recording says."""

from __future__ import annotations

from typing import Any

from podium.objects.resource_types import PODS
from podium.recording.entries import DECIDED, FAILED, MONOTONIC, PUT, Decision
from podium.recording.trace import trace_events
from tests.builders import pod


def events(*entries: Any) -> list[Any]:
    return [each for each in trace_events(entries) if each["ph"] != "M"]


def decided(uid: str, node: str) -> Any:
    return (DECIDED, *Decision(uid, "default/web", "Suggested" if node else "DoesNotFit", node, 3, 2, 170, None, ()))


def test_pod_waits_is_tried_and_is_bound() -> None:
    waiting, bound = pod("web", uid="u"), pod("web", uid="u", node="n1")
    found = events(
        (MONOTONIC, 5_000_000_000),
        (PUT, PODS.path, waiting),
        (MONOTONIC, 2_000_000),
        decided("u", "n1"),
        (MONOTONIC, 300_000),
        (MONOTONIC, 700_000),
        (PUT, PODS.path, bound),
    )
    assert [(each["cat"], each["ph"], each["ts"]) for each in found] == [
        ("queue", "b", 0.0),
        ("queue", "e", 2000.0),
        ("attempt", "X", 2000.0),
        ("binding", "b", 2000.0),
        ("binding", "e", 3000.0),
    ]
    assert found[2]["dur"] == 300.0
    assert found[2]["args"] == {"node": "n1", "score": 170, "feasible": 2}
    assert found[4]["args"] == {"result": "bound"}


def test_pod_that_fits_nowhere_waits_again() -> None:
    found = events(
        (MONOTONIC, 0),
        (PUT, PODS.path, pod("web", uid="u")),
        (MONOTONIC, 1_000_000),
        decided("u", ""),
        (FAILED, "u", "unschedulable", "no fit"),
        (MONOTONIC, 1_000_000),
        decided("u", "n1"),
        (FAILED, "u", "error", "refused"),
    )
    waits = [each["ts"] for each in found if each["cat"] == "queue"]
    assert waits == [0.0, 1000.0, 1000.0, 2000.0]
    assert found[-1]["args"] == {"result": "error", "message": "refused"}


def test_pod_of_another_scheduler_makes_no_span() -> None:
    assert events((MONOTONIC, 0), (PUT, PODS.path, pod("other", node="n1")), (MONOTONIC, 1)) == []

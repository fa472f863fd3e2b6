"""Spans begin and end where the recording says."""

from __future__ import annotations

from typing import Any

from podium.objects.resource_types import PODS
from podium.recording.entries import FAILED, MONOTONIC, PUT
from podium.recording.trace import trace_events
from tests.builders import pod
from tests.unit.recording.contents import decision_entry


def events(*entries: Any) -> list[Any]:
    return [event for event in trace_events(entries) if event["ph"] != "M"]


def test_pod_waits_is_tried_and_is_bound() -> None:
    waiting, bound_pod = pod("web", uid="u"), pod("web", uid="u", node="n1")
    spans = events(
        (MONOTONIC, 5_000_000_000),
        (PUT, PODS.path, waiting),
        (MONOTONIC, 2_000_000),
        decision_entry("u", "n1"),
        (MONOTONIC, 300_000),
        (MONOTONIC, 700_000),
        (PUT, PODS.path, bound_pod),
    )
    assert [(event["cat"], event["ph"], event["ts"]) for event in spans] == [
        ("queue", "b", 0.0),
        ("queue", "e", 2000.0),
        ("attempt", "X", 2000.0),
        ("binding", "b", 2000.0),
        ("binding", "e", 3000.0),
    ]
    assert spans[2]["dur"] == 300.0
    assert spans[2]["args"] == {"node": "n1", "score": 170, "feasible": 2}
    assert spans[4]["args"] == {"result": "bound"}


def test_pod_that_fits_nowhere_waits_again() -> None:
    spans = events(
        (MONOTONIC, 0),
        (PUT, PODS.path, pod("web", uid="u")),
        (MONOTONIC, 1_000_000),
        decision_entry("u", ""),
        (FAILED, "u", "unschedulable", "no fit"),
        (MONOTONIC, 1_000_000),
        decision_entry("u", "n1"),
        (FAILED, "u", "error", "refused"),
    )
    waits = [event["ts"] for event in spans if event["cat"] == "queue"]
    assert waits == [0.0, 1000.0, 1000.0, 2000.0]
    assert spans[-1]["args"] == {"result": "error", "message": "refused"}


def test_pod_of_another_scheduler_makes_no_span() -> None:
    assert events((MONOTONIC, 0), (PUT, PODS.path, pod("other", node="n1")), (MONOTONIC, 1)) == []

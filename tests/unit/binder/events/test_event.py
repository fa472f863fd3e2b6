from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from podium.binder.events.event import (
    NOTE_BYTES_MAX,
    ObjectReference,
    deleting_pod_skipped,
    encodable,
    failed_scheduling,
    plugin_event,
    preempted_event,
    reference_to,
    scheduled_event,
    truncate,
)
from tests.builders import pod


def test_the_event_of_a_bound_pod_names_its_node() -> None:
    event = scheduled_event(pod(metadata={"resourceVersion": "7"}), "n1")
    assert event.note == "Successfully assigned default/web-1 to n1"
    assert (event.type, event.reason, event.action) == ("Normal", "Scheduled", "Binding")
    assert event.reporting_controller == "podium"
    assert event.regarding == ObjectReference("v1", "Pod", "web-1", "default", "uid-web-1", "7")


def test_a_failure_is_a_warning_with_the_status_message() -> None:
    event = failed_scheduling(pod(), "0/1 nodes are available: 1 Insufficient cpu.")
    assert (event.type, event.reason, event.action) == ("Warning", "FailedScheduling", "Scheduling")
    assert event.note == "0/1 nodes are available: 1 Insufficient cpu."


def test_a_pod_being_deleted_is_skipped_with_a_warning() -> None:
    event = deleting_pod_skipped(pod())
    assert event.note == "skip schedule deleting pod: default/web-1"
    assert (event.type, event.reason, event.action) == ("Warning", "FailedScheduling", "Scheduling")


def test_the_event_of_a_victim_names_preemptor_and_node() -> None:
    preemptor = pod("urgent", uid="u2", scheduler="other")
    event = preempted_event(pod(), preemptor, "n1")
    assert event.note == "Preempted by pod u2 on node n1"
    assert (event.type, event.reason, event.action) == ("Normal", "Preempted", "Preempting")
    assert event.related == reference_to(preemptor)
    assert event.reporting_controller == "other"


def test_repetitions_differ_in_their_notes_only() -> None:
    assert failed_scheduling(pod(), "a").identity == failed_scheduling(pod(), "b").identity
    assert (
        failed_scheduling(pod(), "a").identity
        != failed_scheduling(pod(metadata={"resourceVersion": "8"}), "a").identity
    )


def test_a_long_note_is_cut_to_1020_bytes_and_marked() -> None:
    assert truncate("x" * 1024) == "x" * 1024
    assert truncate("x" * 1025) == "x" * 1020 + " ..."


def test_a_long_note_is_cut_between_characters() -> None:
    assert truncate("x" + "é" * 600) == "x" + "é" * 509 + " ..."


@pytest.mark.long
@given(st.text(st.characters(), max_size=2000))
@example("\ud800" * 1025)
def test_every_note_fits_and_is_utf8(note: str) -> None:
    assert len(truncate(note).encode()) <= 1024
    encodable(note).encode()


@pytest.mark.long
@given(st.text(max_size=250))
def test_what_fits_is_not_touched(note: str) -> None:
    assert truncate(note) == note
    assert encodable(note) == note


def test_what_a_plugin_notes_is_an_event_of_the_pods_profile():
    event = plugin_event(pod(), "HeldBack", "n" * 2000, "Permitting", is_warning=True)
    assert (event.type, event.reason, event.action) == ("Warning", "HeldBack", "Permitting")
    assert event.reporting_controller == pod().spec.scheduler_name
    assert event.regarding == reference_to(pod())
    assert len(event.note) == NOTE_BYTES_MAX
    assert plugin_event(pod(), "Fine", "", "Permitting", is_warning=False).type == "Normal"

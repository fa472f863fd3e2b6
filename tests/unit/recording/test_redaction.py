"""Nothing that may hold a secret is in a recording; tests/simulation/test_recordings.py replays such recordings."""

from __future__ import annotations

import json
import os
import stat
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from podium.lib.error_text import error_text
from podium.objects.api_errors import Conflict, Invalid
from podium.objects.core import PodCondition
from podium.objects.meta import ObjectMeta
from podium.objects.resource_types import NODES, PODS
from podium.recording.entries import ANSWER, FAILED, OBJECT, SIGNAL, error_of, outcome_of
from podium.recording.hashed_names import NameHasher
from podium.recording.recorder import Recorder
from podium.recording.redaction import MARK, Redactor
from podium.recording.replay import entries_of
from podium.recording.segments import open_segments
from tests.builders import node, pod

SECRET = "hunter2"
_CONTAINER = {"name": "app", "env": [{"name": "PASSWORD", "value": SECRET}]}
_MANIFEST = json.dumps({"apiVersion": "v1", "kind": "Pod", "spec": {"containers": [_CONTAINER]}})
_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
_ANNOTATIONS = {
    _LAST_APPLIED: _MANIFEST,
    "kapp.k14s.io/original": f"  {_MANIFEST}",
    "example.com/checks": json.dumps([{"password": SECRET}]),
    "example.com/as-yaml": f"env:\n- name: PASSWORD\n  value: {SECRET}",
    "objectset.rio.cattle.io/applied": "H4sI" + "A" * 300 + SECRET,
}


def _with(annotations: dict[str, str], **status: Any) -> Any:
    web = pod("web-1", uid="u")
    return replace(web, metadata=replace(web.metadata, annotations=annotations), status=replace(web.status, **status))


def _content(directory: Path) -> bytes:
    return b"".join(open_segments(directory).blocks())


@pytest.mark.parametrize("hasher", [None, NameHasher(b"key")])
def test_no_block_holds_what_an_annotation_or_an_error_says(tmp_path: Path, hasher: NameHasher | None) -> None:
    recorder = Recorder(tmp_path, {"plugins": [], "config": {}}, hasher)
    recorder.note_put(PODS.path, _with(_ANNOTATIONS))
    recorder.note_put(NODES.path, replace(node("n1"), metadata=ObjectMeta(name="n1", annotations=_ANNOTATIONS)))
    refusal = Invalid(f"denied: {_MANIFEST}", code=422, reason=f"Because{SECRET}")
    recorder.note(ANSWER, (1, *outcome_of(refusal)))
    recorder.note(ANSWER, (2, *outcome_of(ValueError(f"not {SECRET}"))))
    recorder.note(ANSWER, (3, OBJECT, _with(_ANNOTATIONS)))
    message = f'running Bind plugin "DefaultBinder": {refusal.message}'
    recorder.note(FAILED, ("u", "error", message))
    recorder.note(FAILED, ("u", "error", f"it failed: {refusal}"))
    condition = PodCondition(type="PodScheduled", status="False", reason="SchedulerError", message=message)
    recorder.note_put(PODS.path, _with({}, conditions=(condition,)))
    recorder.close()
    assert recorder.failure == ""
    assert SECRET.encode() not in _content(tmp_path)
    assert len([*entries_of(open_segments(tmp_path))]) == 8


def test_annotations_that_plugins_read_stay() -> None:
    annotations = {
        "volume.kubernetes.io/selected-node": "n1",
        "pv.kubernetes.io/bind-completed": "yes",
        "team": "billing",
    }
    item = _with({**annotations, _LAST_APPLIED: _MANIFEST})
    redacted_annotations = Redactor().item(item).metadata.annotations
    assert {key: value for key, value in redacted_annotations.items() if key != _LAST_APPLIED} == annotations
    assert redacted_annotations[_LAST_APPLIED].startswith(MARK)
    assert Redactor().item(_with(annotations)) is not None


def test_what_is_equal_stays_equal_and_cannot_be_tried_out() -> None:
    first, second = Redactor(), Redactor()
    assert first.mark("a") == first.mark("a") != first.mark("b")
    assert first.mark("a") != second.mark("a")
    assert first.mark("") == ""


@pytest.mark.parametrize(
    "error",
    [
        Conflict("changed", code=409, reason="Conflict"),
        Invalid("no: never: " + "x" * 3000, code=422, reason="MyOwn"),
        Invalid("a", code=422, reason="d"),
        Invalid("with: colons", code=422),
    ],
)
@pytest.mark.parametrize(
    "say",
    [
        lambda error: f'running Bind plugin "DefaultBinder": {error.message}',
        lambda error: f"the volume cannot be bound: {error}",
        error_text,
        lambda error: f"waiting ({error.message}), and again",
    ],
)
def test_message_is_what_a_replay_will_say(error: Any, say: Any) -> None:
    redactor = Redactor()
    outcome, fields = outcome_of(error)
    error_copy = error_of(redactor.answer(outcome, fields))
    failure = redactor.failure(("u", "error", say(error)))
    assert failure[2] == say(error_copy)
    assert failure[3] == redactor.mark(say(error))


def test_message_without_an_error_stays() -> None:
    assert Redactor().failure(("u", "unschedulable", "0/5 nodes are available"))[2] == "0/5 nodes are available"


def test_only_the_owner_sees_a_recording(tmp_path: Path) -> None:
    umask = os.umask(0)
    try:
        Recorder(tmp_path / "monday", {}).close()
        recorder = Recorder(tmp_path / "of" / "tuesday", {})
        recorder.note(SIGNAL, 0)
        recorder.close()
    finally:
        os.umask(umask)
    for directory in (tmp_path / "monday", tmp_path / "of" / "tuesday"):
        assert stat.S_IMODE(directory.stat().st_mode) == 0o700
    assert stat.S_IMODE((tmp_path / "of" / "tuesday" / "000001.podium").stat().st_mode) == 0o600


@pytest.mark.long
def test_texts_of_errors_take_no_more_memory_than_they_may() -> None:
    redactor = Redactor()
    tracemalloc.start()
    try:
        for number in range(200):
            outcome, fields = outcome_of(Invalid(f"{number} " + "x" * (1 << 20), code=422))
            redactor.answer(outcome, fields)
        redactor.item(_with({_LAST_APPLIED: "y" * (1 << 20)}))
        assert tracemalloc.get_traced_memory()[0] < 1 << 26
    finally:
        tracemalloc.stop()
    assert "x" not in redactor.failure(("u", "error", f"no: {fields[1]}"))[2]

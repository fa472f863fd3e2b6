import json

import pytest

from podium.cli.story import print_story, queue_lines, read_story

ATTEMPT = {
    "at": "2026-01-01T00:00:00Z",
    "attempt": 1,
    "result": "unschedulable",
    "node": "",
    "message": "0/1 nodes are available: 1 cannot allocate all claims.",
    "nodes": 1,
    "examined": 1,
    "feasible": 0,
    "decisionSeconds": 0.001,
}
WHY = {"at": ATTEMPT["at"], "groups": [], "scores": [], "blockers": {}}


QUEUED = {"queue": "backoff", "nextTry": {"text": "2026-01-01T00:00:04Z"}, "gatingPlugin": "", "reason": ""}


def story_of(**fields):
    story = {"pod": "default/p", "bound_to": "", "exists": True, "leader": None, "queue": None, "attempts": [ATTEMPT]}
    return read_story(json.dumps(story | {"why": WHY} | fields))


def story_lines(capsys, **fields):
    print_story(story_of(**fields), "")
    return [line.strip() for line in capsys.readouterr().out.splitlines()]


def test_the_gangs_story_stands_before_the_last_attempt(capsys):
    lines = story_lines(capsys, gang={"text": ["It is a member of the gang default/train", "1 more must get a node"]})
    assert lines[2:4] == ["It is a member of the gang default/train", "1 more must get a node"]


def test_missing_devices_stand_after_the_findings_of_the_attempt(capsys):
    reason, detail = "request gpu asks for 2 devices: 2 of 2 match, 1 taken", "gpu-1: taken by claim default/train"
    group = {"reasons": [reason], "count": 1, "examples": ["n1"], "nodes": {"n1": {"details": [detail]}}}
    lines = story_lines(capsys, devices=[group])
    at = lines.index("devices, as they are now on some of these nodes:")
    assert lines[at + 1 : at + 4] == ["n1:", reason, f"n1: {detail}"]


def test_the_answer_of_an_older_podium_has_neither(capsys):
    assert not any("gang" in line or "devices" in line for line in story_lines(capsys))


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"attempts": []}, "is not in its queue"),
        ({}, "is not in its queue, after attempt 1 at 2026-01-01T00:00:00Z"),
        ({"queue": QUEUED, "attempts": []}, "waits in its queue, backoff; next try: 2026-01-01T00:00:04Z"),
        (
            {"queue": QUEUED},
            "waits in its queue, backoff, after attempt 1 at 2026-01-01T00:00:00Z; next try: 2026-01-01T00:00:04Z",
        ),
        (
            {"queue": QUEUED | {"queue": "inFlight", "nextTry": None}, "attempts": []},
            "waits in its queue, inFlight; it is being tried",
        ),
    ],
)
def test_the_queue_of_a_pending_pod_is_one_line(fields, text):
    assert queue_lines(story_of(**fields), "kube-system/podium-0") == [f"kube-system/podium-0: default/p {text}"]


def test_a_gate_is_named_and_a_pod_on_a_node_or_deleted_has_no_queue():
    entry = QUEUED | {"queue": "gated", "gatingPlugin": "SchedulingGates", "reason": "waiting for gates"}
    assert queue_lines(story_of(queue=entry), "x")[1] == "  gated by SchedulingGates: waiting for gates"
    assert queue_lines(story_of(bound_to="n1"), "x") == queue_lines(story_of(exists=False), "x") == []

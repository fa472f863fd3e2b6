import json

from podium.cli.story import print_story, read_story

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


def story_lines(capsys, **fields):
    story = {"pod": "default/p", "bound_to": "", "exists": True, "leader": None, "queue": None, "attempts": [ATTEMPT]}
    print_story(read_story(json.dumps(story | {"why": WHY} | fields)), "")
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

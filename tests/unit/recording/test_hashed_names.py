"""No name can be read, and what matters stays equal; tests/simulation/test_recordings.py replays hashed recordings."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from podium.objects.resource_types import NODES, PODS
from podium.recording import tape
from podium.recording.hashed_names import NameHasher
from podium.recording.recorder import Recorder
from podium.recording.replay import entries_of
from podium.recording.segments import open_segments
from tests.builders import node, pod

HASHER = NameHasher(b"secret")


def hashed(item: Any) -> Any:
    """The object as a replay sees it."""
    return msgspec.convert(HASHER.item(item), type(item))


def test_equal_texts_stay_equal_and_parts_stay_parts() -> None:
    text = HASHER.text
    assert text("web-0-data") == f"{text('web-0')}-{text('data')}"
    assert text("default/web-0") == f"{text('default')}/{text('web-0')}"
    assert text("quay.io/acme/web:latest").endswith(f"/{text('acme')}/{text('web')}:latest")
    assert text("web") != text("Web")
    assert text("web") != NameHasher(b"another").text("web")
    assert text("") == ""


def test_integers_and_words_of_the_api_stay() -> None:
    made = hashed(pod("web-1", labels={"generation": "12", "team": "billing"}, cpu="250m"))
    assert made.metadata.labels == {HASHER.text("generation"): "12", HASHER.text("team"): HASHER.text("billing")}
    assert made.spec.scheduler_name == pod("web-1").spec.scheduler_name
    assert made.spec.containers[0].resources.requests == {"cpu": "250m"}


def test_well_known_keys_stay_and_their_values_are_hashed() -> None:
    zone, architecture = "topology.kubernetes.io/zone", "kubernetes.io/arch"
    made = hashed(node("n1", labels={zone: "paris-1", architecture: "arm64", "kubernetes.io/hostname": "n1"}))
    assert made.metadata.labels[zone] == HASHER.text("paris-1")
    assert made.metadata.labels[architecture] == "arm64"
    assert made.metadata.labels["kubernetes.io/hostname"] == made.metadata.name


def test_segments_hold_no_name(tmp_path: Path) -> None:
    names = ["acme-payroll", "salaries", "berlin-cellar", "secretzone", "accounting", "whoever", "intranet"]
    described = {
        "podium": "1",
        "plugins": ["/home/whoever/picky.py:Picky"],
        "config": {"clientConnection": {"kubeconfig": "/home/whoever/.kube/config"}},
    }
    recorder = Recorder(tmp_path, described, HASHER)
    waiting = pod("acme-payroll", namespace="salaries", labels={"intranet.example/team": "accounting"})
    recorder.put(PODS.path, waiting)
    recorder.put(NODES.path, node("berlin-cellar", zone="secretzone"))
    decided = tape.Decided("u", "salaries/acme-payroll", "Suggested", "berlin-cellar", 1, 1, 0, None, ("salaries/x",))
    recorder.note(tape.DECIDED, decided)
    recorder.note(tape.FAILED, ("u", "error", 'pods "acme-payroll" not found'))
    recorder.note(tape.REMOVE, (NODES.path, "berlin-cellar"))
    recorder.close()
    segments = open_segments(tmp_path)
    content = b"".join([*segments.blocks(), msgspec.json.encode(segments.description)])
    assert [each for each in names if each.encode() in content] == []
    put, _, decision, *_ = entries_of(open_segments(tmp_path))
    assert tape.Decided(*decision[1:]).pod == tape.item_of(put).key

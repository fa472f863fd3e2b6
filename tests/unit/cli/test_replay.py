"""What `podium replay` says of directories that are no recordings; tests/e2e/test_recording.py replays real ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import podium
from podium.config import RELEASES, Release, default_configuration, default_gates, effective
from podium.lib import build
from podium.recording.entries import DECIDED, PUT, READ, SIGNAL
from podium.recording.replay import recorded_release
from podium.recording.segments import SegmentWriter, open_segments
from tests.builders import node
from tests.unit.cli.commands import run
from tests.unit.recording.contents import content_of


def write_recording(directory: Path, description: dict[str, Any], content: bytes = content_of()) -> Path:
    """A recording with that description."""
    writer = SegmentWriter(directory, description)
    writer.write(content, 0.0)
    writer.close()
    return directory


def complete() -> dict[str, Any]:
    """The description of a recording by this version, with a default scheduler."""
    config = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    options = {
        "pod_max_in_unschedulable_s": 300.0,
        "preempts_pods_of_others": False,
        "avoids_conflicts": False,
        "recorder_bytes": 0,
        "pod_groups": None,
    }
    return {
        "podium": podium.__version__,
        "config": config,
        "plugins": [],
        "feature_gates": [],
        "options": options,
    }


def test_directory_that_is_no_recording_is_named(tmp_path: Path) -> None:
    result = run("replay", tmp_path)
    assert result.exit_code == 1
    assert f"{tmp_path} holds no recording" in result.output
    (tmp_path / "000001.podium").write_text("kind: Pod")
    result = run("replay", tmp_path)
    assert result.exit_code == 1
    assert "000001.podium is not a segment of a podium recording" in result.output


def test_recording_of_another_version_says_which_one_it_needs(tmp_path: Path) -> None:
    result = run("replay", write_recording(tmp_path, {**complete(), "podium": "0.1.2"}))
    assert result.exit_code == 1
    assert "replay it with podium 0.1.2" in result.output


def test_incomplete_description_is_refused(tmp_path: Path) -> None:
    for number, missing in enumerate(("config", "options", "feature_gates")):
        description = complete()
        del description[missing]
        result = run("replay", write_recording(tmp_path / str(number), description))
        assert result.exit_code == 1
        assert f"KeyError('{missing}')" in result.output


def test_recording_without_entries_is_no_error(tmp_path: Path) -> None:
    result = run("replay", write_recording(tmp_path, complete()), "--expect", "-o", "json")
    assert result.exit_code == 0, result.output
    assert '"attempts":0' in result.output


@pytest.mark.parametrize("release", RELEASES.values(), ids=RELEASES)
def test_configuration_alone_shows_the_release_of_a_recording_that_names_none(release: Release, tmp_path: Path) -> None:
    config = default_configuration(default_gates(release))
    recording = write_recording(tmp_path, complete() | {"config": effective(config)})
    assert recorded_release(open_segments(recording).description) is release
    assert run("replay", recording, "--expect").exit_code == 0


@pytest.mark.parametrize("minor", ["1.30", 1.36, None, ["1.36"], {}])
def test_release_that_podium_does_not_know_is_refused(minor: object, tmp_path: Path) -> None:
    result = run("replay", write_recording(tmp_path, complete() | {"decides_as": minor}))
    assert result.exit_code == 1
    assert f"was decided as Kubernetes {minor!r}, which this podium does not know" in result.output


@pytest.mark.parametrize("config", [None, [], {"profiles": 1}, {"profiles": [{"plugins": []}]}])
def test_recorded_configuration_that_is_none_is_refused(config: object, tmp_path: Path) -> None:
    result = run("replay", write_recording(tmp_path, complete() | {"config": config}))
    assert result.exit_code == 1
    assert isinstance(result.exception, SystemExit)
    assert "the recorded configuration" in result.output


def test_content_that_is_no_entries_is_refused(tmp_path: Path) -> None:
    result = run("replay", write_recording(tmp_path, complete(), b"what?"))
    assert result.exit_code == 1
    assert "cannot be understood" in result.output
    assert "the 0 attempts before it were replayed" in result.output


def test_until_is_a_number_a_duration_or_a_time(tmp_path: Path) -> None:
    directory = write_recording(tmp_path, complete())
    for until in ("5", "10m", "2026-05-04T03:00:00Z", "2026-05-04T03:00:00+02:00"):
        assert run("replay", directory, "--until", until, "--speed", "2.5").exit_code == 0
    for wrong in ("0", "-5", "soon", "2026-05-04T03:00:00", "-10m"):
        result = run("replay", directory, f"--until={wrong}")
        assert result.exit_code == 2
        assert "a duration (10m)" in result.output


def test_recording_of_another_commit_that_differs_says_which_one_made_it(tmp_path: Path) -> None:
    content = content_of((DECIDED, ("u", "default/web", "Suggested", "n1", 1, 1, 0, None, ())))
    result = run("replay", str(write_recording(tmp_path, complete() | {"commit": "f00d"}, content)), "-o", "json")
    assert result.exit_code == 0
    assert "a decision was recorded, and a reading of the wall clock is wanted" in result.stdout
    assert f"recorded by podium {podium.__version__} of commit f00d, and this is podium" in result.stderr
    result = run("replay", str(write_recording(tmp_path / "ours", complete() | {"commit": build.commit()}, content)))
    assert "The replay cannot go on: a decision was recorded" in result.stdout
    assert result.stderr == ""


def test_content_of_another_commit_that_is_not_understood_says_which_one_made_it(tmp_path: Path) -> None:
    content = content_of((SIGNAL, "noon"))
    result = run("replay", str(write_recording(tmp_path, complete() | {"commit": "f00d"}, content)))
    assert result.exit_code == 1
    assert "a signal in it is not as podium writes it" in result.stderr
    assert "of commit f00d" in result.stderr


def test_unusable_configuration_is_named_as_the_recorded_one(tmp_path: Path) -> None:
    description = complete()
    description["config"]["percentageOfNodesToScore"] = 101
    result = run("replay", str(write_recording(tmp_path, description)))
    assert result.stderr.startswith("the recorded configuration: percentageOfNodesToScore: ")


def test_a_replay_that_lacks_an_object_says_that_it_may_end_there(tmp_path: Path) -> None:
    labels = {f"label-{number}": "x" * 60 for number in range(60_000)}
    # A decision follows, which nothing can make without the node.
    content = content_of((PUT, ("/api/v1/nodes", node("evil", labels=labels))), (READ, 1))
    result = run("replay", write_recording(tmp_path / "a", complete(), content))
    assert "1 object change left out: Node evil: " in result.stderr
    assert "the replay may end there" in result.stderr
    assert "the replay may end there" not in run("replay", write_recording(tmp_path / "b", complete())).stderr

"""`podium diff` of recordings that cannot be replayed; `test_comparison` looks for differences more closely."""

from __future__ import annotations

import os
from pathlib import Path

from podium.recording.entries import DECIDED, Decision
from podium.recording.segments import SegmentWriter
from tests.unit.cli.commands import run
from tests.unit.recording.contents import content_of


def write_recording(directory: Path, *nodes: str) -> Path:
    """A recording by a podium of long ago, with a pod on each of these nodes."""
    writer = SegmentWriter(directory, {"podium": "0.0.1"})
    decisions = [
        Decision(str(at), f"default/web-{at}", "Suggested", node, 3, 3, 100, None, ()) for at, node in enumerate(nodes)
    ]
    writer.write(content_of(*((DECIDED, decision) for decision in decisions)), 0.0)
    writer.close()
    return directory


def test_same_decisions_are_reported(tmp_path: Path) -> None:
    result = run("diff", write_recording(tmp_path / "a", "n1", "n2"), write_recording(tmp_path / "b", "n1", "n2"))
    assert (result.exit_code, result.output) == (0, "The decisions are the same.\n")


def test_first_decision_that_differs_is_named(tmp_path: Path) -> None:
    first, second = write_recording(tmp_path / "a", "n1", "n2", "n3"), write_recording(tmp_path / "b", "n1", "n3", "n3")
    result = run("diff", first, second)
    assert result.exit_code == 3
    assert "The first difference is at attempt 2." in result.output
    assert f"{first}: pod default/web-1 to node n2, of 3 feasible nodes" in result.output
    assert f"{second}: pod default/web-1 to node n3, of 3 feasible nodes" in result.output
    assert '"attempt":2' in run("diff", first, second, "-o", "json").output


def test_directory_without_a_recording_is_named(tmp_path: Path) -> None:
    result = run("diff", write_recording(tmp_path / "a", "n1"), tmp_path)
    assert result.exit_code == 1
    assert f"{tmp_path} holds no recording" in result.output


def test_pipe_in_the_place_of_a_recording_is_named(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "000001.podium")
    result = run("diff", str(tmp_path), str(tmp_path))
    assert (result.exit_code, result.stderr) == (1, f"Error: {tmp_path}/000001.podium: Not a regular file\n")

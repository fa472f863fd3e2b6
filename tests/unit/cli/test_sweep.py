"""What `podium sweep` says of recordings that lack something; test_orphans.py computes in processes."""

from __future__ import annotations

import json
from pathlib import Path

from podium.cli import sweep as command
from podium.recording.entries import PUT
from podium.recording.sweep import run_combination
from tests.builders import node
from tests.unit.cli.commands import run
from tests.unit.cli.test_replay import complete, described
from tests.unit.recording.contents import content_of

TOO_MANY = {f"label-{number}": "x" * 60 for number in range(60_000)}


def lacking(directory: Path) -> Path:
    """A recording without a node that is too large for one."""
    return described(directory, complete(), content_of((PUT, ("/api/v1/nodes", node("evil", labels=TOO_MANY)))))


def computed(file: Path, *directories: Path) -> None:
    """Write the results of all combinations, so that no process is needed for them."""
    combinations = command._combinations(directories, (), {"NodeResourcesFit": (1, 2)}, ())
    file.write_text("".join(json.dumps(run_combination(each).as_value()) + "\n" for each in combinations))


def test_what_recordings_lack_is_said_once_for_each(tmp_path: Path) -> None:
    first, second, whole = lacking(tmp_path / "a"), lacking(tmp_path / "b"), described(tmp_path / "c", complete())
    computed(tmp_path / "results", first, second, whole)
    asked = ("sweep", first, second, whole, "--grid", "NodeResourcesFit=1,2", "--resume", tmp_path / "results")
    result = run(*asked)
    said = [line for line in result.stderr.splitlines() if "left out" in line]
    assert [line.partition(": ")[0] for line in said] == [str(first), str(second)]
    assert all("1 change(s) of objects are left out: Node evil: " in line for line in said)
    rows = [json.loads(line) for line in run(*asked, "-o", "json").stdout.splitlines()]
    assert ["left_out" in row for row in rows] == [True, True, True, True, False, False]


def test_results_of_an_earlier_podium_say_nothing_of_what_is_left_out(tmp_path: Path) -> None:
    file, recording = tmp_path / "results", lacking(tmp_path / "a")
    computed(file, recording)
    older = [json.loads(line) for line in file.read_text().splitlines()]
    file.write_text("".join(json.dumps({k: v for k, v in each.items() if k != "left_out"}) + "\n" for each in older))
    result = run("sweep", recording, "--grid", "NodeResourcesFit=1,2", "--resume", file)
    assert (result.exit_code, "left out" in result.stderr) == (0, False)

"""What `podium sweep` says of recordings that lack something; test_orphans.py computes in processes."""

from __future__ import annotations

import json
from pathlib import Path

from podium.cli import sweep as command
from podium.recording.entries import PUT
from podium.recording.sweep import run_combination
from tests.builders import node
from tests.unit.cli.commands import run
from tests.unit.cli.test_replay import complete, write_recording
from tests.unit.recording.contents import content_of

TOO_MANY = {f"label-{number}": "x" * 60 for number in range(60_000)}


def lacking(directory: Path) -> Path:
    """A recording without a node that is too large for one."""
    return write_recording(directory, complete(), content_of((PUT, ("/api/v1/nodes", node("evil", labels=TOO_MANY)))))


def write_results(file: Path, *directories: Path) -> None:
    """Write the results of all combinations, so that no process is needed for them."""
    combinations = command._combinations(directories, (), {"NodeResourcesFit": (1, 2)}, ())
    file.write_text("".join(json.dumps(run_combination(combination).as_value()) + "\n" for combination in combinations))


def test_what_recordings_lack_is_said_once_for_each(tmp_path: Path) -> None:
    first, second, complete_recording = (
        lacking(tmp_path / "a"),
        lacking(tmp_path / "b"),
        write_recording(tmp_path / "c", complete()),
    )
    write_results(tmp_path / "results", first, second, complete_recording)
    arguments = (
        "sweep",
        first,
        second,
        complete_recording,
        "--grid",
        "NodeResourcesFit=1,2",
        "--resume",
        tmp_path / "results",
    )
    result = run(*arguments)
    warnings = [line for line in result.stderr.splitlines() if "left out" in line]
    assert [line.partition(": ")[0] for line in warnings] == [str(first), str(second)]
    assert all("1 object change left out: Node evil: " in line for line in warnings)
    rows = [json.loads(line) for line in run(*arguments, "-o", "json").stdout.splitlines()]
    assert ["left_out" in row for row in rows] == [True, True, True, True, False, False]


def test_results_of_an_earlier_podium_say_nothing_of_what_is_left_out(tmp_path: Path) -> None:
    file, recording = tmp_path / "results", lacking(tmp_path / "a")
    write_results(file, recording)
    older = [json.loads(line) for line in file.read_text().splitlines()]
    file.write_text(
        "".join(json.dumps({k: v for k, v in older_result.items() if k != "left_out"}) + "\n" for older_result in older)
    )
    result = run("sweep", recording, "--grid", "NodeResourcesFit=1,2", "--resume", file)
    assert (result.exit_code, "left out" in result.stderr) == (0, False)

"""`podium sweep` over a recorded day, with processes of its own."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from dask import config as dask_config
from distributed import LocalCluster

from tests.patience import PATIENCE_S
from tests.simulation.calm import record_calm
from tests.unit.cli.commands import run

PLUGINS = ("--plugin", "tests.simulation.observed:Ledger", "--plugin", "tests.simulation.observed:Hesitation")


def test_sweep_is_resumed_from_its_file(tmp_path: Path) -> None:
    day, file = tmp_path / "day", tmp_path / "results"
    record_calm(day, pods=20)
    grid = ("--grid", "NodeResourcesFit=1,90", "--grid", "ImageLocality=1,3")
    command = ("sweep", day, *grid, *PLUGINS, "--workers", "2", "--resume", file, "-o", "json")
    process = run(*command)
    assert process.exit_code == 0, process.output
    rows = [json.loads(line) for line in process.stdout.splitlines()]
    assert len(rows) == 4
    assert any(row["on_front"] for row in rows)
    assert all(row["placed"] + row["pending"] > 0 for row in rows)
    text = file.read_text()
    file.write_text(text[: -len(text.splitlines()[-1]) // 2])
    assert run(*command).stdout == process.stdout
    assert len(file.read_text().splitlines()) == 4


def test_a_result_without_the_end_of_its_line_is_kept(tmp_path: Path) -> None:
    day, file = tmp_path / "day", tmp_path / "results"
    record_calm(day, pods=5)
    command = ("sweep", day, "--grid", "NodeResourcesFit=1", *PLUGINS, "--workers", "1", "--resume", file)
    assert run(*command).exit_code == 0
    # Another outcome than that of the replay, so that it is seen to be taken from the file.
    content = file.read_text().replace('"placed":5', '"placed":7')
    file.write_text(content.rstrip("\n"))
    assert run(*command).exit_code == 0
    assert file.read_text() == content


@pytest.mark.parametrize("content", ["{}\n", "{}", "notes of mine", "caf\u00e9 \u2028", "[" * 100_000])
def test_a_file_that_holds_no_results_is_refused_and_stays_as_it_is(tmp_path: Path, content: str) -> None:
    day, file = tmp_path / "day", tmp_path / "results"
    record_calm(day, pods=5)
    file.write_text(content)
    process = run("sweep", day, "--grid", "NodeResourcesFit=1", *PLUGINS, "--resume", file)
    assert process.exit_code == 1
    assert "line 1 is not a result of podium sweep" in process.output
    assert file.read_text() == content


@pytest.fixture(scope="module")
def dask() -> Iterator[str]:
    # On a busy machine a worker may take longer to start than Dask waits by default.
    patience = {
        "distributed.comm.timeouts.connect": f"{PATIENCE_S}s",
        "distributed.comm.timeouts.tcp": f"{PATIENCE_S}s",
    }
    with (
        dask_config.set(patience),
        LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address="127.0.0.1:0") as cluster,
    ):
        yield cluster.scheduler_address


def test_dask_cluster_finds_what_a_pool_finds(dask: str, tmp_path: Path) -> None:
    day = tmp_path / "day"
    record_calm(day, pods=20)
    command = ("sweep", day, "--grid", "NodeResourcesFit=1,90", *PLUGINS, "-o", "json")
    process, pooled = run(*command, "--dask", dask), run(*command, "--workers", "1")
    assert process.exit_code == 0, process.output
    assert process.stdout == pooled.stdout
    assert len(process.stdout.splitlines()) == 2


def test_dask_cluster_that_is_not_there_is_named(tmp_path: Path) -> None:
    day = tmp_path / "day"
    record_calm(day, pods=5)
    with dask_config.set({"distributed.comm.timeouts.connect": "200ms"}):
        process = run("sweep", day, "--grid", "NodeResourcesFit=1", *PLUGINS, "--dask", "tcp://127.0.0.1:1")
    assert process.exit_code == 1
    assert "tcp://127.0.0.1:1" in process.output

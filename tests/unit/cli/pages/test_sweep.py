"""The page of a sweep: points and a table for each recording, and what went wrong."""

from __future__ import annotations

from typing import Any

from podium.cli.pages.sections import Facts, Plot, Table
from podium.cli.pages.sweep import page_of

COLUMNS = {
    "configuration": "CONFIGURATION",
    "placed": "PLACED",
    "bind_s_p99": "BIND P99 S",
    "fragmentation": "FRAGMENTED",
}


def row(
    recording: str, configuration: str, *, on_front: bool = False, error: str = "", **numbers: Any
) -> dict[str, Any]:
    return {"recording": recording, "configuration": configuration, "on_front": on_front, **numbers, "error": error}


def test_each_recording_has_its_points_and_its_table() -> None:
    page = page_of(
        [
            row("monday", "Fit=1", on_front=True, placed=9, bind_s_p99=0.5, fragmentation=0.1),
            row("monday", "Fit=2", placed=8, bind_s_p99=None, fragmentation=0.2),
            row("monday", "Fit=x", error="no such weight"),
            row("tuesday", "Fit=1", on_front=True, placed=4, bind_s_p99=0.5, fragmentation=0.1),
        ],
        COLUMNS,
    )
    assert page.headline == "4 combinations, of which 2 are not beaten by any other."
    plot, table, errors, other_plot, _ = page.sections
    assert isinstance(plot, Plot)
    assert list(plot.axes)[:2] == ["bind_s_p99", "fragmentation"]
    assert plot.points[1] == ("Fit=2", False, {"placed": 8, "bind_s_p99": None, "fragmentation": 0.2})
    assert isinstance(table, Table)
    assert table.columns == ["CONFIGURATION", "PLACED", "BIND P99 S", "FRAGMENTED"]
    assert table.rows == [("Fit=1", 9, 0.5, 0.1), ("Fit=2", 8, None, 0.2)]
    assert table.marked == [0]
    assert isinstance(errors, Facts)
    assert errors.facts == {"Fit=x": "no such weight"}
    assert other_plot.title == "tuesday"


def test_sweep_that_failed_altogether_shows_its_errors() -> None:
    (errors,) = page_of([row("monday", "Fit=1", error="no such file")], COLUMNS).sections
    assert errors.title == "Errors"


def test_numbers_that_vary_are_plotted_first() -> None:
    rows = [row("monday", str(at), placed=at, bind_s_p99=0.5, fragmentation=at / 10) for at in range(3)]
    plot = page_of(rows, COLUMNS).sections[0]
    assert isinstance(plot, Plot)
    assert list(plot.axes) == ["fragmentation", "placed", "bind_s_p99"]

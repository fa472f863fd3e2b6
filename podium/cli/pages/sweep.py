"""The page of `podium sweep`: the results of each configuration, as a table and as points."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from podium.cli.pages.sections import Facts, Page, Plot, Section, Table

_FIRST: Final = ("bind_s_p99", "fragmentation", "spread", "pending", "preemptions")
"""Of these, the first two that vary are plotted at first."""


def page_of(rows: Sequence[Mapping[str, Any]], columns: Mapping[str, str]) -> Page:
    """Build the page.

    Args:
        rows: the result of `podium.recording.sweep.table`.
        columns: the headings of the numbers, by name; the first one is that of the configuration.
    """
    names = [name for name in columns if name != "configuration"]
    sections: list[Section] = []
    for recording in dict.fromkeys(row["recording"] for row in rows):
        recording_rows = [row for row in rows if row["recording"] == recording]
        good = [row for row in recording_rows if "placed" in row]
        front_rows = [index for index, row in enumerate(good) if row["on_front"]]
        if good:
            axes = {name: columns[name] for name in sorted(names, key=lambda name: _axis_order(name, good))}
            points = [(row["configuration"], row["on_front"], {name: row[name] for name in names}) for row in good]
            lines = [(row["configuration"], *(row[name] for name in names)) for row in good]
            headings = [columns["configuration"], *(columns[name] for name in names)]
            sections += [
                Plot(recording, axes, points, "The Pareto front is filled: what no other configuration beats."),
                Table("Configurations", headings, lines, front_rows, "The front is marked."),
            ]
        if wrong := {row["configuration"]: row["error"] for row in recording_rows if row["error"]}:
            sections.append(Facts("Errors", wrong))
    front = sum(row["on_front"] for row in rows)
    return Page("Sweep", f"{len(rows)} combinations, of which {front} are not beaten by any other.", sections)


def _axis_order(name: str, rows: Sequence[Mapping[str, Any]]) -> tuple[bool, int]:
    """Order the axes: values that vary come first."""
    varies = len({row[name] for row in rows}) > 1
    return not varies, _FIRST.index(name) if name in _FIRST else len(_FIRST)

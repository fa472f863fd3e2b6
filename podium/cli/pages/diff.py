"""The page of `podium diff`: the first decision in which two recordings differ."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from podium.cli.pages.decisions import decision_text, score_table
from podium.cli.pages.sections import Facts, Page, Section

if TYPE_CHECKING:
    from podium.recording.comparison import Difference


def page_of(
    names: Sequence[str],
    difference: Difference | None,
    scores: Sequence[Mapping[str, Mapping[str, int]]],
    damages: str = "",
) -> Page:
    """Build the page.

    Args:
        names: the names of the two recordings.
        scores: the scores of the attempt that differs, in each recording.
        damages: the parts of the recordings that could not be read.
    """
    title = f"{names[0]} and {names[1]}"
    sections: list[Section] = [Facts("Not all of it could be read", {"why": damages})] if damages else []
    if difference is None:
        return Page(title, "The decisions are the same.", sections)
    sides = difference.decisions
    nodes = [side.decision.node for side in sides if side is not None]
    for name, side in zip(names, sides, strict=True):
        if side is None:
            sections.append(Facts(name, {"decision": "the recording has ended"}))
        else:
            sections.append(Facts(name, {"decision": decision_text(side.decision), "after this": side.event}))
    for name, side, table in zip(names, sides, scores, strict=True):
        chosen_nodes = [side.decision.node] if side is not None else []
        sections += score_table(f"Scores in {name}", table, (*chosen_nodes, *nodes))
    return Page(title, f"The first difference is at attempt {difference.attempt}.", sections)

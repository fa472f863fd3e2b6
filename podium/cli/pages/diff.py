"""The page of `podium diff`: the first decision in which two recordings differ."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from podium.cli.pages.decisions import score_table, told
from podium.cli.pages.sections import Facts, Page, Section

if TYPE_CHECKING:
    from podium.recording.comparison import Difference


def page_of(
    names: Sequence[str], found: Difference | None, scores: Sequence[Mapping[str, Mapping[str, int]]], damages: str = ""
) -> Page:
    """What it shows.

    Args:
        names: of the two recordings.
        scores: of the attempt that differs, in each.
        damages: what of them could not be read.
    """
    title = f"{names[0]} and {names[1]}"
    sections: list[Section] = [Facts("Not all of it could be read", {"why": damages})] if damages else []
    if found is None:
        return Page(title, "The decisions are the same.", sections)
    sides = found.decisions
    nodes = [side.decision.node for side in sides if side is not None]
    for name, side in zip(names, sides, strict=True):
        if side is None:
            sections.append(Facts(name, {"decision": "the recording has ended"}))
        else:
            sections.append(Facts(name, {"decision": told(side.decision), "after this": side.event}))
    for name, side, table in zip(names, sides, scores, strict=True):
        own = [side.decision.node] if side is not None else []
        sections += score_table(f"Scores in {name}", table, (*own, *nodes))
    return Page(title, f"The first difference is at attempt {found.attempt}.", sections)

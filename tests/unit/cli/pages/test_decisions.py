"""Tables of scores show the best nodes, and those that were chosen."""

from __future__ import annotations

from podium.cli.pages.decisions import NODES_SHOWN, decision_text, score_table
from podium.recording.entries import Decision


def test_best_nodes_are_shown_and_chosen_ones_in_any_case() -> None:
    scores = {f"n{at:02}": {"Fit": 100 - at, "Taints": 7} for at in range(40)} | {"last": {"Fit": 0}}
    (table,) = score_table("Scores", scores, ("last", "n30", "gone"))
    assert table.columns == ("Node", "Total", "Fit", "Taints")
    assert table.rows[0] == ("n00", 107, 100, 7)
    assert [row[0] for row in table.rows[NODES_SHOWN:]] == ["n30", "last"]
    assert table.rows[-1] == ("last", 0, 0, None)
    assert table.marked == [NODES_SHOWN + 1]
    assert table.note == f"{41 - NODES_SHOWN - 2} nodes with lower scores are left out."


def test_no_scores_make_no_table() -> None:
    assert score_table("Scores", {}, ("n1",)) == []


def test_decisions_are_described_in_a_few_words() -> None:
    to_node = Decision("u", "default/web", "Suggested", "n1", 5, 3, 100, None, ())
    assert decision_text(to_node) == "pod default/web to node n1, of 3 feasible nodes"
    nowhere = to_node._replace(node="", nominated="n2")
    assert decision_text(nowhere) == "pod default/web to no node; room is to be made on n2"

"""The page of what-if: utilisation before and after, and the pods that change."""

from __future__ import annotations

from dataclasses import replace

from podium.cli.pages.sections import ROWS_MAX, Bars, Table
from podium.cli.pages.what_if import ZONES_MAX, page_of
from podium.insight.trial import Blocked, Preemption, Refused
from podium.insight.what_if import Move, Outcome, Pending, Spread, Usage

BEFORE = {"": {"cpu": Usage(2000, 8000), "pods": Usage(2, 220)}, "a": {"cpu": Usage(2000, 8000), "pods": Usage(2, 220)}}
AFTER = {
    "": {"cpu": Usage(4000, 16000), "pods": Usage(4, 440)},
    "a": {"cpu": Usage(1000, 8000), "pods": Usage(1, 220)},
    "b": {"cpu": Usage(3000, 8000), "pods": Usage(3, 220)},
}
OUTCOME = Outcome(
    moved=[Move("default/web", "n1", "n2", "default/old")],
    placed=[],
    pending=[Pending("default/big", "n1", "Insufficient cpu")],
    preempted=[Preemption("default/low", "n1", "default/high")],
    gone=["default/low"],
    still_pending=[Pending("default/late", "", "Insufficient memory")],
    blocked=[Blocked("default/kept", ("default/budget",))],
    refused=[Refused("Deployment", "default/x", "no PriorityClass")],
    before=BEFORE,
    after=AFTER,
    spread={"default/ReplicaSet/web": (Spread({"a": 2}, 1), Spread({"a": 1, "b": 1}, 2))},
)


def test_zones_and_pods_are_shown_before_and_after() -> None:
    page = page_of(["drain n1", "add 1 node"], OUTCOME)
    assert page.title == "What if: drain n1, then add 1 node"
    assert page.headline == (
        "1 pod moved, 1 pod left pending, 1 pod preempted, 1 pod gone, 1 pod not evictable, 1 pod pending, as before."
    )
    _, pods, shares, moves, pending, preempted, removals, blockers, refusals, spread = page.sections
    assert isinstance(pods, Bars)
    assert pods.pairs == [("a", 2.0, 1.0), ("b", 0.0, 3.0)]
    assert isinstance(shares, Bars)
    assert ("a: cpu", 25.0, 12.5) in shares.pairs
    assert ("b: cpu", 0.0, 37.5) in shares.pairs
    assert ("all: cpu", 25.0, 25.0) in shares.pairs
    assert [
        table.rows
        for table in (moves, pending, preempted, removals, blockers, refusals, spread)
        if isinstance(table, Table)
    ] == [
        [("default/web", "default/old", "n1", "n2")],
        [("default/big", "n1", "Insufficient cpu")],
        [("default/low", "n1", "default/high")],
        [("default/low",)],
        [("default/kept", "default/budget")],
        [("default/Deployment/x", "no PriorityClass")],
        [("default/ReplicaSet/web", "2 pods on 1 node (a 2)", "2 pods on 2 nodes (a 1, b 1)")],
    ]


def test_cluster_without_zones_is_shown_as_one() -> None:
    only = {"": BEFORE[""]}
    pods = page_of(["remove x"], replace(OUTCOME, before=only, after=only)).sections[1]
    assert isinstance(pods, Bars)
    assert pods.pairs == [("all nodes", 2.0, 2.0)]


def test_what_is_left_out_is_said() -> None:
    moves = [Move(f"default/web-{at}", "n1", "n2") for at in range(ROWS_MAX + 5)]
    zones = {f"zone-{at:02}": AFTER["b"] for at in range(ZONES_MAX + 2)}
    _, pods, _, moves_table, *_ = page_of(["drain n1"], replace(OUTCOME, moved=moves, before={}, after=zones)).sections
    assert isinstance(moves_table, Table)
    assert (len(moves_table.rows), moves_table.note) == (ROWS_MAX, "5 more are left out.")
    assert isinstance(pods, Bars)
    assert (len(pods.pairs), pods.note) == (ZONES_MAX, "2 more zones are left out.")


def test_a_page_without_changes_says_so() -> None:
    page = page_of(["add 1 node"], Outcome([], [], [], [], [], [], [], [], BEFORE, BEFORE, {}))
    assert page.headline == "No pod moves."

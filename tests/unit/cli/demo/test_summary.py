from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.cli.demo.outcome import NodeUse, Outcome
from podium.cli.demo.summary import bar, failure, lines

MESSAGE = "0/7 nodes are available: 2 node(s) had untolerated taint(s), 5 Insufficient cpu."
shares = st.floats(min_value=0, max_value=1)


def uses(count: int) -> tuple[NodeUse, ...]:
    kinds = ("small", "medium", "large", "gpu")
    return tuple(
        NodeUse(f"node-{i:05d}", f"zone-{'abc'[i % 3]}", kinds[i % 4], i, i / count, i / count / 2)
        for i in range(count)
    )


def outcome(count: int = 7, **changes: object) -> Outcome:
    values = {
        "nodes": uses(count),
        "pods": 21,
        "bound_count": 21,
        "duration_s": 0.5,
        "unschedulable": (("big", MESSAGE),),
    }
    return Outcome(**{**values, **changes})  # type: ignore[arg-type]


def text(demo_outcome: Outcome, width: int = 80, *, ascii_only: bool = False) -> str:
    return "\n".join(line.plain for line in lines(demo_outcome, width, ascii_only=ascii_only))


def test_it_begins_with_what_came_of_it() -> None:
    assert text(outcome()).startswith("All 21 pods that fit are bound in 0.50 s: 42 pods/s\n")
    assert text(outcome(bound_count=19, unbound=("a", "b"))).startswith("19 of 21 pods that fit are bound in 0.50 s")


def test_each_zone_shows_its_nodes_and_pods() -> None:
    page = text(outcome()).splitlines()
    rows = page[page.index("Pods per zone") + 1 :][:3]
    assert [row.split()[:5] for row in rows] == [
        ["zone-a", "3", "nodes", "9", "pods"],
        ["zone-b", "2", "nodes", "5", "pods"],
        ["zone-c", "2", "nodes", "7", "pods"],
    ]


def test_the_histogram_counts_every_node_once_for_cpu_and_once_for_memory() -> None:
    page = text(outcome(20), ascii_only=True).replace("#", "").splitlines()
    start = next(index for index, line in enumerate(page) if line.startswith("Nodes by")) + 2
    rows = [line.split() for line in page[start : page.index("", start)]]
    assert [row[0] for row in rows] == [f"{low}-{low + 10}%" for low in range(0, 100, 10)]
    assert sum(int(row[1]) for row in rows) == 20
    assert sum(int(row[2]) for row in rows if len(row) > 2) == 20


def test_a_full_node_belongs_to_the_last_row() -> None:
    full = NodeUse("node-00000", "zone-a", "small", 1, 1.0, 1.0)
    assert "90-100%" in text(outcome(nodes=(full,)))


def test_the_fullest_nodes_come_first_and_the_emptiest_last() -> None:
    page = text(outcome(20)).splitlines()
    names = [line.split()[0] for line in page if line.startswith("  node-")]
    assert names == ["node-00019", "node-00018", "node-00017", "node-00002", "node-00001", "node-00000"]


def test_no_node_is_listed_twice() -> None:
    names = [line.split()[0] for line in text(outcome(5)).splitlines() if line.startswith("  node-")]
    assert len(names) == len(set(names)) == 5


def test_each_pod_that_fits_nowhere_shows_its_whole_message() -> None:
    page = text(outcome(unschedulable=(("big", MESSAGE), ("tape", "no such disk"))), width=60)
    section = page[page.index("2 pods fit on no node") :]
    assert " ".join(section.split()) == f"2 pods fit on no node big {MESSAGE} tape no such disk"


@pytest.mark.parametrize(
    "suffix",
    [
        "",
        " no new claims to deallocate",
        " no new claims to deallocate, preemption: 0/7 nodes are available: 7 Preemption is not helpful.",
        " preemption: 0/7 nodes are available: 7 Preemption is not helpful.",
        ", pod group preemption: No preemption victims found for incoming preemptor",
    ],
)
def test_what_was_tried_after_the_filters_is_left_out(suffix: str) -> None:
    page = text(outcome(unschedulable=(("big", MESSAGE + suffix),)))
    assert " ".join(page.split()).endswith(f"1 pod fits on no node big {MESSAGE}")


def test_many_pods_that_fit_nowhere_are_cut_short() -> None:
    unschedulable = tuple((f"pod-{index}", "does not fit") for index in range(30))
    assert text(outcome(unschedulable=unschedulable)).endswith("  and 22 more")


@pytest.mark.parametrize("width", [10, 60, 80, 100, 300])
@pytest.mark.parametrize("ascii_only", [True, False])
def test_no_line_is_longer_than_the_terminal_is_wide(width: int, ascii_only: bool) -> None:
    longest = max(len(line) for line in text(outcome(60), width, ascii_only=ascii_only).splitlines())
    assert longest <= min(max(width, 60), 100)


def test_the_page_is_short_enough_for_one_screen() -> None:
    assert len(text(outcome(5000)).splitlines()) <= 35


def test_plain_terminals_get_plain_characters() -> None:
    assert text(outcome(60), ascii_only=True).isascii()


@given(shares, st.integers(1, 100))
def test_a_bar_fills_its_width_and_no_more(share: float, width: int) -> None:
    for ascii_only in (True, False):
        assert len(bar(share, width, ascii_only=ascii_only)) == width


@given(shares, shares)
def test_a_larger_share_has_no_shorter_bar(first_share: float, second_share: float) -> None:
    low, high = sorted((first_share, second_share))
    order = " ▏▎▍▌▋▊▉█"
    assert [order.index(c) for c in bar(low, 20)] <= [order.index(c) for c in bar(high, 20)]


def test_bars_are_exact_to_an_eighth_and_show_that_there_is_something() -> None:
    assert bar(0.0, 4) == "    "
    assert bar(0.0001, 4) == "▏   "
    assert bar(0.5, 4) == "██  "
    assert bar(0.53125, 4) == "██▏ "
    assert bar(1.0, 4) == "████"
    assert bar(7.0, 4) == "████"
    assert bar(0.5, 4, ascii_only=True) == "##  "


def test_a_failure_names_the_pods_but_not_without_end() -> None:
    message = failure(outcome(bound_count=19, unbound=("a", "b")), 3.0)
    assert message == "2 of 21 pods that can fit were not bound within 3 s: a, b"
    long_message = failure(outcome(bound_count=1, unbound=tuple(f"p{i}" for i in range(20))), 3.0)
    assert long_message.endswith("p7 and 12 more")


def test_a_failure_names_the_pods_that_should_have_been_refused() -> None:
    message = failure(outcome(misreported=("big",)), 3.0)
    assert message == "these pods cannot fit, but were not reported unschedulable: big"

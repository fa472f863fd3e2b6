"""The screen of `podium demo --autoscale`."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from podium.cli.demo.autoscale import ClusterView, NodeView, Story
from podium.cli.demo.autoscale_screen import LiveScreen, PlainScreen, screen


def cluster_view(nodes: int, *, leaving: int = 0, waiting: int = 0) -> ClusterView:
    nodes_seen = tuple(
        NodeView(f"general-{index:010d}", "c-128x-amd64-linux", 110, index / 10, 128.0, index < leaving)
        for index in range(nodes)
    )
    return ClusterView(nodes_seen, 100, 100 - waiting)


def screen_lines(cluster: ClusterView, *, width: int = 80, ascii_only: bool = False) -> list[str]:
    console = Console(file=io.StringIO(), width=width, force_terminal=False)
    console.print(screen(cluster, ascii_only=ascii_only))
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue().splitlines()


def test_a_cluster_is_a_line_and_a_row_for_each_node() -> None:
    head, names, *rows = screen_lines(cluster_view(3, waiting=7))
    assert head == "3 nodes, 384 cores, 93 pods bound, 7 waiting"
    assert names.split() == ["NODE", "TYPE", "PODS", "CPU", "REQUESTED", "CORES"]
    assert [row.split()[0] for row in rows] == ["general-0000000000", "general-0000000001", "general-0000000002"]


@pytest.mark.parametrize("width", [80, 200])
def test_the_screen_has_at_most_80_columns_and_24_lines(width: int) -> None:
    lines = screen_lines(cluster_view(200, leaving=3), width=width)
    assert max(map(len, lines)) <= 80
    assert lines[-1].strip() == "and 190 more"
    assert len(lines) <= 14


def test_a_stream_that_takes_only_ascii_gets_only_ascii() -> None:
    assert all(line.isascii() for line in screen_lines(cluster_view(5), ascii_only=True))


def test_without_a_terminal_each_event_is_a_line() -> None:
    console = Console(file=io.StringIO(), width=80)
    with PlainScreen(console) as plain:
        plain.tell("Load comes")
        plain.show(cluster_view(3))
        plain.tell("Load goes")
    assert isinstance(console.file, io.StringIO)
    assert [line.partition("s  ")[2] for line in console.file.getvalue().splitlines()] == ["Load comes", "Load goes"]


def test_the_last_screen_stays_on_the_terminal() -> None:
    console = Console(file=io.StringIO(), width=80, height=24, force_terminal=True)
    with LiveScreen(console) as live:
        live.tell("Load comes")
        live.show(cluster_view(2))
    assert isinstance(console.file, io.StringIO)
    last = console.file.getvalue()
    assert "Load comes" in last
    assert "general-0000000001" in last


def test_the_story_in_a_sentence_and_in_json() -> None:
    story = Story(cluster_view(4), ClusterView(cluster_view(1).nodes, 10, 10), 30.04)
    assert story.text == "100 pods had 4 nodes, 512 cores; 10 pods have 1 node, 128 cores."
    assert story.summary() == {
        "pods": 100,
        "nodes": 4,
        "cores": 512.0,
        "pods_after": 10,
        "nodes_after": 1,
        "cores_after": 128.0,
        "bound": 10,
        "duration_s": 30.0,
    }

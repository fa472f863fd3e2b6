"""What a page shows of a cluster over time, and what it says that it leaves out."""

from __future__ import annotations

from dataclasses import replace

from podium.cli.pages.document import document
from podium.cli.pages.over_time import ZONES_MAX, sections_of
from podium.cli.pages.sections import Heat, Lines, Page
from podium.recording.timeline import NODES_MAX, SAMPLES_MAX, NodeLine, Timeline

TIMELINE = Timeline(
    started_s=None,
    times_s=[0.0, 5.0],
    pending=[2, 0],
    waits_s=[None, (0.5, 3.0)],
    zones={"a": [0, 1], "": [0, 1]},
    nodes=[NodeLine("n1", "a", bytes([0, 25]), bytes([255, 100]))],
    nodes_count=1,
    bound_count=2,
    waits_count=2,
)


def test_nodes_queue_latency_and_zones_are_shown() -> None:
    heat, queue, latency, zones = sections_of(TIMELINE)
    assert isinstance(heat, Heat)
    assert heat.nodes == [("n1", "a", "0019", "ff64")]
    assert "2 looks at equal intervals" in heat.note
    assert "are shown" not in heat.note
    assert isinstance(queue, Lines)
    assert queue.series == {"pending": [2, 0]}
    assert isinstance(latency, Lines)
    assert latency.series == {"half of the pods": [None, 0.5], "99 % of the pods": [None, 3.0]}
    assert isinstance(zones, Lines)
    assert zones.series == {"no zone": [0, 1], "a": [0, 1]}


def test_nodes_that_are_left_out_are_counted() -> None:
    heat, *_ = sections_of(replace(TIMELINE, nodes_count=900))
    assert "1 of 900 nodes are shown" in heat.note


def test_times_that_are_left_out_are_counted() -> None:
    latency = sections_of(replace(TIMELINE, bound_count=5))[2]
    assert latency.note.endswith("5 in all. The times of 2 of them are kept.")


def test_many_zones_become_one_line() -> None:
    zone_values = {f"z{number}": [number, number] for number in range(9)}
    *_, zones = sections_of(replace(TIMELINE, zones=zone_values))
    assert isinstance(zones, Lines)
    assert list(zones.series) == ["z4", "z5", "z6", "z7", "z8", "other zones"]
    assert len(zones.series) == ZONES_MAX
    assert zones.series["other zones"] == [6, 6]
    assert "The 4 zones with the fewest pods are one line" in zones.note


def test_large_cluster_and_a_long_time_make_a_small_page() -> None:
    looks = SAMPLES_MAX + 1
    timeline = Timeline(
        started_s=1.5e9,
        times_s=[at * 720.123 for at in range(looks)],
        pending=[123_456] * looks,
        waits_s=[(0.123456789, 123.456789012)] * looks,
        zones={f"zone-{at}": [12_345] * looks for at in range(20)},
        nodes=[NodeLine("n" * 63, "z" * 63, bytes(looks), bytes(looks))] * NODES_MAX,
        nodes_count=15_000,
        bound_count=10_000_000,
        waits_count=1_000_000,
    )
    page = Page("Replay", "", sections_of(timeline), timeline.times_s, timeline.started_s)
    assert len(document(page, "1")) < 500_000

"""A cluster over time: nodes by utilisation, waiting pods, how long they waited, and pods by zone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from podium.cli.pages.sections import Heat, Lines, Section
from podium.recording.timeline import Timeline

ZONES_MAX: Final = 6


def sections_of(timeline: Timeline) -> list[Section]:
    """Build the sections of a timeline; each one names the parts that it leaves out."""
    left_out = ""
    if timeline.nodes_count > len(timeline.nodes):
        left_out = f" {len(timeline.nodes)} of {timeline.nodes_count} nodes are shown, evenly spread by zone and name."
    nodes = [(node.name, node.zone, node.cpu.hex(), node.memory.hex()) for node in timeline.nodes]
    looks = f"{len(timeline.times_s)} looks at equal intervals; what came and went between two of them is not shown."
    waits = timeline.waits_s
    waits_note = (
        f" The times of {timeline.waits_count} of them are kept." if timeline.waits_count < timeline.bound_count else ""
    )
    latency = {
        "half of the pods": [quantiles and quantiles[0] for quantiles in waits],
        "99 % of the pods": [quantiles and quantiles[1] for quantiles in waits],
    }
    zones, zones_note = _zones(timeline.zones)
    return [
        Heat("Nodes by utilisation", nodes, f"Requested share of each node. {looks}{left_out}"),
        Lines("Pods that wait", "pods", {"pending": timeline.pending}, "Pods without a node, gated ones too."),
        Lines(
            "Time to bind",
            "s",
            latency,
            f"From when a pod was first seen until its binding was, of the pods bound since the look before; "
            f"{timeline.bound_count} in all.{waits_note}",
        ),
        Lines("Pods by zone", "pods", zones, f"Pods on existing nodes.{zones_note}"),
    ]


def _zones(zones: Mapping[str, Sequence[int]]) -> tuple[dict[str, Sequence[int]], str]:
    """Return the zones with the most pods, the others together, and a note about them."""
    ranking = sorted(zones, key=lambda zone: (-max(zones[zone]), zone))
    largest = ranking if len(ranking) <= ZONES_MAX else ranking[: ZONES_MAX - 1]
    series = {zone or "no zone": zones[zone] for zone in sorted(largest)}
    other_series = [zones[zone] for zone in ranking[len(largest) :]]
    if not other_series:
        return series, ""
    series["other zones"] = [sum(counts) for counts in zip(*other_series, strict=True)]
    return series, f" The {len(other_series)} zones with the fewest pods are one line."

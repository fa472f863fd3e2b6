"""A cluster over time: nodes by utilisation, waiting pods, how long they waited, and pods by zone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from podium.cli.pages.sections import Heat, Lines, Section
from podium.recording.timeline import Timeline

ZONES_MAX: Final = 6


def sections_of(timeline: Timeline) -> list[Section]:
    """What a page shows of it; each section says what it leaves out."""
    left_out = ""
    if timeline.nodes_count > len(timeline.nodes):
        left_out = f" {len(timeline.nodes)} of {timeline.nodes_count} nodes are shown, evenly spread by zone and name."
    nodes = [(each.name, each.zone, each.cpu.hex(), each.memory.hex()) for each in timeline.nodes]
    looks = f"{len(timeline.times_s)} looks at equal intervals; what came and went between two of them is not shown."
    waits = timeline.waits_s
    kept = (
        f" The times of {timeline.waits_count} of them are kept." if timeline.waits_count < timeline.bound_count else ""
    )
    latency = {
        "half of the pods": [each and each[0] for each in waits],
        "99 % of the pods": [each and each[1] for each in waits],
    }
    zones, more = _zones(timeline.zones)
    return [
        Heat("Nodes by utilisation", nodes, f"Requested share of each node. {looks}{left_out}"),
        Lines("Pods that wait", "pods", {"pending": timeline.pending}, "Pods without a node, gated ones too."),
        Lines(
            "Time to bind",
            "s",
            latency,
            f"From when a pod was first seen until its binding was, of the pods bound since the look before; "
            f"{timeline.bound_count} in all.{kept}",
        ),
        Lines("Pods by zone", "pods", zones, f"Pods on nodes that are there.{more}"),
    ]


def _zones(zones: Mapping[str, Sequence[int]]) -> tuple[dict[str, Sequence[int]], str]:
    """The zones with the most pods, the others together, and what to say of that."""
    ordered = sorted(zones, key=lambda zone: (-max(zones[zone]), zone))
    shown = ordered if len(ordered) <= ZONES_MAX else ordered[: ZONES_MAX - 1]
    found = {zone or "no zone": zones[zone] for zone in sorted(shown)}
    rest = [zones[zone] for zone in ordered[len(shown) :]]
    if not rest:
        return found, ""
    found["other zones"] = [sum(each) for each in zip(*rest, strict=True)]
    return found, f" The {len(rest)} zones with the fewest pods are one line."

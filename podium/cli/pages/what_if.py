"""The page of `podium what-if`: utilisation and pods by zone before and after, and what becomes of pods."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from podium.cli.pages.sections import Bars, Facts, Page, Section, Table, capped
from podium.insight.what_if import Outcome, Usage, Utilisation

ZONES_MAX: Final = 40
_NOTHING: Final = Usage(0, 0)


def page_of(steps: Sequence[str], found: Outcome) -> Page:
    """What it shows.

    Args:
        steps: what was done, in words.
    """
    counts = {
        "move": found.moved,
        "are placed": found.placed,
        "are pending": found.pending,
        "are preempted": found.preempted,
        "are gone": found.gone_for_good,
        "cannot be evicted": found.blocked,
        "were pending before and still are": found.still_pending,
    }
    headline = ", ".join(f"{len(each)} pod(s) {what}" for what, each in counts.items() if each)
    sections: list[Section] = [
        Facts("Steps", {str(number): step for number, step in enumerate(steps, 1)}),
        *_bars(found),
        *_listed(
            "Pods that move",
            ("Pod", "Replaces", "From", "To"),
            [(move.pod, move.replaces, move.before, move.after) for move in found.moved],
        ),
        *_listed("Pods that are placed", ("Pod", "To"), [(each.pod, each.after) for each in found.placed]),
        *_listed(
            "Pods that are pending",
            ("Pod", "Was on", "Why"),
            [(each.pod, each.before, each.why) for each in found.pending],
        ),
        *_listed(
            "Pods that are preempted",
            ("Pod", "Node", "By"),
            [(each.pod, each.node, each.by) for each in found.preempted],
        ),
        *_listed("Pods that are gone", ("Pod",), [(key,) for key in found.gone_for_good]),
        *_listed(
            "Pods that cannot be evicted",
            ("Pod", "Budgets"),
            [(pod.pod, ", ".join(pod.budgets)) for pod in found.blocked],
        ),
        *_listed(
            "Pods that the API server refuses",
            ("Workload", "Reason"),
            [(refusal.workload, refusal.reason) for refusal in found.refused],
        ),
        *_listed(
            "Spread of workloads that changed",
            ("Workload", "Before", "After"),
            [(workload, str(before), str(after)) for workload, (before, after) in found.spread.items()],
        ),
    ]
    return Page(f"What if: {', then '.join(steps)}", f"{headline}." if headline else "No pod moves.", sections)


def _bars(found: Outcome) -> list[Section]:
    """Pods by zone, and the requested share of each resource by zone."""
    every = [zone for zone in dict.fromkeys((*found.before, *found.after)) if zone] or [""]
    zones = every[:ZONES_MAX]
    note = f"{len(every) - len(zones)} more zones are left out." if len(every) > len(zones) else ""
    before, after = found.before, found.after
    pods = []
    for zone in zones:
        was, now = (_usage(side, zone, "pods").requested for side in (before, after))
        pods.append((zone or "all nodes", float(was), float(now)))
    shares = [
        (f"{zone or 'all'}: {name}", _usage(before, zone, name).percent, _usage(after, zone, name).percent)
        for zone in dict.fromkeys(("", *zones))
        for name in {**before.get(zone, {}), **after.get(zone, {})}
        if name != "pods"
    ]
    return [
        Bars("Pods by zone", "pods", pods, note),
        Bars("Requested, by zone and resource", "%", shares, note),
    ]


def _usage(side: Utilisation, zone: str, resource: str) -> Usage:
    return side.get(zone, {}).get(resource, _NOTHING)


def _listed(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> list[Table]:
    return [capped(title, columns, rows)] if rows else []

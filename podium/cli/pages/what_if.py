"""The page of `podium what-if`: utilisation and pods by zone before and after, and the pods that change."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from podium.cli.pages.sections import Bars, Facts, Page, Section, Table, capped_table
from podium.insight.what_if import Outcome, Usage, Utilisation
from podium.lib.plurals import count_of

ZONES_MAX: Final = 40
_NOTHING: Final = Usage(0, 0)


def page_of(steps: Sequence[str], outcome: Outcome) -> Page:
    """Build the page.

    Args:
        steps: the steps in words.
    """
    counts = {
        "moved": outcome.moved,
        "placed": outcome.placed,
        "left pending": outcome.pending,
        "preempted": outcome.preempted,
        "gone": outcome.gone_for_good,
        "not evictable": outcome.blocked,
        "pending, as before": outcome.still_pending,
    }
    headline = ", ".join(f"{count_of(len(pods), 'pod')} {change}" for change, pods in counts.items() if pods)
    sections: list[Section] = [
        Facts("Steps", {str(number): step for number, step in enumerate(steps, 1)}),
        *_bars(outcome),
        *_table(
            "Pods that move",
            ("Pod", "Replaces", "From", "To"),
            [(move.pod, move.replaces, move.before, move.after) for move in outcome.moved],
        ),
        *_table("Pods that are placed", ("Pod", "To"), [(move.pod, move.after) for move in outcome.placed]),
        *_table(
            "Pods that are pending",
            ("Pod", "Was on", "Why"),
            [(pending_pod.pod, pending_pod.before, pending_pod.why) for pending_pod in outcome.pending],
        ),
        *_table(
            "Pods that are preempted",
            ("Pod", "Node", "By"),
            [(victim.pod, victim.node, victim.by) for victim in outcome.preempted],
        ),
        *_table("Pods that are gone", ("Pod",), [(key,) for key in outcome.gone_for_good]),
        *_table(
            "Pods that cannot be evicted",
            ("Pod", "Budgets"),
            [(pod.pod, ", ".join(pod.budgets)) for pod in outcome.blocked],
        ),
        *_table(
            "Pods that the API server refuses",
            ("Workload", "Reason"),
            [(refusal.workload, refusal.reason) for refusal in outcome.refused],
        ),
        *_table(
            "Spread of workloads that changed",
            ("Workload", "Before", "After"),
            [
                (workload, str(old_spread), str(new_spread))
                for workload, (old_spread, new_spread) in outcome.spread.items()
            ],
        ),
    ]
    return Page(f"What if: {', then '.join(steps)}", f"{headline}." if headline else "No pod moves.", sections)


def _bars(outcome: Outcome) -> list[Section]:
    """Build bars of the pods by zone, and of the requested share of each resource by zone."""
    every = [zone for zone in dict.fromkeys((*outcome.before, *outcome.after)) if zone] or [""]
    zones = every[:ZONES_MAX]
    note = f"{len(every) - len(zones)} more zones are left out." if len(every) > len(zones) else ""
    old_utilisation, new_utilisation = outcome.before, outcome.after
    pods = []
    for zone in zones:
        old_count, new_count = (_usage(side, zone, "pods").requested for side in (old_utilisation, new_utilisation))
        pods.append((zone or "all nodes", float(old_count), float(new_count)))
    shares = [
        (
            f"{zone or 'all'}: {name}",
            _usage(old_utilisation, zone, name).percent,
            _usage(new_utilisation, zone, name).percent,
        )
        for zone in dict.fromkeys(("", *zones))
        for name in {**old_utilisation.get(zone, {}), **new_utilisation.get(zone, {})}
        if name != "pods"
    ]
    return [
        Bars("Pods by zone", "pods", pods, note),
        Bars("Requested, by zone and resource", "%", shares, note),
    ]


def _usage(side: Utilisation, zone: str, resource: str) -> Usage:
    return side.get(zone, {}).get(resource, _NOTHING)


def _table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> list[Table]:
    return [capped_table(title, columns, rows)] if rows else []

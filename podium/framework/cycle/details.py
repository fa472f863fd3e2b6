"""Details that a rejection's reasons leave out, such as which taints. For logs and pages, never for Events.

Upstream's reasons only count nodes, because users who may read Events may not be allowed to read nodes. Operators are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import numpy as np

from podium.cluster import Rows, Snapshot
from podium.framework.contract.filter import Detailing
from podium.framework.contract.status import Status
from podium.framework.cycle.cycle import Cycle
from podium.framework.cycle.diagnosis import Diagnosis
from podium.framework.profile.runtime import Framework
from podium.lib.plurals import count_of
from podium.objects.core import Pod

_SHOWN_MAX = 10


def details_of(cycle: Cycle) -> str:
    """Return the details of the diagnosis in one text, the most frequent first; empty if there are none.

    Cost: one step for each distinct status, and one gather over the rows of each filter that has details.
    """
    framework = cycle.framework
    rejected_by = _rejected_by(framework.detailing, cycle.diagnosis)
    if not rejected_by:
        return ""
    counts = Counter[str]()
    for plugin, rows in rejected_by.items():
        counts.update(details_on(framework, plugin, cycle.pod, cycle.snapshot, rows))
    parts = [f"{text} on {count_of(count, 'node')}" for text, count in counts.most_common(_SHOWN_MAX)]
    if len(counts) > _SHOWN_MAX:
        parts.append(f"and {len(counts) - _SHOWN_MAX} more")
    return ", ".join(parts)


def detail_of_node(framework: Framework, pod: Pod, snapshot: Snapshot, row: int, status: Status) -> str:
    """Return the details of one node's status."""
    return ", ".join(details_on(framework, status.plugin, pod, snapshot, np.array([row])))


def details_on(framework: Framework, plugin: str, pod: Pod, snapshot: Snapshot, rows: Rows) -> Mapping[str, int]:
    """Return the plugin's details on these nodes, and on how many each holds; empty if it has none.

    They are empty if the plugin fails, too, because the attempt does not depend on them.
    """
    if plugin not in framework.detailing:
        return {}
    try:
        counts = framework.detailing[plugin].rejection_details(pod, snapshot, rows)
        return {str(text): int(count) for text, count in counts.items()}
    except Exception as error:  # noqa: BLE001 - a plugin may raise anything
        framework.observer.plugin_failed(plugin, "RejectionDetails", pod, error)
        return {}


def details_text(framework: Framework, plugin: str, pod: Pod, snapshot: Snapshot, rows: Rows) -> str:
    """The plugin's details on these nodes in one text; the number of nodes is left out where it is all of them."""
    counts = details_on(framework, plugin, pod, snapshot, rows)
    if len(counts) == 1 and len(rows) == sum(counts.values()):
        return next(iter(counts))
    return ", ".join(f"{text} on {count_of(count, 'node')}" for text, count in counts.items())


def _rejected_by(plugins: Mapping[str, Detailing], diagnosis: Diagnosis) -> Mapping[str, Rows]:
    """Return the rows that each of these plugins has rejected."""
    parts: dict[str, list[Rows]] = {}
    for rejection in diagnosis.rejections:
        for verdict, _ in rejection.counts:
            plugin = rejection.meanings[verdict].plugin
            if plugin in plugins:
                parts.setdefault(plugin, []).append(rejection.rows[rejection.verdicts == verdict])
    for row, status in diagnosis.single.items():
        if status.plugin in plugins:
            parts.setdefault(status.plugin, []).append(np.array([row]))
    return {plugin: np.concatenate(rows) for plugin, rows in parts.items()}

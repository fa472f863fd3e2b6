"""The placements of a pod group: which there are, and which of those that take the group is the best.

Source: kubernetes v1.36.2, pkg/scheduler/framework/runtime/framework.go (RunPlacementGeneratePlugins,
RunPlacementScorePlugins) and pkg/scheduler/schedule_one_podgroup.go (findBestPlacement).
Differs: of equally good placements the first wins; upstream picks one at random.
"""

from __future__ import annotations

from collections.abc import Sequence

from podium.cluster import Snapshot
from podium.cluster.pod_groups import PodGroupState
from podium.framework.contract.placements import PlacementScorePlugin
from podium.framework.contract.pod_groups import Placement, ProposedGroup
from podium.framework.contract.score import MAX_NODE_SCORE
from podium.framework.contract.status import PluginError, Status, error_status, unschedulable
from podium.framework.profile.runtime import Framework
from podium.lib.error_text import error_text


def generate_placements(
    framework: Framework, key: str, state: PodGroupState, snapshot: Snapshot
) -> tuple[Sequence[Placement], Status | None]:
    """Return the placements in which the group of that key is tried, or why there are none.

    Without a plugin that generates placements, all nodes are one.
    """
    if not framework.placement_generate:
        return (Placement("", snapshot.order),), None
    plugin = framework.placement_generate[0]
    started_s = framework.clock.monotonic()
    try:
        placements, status = plugin.generate_placements(key, state, snapshot)
    except BaseException as error:  # noqa: BLE001 - a plugin may raise anything
        placements = ()
        status = error_status(f'running PlacementGenerate plugin "{plugin.name}": {error_text(error)}')
    if status is None and not placements:
        status = unschedulable("no feasible placements found")
    framework.observe("PlacementGenerate", status, started_s)
    return placements, None if status is None else status.by(plugin.name)


def best_placement(framework: Framework, proposed: Sequence[ProposedGroup], snapshot: Snapshot) -> int | Status:
    """Return the index of the placement with the highest score, or why scoring failed."""
    started_s = framework.clock.monotonic()
    totals = [0] * len(proposed)
    status: Status | None = None
    for plugin, weight in framework.placement_scorers:
        try:
            scores = _scores(plugin, proposed, snapshot)
        except PluginError as error:
            status = error_status(error)
            break
        totals = [total + weight * score for total, score in zip(totals, scores, strict=True)]
    framework.observe("PlacementScore", status, started_s)
    return totals.index(max(totals)) if status is None else status


def _scores(plugin: PlacementScorePlugin, proposed: Sequence[ProposedGroup], snapshot: Snapshot) -> Sequence[int]:
    """Return the normalised scores of one plugin.

    Raises:
        PluginError: the plugin failed, or a score is out of range.
    """
    action, failure = "running PlacementScore plugins", f'plugin "{plugin.name}" failed with'
    try:
        raw = [int(plugin.score_placement(placement, snapshot)) for placement in proposed]
        action = "running NormalizePlacementScore on PlacementScore plugins"
        scores = [int(score) for score in plugin.normalize_placement_scores(raw)]
    except BaseException as error:
        raise PluginError(f"{action}: {failure}: {error_text(error)}") from error
    for score in scores:
        if not 0 <= score <= MAX_NODE_SCORE:
            raise PluginError(
                f'applying score defaultWeights on PlacementScore plugins: plugin "{plugin.name}" returns an invalid '
                f"score {score}, it should in the range of [0, {MAX_NODE_SCORE}] after normalizing"
            )
    return scores

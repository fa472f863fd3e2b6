"""The whole answer of `podium why` about one pod: who schedules it, its condition, its blockers, and fixes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from podium.engine.conditions import ConditionReport, condition_report
from podium.insight.edits import Edit
from podium.insight.fixes import Fixes
from podium.insight.loading import LoadResult
from podium.insight.schedulers import SchedulerReport, pod_for_profile, scheduler_report
from podium.insight.why import Why
from podium.lib.time_limit import UNLIMITED, TimeLimit
from podium.objects.core import Pod


@dataclass(frozen=True, slots=True)
class PodAnswer:
    """The answer about one pod.

    Attributes:
        condition: None if the pod has no PodScheduled condition.
        fixes: None if they were not asked for.
    """

    why: Why
    scheduler: SchedulerReport
    condition: ConditionReport | None
    fixes: Fixes | None

    def as_dict(self) -> dict[str, Any]:
        """Return the answer as JSON values."""
        answer = self.why.as_dict() | {"scheduler": self.scheduler.as_dict()}
        if self.condition is not None:
            answer["condition"] = self.condition.as_dict()
        return answer | ({} if self.fixes is None else self.fixes.as_dict(explain=True))


def pod_answer(
    load_result: LoadResult,
    pod: Pod,
    node: str = "",
    source: str = "",
    *,
    fix: bool = False,
    unknown_reason: str = "",
    limit: TimeLimit = UNLIMITED,
    new_nodes: Sequence[Edit] = (),
) -> PodAnswer:
    """Answer about a pod of the cluster. A pod of another scheduler is evaluated under one of the profiles.

    Args:
        node: a node to compare with.
        source: where the profiles come from; "" if kube-scheduler's defaults stand in for unknown ones.
        unknown_reason: why the running podium's profile is not known; "" if the running podium was not asked.
        limit: when to end with what was found by then.
        new_nodes: the edits of fixes that add a node, instead of nodes like those that are there.

    Raises:
        ScheduleError: a plugin failed, or there is no node.
    """
    cluster = load_result.cluster
    scheduler = scheduler_report(cluster, pod, source, unknown_reason)
    candidate = pod_for_profile(pod, scheduler, cluster.profiles)
    explanation = cluster.why(candidate, node, limit)
    reasons = [scheduler.difference] if scheduler.difference else []
    condition = condition_report(pod, explanation.message, explanation.node_count, reasons)
    fixes = cluster.fixes(candidate, limit=limit, new_nodes=new_nodes) if fix and not explanation.error else None
    return PodAnswer(explanation, scheduler, condition, fixes)

"""Everything that `podium why` says about one pod: who schedules it, its condition, what keeps it off, and fixes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from podium.engine.conditions import ConditionReport, condition_report
from podium.insight.fixes import Fixes
from podium.insight.loading import Loaded
from podium.insight.schedulers import SchedulerReport, judged_pod, scheduler_report
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
        """The answer as JSON values."""
        found = self.why.as_dict() | {"scheduler": self.scheduler.as_dict()}
        if self.condition is not None:
            found["condition"] = self.condition.as_dict()
        fixes = {} if self.fixes is None else self.fixes.as_dict(explain=True)
        return found | fixes


def pod_answer(
    loaded: Loaded,
    pod: Pod,
    node: str = "",
    source: str = "",
    *,
    fix: bool = False,
    unasked: str = "",
    limit: TimeLimit = UNLIMITED,
) -> PodAnswer:
    """Answer about a pod of the cluster. A pod whose scheduler is another one is judged by one of the profiles.

    Args:
        node: a node to compare with.
        source: what the profiles are from; "" if they are kube-scheduler's defaults in place of unknown ones.
        unasked: why the profile of the running podium is not known; "" if it was not to be asked.
        limit: when to end with what was found by then.

    Raises:
        ScheduleError: a plugin failed, or there is no node.
    """
    cluster = loaded.cluster
    scheduler = scheduler_report(cluster, pod, source, unasked)
    asked = judged_pod(pod, scheduler, cluster.profiles)
    why = cluster.why(asked, node, limit)
    others = [scheduler.difference] if scheduler.difference else []
    condition = condition_report(pod, why.message, why.node_count, others)
    fixes = cluster.fixes(asked, limit=limit) if fix and not why.error else None
    return PodAnswer(why, scheduler, condition, fixes)

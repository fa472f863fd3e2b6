"""Answers what would make a pod fit: the smallest sets of edits, the least intrusive first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from podium.engine.cluster import Cluster
from podium.engine.errors import ClusterError
from podium.engine.gangs import gang_of
from podium.framework.contract.status import ScheduleError
from podium.insight.asked_pod import as_pending
from podium.insight.edits import Edit
from podium.insight.gang_fixes import gang_fixes
from podium.insight.gang_states import GangFix
from podium.insight.search import EDITS_MAX, Fix, FixSearch
from podium.insight.search_basis import SearchBasis
from podium.lib.time_limit import UNLIMITED, TimeIsUpError, TimeLimit
from podium.objects.core import Pod

FIXES_MAX: Final = 10


@dataclass(frozen=True, slots=True)
class Fixes:
    """The sets of edits that would make a pod fit.

    Attributes:
        fits: whether it fits as it is.
        fixes: empty if it fits, and if no set of up to three edits is enough.
        gang: the gang of the pod, which must fit as a whole; "" if the pod is not in a gang.
        problem: why no edits are looked for; "" if they are.
        is_partial: whether the time limit ended the search, with the fixes found by then.
    """

    pod: str
    fits: bool
    fixes: Sequence[Fix | GangFix] = ()
    gang: str = ""
    problem: str = ""
    is_partial: bool = False

    @property
    def text(self) -> str:
        """The answer in one sentence."""
        name = f"The whole gang {self.gang}" if self.gang else self.pod
        if self.problem:
            return f"No edit is looked for: {self.problem}"
        if self.fits:
            return f"{name} fits as it is"
        if self.is_partial and not self.fixes:
            return f"No set of edits that lets {name} fit was found in time: the search has not ended"
        if not self.fixes:
            subject = f"the whole gang {self.gang}" if self.gang else self.pod
            return f"No set of up to {EDITS_MAX} edits lets {subject} fit"
        count = len(self.fixes[0].edits)
        words = f"{name} fits after {'one edit' if count == 1 else f'{count} edits'}"
        return f"{words}; the search has not ended in time, there may be more" if self.is_partial else words

    def as_dict(self, *, explain: bool = False) -> dict[str, Any]:
        """Return the answer as JSON values; with `explain` each edit also in words."""
        members: dict[str, Any] = {"gang_of_fixes": self.gang} if self.gang else {}
        if self.is_partial:
            members["partial"] = True
        if self.problem:
            members["problem"] = self.problem
        return {"fits": self.fits, "fixes": [fix.as_dict(explain=explain) for fix in self.fixes]} | members


def fixes_for(
    cluster: Cluster,
    pod: Pod,
    fixes_max: int = FIXES_MAX,
    limit: TimeLimit = UNLIMITED,
    new_nodes: Sequence[Edit] = (),
    basis: SearchBasis | None = None,
) -> Fixes:
    """Look for the smallest sets of edits; for a member of a gang, those after which the whole gang fits.

    The cluster is not changed.

    Args:
        new_nodes: the edits that add a node, instead of nodes like those that are there.
        basis: what is known already of the cluster.

    Raises:
        ScheduleError: a plugin failed.
        ClusterError: there are `new_nodes`, and the pod is a member of a gang.
    """
    try:
        return _fixes_for(cluster, pod, fixes_max, limit, new_nodes, basis)
    except (TimeIsUpError, ScheduleError):
        # Whatever interrupts the code of a plugin counts as its failure.
        if not limit.is_over():
            raise
        limit.is_noticed = True
        return Fixes(pod.key, False, is_partial=True)


def _fixes_for(
    cluster: Cluster,
    pod: Pod,
    fixes_max: int,
    limit: TimeLimit,
    new_nodes: Sequence[Edit],
    basis: SearchBasis | None,
) -> Fixes:
    gang = gang_of(cluster, pod)
    # A gang that has its minimum already leaves the pod by itself, and its edits help alone.
    if gang is not None and len(gang.placed_members) < gang.min_count:
        if new_nodes:
            raise ClusterError(f"{pod.key}: which types to buy for its whole gang, podium plan --rules podium says")
        if gang.problem:
            return Fixes(pod.key, False, (), gang.key, gang.problem)
        fits, gang_sets = gang_fixes(cluster, gang, fixes_max, limit)
        return Fixes(pod.key, fits, tuple(gang_sets), gang.key, is_partial=limit.is_noticed)
    world, pod = as_pending(cluster, pod)
    search = FixSearch(world, pod, limit, new_nodes, basis if world is cluster else None)
    if len(search.blockers().feasible()):
        return Fixes(pod.key, True)
    return Fixes(pod.key, False, tuple(search.fixes(fixes_max)), is_partial=search.is_over)

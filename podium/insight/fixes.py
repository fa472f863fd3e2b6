"""What would make a pod fit: the smallest sets of edits, the least intrusive first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from podium.engine.cluster import Cluster
from podium.insight.search import EDITS_MAX, Fix, FixSearch, as_pending
from podium.objects.core import Pod

FIXES_MAX: Final = 10


@dataclass(frozen=True, slots=True)
class Fixes:
    """What would make a pod fit.

    Attributes:
        fits: whether it fits as it is.
        fixes: empty if it fits, and if no set of up to three edits is enough.
    """

    pod: str
    fits: bool
    fixes: Sequence[Fix] = ()

    @property
    def text(self) -> str:
        """The answer in one sentence."""
        if self.fits:
            return f"{self.pod} fits as it is"
        if not self.fixes:
            return f"No set of up to {EDITS_MAX} edits lets {self.pod} fit"
        count = len(self.fixes[0].edits)
        return f"{self.pod} fits after {'one edit' if count == 1 else f'{count} edits'}"

    def as_dict(self, *, explain: bool = False) -> dict[str, Any]:
        """The answer as JSON values; with `explain` each edit also in words."""
        return {"fits": self.fits, "fixes": [each.as_dict(explain=explain) for each in self.fixes]}


def fixes_for(cluster: Cluster, pod: Pod, most: int = FIXES_MAX) -> Fixes:
    """Look for the smallest sets of edits. The cluster is not changed.

    Raises:
        ScheduleError: a plugin failed.
    """
    search = FixSearch(*as_pending(cluster, pod))
    if len(search.blockers().feasible()):
        return Fixes(pod.key, True)
    return Fixes(pod.key, False, tuple(search.fixes(most)))

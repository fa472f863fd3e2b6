"""The interface by which the scheduler reports its attempts."""

from __future__ import annotations

from typing import TypeAlias

from podium.engine.group_decisions import MemberDecision
from podium.framework.contract.queued_pod import QueuedPodInfo
from podium.framework.cycle.cycle import Cycle
from podium.objects.core import Pod

Seconds: TypeAlias = float


class AttemptObserver:
    """Receives reports of attempts as they happen. Methods must be quick and must not raise.

    Methods do nothing by default; an observer overrides those that it needs. `seconds` is the duration of the decision,
    or that of the attempt from its start to the end of its binding.
    """

    def on_decision(
        self, info: QueuedPodInfo, cycle: Cycle, decision: MemberDecision, started_s: float, seconds: Seconds
    ) -> None:
        """Report a decision that is about to be carried out. `started_s` is on the monotonic clock.

        An observer may set `cycle.measures_plugins` to have each plugin of the binding cycle reported separately.
        """

    def on_bound(self, pod: Pod, seconds: Seconds) -> None:
        """Report that the pod of the last decision was bound."""

    def on_failure(self, pod: Pod, result: str, message: str, seconds: Seconds) -> None:
        """Report that the pod of the last decision was not scheduled; `result` is "unschedulable" or "error"."""

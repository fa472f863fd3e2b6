"""What the scheduler reports about its attempts."""

from __future__ import annotations

from typing import TypeAlias

from podium.engine.pod_group_cycle import MemberDecision
from podium.framework.contract.queued_pod import QueuedPodInfo
from podium.framework.cycle.cycle import Cycle
from podium.objects.core import Pod

Seconds: TypeAlias = float


class AttemptObserver:
    """Receives reports of attempts as they happen. Methods must be quick and must not raise.

    Methods do nothing by default: an observer overrides what it wants. The duration is that of the decision, or of the
    attempt from its start to the end of its binding.
    """

    def decided(
        self, info: QueuedPodInfo, cycle: Cycle, decision: MemberDecision, started_s: float, seconds: Seconds
    ) -> None:
        """An attempt has reached its decision, which is now carried out. `started_s` is on the monotonic clock.

        An observer that sets `cycle.measures_plugins` has every plugin of the binding cycle reported by itself.
        """

    def bound(self, pod: Pod, seconds: Seconds) -> None:
        """The pod of the last decision was bound."""

    def failed(self, pod: Pod, result: str, message: str, seconds: Seconds) -> None:
        """The pod of the last decision was not scheduled: `result` is "unschedulable" or "error"."""

"""What has come out of a shadow so far: counts, latencies, and every disagreement with its reason. Pure."""

from __future__ import annotations

import enum
from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from podium.recording.shadow.comparison import Comparison, Verdict

_SHOWN_MAX: Final = 1000
_DURATIONS_KEPT: Final = 100_000


class Reason(enum.Enum):
    """Why the two schedulers disagree about a pod."""

    STALE_VIEW = "stale view"
    """The other scheduler's choice is right on the state that it had, which was not the one when it was seen."""
    OTHER_ORDER = "another order"
    """It is right on a state that it may have had if it tried its pods in another order than they came: after a failed
    attempt, or if they waited before the shadow began."""
    SAMPLING = "sampling"
    """The other scheduler looks at a sample of the nodes, which may have missed all better ones."""
    EXTENDERS = "extenders"
    """The configuration has extenders, which have a say and are not asked."""
    TOO_LATE = "too many changes"
    """More changed meanwhile than is remembered, so that no earlier state can be tried."""
    UNEXPLAINED = "unexplained"


@dataclass(frozen=True, slots=True)
class Disagreement:
    """A pod about which the two schedulers disagree.

    Attributes:
        comparison: on the cluster as it was when the binding was seen.
        view: what the other scheduler knew or did not know yet, in words, if that explains its choice.
        views_tried: how many states were compared.
    """

    pod: str
    scheduler: str
    comparison: Comparison
    reason: Reason
    view: str = ""
    views_tried: int = 0

    def to_json(self) -> dict[str, Any]:
        """The disagreement as JSON values."""
        known = {"pod": self.pod, "scheduler": self.scheduler, "reason": self.reason.value}
        more = {"view": self.view} if self.view else {}
        return {**known, **more, "views_tried": self.views_tried, **self.comparison.to_json()}


@dataclass(slots=True)
class Report:
    """The totals.

    Attributes:
        not_compared: bindings that could not be compared, by the reason.
        evaluation_s: how long podium took to evaluate all nodes for a pod.
        binding_s: how long it took from when a pending pod was first seen until its binding was.
    """

    verdicts: Counter[Verdict] = field(default_factory=Counter)
    reasons: Counter[Reason] = field(default_factory=Counter)
    plugins: Counter[str] = field(default_factory=Counter)
    not_compared: Counter[str] = field(default_factory=Counter)
    disagreements: list[Disagreement] = field(default_factory=list)
    evaluation_s: deque[float] = field(default_factory=lambda: deque(maxlen=_DURATIONS_KEPT))
    binding_s: deque[float] = field(default_factory=lambda: deque(maxlen=_DURATIONS_KEPT))

    @property
    def compared(self) -> int:
        """How many bindings were compared."""
        return self.verdicts.total()

    @property
    def bound(self) -> int:
        """How many bindings were seen, each once."""
        return self.compared + self.not_compared.total()

    @property
    def agreed(self) -> int:
        """How many of them podium agrees with."""
        return sum(count for verdict, count in self.verdicts.items() if verdict.agrees)

    def add(self, disagreement: Disagreement) -> None:
        """Count a disagreement; the first thousand are kept."""
        self.reasons[disagreement.reason] += 1
        self.plugins[disagreement.comparison.plugin or "-"] += 1
        if len(self.disagreements) < _SHOWN_MAX:
            self.disagreements.append(disagreement)

    def to_json(self) -> dict[str, Any]:
        """The report as JSON values."""
        return {
            "bound": self.bound,
            "compared": self.compared,
            "agreed": self.agreed,
            "verdicts": {each.value: self.verdicts[each] for each in Verdict},
            "reasons": {each.value: self.reasons[each] for each in Reason},
            "plugins": dict(self.plugins.most_common()),
            "not_compared": dict(self.not_compared),
            "evaluation_s": _quantiles(self.evaluation_s),
            "binding_s": _quantiles(self.binding_s),
            "disagreements": [each.to_json() for each in self.disagreements],
        }


def _quantiles(durations: Sequence[float]) -> dict[str, float] | None:
    if not durations:
        return None
    ordered = sorted(durations)
    return {name: ordered[int(share * (len(ordered) - 1))] for name, share in (("p50", 0.5), ("p99", 0.99))}

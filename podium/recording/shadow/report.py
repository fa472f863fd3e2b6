"""The report of a shadow: counts, latencies, and every disagreement with its reason. Pure."""

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
    """The reason why the two schedulers disagree about a pod."""

    STALE_VIEW = "stale view"
    """The other scheduler's choice is right on the state that it had when it decided."""
    OTHER_ORDER = "another order"
    """The choice is right on a state that the scheduler may have had if it tried its pods in another order: after a
    failed attempt, or if they waited before the shadow began."""
    SAMPLING = "sampling"
    """The other scheduler searches a sample of the nodes, which may have missed all better ones."""
    EXTENDERS = "extenders"
    """The configuration has extenders, which the shadow does not call."""
    TOO_LATE = "too many changes"
    """Too many changes arrived since, so that no earlier state can be rebuilt."""
    UNEXPLAINED = "unexplained"


@dataclass(frozen=True, slots=True)
class Disagreement:
    """A pod about which the two schedulers disagree.

    Attributes:
        comparison: on the cluster right before the binding was seen.
        view: the plausible state that explains the choice, in words; "" if none does.
        views_tried: the number of plausible states compared.
    """

    pod: str
    scheduler: str
    comparison: Comparison
    reason: Reason
    view: str = ""
    views_tried: int = 0

    def to_json(self) -> dict[str, Any]:
        """Return the disagreement as JSON values."""
        members = {"pod": self.pod, "scheduler": self.scheduler, "reason": self.reason.value}
        view = {"view": self.view} if self.view else {}
        return {**members, **view, "views_tried": self.views_tried, **self.comparison.to_json()}


@dataclass(slots=True)
class Report:
    """The totals.

    Attributes:
        not_compared: the number of bindings that could not be compared, by reason.
        evaluation_s: podium's times to evaluate all nodes for a pod.
        binding_s: the times from a pending pod's first watch event to that of its binding.
    """

    verdicts: Counter[Verdict] = field(default_factory=Counter)
    reasons: Counter[Reason] = field(default_factory=Counter)
    plugins: Counter[str] = field(default_factory=Counter)
    not_compared: Counter[str] = field(default_factory=Counter)
    disagreements: list[Disagreement] = field(default_factory=list)
    evaluation_s: deque[float] = field(default_factory=lambda: deque(maxlen=_DURATIONS_KEPT))
    binding_s: deque[float] = field(default_factory=lambda: deque(maxlen=_DURATIONS_KEPT))

    @property
    def compared_count(self) -> int:
        """The number of compared bindings."""
        return self.verdicts.total()

    @property
    def bound_count(self) -> int:
        """The number of observed bindings."""
        return self.compared_count + self.not_compared.total()

    @property
    def agreed_count(self) -> int:
        """The number of bindings that podium agrees with."""
        return sum(count for verdict, count in self.verdicts.items() if verdict.agrees)

    def add(self, disagreement: Disagreement) -> None:
        """Count a disagreement, and keep the first thousand."""
        self.reasons[disagreement.reason] += 1
        self.plugins[disagreement.comparison.plugin or "-"] += 1
        if len(self.disagreements) < _SHOWN_MAX:
            self.disagreements.append(disagreement)

    def to_json(self) -> dict[str, Any]:
        """Return the report as JSON values."""
        return {
            "bound": self.bound_count,
            "compared": self.compared_count,
            "agreed": self.agreed_count,
            "verdicts": {verdict.value: self.verdicts[verdict] for verdict in Verdict},
            "reasons": {reason.value: self.reasons[reason] for reason in Reason},
            "plugins": dict(self.plugins.most_common()),
            "not_compared": dict(self.not_compared),
            "evaluation_s": _quantiles(self.evaluation_s),
            "binding_s": _quantiles(self.binding_s),
            "disagreements": [disagreement.to_json() for disagreement in self.disagreements],
        }


def _quantiles(durations: Sequence[float]) -> dict[str, float] | None:
    if not durations:
        return None
    durations = sorted(durations)
    return {name: durations[int(share * (len(durations) - 1))] for name, share in (("p50", 0.5), ("p99", 0.99))}

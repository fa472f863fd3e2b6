"""What came in a cluster that was played on, and what of an outlook did not hold there."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from podium.insight.outlook import PodOutlook, Verdict
from tests.outlook.times import GRACES_S
from tests.virtual_time import START_S

MOMENT_S: Final = 0.1
"""Ends within this time come in an order that no object gives."""
_LATE_S: Final = 16.0
"""How much later than its time a pod may be bound: stand-ins act with a delay, and a backoff may last 10 s."""
_EARLY_S: Final = 1.5


@dataclass(frozen=True, slots=True)
class Binding:
    """The node of a pod, and the seconds from the question to its binding.

    Attributes:
        staying: the pods on nodes by then that are neither deleted nor at their end.
        phase_ends_s: those of its play, if that is another one than the others' play.
    """

    node: str
    after_s: float
    staying: frozenset[str] = frozenset()
    phase_ends_s: Sequence[float] = ()


@dataclass(slots=True)
class Play:
    """What has come in the sandbox.

    Attributes:
        bindings: the pods that were bound, by name.
        ends_s: when pods end in the first phase, by name; the order within a moment is not in it.
        phase_ends_s: when the first phase ended, in which only ends came that were announced, and the second one.
        comers: the names of the pods that came after the question.
    """

    bindings: dict[str, Binding] = field(default_factory=dict)
    ends_s: dict[str, float] = field(default_factory=dict)
    phase_ends_s: list[float] = field(default_factory=list)
    comers: list[str] = field(default_factory=list)

    @property
    def order_is_open(self) -> bool:
        """Whether pods end at one moment."""
        return any(later - earlier < MOMENT_S for earlier, later in itertools.pairwise(sorted(self.ends_s.values())))


def pair_up(names: Sequence[str], outlooks: Sequence[PodOutlook], play: Play) -> dict[str, PodOutlook]:
    """The answers by the names of replicas in the sandbox: they are alike, and each answer may be about any of them."""
    pairings = (_pairing(order, outlooks) for order in itertools.permutations(names))
    return min(pairings, key=lambda answers: fault_count(answers, play))


def _pairing(names: Sequence[str], outlooks: Sequence[PodOutlook]) -> dict[str, PodOutlook]:
    """The answers by names. A pod for whose end one of them waits may be what another is about: it is paired, too."""
    pairs = list(zip(names, outlooks, strict=False))
    keys = {outlook.pod: f"{outlook.pod.partition('/')[0]}/{name}" for name, outlook in pairs}
    return {
        name: replace(outlook, ends=[replace(end, pod=keys.get(end.pod, end.pod)) for end in outlook.ends])
        for name, outlook in pairs
    }


def fault_count(answers: Mapping[str, PodOutlook], play: Play) -> int:
    """How many of the answers did not hold."""
    return len(faults_of(answers, play))


def faults_of(answers: Mapping[str, PodOutlook], play: Play) -> Mapping[str, str]:
    """What of the answers did not hold, by the names of the pods."""
    faults = {name: _fault(answer, play.bindings.get(name), play.phase_ends_s) for name, answer in answers.items()}
    return {name: f"{name}: {fault}; the answer: {answers[name].text}" for name, fault in faults.items() if fault}


def _fault(answer: PodOutlook, binding: Binding | None, phase_ends_s: Sequence[float]) -> str:
    """Say what of the answer did not hold; "" if all of it did."""
    if answer.verdict is Verdict.NEVER:
        return "" if binding is None else f"it was bound to {binding.node} after {binding.after_s:g} s"
    if binding is None:
        return "it was never bound"
    outcome = f"it was bound to {binding.node} after {binding.after_s:g} s"
    if answer.node and answer.node != binding.node:
        return outcome
    causes = [*answer.victims, *(end.pod for end in answer.ends)]
    staying = [key for key in causes if key.partition("/")[2] in binding.staying]
    # With an unknown time some of the ends are enough.
    if staying and (answer.by_s is not None or len(staying) == len(causes)):
        return f"{outcome}, and {', '.join(staying)} stayed"
    if answer.verdict is Verdict.NOW:
        return "" if binding.after_s < min(GRACES_S) else outcome
    if answer.by_s is not None:
        late_s = binding.after_s - (answer.by_s - START_S)
        return "" if -_EARLY_S <= late_s <= _LATE_S else outcome
    first_s, second_s = binding.phase_ends_s or phase_ends_s
    if answer.ends:
        is_right = first_s <= binding.after_s and (
            binding.node in answer.nodes if binding.after_s <= second_s else answer.is_contended
        )
    else:
        is_right = second_s <= binding.after_s
    return "" if is_right else outcome

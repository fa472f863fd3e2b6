"""Answers whether a pod gets a node now, later or never: the values of the answer, and their words."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from podium.insight.fixes import Fixes
from podium.insight.pod_ends import PodEnd
from podium.lib.plurals import count_of
from podium.objects.times import format_time

_SHOWN_MAX: Final = 3


class Verdict(enum.StrEnum):
    """When a pod gets a node, the soonest first."""

    NOW = "now"
    AFTER_PREEMPTION = "after-preemption"
    LATER = "later"
    NEVER = "never"


@dataclass(frozen=True, slots=True)
class PodOutlook:
    """When one pod gets a node.

    Attributes:
        node: the node that it gets; "" if it gets none, or the time is unknown.
        by_s: with `later` and `after-preemption` the latest time, in seconds since the epoch; None if no object says.
        victims: the pods that are preempted for it.
        ends: the pods for whose ends it waits; with an unknown time, of which some have to end.
        nodes: with an unknown time the nodes on which it may run then.
        is_contended: with `ends` at unknown times, whether other pods take the room if all of them end at once.
        ahead: the number of pods that are tried before it.
        why: what keeps it from having a node now, in words; "" if nothing does.
        fixes: with `never` and `later` the smallest sets of edits after which it fits now; None if not looked for.
    """

    pod: str
    verdict: Verdict
    node: str = ""
    by_s: float | None = None
    victims: Sequence[str] = ()
    ends: Sequence[PodEnd] = ()
    nodes: Sequence[str] = ()
    is_contended: bool = False
    ahead: int = 0
    why: str = ""
    fixes: Fixes | None = None

    @property
    def by(self) -> str:
        """The latest time in RFC 3339; "" if no object says."""
        return "" if self.by_s is None else format_time(self.by_s)

    @property
    def text(self) -> str:
        """The answer in one sentence."""
        if self.verdict is Verdict.NOW:
            return f"{self.pod}: now, on {self.node}"
        by_text = f", by {self.by} at the latest" if self.by else ""
        if self.verdict is Verdict.AFTER_PREEMPTION:
            return f"{self.pod}: after preempting {_list(self.victims)}, on {self.node}{by_text}"
        if self.verdict is Verdict.LATER and self.by:
            return f"{self.pod}: later{by_text}, on {self.node}, when {_ends_text(self.ends)}"
        if self.verdict is Verdict.LATER and self.ends:
            pods = _list([end.pod for end in self.ends])
            return f"{self.pod}: later, time unknown, when enough of these pods end: {pods}, on {_list(self.nodes)}"
        if self.verdict is Verdict.LATER:
            return f"{self.pod}: later, time unknown, if pods leave {_list(self.nodes)}: no object says that they end"
        fix = self.fixes.fixes[0] if self.fixes is not None and self.fixes.fixes else None
        unless = (
            "" if fix is None else f", unless: {' and '.join(edit.text for edit in fix.edits)} (then on {fix.node})"
        )
        return f"{self.pod}: never{unless}"

    @property
    def is_searching(self) -> bool:
        """Whether the search for edits after which the pod fits was ended by a limit: there may be more of them."""
        return self.fixes is not None and self.fixes.is_partial

    def details(self) -> Sequence[str]:
        """Return what explains the answer, a line each."""
        lines = [f"now: {self.why}"] if self.why else []
        if self.ahead:
            lines.append(f"{count_of(self.ahead, 'pod')} ahead of it in the queue")
        if self.is_contended:
            lines.append("other pods take the room if all of these pods end at once")
        if self.is_searching:
            lines.append("the search for what would help has not ended: ask podium why --fix, or give it more time")
        alternatives = self.fixes.fixes[1:] if self.fixes is not None else ()
        return lines + [
            f"or: {' and '.join(edit.text for edit in fix.edits)} (then on {fix.node})" for fix in alternatives
        ]

    def as_dict(self) -> dict[str, Any]:
        """Return the answer as JSON values; what does not apply is left out."""
        values: dict[str, Any] = {
            "node": self.node,
            "by": self.by,
            "victims": list(self.victims),
            "ends": [end.as_dict() for end in self.ends],
            "nodes": list(self.nodes),
            "contended": self.is_contended,
            "why": self.why,
        }
        fixes = {} if self.fixes is None else {"fixes": self.fixes.as_dict(explain=True)["fixes"]}
        if self.is_searching:
            fixes["searching"] = True
        answer = {"pod": self.pod, "verdict": self.verdict.value, "ahead": self.ahead}
        return answer | {name: value for name, value in values.items() if value} | fixes


@dataclass(frozen=True, slots=True)
class Outlook:
    """When the pods in question get a node: one pod, the pods of a workload, or a gang.

    Attributes:
        pods: one entry for each pod that has no node yet.
        at_s: the time at which the question is asked, in seconds since the epoch.
        gang: the gang whose members `pods` are; "" if they are no gang.
        running: the pods in question that have a node, by key.
        refusals: why the API server refuses pods of a workload, for each workload.
        warnings: what is doubtful about the question: a scheduler or a node of which nothing shows that it exists.
        is_partial: whether the time limit ended the answer early: later events were not looked at.
    """

    pods: Sequence[PodOutlook]
    at_s: float
    gang: str = ""
    running: Sequence[tuple[str, str]] = ()
    refusals: Sequence[str] = ()
    warnings: Sequence[str] = ()
    is_partial: bool = False

    @property
    def verdict(self) -> Verdict:
        """The verdict of the pod that waits longest."""
        verdicts = [pod.verdict for pod in self.pods] + [Verdict.NEVER] * bool(self.refusals)
        return max(verdicts, key=list(Verdict).index, default=Verdict.NOW)

    def lines(self) -> Sequence[str]:
        """Return the answer as text: a sentence for each pod, and what explains it on lines below."""
        lines = [f"{self.gang} is a gang: its members get nodes together"] if self.gang else []
        lines += [f"{key}: it has a node, {node}" for key, node in self.running]
        for pod in self.pods:
            lines.append(pod.text)
            lines += [f"  {line}" for line in pod.details()]
        return lines + [f"the API server refuses pods: {reason}" for reason in self.refusals]

    def as_dict(self) -> dict[str, Any]:
        """Return the answer as JSON values."""
        answer: dict[str, Any] = {"verdict": self.verdict.value, "at": format_time(self.at_s)}
        if self.gang:
            answer["gang"] = self.gang
        if self.running:
            answer["running"] = dict(self.running)
        if self.warnings:
            answer["warnings"] = list(self.warnings)
        if self.refusals:
            answer["refused"] = list(self.refusals)
        if self.is_partial:
            answer["partial"] = True
        return answer | {"pods": [pod.as_dict() for pod in self.pods]}


def _list(names: Sequence[str]) -> str:
    surplus = len(names) - _SHOWN_MAX
    return ", ".join(names[:_SHOWN_MAX]) + (f" and {surplus} more" if surplus > 0 else "")


def _ends_text(ends: Sequence[PodEnd]) -> str:
    texts = [f"{end.pod} ends ({end.reason})" for end in ends]
    return _list(texts) if texts else "pods elsewhere have ended"

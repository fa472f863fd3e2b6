"""The state of a gang as a value: its members that have a node, those that would get one, and what the others lack."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from podium.framework.profile.runtime import Framework
from podium.lib.plurals import count_of
from podium.objects.coscheduling import GangSpec
from podium.plugins.contrib.coscheduling.plugin import Coscheduling

UPSTREAM: Final = "scheduling.k8s.io"
"""The API group of PodGroups that pods name in `spec.schedulingGroup`."""
COSCHEDULING: Final = "scheduling.x-k8s.io"
"""The API group of PodGroups that pods name by a label."""
_NAMES_MAX: Final = 5


@dataclass(frozen=True)
class GangStory:
    """The story of one gang. Members are given by key.

    Attributes:
        gang, api: the key of the group, and the API group of its PodGroup.
        needed: how many members must have a node before any of them starts.
        placed: the members that are bound to a node.
        held: the members for which a running podium holds a node, and which wait for the others.
        would_get: the nodes that other members would get now, one after the other.
        lacking: the reason why each other member gets no node.
        missing: the blockers of the first of these, with their number of nodes, the most frequent first.
        preemption: how preemption would make room for the first of these; "" if it would not.
        wait_s: how long members that have a node wait for the others.
        left_s: how much longer the first of the waiting members waits.
        holds_nodes: whether members hold their nodes while others have none.
        domain: the label that all nodes of the gang must share, with the value tried; "" without such a label.
        problem: what is wrong with the group itself; "" if nothing is.
        note: the precondition for this story, such as a feature gate; "" if it is met.
    """

    gang: str
    api: str
    needed: int
    placed: Mapping[str, str]
    would_get: Mapping[str, str]
    lacking: Mapping[str, str]
    missing: Sequence[tuple[int, str]] = ()
    preemption: str = ""
    wait_s: float = 0.0
    left_s: float | None = None
    held: Mapping[str, str] = field(default_factory=dict)
    holds_nodes: bool = True
    domain: str = ""
    problem: str = ""
    note: str = field(default="")

    @property
    def count(self) -> int:
        """The number of members."""
        return len(self.placed) + len(self.held) + len(self.would_get) + len(self.lacking)

    @property
    def short(self) -> int:
        """The number of further members that must get a node."""
        return max(self.needed - len(self.placed) - len(self.held) - len(self.would_get), 0)

    @property
    def fits(self) -> bool:
        """True if as many members have a node, or would get one, as the gang needs."""
        return not self.problem and not self.short

    @property
    def is_complete(self) -> bool:
        """True if as many members have a node as the gang needs."""
        return not self.problem and len(self.placed) >= self.needed

    @property
    def headline(self) -> str:
        """The gang in one sentence."""
        # A gang that needs more pods than there are says so in its problem.
        pods_text = f"{self.needed} of its {self.count} pods" if self.needed <= self.count else f"{self.needed} pods"
        gang_text = f"the gang {self.gang} ({self.api}): {pods_text} must have a node"
        return f"It is a member of {gang_text} before any of them starts"

    @property
    def lines(self) -> Sequence[str]:
        """The rest of the story, a sentence each."""
        lines = [self.problem] if self.problem else []
        if self.domain:
            lines.append(f"all of them on nodes with {self.domain}")
        if self.placed:
            verb = "has" if len(self.placed) == 1 else "have"
            lines.append(f"{_names(self.placed)} {verb} a node: {_nodes(self.placed)}")
        if self.held:
            verb = "holds a node and waits" if len(self.held) == 1 else "hold nodes and wait"
            deadline_text = "" if self.left_s is None else f"; {self.left_s:.0f} s are left, then they are given back"
            lines.append(f"{_names(self.held)} {verb} for the others: {_nodes(self.held)}{deadline_text}")
        if self.would_get:
            lines.append(f"{_names(self.would_get)} would get a node now: {_nodes(self.would_get)}")
        if self.lacking:
            lines += self._lacks
        if self.is_complete:
            lines.append("the gang is complete")
        elif self.fits:
            lines.append("the whole gang fits")
        else:
            lines.append(f"{self.short} more must get a node, so none of those that wait starts")
        if not self.fits and self.holds_nodes:
            deadline_text = f"for {self.wait_s:g} s at most, then gives it back and is tried again"
            lines.append(f"a member that gets a node waits for the others {deadline_text}")
        elif not self.fits:
            lines.append("no member holds a node meanwhile: the whole gang is tried again after its backoff")
        return (*lines, *([self.note] if self.note else []))

    @property
    def _lacks(self) -> Sequence[str]:
        """The members without a node, by the message of their last attempts."""
        by_message: dict[str, dict[str, str]] = {}
        for member, message in self.lacking.items():
            by_message.setdefault(message, {})[member] = message
        lines = []
        # A gang may have thousands of members, and most fail for the same reason.
        for message, members in list(by_message.items())[:_NAMES_MAX]:
            verb = "gets none" if len(members) == 1 else "get none"
            lines.append(f"{_names(members)} {verb}: {message}")
        if len(by_message) > _NAMES_MAX:
            lines.append(f"other members get none for {len(by_message) - _NAMES_MAX} more reasons")
        lines += [f"  {text}, on {count_of(count, 'node')}" for count, text in self.missing]
        return [*lines, *([f"  {self.preemption}"] if self.preemption else [])]

    def as_dict(self) -> dict[str, Any]:
        """Return the story as JSON values."""
        answer: dict[str, Any] = {
            "gang": self.gang,
            "api": self.api,
            "needed": self.needed,
            "members": self.count,
            "fits": self.fits,
            "placed": dict(self.placed),
            "would_get": dict(self.would_get),
            "lacking": dict(self.lacking),
            "missing": [{"count": count, "text": text} for count, text in self.missing],
            "wait_seconds": self.wait_s,
        }
        if self.held:
            answer |= {"held": dict(self.held), "seconds_left": self.left_s}
        if self.preemption:
            answer["preemption"] = self.preemption
        members = {"domain": self.domain, "problem": self.problem, "note": self.note}
        return answer | {name: text for name, text in members.items() if text}


def _names(members: Mapping[str, str]) -> str:
    keys = [*members][:_NAMES_MAX]
    surplus = len(members) - len(keys)
    return ", ".join(keys) + (f" and {surplus} more" if surplus else "")


def _nodes(members: Mapping[str, str]) -> str:
    counts: dict[str, int] = {}
    for node in members.values():
        counts[node] = counts.get(node, 0) + 1
    texts = [f"{node} ({count})" if count > 1 else node for node, count in counts.items()][:_NAMES_MAX]
    surplus = len(counts) - len(texts)
    return ", ".join(texts) + (f" and {surplus} more" if surplus else "")


def too_few(count: int, min_count: int) -> str:
    """Describe the problem of a gang with too few members; return "" if it has enough."""
    return "" if count >= min_count else f"only {count} of the {min_count} pods that it needs exist"


def no_group(key: str) -> str:
    """Describe the problem that the PodGroup is missing."""
    return f"the PodGroup {key} does not exist, and no member is tried before it does"


def no_size(key: str) -> str:
    """Describe the problem that no object gives the gang's size."""
    return f"neither a PodGroup {key} nor an annotation of the pod says how many members the gang needs"


def coscheduling_in(framework: Framework) -> Coscheduling | None:
    """Return the profile's plugin Coscheduling; None if it has none."""
    plugin = framework.plugins.get(Coscheduling.name)
    return plugin if isinstance(plugin, Coscheduling) else None


def longest_wait_s(plugin: Coscheduling | None, spec: GangSpec) -> float:
    """Return how long members of a gang of Coscheduling that have a node wait for the others."""
    args = Coscheduling.Args() if plugin is None else plugin.args
    return float(spec.timeout_s or args.wait_s)

"""The questions of an attempt to HTTP extenders, and their answers: values, and the rules for valid answers.

Owns which answers are invalid. The attempt yields a question and is sent the answer; its caller makes the request.

Source: kubernetes pkg/scheduler/extender.go, v1.36.2.
Differs: an answer counts by the names of its nodes. Upstream scores what an extender without a node cache hands back
as empty nodes, and takes nodes from it that were not among those asked about; here such nodes are the same error as
with a node cache. A node named twice counts once. Every error names the extender.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias
from urllib.parse import urlsplit, urlunsplit

from podium.cluster import Snapshot
from podium.config import Extender
from podium.framework.contract.score import MAX_NODE_SCORE
from podium.objects.core import Node, Pod

MAX_EXTENDER_PRIORITY: Final = 10
SCALE: Final = MAX_NODE_SCORE // MAX_EXTENDER_PRIORITY
"""What a score of an extender is multiplied by, beside its weight."""
_CONTRIBUTION_MAX: Final = 1 << 62


def name_of(extender: Extender) -> str:
    """Return the extender's URL, without the parts that may be secret."""
    try:
        parts = urlsplit(extender.url_prefix)
    except ValueError:
        return "(no URL)"
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2], query="", fragment=""))


# ---------------------------------------------------------------- answers


@dataclass(frozen=True, slots=True)
class ExtenderFailed:
    """The extender gave no answer, or an invalid one."""

    extender: Extender
    detail: str

    @property
    def message(self) -> str:
        """The detail, and the extender's name."""
        return f'extender "{name_of(self.extender)}": {self.detail}'


@dataclass(frozen=True, slots=True)
class Filtered:
    """The nodes that an extender accepts, in its order, and why it rejected others, by name."""

    node_names: Sequence[str]
    failed: Mapping[str, str]
    unresolvable: Mapping[str, str]


ExtenderScores: TypeAlias = Sequence[tuple[str, int]] | ExtenderFailed
"""The scores by node name that an extender returned, before its weight."""


@dataclass(frozen=True, slots=True)
class Scored:
    """The scores by node name from each extender that was called. Several scores for one node add up."""

    each: Sequence[ExtenderScores]


@dataclass(frozen=True, slots=True)
class Victims:
    """The victims on one node, and how many PodDisruptionBudgets their eviction would violate."""

    pods: tuple[Pod, ...]
    violations: int


@dataclass(frozen=True, slots=True)
class Preemptable:
    """The preemption candidates that an extender accepts, with their victims."""

    victims: Mapping[str, Victims]


Answer: TypeAlias = Filtered | Scored | Preemptable | ExtenderFailed


# ---------------------------------------------------------------- questions


@dataclass(frozen=True, slots=True)
class AskFilter:
    """On which of these nodes may the pod run?"""

    extender: Extender
    pod: Pod
    nodes: Sequence[Node]

    def accept(
        self, node_names: Iterable[str], failed: Mapping[str, str], unresolvable: Mapping[str, str]
    ) -> Filtered | ExtenderFailed:
        """Return the answer; a failure if it accepts nodes that were not in the request."""
        node_names_asked = {node.name for node in self.nodes}
        names = tuple(dict.fromkeys(node_names))
        for name in names:
            if name not in node_names_asked:
                detail = f'claims a filtered node "{name}" which is not found in the input node list'
                return ExtenderFailed(self.extender, detail)
        return Filtered(names, failed, unresolvable)


@dataclass(frozen=True, slots=True)
class AskPrioritize:
    """Asks the extenders to score these nodes for the pod. All extenders are asked at the same time."""

    extenders: Sequence[Extender]
    pod: Pod
    nodes: Sequence[Node]

    @staticmethod
    def accept(extender: Extender, scores: Sequence[tuple[str, int]]) -> Sequence[tuple[str, int]] | ExtenderFailed:
        """Return the scores; a failure if one is too big to be added up."""
        for name, score in scores:
            if abs(score * extender.weight * SCALE) > _CONTRIBUTION_MAX:
                return ExtenderFailed(extender, f'score {score} of node "{name}" is out of range')
        return scores


@dataclass(frozen=True, slots=True)
class AskPreempt:
    """On which of these nodes may the pod preempt, and which pods are the victims there?"""

    extender: Extender
    pod: Pod
    candidates: Mapping[str, Victims]
    snapshot: Snapshot

    def accept(self, answer: Mapping[str, tuple[Sequence[str], int]]) -> Preemptable | ExtenderFailed:
        """Return the answer, with uids resolved to pods: the victims and the number of violations by node name.

        A node without victims is a failure; from an ignorable extender it only removes that node.
        """
        victims: dict[str, Victims] = {}
        for name, (uids, violations) in answer.items():
            row = self.snapshot.row_of.get(name)
            if row is None:
                return ExtenderFailed(self.extender, f'claims to make room on node "{name}", which is not found')
            on_node = self.snapshot.pods[row]
            unknown = next((uid for uid in uids if uid not in on_node), None)
            if unknown is not None:
                pod_place = f"(UID: {unknown}) on node: {name}, but the pod is not found on that node"
                return ExtenderFailed(self.extender, f"claims to preempt pod {pod_place}")
            if uids:
                victims[name] = Victims(tuple(on_node[uid] for uid in dict.fromkeys(uids)), violations)
            elif not self.extender.ignorable:
                return ExtenderFailed(self.extender, f'expected at least one victim pod on node "{name}"')
        return Preemptable(victims)


Question: TypeAlias = AskFilter | AskPrioritize | AskPreempt

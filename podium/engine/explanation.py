"""Why a pod is where it is, or is not: blockers by node, scores, and the comparison of nodes, as values.

A fresh evaluation (`podium.Cluster.why`) and the flight recorder make the same value, so that one view shows both.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from podium.engine.device_refusals import DeviceGroup
from podium.engine.evaluation import as_status
from podium.engine.gang_story import GangStory
from podium.framework.contract.status import Status

_EXAMPLES: Final = 3


@dataclass(frozen=True, slots=True)
class Blocker:
    """One thing that keeps the pod off one node.

    Attributes:
        text: the reasons, with the taints and labels that they are about.
        detail: amounts; "" if there are none.
    """

    plugin: str
    text: str
    detail: str = ""

    def as_dict(self) -> dict[str, str]:
        """The blocker as JSON values."""
        found = {"plugin": self.plugin, "text": self.text}
        return found | ({"detail": self.detail} if self.detail else {})


@dataclass(frozen=True, slots=True)
class Group:
    """The nodes that the same thing keeps the pod off. A node with several blockers is in several groups.

    Attributes:
        others: how many more nodes there are whose names are not known here.
        detail: amounts; "" if there are none.
    """

    plugin: str
    text: str
    nodes: tuple[str, ...]
    others: int = 0
    detail: str = ""

    @property
    def count(self) -> int:
        """The number of nodes."""
        return len(self.nodes) + self.others

    @property
    def examples(self) -> tuple[str, ...]:
        """The first few nodes."""
        return self.nodes[:_EXAMPLES]

    def as_dict(self) -> dict[str, Any]:
        """The group as JSON values."""
        found = {"plugin": self.plugin, "text": self.text, "count": self.count, "examples": list(self.examples)}
        return found | ({"detail": self.detail} if self.detail else {})


@dataclass(frozen=True, slots=True)
class NodeScore:
    """The scores of one node on which the pod fits."""

    node: str
    total: int
    plugins: Mapping[str, int]


@dataclass(frozen=True)
class Explanation:
    """The answer about one pod.

    Attributes:
        bound_to: where the pod is; "" for a pending pod. The answer is then about a copy of it that is pending.
        node: where it would go; None if it fits nowhere.
        gates: why it would not be tried.
        blockers: what keeps it off each node where it does not fit.
        groups: the nodes by what keeps the pod off them, most frequent first.
        one_edit_away: the nodes onto which a single edit would let it; none are looked for if it fits somewhere. None
            if nobody has looked for them.
        scores: the nodes where it fits, the best first.
        message: the text of its condition if it fits nowhere.
        summary: why it fits nowhere, in one sentence; "" if nothing is shorter than `message`.
        summarized: the reasons that `summary` covers, and that need not be repeated for each node.
        notes: what else has to be known about the pod, a sentence each.
        preemption: the verdict of preemption in one sentence; "" if the pod fits somewhere.
        nominated: the node on which preemption makes room, and `victims` the pods that it evicts there.
        asked: the node that was asked about; "" if none was.
        devices: the nodes that have no devices for the pod's claims, by what each request lacks there.
        gang: how far the pod's gang has come; None if it is in none.
        error: why the attempt fails, whatever the nodes; "" if it does not. Then nothing is known about most nodes.
        warning: who schedules the pod, if no profile of the cluster's configuration does; the rest is then what one of
            its profiles would decide. "" if one does.
        is_partial: the time was up: only the first blocker of each node is known, and other parts may be missing.
    """

    pod: str
    bound_to: str
    node: str | None
    node_count: int
    gates: tuple[Status, ...]
    blockers: Mapping[str, tuple[Blocker, ...]]
    groups: tuple[Group, ...]
    one_edit_away: tuple[str, ...] | None
    scores: tuple[NodeScore, ...]
    message: str
    preemption: str = ""
    nominated: str = ""
    victims: tuple[str, ...] = ()
    asked: str = ""
    devices: tuple[DeviceGroup, ...] = ()
    gang: GangStory | None = None
    error: str = ""
    summary: str = ""
    summarized: frozenset[str] = frozenset()
    notes: tuple[str, ...] = ()
    is_partial: bool = False
    warning: str = ""

    @property
    def verdict(self) -> str:
        """Why the winner won, or how the asked node compares with it; "" if there is nothing to compare."""
        if not self.scores:
            return ""
        best = self.scores[0]
        other_name = self.asked or (self.bound_to if self.bound_to != best.node else "")
        others = [each for each in self.scores if each.node == other_name] or list(self.scores[1:2])
        if not others:
            return f"{best.node} is the only node that fits"
        (other,) = others[:1]
        if other.node == best.node:
            return f"{best.node} has the highest score"
        if other.total == best.total:
            return f"{best.node} and {other.node} have the same score; the tie was broken in favour of {best.node}"
        gains = {name: best.plugins[name] - other.plugins.get(name, 0) for name in best.plugins}
        shown = [f"{name} {gain:+d}" for name, gain in sorted(gains.items(), key=lambda item: -item[1]) if gain]
        return f"{best.node} beats {other.node} by {best.total - other.total}: {', '.join(shown)}"

    def as_dict(self) -> dict[str, Any]:
        """Everything as JSON values."""
        found: dict[str, Any] = {"pod": self.pod, "node": self.node, "nodes": self.node_count}
        if self.warning:
            found["warning"] = self.warning
        if self.bound_to:
            found["bound_to"] = self.bound_to
        if self.gates:
            found["gates"] = [as_status(each) for each in self.gates]
        found["blockers"] = {node: [each.as_dict() for each in known] for node, known in self.blockers.items()}
        found["groups"] = [each.as_dict() for each in self.groups]
        if self.error:
            found["error"] = self.error
        if self.gang is not None:
            found["gang"] = self.gang.as_dict()
        if self.devices:
            found["devices"] = [each.as_dict() for each in self.devices]
        if self.one_edit_away is not None:
            found["one_edit_away"] = list(self.one_edit_away)
        found["scores"] = [
            {"node": each.node, "total": each.total, "plugins": dict(each.plugins)} for each in self.scores
        ]
        if self.verdict:
            found["verdict"] = self.verdict
        if self.notes:
            found["notes"] = list(self.notes)
        if self.node is None:
            found["message"], found["preemption"] = self.message, self.preemption
            if self.nominated:
                found |= {"nominated": self.nominated, "victims": list(self.victims)}
        return found | ({"partial": True} if self.is_partial else {})


def grouped(blockers: Mapping[str, Sequence[Blocker]]) -> tuple[Group, ...]:
    """The nodes by what keeps the pod off them, most frequent first."""
    found: dict[tuple[str, str], list[str]] = {}
    for node, known in blockers.items():
        for each in known:
            found.setdefault((each.plugin, each.text), []).append(node)
    groups = (Group(plugin, text, tuple(nodes)) for (plugin, text), nodes in found.items())
    return tuple(sorted(groups, key=lambda each: (-each.count, each.text)))

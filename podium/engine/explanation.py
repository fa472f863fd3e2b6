"""The explanation of a pod's placement as a value: blockers by node, scores, and the comparison of nodes.

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
        text: the reasons, with the taints and labels that they concern.
        detail: amounts; "" if there are none.
    """

    plugin: str
    text: str
    detail: str = ""

    def as_dict(self) -> dict[str, str]:
        """Return the blocker as JSON values."""
        answer = {"plugin": self.plugin, "text": self.text}
        return answer | ({"detail": self.detail} if self.detail else {})


@dataclass(frozen=True, slots=True)
class Group:
    """The nodes that have the same blocker. A node with several blockers is in several groups.

    Attributes:
        others: how many more nodes have the blocker, whose names are not known here.
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
        """Return the group as JSON values."""
        answer = {"plugin": self.plugin, "text": self.text, "count": self.count, "examples": list(self.examples)}
        return answer | ({"detail": self.detail} if self.detail else {})


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
        bound_to: the node of a bound pod, whose pending copy was evaluated; "" for a pending pod.
        node: the node that the scheduler chooses; None if the pod fits nowhere.
        gates: the statuses of PreEnqueue plugins that gate the pod.
        blockers: the blockers of each node where the pod does not fit.
        groups: the nodes by blocker, the most frequent blocker first.
        one_edit_away: the nodes that a single edit would make feasible; empty if the pod fits somewhere. None if they
            were not computed.
        scores: the nodes where the pod fits, the best first.
        message: the text of its condition if the pod fits nowhere.
        summary: why the pod fits nowhere, in one sentence; "" if nothing is shorter than `message`.
        summarized: the reasons that `summary` covers, and that need not be repeated for each node.
        notes: further facts about the pod, a sentence each.
        preemption: the verdict of preemption in one sentence; "" if the pod fits somewhere.
        nominated: the node on which preemption makes room, and `victims` the pods that it evicts there.
        asked: the node to compare with; "" if the question named none.
        devices: the nodes that have no devices for the pod's claims, by what each request lacks there.
        gang: the story of the pod's gang; None if the pod is not in a gang.
        error: why the attempt fails on any node; "" if it does not. If it fails, most nodes were not evaluated.
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
        """Says why the winner won, or how the node in question compares with it; "" without scores."""
        if not self.scores:
            return ""
        best = self.scores[0]
        # A pod that runs is asked about its own node; without that, the runner-up is the interesting rival.
        other_name = self.asked or (self.bound_to if self.bound_to != best.node else "")
        rivals = [score for score in self.scores if score.node == other_name] or list(self.scores[1:2])
        if not rivals:
            return f"{best.node} is the only node that fits"
        (rival,) = rivals[:1]
        if rival.node == best.node:
            return f"{best.node} has the highest score"
        if rival.total == best.total:
            return f"{best.node} and {rival.node} have the same score; the tie was broken in favour of {best.node}"
        gains = {name: best.plugins[name] - rival.plugins.get(name, 0) for name in best.plugins}
        texts = [f"{name} {gain:+d}" for name, gain in sorted(gains.items(), key=lambda item: -item[1]) if gain]
        return f"{best.node} beats {rival.node} by {best.total - rival.total}: {', '.join(texts)}"

    def as_dict(self) -> dict[str, Any]:
        """Return the explanation as JSON values."""
        answer: dict[str, Any] = {"pod": self.pod, "node": self.node, "nodes": self.node_count}
        if self.warning:
            answer["warning"] = self.warning
        if self.bound_to:
            answer["bound_to"] = self.bound_to
        if self.gates:
            answer["gates"] = [as_status(gate) for gate in self.gates]
        answer["blockers"] = {
            node: [blocker.as_dict() for blocker in of_node] for node, of_node in self.blockers.items()
        }
        answer["groups"] = [group.as_dict() for group in self.groups]
        if self.error:
            answer["error"] = self.error
        if self.gang is not None:
            answer["gang"] = self.gang.as_dict()
        if self.devices:
            answer["devices"] = [group.as_dict() for group in self.devices]
        if self.one_edit_away is not None:
            answer["one_edit_away"] = list(self.one_edit_away)
        answer["scores"] = [
            {"node": score.node, "total": score.total, "plugins": dict(score.plugins)} for score in self.scores
        ]
        if self.verdict:
            answer["verdict"] = self.verdict
        if self.notes:
            answer["notes"] = list(self.notes)
        if self.node is None:
            answer["message"], answer["preemption"] = self.message, self.preemption
            if self.nominated:
                answer |= {"nominated": self.nominated, "victims": list(self.victims)}
        return answer | ({"partial": True} if self.is_partial else {})


def group_blockers(blockers: Mapping[str, Sequence[Blocker]]) -> tuple[Group, ...]:
    """Group the nodes by blocker, the most frequent blocker first."""
    nodes_by_reason: dict[tuple[str, str], list[str]] = {}
    for node, of_node in blockers.items():
        for blocker in of_node:
            nodes_by_reason.setdefault((blocker.plugin, blocker.text), []).append(node)
    groups = (Group(plugin, text, tuple(nodes)) for (plugin, text), nodes in nodes_by_reason.items())
    return tuple(sorted(groups, key=lambda group: (-group.count, group.text)))

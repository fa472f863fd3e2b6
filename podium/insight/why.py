"""Why a pod is pending, or why it is where it is: every blocker of every node, the scores, the preemption verdict."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from podium.engine.cluster import Cluster
from podium.engine.evaluation import Evaluation, as_status
from podium.framework.contract.status import Status
from podium.insight.details import amounts, kind_of_blocker
from podium.insight.search import FixSearch, as_pending
from podium.objects.core import Pod
from podium.objects.resource_types import NODES

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
    """The nodes that the same thing keeps the pod off. A node with several blockers is in several groups."""

    plugin: str
    text: str
    nodes: tuple[str, ...]

    @property
    def examples(self) -> tuple[str, ...]:
        """The first few nodes."""
        return self.nodes[:_EXAMPLES]


@dataclass(frozen=True, slots=True)
class NodeScore:
    """The scores of one node on which the pod fits."""

    node: str
    total: int
    plugins: Mapping[str, int]


@dataclass(frozen=True)
class Why:
    """The answer about one pod.

    Attributes:
        bound_to: where the pod is; "" for a pending pod. The answer is then about a copy of it that is pending.
        node: where it would go; None if it fits nowhere.
        gates: why it would not be tried.
        blockers: what keeps it off each node where it does not fit.
        one_edit_away: the nodes onto which a single edit would let it; none are looked for if it fits somewhere.
        scores: the nodes where it fits, the best first.
        message: the text of its condition if it fits nowhere.
        asked: the node that was asked about; "" if none was.
    """

    pod: str
    bound_to: str
    node: str | None
    node_count: int
    gates: tuple[Status, ...]
    blockers: Mapping[str, tuple[Blocker, ...]]
    one_edit_away: tuple[str, ...]
    scores: tuple[NodeScore, ...]
    message: str
    evaluation: Evaluation
    asked: str = ""
    groups: tuple[Group, ...] = field(init=False)

    def __post_init__(self) -> None:
        """Group the nodes, most frequent first."""
        found: dict[tuple[str, str], list[str]] = {}
        for node, blockers in self.blockers.items():
            for each in blockers:
                found.setdefault((each.plugin, each.text), []).append(node)
        groups = (Group(plugin, text, tuple(nodes)) for (plugin, text), nodes in found.items())
        object.__setattr__(self, "groups", tuple(sorted(groups, key=lambda each: (-len(each.nodes), each.text))))

    @property
    def preemption(self) -> str:
        """The verdict of preemption in one sentence; "" if the pod fits somewhere."""
        answer = self.evaluation.as_dict()
        if self.node is not None:
            return ""
        if "nominated" in answer:
            return f"Preemption would make room on {answer['nominated']} by evicting {', '.join(answer['victims'])}"
        reasons = ", ".join(answer.get("postfilter", {}).get("reasons", ()))
        return f"Preemption does not help: {reasons}" if reasons else "Preemption does not help"

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
        if self.bound_to:
            found["bound_to"] = self.bound_to
        if self.gates:
            found["gates"] = [as_status(each) for each in self.gates]
        found["blockers"] = {node: [each.as_dict() for each in known] for node, known in self.blockers.items()}
        found["groups"] = [
            {"plugin": each.plugin, "text": each.text, "count": len(each.nodes), "examples": list(each.examples)}
            for each in self.groups
        ]
        found["one_edit_away"] = list(self.one_edit_away)
        found["scores"] = [
            {"node": each.node, "total": each.total, "plugins": dict(each.plugins)} for each in self.scores
        ]
        if self.verdict:
            found["verdict"] = self.verdict
        if self.node is None:
            found["message"], found["preemption"] = self.message, self.preemption
            answer = self.evaluation.as_dict()
            found |= {name: answer[name] for name in ("nominated", "victims") if name in answer}
        return found


def explain(cluster: Cluster, pod: Pod, asked: str = "") -> Why:
    """Evaluate the pod, as if it were pending, on every node. The cluster is not changed.

    Args:
        asked: a node to compare with.

    Raises:
        ScheduleError: a plugin failed, or there is no node.
        ClusterError: no profile serves the pod.
    """
    bound_to = pod.node_name
    cluster, pod = as_pending(cluster, pod)
    bound_to = "" if pod.node_name else bound_to
    evaluation = cluster.evaluate(pod)
    gates = cluster.gates_of(pod)
    search = FixSearch(cluster, pod)
    blockers = search.blockers()
    snapshot = blockers.snapshot
    statuses = blockers.by_row()
    found = {}
    for name, row in sorted(snapshot.row_of.items()):
        if row in statuses:
            found[name] = tuple(
                Blocker(
                    each.plugin,
                    kind_of_blocker(pod, snapshot, row, each),
                    amounts(pod, snapshot, row, each),
                )
                for each in statuses[row]
            )
    near: tuple[str, ...] = ()
    if evaluation.node is None:
        near = tuple(sorted(snapshot.name(row) for row in search.rows_one_edit_away()))
    message = "" if evaluation.node is not None else str(evaluation.as_dict()["message"])
    count = len(cluster.store.objects(NODES))
    scores = _scores(evaluation)
    return Why(pod.key, bound_to, evaluation.node, count, gates, found, near, scores, message, evaluation, asked)


def _scores(evaluation: Evaluation) -> tuple[NodeScore, ...]:
    """The scores of the nodes, the winner first."""
    scores, snapshot = evaluation.found.scores, evaluation.snapshot
    if scores is None:
        return ()
    rows, totals = evaluation.found.filtered.rows.tolist(), scores.total.tolist()
    parts = {name: values.tolist() for name, values in scores.plugins.items()}
    found = [
        NodeScore(snapshot.name(row), totals[at], {name: values[at] for name, values in parts.items()})
        for at, row in enumerate(rows)
    ]
    return tuple(sorted(found, key=lambda each: (each.node != evaluation.node, -each.total, each.node)))

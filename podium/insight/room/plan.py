"""The answer to how room is made: steps of which each holds, what they cost, and what was proved.

A step moves one pod. Before it the nodes in `cordons` are cordoned, so that the replacement does no harm wherever the
scheduler puts it: the pod's own node, and nodes whose room later steps need. Nodes in `uncordons` are uncordoned after
the replacement runs. If all the room is on a node that an earlier step has cordoned, the replacement is nominated there
once it exists, and only then the node is uncordoned (`opens`). At the end each pod in question is nominated to its node
in the same way, and all other cordons are taken back.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from podium.lib.plurals import count_of


class Verdict(enum.Enum):
    """The kinds of answers."""

    FITS = "fits"
    MOVES = "moves"
    IMPOSSIBLE = "impossible"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class RoomMove:
    """One step: a pod that is evicted, and the node on which the scheduler then places its replacement.

    Attributes:
        uid: the pod's, so that no other pod of its name is evicted.
        workload: the controller as KIND/NAME.
        target: where the replacement came to in the rehearsal; by scores and chance it may come to another node, but to
            none of `cordons`.
        cordons: nodes that are cordoned before the eviction.
        opens: a cordoned node that is uncordoned once the replacement is nominated to it; "" if there is none.
        uncordons: nodes that are uncordoned when the replacement runs.
    """

    pod: str
    uid: str
    workload: str
    source: str
    target: str
    cordons: tuple[str, ...] = ()
    opens: str = ""
    uncordons: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """Return the step as JSON values."""
        values: dict[str, Any] = {"evict": self.pod, "workload": self.workload, "from": self.source, "to": self.target}
        if self.cordons:
            values["cordon"] = list(self.cordons)
        if self.opens:
            values["nominate_then_uncordon"] = self.opens
        if self.uncordons:
            values["uncordon"] = list(self.uncordons)
        return values


@dataclass(frozen=True, slots=True)
class RoomCost:
    """What the moves cost, in the order in which costs are compared.

    Attributes:
        requested_bytes: the memory and local storage that the moved pods request.
        priorities: the sum of their priorities, as far as they are above 0.
        restarts: the number of their containers.
    """

    moves: int
    requested_bytes: int
    priorities: int
    restarts: int

    def as_dict(self) -> dict[str, int]:
        """Return the cost as JSON values."""
        return {
            "moves": self.moves,
            "bytes": self.requested_bytes,
            "priorities": self.priorities,
            "restarts": self.restarts,
        }


@dataclass(frozen=True, slots=True)
class RoomPlan:
    """Moves in their order.

    Attributes:
        nodes: the node of each pod in question after them, by key.
        uncordons: nodes that are uncordoned at the end, when the pods in question are nominated.
    """

    steps: tuple[RoomMove, ...]
    nodes: Mapping[str, str]
    uncordons: tuple[str, ...]
    cost: RoomCost

    def as_dict(self) -> dict[str, Any]:
        """Return the plan as JSON values."""
        return {
            "steps": [step.as_dict() for step in self.steps],
            "nodes": dict(self.nodes),
            "uncordon": list(self.uncordons),
            "cost": self.cost.as_dict(),
        }


@dataclass(frozen=True, slots=True)
class Immovable:
    """A pod that stays, where moving it might have helped, and the reason."""

    pod: str
    node: str
    reason: str

    def as_dict(self) -> dict[str, str]:
        """Return the pod as JSON values."""
        return {"pod": self.pod, "node": self.node, "why": self.reason}


@dataclass(frozen=True, slots=True)
class RoomAnswer:
    """The answer.

    Attributes:
        subject: the pod, or the gang, as NAMESPACE/NAME.
        plan: the moves; None unless the verdict is MOVES.
        nodes: the node of each pod in question, if they fit as it is.
        is_proven: whether it is proved that fewer moves do not do, or that no moves do.
        reason: why nothing helps, or what the proof lacks; "" if there is nothing to say.
        ruled_out: with how many moves it was proved not to be possible; -1 if not even without a move.
        immovable: pods that stay and are in the way.
        node_count, movable_count: how many nodes and movable pods were searched.
        note: what else the reader should know, such as a preemption that would come first.
        is_partial: whether the time limit, or the limit of steps, ended the search early.
    """

    subject: str
    verdict: Verdict
    plan: RoomPlan | None = None
    nodes: Mapping[str, str] | None = None
    is_proven: bool = False
    reason: str = ""
    ruled_out: int = -1
    immovable: Sequence[Immovable] = ()
    node_count: int = 0
    movable_count: int = 0
    note: str = ""
    is_partial: bool = False

    @property
    def text(self) -> str:
        """The answer in one sentence."""
        if self.verdict is Verdict.FITS:
            assert self.nodes is not None
            nodes = ", ".join(dict.fromkeys(self.nodes.values()))
            return f"{self.subject} fits as it is, on {nodes}"
        searched = f"{count_of(self.node_count, 'node')}, {count_of(self.movable_count, 'movable pod')}"
        if self.verdict is Verdict.IMPOSSIBLE:
            proof = "proven" if self.is_proven else "not proven"
            return f"no set of moves makes room for {self.subject} ({proof}; {searched}): {self.reason}"
        if self.plan is None:
            up_to = f"; up to {count_of(self.ruled_out, 'move')} ruled out" if self.ruled_out >= 0 else ""
            return f"no moves found that make room for {self.subject} ({self.reason}; {searched}{up_to})"
        count = len(self.plan.steps)
        if self.is_proven:
            proof = f"proven: no fewer do; {searched}"
        elif self.ruled_out >= 0:
            proof = f"{self.reason}; up to {count_of(self.ruled_out, 'move')} ruled out; {searched}"
        else:
            proof = f"{self.reason}; {searched}"
        return f"{self.subject} fits after {count_of(count, 'move')} ({proof})"

    def as_dict(self) -> dict[str, Any]:
        """Return the answer as JSON values."""
        values: dict[str, Any] = {"for": self.subject, "verdict": self.verdict.value, "proven": self.is_proven}
        if self.is_partial:
            values["partial"] = True
        if self.nodes is not None:
            values["nodes"] = dict(self.nodes)
        if self.plan is not None:
            values |= self.plan.as_dict()
        if self.ruled_out >= 0:
            values["moves_ruled_out"] = self.ruled_out
        optional_texts = {"why": self.reason, "note": self.note}
        values |= {name: text for name, text in optional_texts.items() if text}
        if self.immovable:
            values["immovable"] = [pod.as_dict() for pod in self.immovable]
        return values | {"searched": {"nodes": self.node_count, "movable_pods": self.movable_count}}

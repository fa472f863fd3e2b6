"""The result of placing a pod in a cluster in memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from podium.engine.placing import PlacedPod
from podium.framework.contract.cycle_state import CycleState
from podium.framework.contract.writing import ObjectWrite
from podium.framework.cycle.diagnosis import Diagnosis
from podium.objects.core import Pod


@dataclass(frozen=True, slots=True)
class Placement:
    """The result of placing a pod.

    Attributes:
        node: the name of the node on which the pod counts from now on; None if it was not placed.
        message: the message of its condition, if it was not placed; "" if it has a node.
        nominated_node: the node where preemption makes, or would make, room for it; None without preemption.
        victims: the pods that are, or would be, evicted there.
        writes: the other objects that plugins write, or would write, for it.
        state: the plugins' state after an attempt; None if none was made.
        diagnosis: which plugins rejected nodes, if the pod fits on none.
        loses_nomination: whether an earlier nomination ends, because preemption does not help.
        placed: the placement that `Cluster.undo` undoes.
        before: the pod as it was stored before.
    """

    pod: Pod
    node: str | None
    message: str = ""
    nominated_node: str | None = None
    victims: tuple[Pod, ...] = ()
    writes: Sequence[ObjectWrite] = field(default=(), repr=False, compare=False)
    state: CycleState | None = field(default=None, repr=False, compare=False)
    diagnosis: Diagnosis | None = field(default=None, repr=False, compare=False)
    loses_nomination: bool = field(default=False, repr=False, compare=False)
    placed: PlacedPod | None = field(default=None, repr=False, compare=False)
    before: Pod | None = field(default=None, repr=False, compare=False)

    def as_dict(self) -> dict[str, str]:
        """Return the pod's key, and its node if it has one, as `podium evaluate` prints them."""
        return {"pod": self.pod.key} if self.node is None else {"pod": self.pod.key, "node": self.node}

"""One scheduling attempt as a value: what it decides about, and what it has found so far.

Owns nothing but these references; the steps of an attempt take the cycle and write their results into it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from podium.cluster import Snapshot
from podium.framework.contract.cycle_state import CycleState
from podium.framework.cycle.diagnosis import Diagnosis
from podium.framework.cycle.nominated_pods import NominatedAhead, NominatedPods
from podium.framework.cycle.scored import Scored
from podium.framework.profile.pod_signature import PodSignature
from podium.framework.profile.runtime import Framework
from podium.objects.core import Pod


@dataclass(slots=True, eq=False, weakref_slot=True)
class Cycle:
    """One attempt to schedule one pod.

    Attributes:
        framework: the pod's profile.
        snapshot: must not change until the attempt ends.
        nominated: the pods that are nominated to nodes, of which those ahead of the pod count.
        state: the data that plugins pass from one extension point to the next.
        diagnosis: the reasons why nodes were rejected.
        signature: the cached answers for pods of this spec, if there are any; found by PreFilter.
        makes_room: whether PostFilter plugins may help the pod if no node fits.
        keeps_scores: whether `scored` is filled in, with the scores of the nodes that were compared.
        filtered_at_s, scored_at_s: when the nodes were filtered and scored; None if they were not.
        seconds: how long the attempt took, if it is one of the simulation of a group; None otherwise.
        measures_plugins: whether the time of each plugin by itself is reported.
    """

    framework: Framework
    pod: Pod
    snapshot: Snapshot
    nominated: NominatedPods
    state: CycleState = field(default_factory=CycleState)
    diagnosis: Diagnosis = field(init=False)
    nominated_ahead: NominatedAhead = field(init=False)
    signature: PodSignature | None = field(init=False)
    scored: Scored | None = field(init=False)
    filtered_at_s: float | None = None
    scored_at_s: float | None = None
    seconds: float | None = None
    makes_room: bool = True
    keeps_scores: bool = False
    measures_plugins: bool = False

    def __post_init__(self) -> None:
        self.forget_nodes()

    def forget_nodes(self) -> None:
        """Forget what was found about nodes: a pod whose node is chosen may wait at Permit for long."""
        self.diagnosis = Diagnosis(table_size=len(self.snapshot.nodes))
        self.nominated_ahead = NominatedAhead(self.pod, self.snapshot, self.nominated)
        self.signature = None
        self.scored = None
        self.state.dry_runs = None

"""Plans for a provisioner that runs: nodes to buy, nodes to remove, and whether a removal still holds.

Owns the order in which the methods of disruption are tried. Each answer is a pure function of the objects and the time.

Source: karpenter pkg/controllers/disruption/controller.go and validation.go, v1.15.0.
"""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from typing import Final

from podium.objects.core import Pod
from podium.provisioner.apis.budgets import DisruptionReason
from podium.provisioner.apis.objects import ClusterObjects
from podium.provisioner.cloudprovider.catalogue import Catalogue, built_in_catalogue
from podium.provisioner.disruption import methods
from podium.provisioner.disruption.conditions import conditions_of
from podium.provisioner.disruption.consolidation import Command
from podium.provisioner.disruption.disruption_state import DisruptionState, MakeSimulator
from podium.provisioner.disruption.simulation import Simulator
from podium.provisioner.provisioning.idle_gangs import idle_gang_warnings
from podium.provisioner.provisioning.launching import with_candidates, with_names, within_node_limits
from podium.provisioner.provisioning.plan import NodePlan, Plan
from podium.provisioner.provisioning.plan_basis import PlanBasis
from podium.provisioner.provisioning.provisioner import provision
from podium.provisioner.provisioning.reasons import in_karpenters_words, in_own_words
from podium.provisioner.state.settings import Settings

EMPTY: Final[DisruptionReason] = "Empty"
DRIFTED: Final[DisruptionReason] = "Drifted"
UNDERUTILIZED: Final[DisruptionReason] = "Underutilized"


@dataclass(frozen=True, slots=True, eq=False)
class Removal:
    """Nodes that may go together.

    Attributes:
        nodes: Their names.
        replacements: What has to be there before they go.
        moves: By node that stays, the pods that will fit on it.
        savings: Per hour; None if prices are not known.
        warnings: Sentences about what it ignores: by Karpenter's rules, the gangs that break.
        id: Its name in the log, in Events and in the ConfigMap; empty unless a provisioner carries it out.
    """

    reason: DisruptionReason
    nodes: tuple[str, ...]
    replacements: tuple[NodePlan, ...]
    moves: Mapping[str, tuple[Pod, ...]]
    savings: float | None
    command: Command
    warnings: tuple[str, ...] = ()
    id: str = ""

    def with_id(self, name: str) -> Removal:
        """Return the removal, and what replaces the nodes, with this id."""
        replacements = tuple(replace(node, plan_id=name) for node in self.replacements)
        return replace(self, id=name, replacements=replacements)


@dataclass(frozen=True, slots=True)
class Planner:
    """Plans by Karpenter's rules.

    Args:
        catalogue: the instance types; None for the built-in ones, in the zones of the cluster's nodes.
        in_own_words: whether reasons are given in podium's words, since its rules judge where pods fit.
    """

    catalogue: Catalogue | None
    settings: Settings
    in_own_words: bool = False

    def basis(self, objects: ClusterObjects) -> PlanBasis:
        """Return the start of all plans over these objects."""
        return PlanBasis(objects, self._catalogue_for(objects), self.settings)

    def plan(self, objects: ClusterObjects, now_s: float) -> Plan:
        """Plan what to buy now.

        Args:
            now_s: the time, in seconds since the epoch.

        Raises:
            FieldError: an object has a value that has no meaning.
        """
        basis = self.basis(objects)
        plan = provision(basis, now_s)
        nodes = with_names(objects, with_candidates(basis, plan.nodes))
        plan = replace(plan, nodes=within_node_limits(basis, nodes))
        return replace(plan, warnings=(*basis.warnings, *idle_gang_warnings(basis, plan)))

    def removal(
        self,
        objects: ClusterObjects,
        now_s: float,
        fixed_nodes: AbstractSet[str],
        make_simulator: MakeSimulator = Simulator,
    ) -> Removal | None:
        """Return the first removal that a method finds.

        Args:
            now_s: the time, in seconds since the epoch.
            fixed_nodes: the names of nodes that have to stay.
            make_simulator: makes what says where pods go; by default Karpenter's rules.

        Raises:
            FieldError: an object has a value that has no meaning.
        """
        state = self._state(objects, now_s, fixed_nodes, make_simulator)
        # Cheapest to decide and least disruptive first. Upstream ends the pass with the first method that has a
        # command.
        command = methods.emptiness(state)
        if command is not None:
            return _removal(state, EMPTY, command)
        command = methods.drift(state)
        if command is not None:
            return _removal(state, DRIFTED, command)
        command = methods.multi_node(state) or methods.single_node(state)
        return _removal(state, UNDERUTILIZED, command) if command is not None else None

    def validate(
        self,
        removal: Removal,
        objects: ClusterObjects,
        now_s: float,
        fixed_nodes: AbstractSet[str],
        make_simulator: MakeSimulator = Simulator,
    ) -> Removal | str:
        """Return the removal as far as it still holds, or why it does not.

        Args:
            objects: the cluster some time after the removal was found.
            now_s: the time, in seconds since the epoch.
            fixed_nodes: the names of nodes that have to stay.
            make_simulator: makes what says where pods go; by default Karpenter's rules.
        """
        state = self._state(objects, now_s, fixed_nodes, make_simulator)
        command = removal.command
        if removal.reason == DRIFTED:
            candidates = {candidate.name for candidate in state.drift_candidates}
            # Upstream validates emptiness and consolidation only: a drifted node goes because of what it is.
            return removal if candidates.issuperset(removal.nodes) else "a node can no longer be replaced"
        if removal.reason == EMPTY:
            candidates_left = methods.still_empty(state, command)
            return (
                self._wording(candidates_left)
                if isinstance(candidates_left, str)
                else _removal(state, EMPTY, Command(candidates_left))
            )
        fault = methods.consolidation_fault(state, command)
        return removal if fault is None else self._wording(fault)

    def objection(self, removal: Removal, objects: ClusterObjects) -> str:  # noqa: ARG002
        """Return why the nodes must not go once their replacements are there: Karpenter does not look again."""
        return ""

    def _wording(self, text: str) -> str:
        return in_own_words(text) if self.in_own_words else in_karpenters_words(text)

    def _state(
        self, objects: ClusterObjects, now_s: float, fixed_nodes: AbstractSet[str], make_simulator: MakeSimulator
    ) -> DisruptionState:
        basis = self.basis(objects)
        node_class = self.settings.node_class
        conditions = conditions_of(objects.node_claims, objects.node_pools, basis.catalogue, now_s, node_class)
        return DisruptionState(basis, conditions, now_s, fixed_nodes, make_simulator=make_simulator)

    def _catalogue_for(self, objects: ClusterObjects) -> Catalogue:
        return built_in_catalogue(objects) if self.catalogue is None else self.catalogue


def _removal(state: DisruptionState, reason: DisruptionReason, command: Command) -> Removal:
    names = tuple(candidate.name for candidate in command.candidates)
    replacements = with_names(state.basis.objects, with_candidates(state.basis, command.replacements), frozenset(names))
    return Removal(
        reason=reason,
        nodes=names,
        replacements=replacements,
        moves=command.simulation.plan.existing if command.simulation is not None else {},
        savings=command.shown_savings(state.basis.well_known),
        command=command,
        warnings=tuple(state.simulator.warnings(command.candidates, replacements)),
    )

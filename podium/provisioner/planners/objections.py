"""Why no new node helps a pod, for each NodePool.

Owns the reasons of plans by podium's own rules. Decides nothing: podium's plugins refuse the pod on a trial node.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from podium.objects.amounts import amount_texts
from podium.objects.core import Pod
from podium.objects.tolerations import taint_text
from podium.provisioner.cloudprovider.instance_type_filter import DaemonGroup
from podium.provisioner.planners.new_nodes import NewNodes
from podium.provisioner.planners.node_options import NodeOptions
from podium.provisioner.planners.placement_trial import PlacementTrial, place, verdict
from podium.provisioner.provisioning.candidate_nodes import CandidateNode, candidate_nodes, has_room
from podium.provisioner.provisioning.plan_basis import PlanBasis
from podium.provisioner.provisioning.reasons import demands_text, in_own_words, unmet_demands
from podium.provisioner.provisioning.templates import Template
from podium.provisioner.scheduling.amounts import requests_of
from podium.provisioner.scheduling.pod_requirements import has_meaning, strict_pod_requirements
from podium.provisioner.scheduling.requirements import Requirements
from podium.provisioner.scheduling.taints import untolerated_taints

_NO_ROOM_IN_LIMITS: Final = "its limits leave no room for another node"


@dataclass(frozen=True, slots=True)
class Objections:
    """The reasons why new nodes beside those of a plan do not help.

    Attributes:
        trial: The plan's last trial.
        candidates: The nodes of the plan.
    """

    basis: PlanBasis
    options: NodeOptions
    new_nodes: NewNodes
    trial: PlacementTrial
    candidates: Mapping[str, CandidateNode]

    def by_pool(self, pod: Pod) -> dict[str, str]:
        """Return by NodePool why a new node does not help the pod."""
        return {
            **{name: in_own_words(reason) for name, reason in self.basis.skipped.items()},
            **{template.name: self._of_pool(template, groups, pod) for template, groups in self.basis.templates},
        }

    def _of_pool(self, template: Template, groups: Sequence[DaemonGroup], pod: Pod) -> str:
        trial = self.trial
        untaken = untolerated_taints(template.taints, pod.spec.tolerations)
        if untaken:
            taints = ", ".join(map(taint_text, untaken))
            return f"the pod does not tolerate what its nodes are tainted with: {taints}"
        if pod.spec.scheduler_name not in trial.world.profiles or not has_meaning(pod.spec):
            return trial.last[pod.key].message
        requirements, well_known = strict_pod_requirements(pod.spec), self.basis.well_known
        if next(self.options.alternatives(template, pod), None) is None:
            return "; ".join(unmet_demands(template.requirements, requirements, well_known))
        # Without the plan's other nodes, so that the limits of the NodePool are no reason yet.
        options = self.options.of_pool(template, groups, pod, {})
        if not options:
            return self._why_no_options(template, groups, pod, requirements)
        what_if = trial.world.fork()
        name = self.new_nodes.next_name(template.name)
        self.new_nodes.add(what_if, name, options[0])
        placement = place(what_if, pod)
        if placement.node is not None:
            if self.options.of_pool(template, groups, pod, self.candidates):
                return "with a new node podium would place the pods differently, so that this one or others stay"
            return _NO_ROOM_IN_LIMITS
        return f"a new node does not help: {verdict(what_if, pod, name) or placement.message}"

    def _why_no_options(
        self, template: Template, groups: Sequence[DaemonGroup], pod: Pod, pod_requirements: Requirements
    ) -> str:
        """Return the reason why the NodePool has no node for the pod though its own requirements allow some."""
        options = [
            candidate
            for requirements in self.options.alternatives(template, pod)
            for candidate in candidate_nodes(template, groups, requirements, self.basis.well_known)
        ]
        if not options:
            return f"no instance type that can be launched has {demands_text(pod_requirements)}"
        requests = requests_of(pod)
        if not any(has_room(option, requests) for option in options):
            amounts = ", ".join(f"{amount} {name}" for name, amount in amount_texts(requests).items())
            return f"no instance type that can be launched has room for {amounts}"
        return _NO_ROOM_IN_LIMITS

"""Shows a plan to people and programs: nodes with their cost, and why pods stay.

Owns what is reported beyond a recorded answer: costs, utilisation before and after, the reasons by NodePool, why a
NodePool is left out, and why nodes refuse a pod.

Units: prices per hour, None where none is known; monthly costs for 730 hours; amounts of resources as quantities.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, Final

from podium.lib.time_limit import UNLIMITED, TimeLimit
from podium.objects.amounts import amount_text, amount_texts
from podium.objects.core import Pod
from podium.objects.errors import FieldError
from podium.objects.requests import Requests
from podium.objects.resource_names import CPU, MEMORY, PODS, is_extended_resource
from podium.provisioner.apis.labels import INSTANCE_TYPE, NODE_CLASS, current_name
from podium.provisioner.apis.objects import NodePool
from podium.provisioner.cloudprovider.catalogue import Catalogue
from podium.provisioner.cloudprovider.instance_types import InstanceType, in_price_and_name_order
from podium.provisioner.provisioning.causes import unavailable_text
from podium.provisioner.provisioning.idle_gangs import idle_gang_warnings
from podium.provisioner.provisioning.passes import PASSES_MAX, Passes, plan_passes
from podium.provisioner.provisioning.plan import NodePlan, Plan, in_label, node_claim_json
from podium.provisioner.provisioning.plan_basis import PlanBasis
from podium.provisioner.provisioning.reasons import in_karpenters_words, in_own_words
from podium.provisioner.provisioning.solve import Solver
from podium.provisioner.provisioning.templates import unusable_reason
from podium.provisioner.provisioning.topology import pool_requirements
from podium.provisioner.scheduling.amounts import requests_of, total
from podium.provisioner.scheduling.device_use import NO_DEVICES, DeviceUse
from podium.provisioner.scheduling.pod_requirements import pod_requirements
from podium.provisioner.scheduling.requirements import Requirements
from podium.provisioner.state.validation import is_mirror, is_owned_by_daemon_set, is_provisionable

NOMINATED: Final = "is nominated to node "
GATED: Final = "has scheduling gates"
"""Why pods are not planned for."""

HOURS_PER_MONTH: Final = 730
SHOWN: Final = (CPU, MEMORY, PODS)
"""The resources whose utilisation is always shown; devices are where there are any."""
_SIMULATED_PROVIDER: Final = f"{NODE_CLASS[0]}/"
"""The domain of the labels that only nodes of Karpenter's simulated provider have."""


@dataclass(frozen=True, eq=False)
class PlanReport:
    """A plan of nodes to buy, as `podium.Cluster.plan` returns it."""

    basis: PlanBasis
    plan: Plan
    is_partial: bool = False
    passes: Passes | None = None

    @classmethod
    def by_karpenter(
        cls,
        basis: PlanBasis,
        now_s: float,
        devices: DeviceUse = NO_DEVICES,
        limit: TimeLimit = UNLIMITED,
        *,
        one_pass: bool = False,
    ) -> PlanReport:
        """Plan the cluster by Karpenter's rules.

        Args:
            now_s: the time, in seconds since the epoch.
            devices: those for resource claims, only to be shown. Karpenter plans no pod that has such claims.
            limit: when to end with the pods planned by then; the plan is partial then.
            one_pass: whether to end with the first pass of Karpenter's loop, though a further one would place more.
        """
        passes = plan_passes(basis, now_s, limit, 1 if one_pass else PASSES_MAX)
        warnings = tuple(idle_gang_warnings(basis, passes.total))
        plan = replace(passes.total, devices=(devices, devices), warnings=warnings)
        return cls(basis, plan, limit.is_noticed, passes)

    def as_dict(self) -> dict[str, Any]:
        """Return the whole plan, sorted by names where nothing else orders it.

        By podium's own rules each new node has its `name` in addition, `preempted` are the pods that are evicted, and
        `gangs` those with members that wait.
        """
        nodes = [self._node(node) for node in self.plan.nodes]
        if self._has_passes:
            assert self.passes is not None
            nodes = [{**node, "pass": number} for node, number in zip(nodes, self.passes.numbers, strict=True)]
        if not self._is_podiums:
            # By Karpenter's rules nodes have no names yet, and their order depends on that of the pods.
            nodes.sort(key=lambda node: (node.get("pass", 1), node["pool"], -len(node["pods"]), node["pods"]))
        existing = {name: sorted(pod.key for pod in pods) for name, pods in sorted(self.plan.existing.items())}
        pods = () if self._is_podiums else filter(_is_not_tried, self.basis.objects.pods)
        not_tried = {pod.key: _why_not_tried(pod) for pod in pods}
        return {
            "new_nodes": nodes,
            "existing": existing,
            "unschedulable": [
                {"pod": key, "reason": stay.explained_reason(), "pools": stay.explanations()}
                for key, stay in sorted(self.plan.unschedulable.items())
            ],
            "ignored": dict(sorted(self.plan.ignored.items())),
            "skipped": self._skip_reasons(),
            # podium's own plugins try every pod that waits; Karpenter only those that kube-scheduler has given up.
            "not_tried": sorted(not_tried),
            "not_tried_reasons": dict(sorted(not_tried.items())),
            **({"preempted": list(self.plan.preempted)} if self._is_podiums else {}),
            **({"gangs": [gang.as_dict() for gang in self.plan.gangs]} if self.plan.gangs else {}),
            **({"proof": self.plan.proof.as_dict()} if self.plan.proof is not None else {}),
            "hourly_cost": sum_if_known(node["price"] for node in nodes),
            "monthly_cost": sum_if_known(node["monthly_cost"] for node in nodes),
            "utilisation": self._utilisation(),
            **warnings_json(self.warnings),
            **({"passes": self.passes.count} if self.passes is not None and self._has_passes else {}),
            **({"partial": True} if self.is_partial else {}),
        }

    def why(self, name: str) -> dict[str, Any]:
        """Explain a pod: its outcome, the answer of each NodePool, and why the nodes that are there refuse it.

        By podium's own rules, the nodes that are there are left out.

        Args:
            name: its namespace and name, or its name if no other pod has the same.

        Raises:
            FieldError: there is no such pod, or more than one.
        """
        pod = _pod_named(self.basis.objects.pods, name)
        answer: dict[str, Any] = {"pod": pod.key, "outcome": self._outcome(pod)}
        stay, solver = self.plan.unschedulable.get(pod.key), self._solver_of(pod)
        if stay is not None and (solver is not None or self._is_podiums):
            answer["pools"] = stay.explanations()
        if solver is not None and solver.has(pod):
            answer["nodes"] = solver.refusals_of_nodes(pod.uid)
            answer["new_nodes"] = solver.refusals_of_claims(pod.uid)
        return answer

    @property
    def warnings(self) -> tuple[str, ...]:
        """The sentences that say what does not count, or is taken for granted."""
        return (*self.basis.warnings, *self.plan.warnings)

    # ------------------------------------------------------------ parts

    @property
    def _has_passes(self) -> bool:
        """Return True if more than one pass places pods; a last one that only finds no place is not told."""
        return self.passes is not None and self.passes.count > 1

    def _solver_of(self, pod: Pod) -> Solver | None:
        """Return the solver of the last pass that had the pod."""
        solvers = [plan.solver for plan in self.passes.plans] if self.passes is not None else [self.plan.solver]
        having = [solver for solver in solvers if solver is not None and solver.has(pod)]
        return having[-1] if having else solvers[-1]

    @property
    def _is_podiums(self) -> bool:
        return self.plan.rules == "podium"

    def _node(self, node: NodePlan) -> dict[str, Any]:
        if not self._is_podiums:
            return node_json(node, self.basis.well_known)
        price = node.node.shown_price
        return {
            "name": node.name,
            "pool": node.pool,
            "cheapest_type": node.node.instance_type.name,
            "instance_types": [node.node.instance_type.name],
            "price": price,
            "price_at_worst": price,
            "monthly_cost": monthly(price),
            "pods": sorted(pod.key for pod in node.pods),
            "requests": amount_texts(node.requests),
            "allocatable": amount_texts(node.node.allocatable),
            "requirements": without_simulated_labels(
                [in_label(key, value) for key, value in node.pinned_labels() if key != INSTANCE_TYPE], node
            ),
            "min_values_relaxed": False,
        }

    def _skip_reasons(self) -> dict[str, str]:
        worded, skipped_pools = in_own_words if self._is_podiums else in_karpenters_words, self.plan.skipped
        reasons: dict[str, str] = dict(self.basis.objects.closed_pools)
        for pool in self.basis.objects.node_pools:
            name = pool.metadata.name
            reason = unusable_reason(pool, self.basis.settings.node_class)
            if reason is not None:
                reasons[name] = reason
            elif name in skipped_pools:
                reasons[name] = worded(skipped_pools[name])
                if "minValues" not in skipped_pools[name] and self.basis.labels.refusal_of(pool) is None:
                    reasons[name] += f": {unmet_part(pool, self.basis.catalogue)}"
        return reasons

    def _utilisation(self) -> dict[str, Any]:
        """Return the requests of the pods, and the amounts of the nodes, now and after the plan."""
        plan, nodes = self.plan, self.basis.nodes
        staying = [state for state in nodes if not state.is_leaving]
        well_known = self.basis.well_known
        bought = (
            node.node.allocatable if self._is_podiums else _cheapest(node, well_known).allocatable
            for node in plan.nodes
        )
        planned_requests = (requests_of(pod) for pods in plan.existing.values() for pod in pods)
        requests = total(
            *(state.requests for state in staying), *planned_requests, *(node.requests for node in plan.nodes)
        )
        allocatable = total(*(state.allocatable for state in staying), *bought)
        amounts_now = (total(*(state.requests for state in nodes)), total(*(state.allocatable for state in nodes)))
        devices_before, devices_after = plan.devices
        return {
            "before": _shares(*amounts_now) | _device_shares(devices_before),
            "after": _shares(requests, allocatable) | _device_shares(devices_after),
        }

    def _outcome(self, pod: Pod) -> str:
        plan = self.plan
        if pod.key in plan.ignored:
            return f"is ignored: {plan.ignored[pod.key]}"
        for name, pods in plan.existing.items():
            if pod.key in map(_key, pods):
                return f"goes to node {name}"
        for index, node in enumerate(plan.nodes):
            if pod.key in map(_key, node.pods):
                name = f"{node.name}, " if self._is_podiums else ""
                number = f", bought in pass {self.passes.numbers[index]}" if self.passes and self._has_passes else ""
                return f"goes to {name}a new node of NodePool {node.pool}{number}"
        if pod.key in plan.unschedulable:
            return f"stays: {plan.unschedulable[pod.key].explained_reason()}"
        if pod.node_name:
            return f"is on node {pod.node_name}"
        # The pod preempts others in this plan and gets their room, so no node is bought for it.
        return "waits until the pods that it preempts are gone" if self._is_podiums else _why_not_tried(pod)


def unmet_part(pool: NodePool, catalogue: Catalogue) -> str:
    """Return the requirements of a NodePool that no instance type meets, for a NodePool that has none left."""
    instance_types = catalogue.instance_types
    if not instance_types:
        return "the catalogue is empty"
    requirements = pool_requirements(pool)
    # `DoesNotExist` allows no value without contradicting itself.
    absent = {
        current_name(rule.key) for rule in pool.spec.template.spec.requirements if rule.operator == "DoesNotExist"
    }
    contradictory = [
        requirement.key
        for requirement in requirements
        if not requirement.values and not requirement.complement and requirement.key not in absent
    ]
    if contradictory:
        return f"the requirements on {', '.join(sorted(contradictory))} contradict each other"
    unmet = [
        str(requirement)
        for requirement in requirements
        if not any(offer.requirements.intersects(Requirements((requirement,))) for offer in instance_types)
    ]
    if unmet:
        return f"no instance type of the catalogue has {', '.join(sorted(unmet))}"
    if text := unavailable_text(instance_types, requirements, {}, catalogue.well_known):
        return text
    return "no instance type of the catalogue has all that it requires together"


def _pod_named(pods: Sequence[Pod], name: str) -> Pod:
    # A name without a namespace will do where it is unambiguous.
    matches = [pod for pod in pods if name in (pod.key, pod.metadata.name)]
    if len(matches) != 1:
        raise FieldError(name, f"there are {len(matches)} pods of this name" if matches else "there is no such pod")
    return matches[0]


def node_json(node: NodePlan, well_known: frozenset[str]) -> dict[str, Any]:
    """Return a node to buy, as any of its instance types."""
    claim, cheapest = node_claim_json(node), _cheapest(node, well_known)
    price: float | None = None
    at_worst: float | None = None
    if cheapest.is_priced(node.requirements):
        price, at_worst = claim["price"], cheapest.worst_launch_price(node.requirements, well_known)
    return {
        "pool": claim["pool"],
        "cheapest_type": cheapest.name,
        "instance_types": claim["types"],
        "price": price,
        "price_at_worst": at_worst,
        "monthly_cost": monthly(price),
        "pods": sorted(claim["pods"]),
        "requests": amount_texts(claim["requests"]),
        "allocatable": amount_texts(cheapest.allocatable),
        "requirements": sorted(claim["requirements"], key=lambda form: (form["key"], form["operator"])),
        "min_values_relaxed": node.is_lowered,
    }


def without_simulated_labels(forms: Iterable[dict[str, Any]], node: NodePlan) -> list[dict[str, Any]]:
    """Leave out labels of Karpenter's simulated provider that neither the NodePool nor a pod asks for.

    Nodes of another provider do not have them. By Karpenter's rules they stay, as recorded answers have them.
    """
    demands = chain(pool_requirements(node.template.pool), *(pod_requirements(pod.spec) for pod in node.pods))
    demanded_keys = {requirement.key for requirement in demands}
    return [form for form in forms if form["key"] in demanded_keys or not form["key"].startswith(_SIMULATED_PROVIDER)]


def warnings_json(warnings: Sequence[str]) -> dict[str, Any]:
    """Return what was given and does not count, under `warnings`; nothing if all of it counts."""
    return {"warnings": list(warnings)} if warnings else {}


def _cheapest(node: NodePlan, well_known: frozenset[str]) -> InstanceType:
    return in_price_and_name_order(node.instance_types, node.requirements, well_known)[0]


def _key(pod: Pod) -> str:
    return pod.key


def monthly(hourly: float | None) -> float | None:
    """Return the amount of a month for an amount per hour, or None if that is not known."""
    return None if hourly is None else hourly * HOURS_PER_MONTH


def sum_if_known(amounts: Iterable[float | None]) -> float | None:
    """Return the sum, or None if one of the amounts is not known."""
    amounts_list = list(amounts)
    # A sum without one of its parts would look complete.
    return None if None in amounts_list else sum(amount for amount in amounts_list if amount is not None)


def _device_shares(devices: DeviceUse) -> dict[str, Any]:
    """Return the devices that claims hold of those there are, by driver."""
    return {
        name: {"requested": str(devices.allocated.get(name, 0)), "allocatable": str(devices.published.get(name, 0))}
        for name in sorted({*devices.published, *devices.allocated})
    }


def _shares(requests: Requests, have: Requests) -> dict[str, Any]:
    devices = sorted(
        name for name in {*requests, *have} if is_extended_resource(name) and (requests.get(name) or have.get(name))
    )
    return {
        name: {
            "requested": amount_text(name, requests.get(name, 0)),
            "allocatable": amount_text(name, have.get(name, 0)),
            # More than there is was never planned: somebody has bound the pods, or the node has shrunk.
            **({"overcommitted": True} if requests.get(name, 0) > have.get(name, 0) else {}),
        }
        for name in (*SHOWN, *devices)
    }


def _is_not_tried(pod: Pod) -> bool:
    """Return True if the pod waits for a node, but not for one to be bought."""
    return not (
        pod.node_name
        or pod.has_ended
        or pod.is_terminating
        or is_provisionable(pod)
        or is_owned_by_daemon_set(pod)
        or is_mirror(pod)
    )


def _why_not_tried(pod: Pod) -> str:
    if pod.has_ended:
        return "has ended"
    if is_owned_by_daemon_set(pod):
        return "is a DaemonSet's: nodes come with room for it"
    if pod.status.nominated_node_name:
        return f"{NOMINATED}{pod.status.nominated_node_name}"
    if pod.spec.scheduling_gates:
        return GATED
    return "was not found unschedulable by kube-scheduler yet, so that no node is bought for it"

"""What a cluster would buy, as people and programs ask for it: nodes with their cost, and why pods stay.

Owns what is told beyond a recorded answer: costs, utilisation before and after, the reasons by NodePool, why a NodePool
is left out, and why nodes refuse a pod.

Units: prices per hour, None where none is known; monthly costs for 730 hours; amounts of resources as quantities.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from podium.lib.time_limit import UNLIMITED, TimeLimit
from podium.objects.amounts import amount_text, amount_texts
from podium.objects.core import Pod
from podium.objects.errors import FieldError
from podium.objects.requests import Requests
from podium.objects.resource_names import CPU, MEMORY, PODS, is_extended_resource
from podium.provisioner.apis.labels import HOSTNAME, INSTANCE_TYPE, SIMULATED, current_name
from podium.provisioner.apis.objects import NodePool
from podium.provisioner.cloudprovider.instance_types import InstanceType, in_price_and_name_order
from podium.provisioner.planners.placed_plans import PlacedPlan
from podium.provisioner.provisioning.existing_nodes import ExistingNode
from podium.provisioner.provisioning.launches import Launch
from podium.provisioner.provisioning.plan_basis import PlanBasis
from podium.provisioner.provisioning.plans import Purchase, purchase_as_told
from podium.provisioner.provisioning.provisioner import NO_POOLS, ProvisioningPass, provision
from podium.provisioner.provisioning.reasons import in_karpenters_words, in_own_words
from podium.provisioner.provisioning.templates import unusable_reason
from podium.provisioner.provisioning.topology import pool_requirements
from podium.provisioner.scheduling.amounts import requests_of, total
from podium.provisioner.scheduling.device_use import NO_DEVICES, DeviceUse
from podium.provisioner.scheduling.requirements import Requirements
from podium.provisioner.state.validation import is_mirror, is_owned_by_daemon_set, is_provisionable

HOURS_PER_MONTH: Final = 730
SHOWN: Final = (CPU, MEMORY, PODS)
"""The resources whose utilisation is always shown; devices are where there are any."""

_TOLD_OTHERWISE: Final = frozenset({HOSTNAME, INSTANCE_TYPE, *SIMULATED})


@dataclass(frozen=True, eq=False)
class PurchasePlan:
    """The plan of one pass over a cluster.

    Attributes:
        devices: Those for resource claims. Karpenter plans no pod that has such claims, so they stay as they are.
    """

    basis: PlanBasis
    found: ProvisioningPass
    devices: DeviceUse = NO_DEVICES
    is_partial: bool = False

    @classmethod
    def of(
        cls, basis: PlanBasis, now: float, devices: DeviceUse = NO_DEVICES, limit: TimeLimit = UNLIMITED
    ) -> PurchasePlan:
        """Plan the cluster.

        Args:
            now: the time, in seconds since the epoch.
            devices: those for resource claims, only to be shown.
            limit: when to end with the pods planned by then; the plan is partial then.
        """
        found = provision(basis, now, limit)
        return cls(basis, found, devices, limit.is_noticed)

    def as_dict(self) -> dict[str, Any]:
        """The whole plan, sorted by names where nothing else orders it."""
        nodes = [node_to_buy(each, self.basis.well_known) for each in self._purchases]
        nodes.sort(key=lambda each: (each["pool"], -len(each["pods"]), each["pods"]))
        existing = {each.state.name: sorted(pod.key for pod in each.pods) for each in self._existing() if each.pods}
        return {
            "new_nodes": nodes,
            "existing": dict(sorted(existing.items())),
            "unschedulable": self._staying(),
            "ignored": dict(sorted(self.found.ignored.items())),
            "skipped": _skipped(
                self.basis, self.basis.skipped if self.found.results is not None else {}, in_karpenters_words
            ),
            "not_tried": sorted(each.key for each in self.basis.objects.pods if _is_not_tried(each)),
            "hourly_cost": sum_if_known(each["price"] for each in nodes),
            "monthly_cost": sum_if_known(each["monthly_cost"] for each in nodes),
            "utilisation": self._utilisation(),
            **({"partial": True} if self.is_partial else {}),
        }

    def why(self, name: str) -> dict[str, Any]:
        """What became of a pod, what each NodePool answered, and why the nodes that are there refuse it.

        Args:
            name: its namespace and name, or its name if no other pod has the same.

        Raises:
            FieldError: there is no such pod, or more than one.
        """
        pod = _pod_named(self.basis.objects.pods, name)
        told: dict[str, Any] = {"pod": pod.key, "outcome": self._outcome(pod)}
        solver, results = self.found.solver, self.found.results
        if solver is None or results is None or all(each.uid != pod.uid for each in self.found.pods):
            return told
        refusal = results.refusals.get(pod.uid)
        if refusal is not None:
            told["pools"] = {pool: each.text() for pool, each in refusal.by_pool.items()}
        told["nodes"] = solver.refusals_of_nodes(pod.uid)
        told["new_nodes"] = solver.refusals_of_claims(pod.uid)
        return told

    # ------------------------------------------------------------ parts

    @property
    def _purchases(self) -> Sequence[Purchase]:
        return self.found.outcome.purchases if self.found.outcome is not None else ()

    def _existing(self) -> Sequence[ExistingNode]:
        return self.found.results.existing if self.found.results is not None else ()

    def _staying(self) -> list[dict[str, Any]]:
        """The pods that stay, with the reason of each NodePool."""
        results, outcome = self.found.results, self.found.outcome
        pods = sorted(self.found.pods, key=lambda each: each.key)
        if results is None or outcome is None:
            return [{"pod": each.key, "reason": NO_POOLS, "pools": {}} for each in pods]
        told: list[dict[str, Any]] = []
        for pod in pods:
            reason = outcome.errors.get(pod.key)
            if reason is not None:
                refusal = results.refusals.get(pod.uid)
                pools = {pool: each.text() for pool, each in refusal.by_pool.items()} if refusal is not None else {}
                told.append({"pod": pod.key, "reason": reason, "pools": pools})
        return told

    def _utilisation(self) -> dict[str, Any]:
        pods = (requests_of(pod) for each in self._existing() for pod in each.pods)
        bought = (_cheapest(each, self.basis.well_known).allocatable for each in self._purchases)
        more = [*pods, *(each.claim.final_requests() for each in self._purchases)]
        return _utilisation(self.basis, more, bought, (self.devices, self.devices))

    def _outcome(self, pod: Pod) -> str:
        if pod.key in self.found.ignored:
            return f"is ignored: {self.found.ignored[pod.key]}"
        for each in self._existing():
            if any(other.uid == pod.uid for other in each.pods):
                return f"goes to node {each.state.name}"
        for purchase in self._purchases:
            if any(other.uid == pod.uid for other in purchase.claim.pods):
                return f"goes to a new node of NodePool {purchase.claim.template.name}"
        for stay in self._staying():
            if stay["pod"] == pod.key:
                return f"stays: {stay['reason']}"
        if pod.node_name:
            return f"is on node {pod.node_name}"
        return _why_not_tried(pod)


@dataclass(frozen=True, eq=False)
class PlacedPurchases:
    """A plan by podium's own rules, told as `PurchasePlan` tells one by Karpenter's."""

    basis: PlanBasis
    plan: PlacedPlan

    def as_dict(self) -> dict[str, Any]:
        """The whole plan. In addition each new node has its `name`, and `preempted` are the pods that are evicted."""
        plan = self.plan
        nodes = [_launched(name, each, plan.pods.get(name, ())) for name, each in plan.launches.items()]
        placed = {name: sorted(pod.key for pod in pods) for name, pods in plan.pods.items()}
        return {
            "new_nodes": nodes,
            "existing": {name: pods for name, pods in placed.items() if name not in plan.launches},
            "unschedulable": [
                {"pod": pod, "reason": reason, "pools": dict(plan.objections[pod])}
                for pod, reason in sorted(plan.errors.items())
            ],
            "ignored": {},
            "skipped": _skipped(self.basis, self.basis.skipped, in_own_words),
            "not_tried": [],
            "preempted": list(plan.preempted),
            "hourly_cost": sum_if_known(each["price"] for each in nodes),
            "monthly_cost": sum_if_known(each["monthly_cost"] for each in nodes),
            "utilisation": self._utilisation(),
            **({"partial": True} if plan.is_partial else {}),
        }

    def why(self, name: str) -> dict[str, Any]:
        """What became of a pod, and what each NodePool answered.

        Args:
            name: its namespace and name, or its name if no other pod has the same.

        Raises:
            FieldError: there is no such pod, or more than one.
        """
        pod = _pod_named(self.basis.objects.pods, name)
        told: dict[str, Any] = {"pod": pod.key, "outcome": self._outcome(pod)}
        if pod.key in self.plan.objections:
            told["pools"] = dict(self.plan.objections[pod.key])
        return told

    def _outcome(self, pod: Pod) -> str:
        for name, pods in self.plan.pods.items():
            if any(each.key == pod.key for each in pods):
                launch = self.plan.launches.get(name)
                return f"goes to node {name}" if launch is None else f"goes to {name}, {_new(launch)}"
        if pod.key in self.plan.errors:
            return f"stays: {self.plan.errors[pod.key]}"
        return f"is on node {pod.node_name}" if pod.node_name else "waits until the pods that it preempts are gone"

    def _utilisation(self) -> dict[str, Any]:
        launches = self.plan.launches.values()
        pods = (requests_of(pod) for found in self.plan.pods.values() for pod in found)
        daemons = (each.group.overhead for each in launches)
        bought = (each.allocatable for each in launches)
        return _utilisation(self.basis, [*pods, *daemons], bought, self.plan.devices)


def unmet_part(pool: NodePool, instance_types: Sequence[InstanceType]) -> str:
    """Which of a NodePool's requirements no instance type meets, for a NodePool that has none left."""
    if not instance_types:
        return "the catalogue is empty"
    whole = pool_requirements(pool)
    contradictory = [
        each.key
        for each in whole
        if not each.values
        and not each.complement
        and all(
            other.operator != "DoesNotExist"
            for other in pool.spec.template.spec.requirements
            if current_name(other.key) == each.key
        )
    ]
    if contradictory:
        return f"the requirements on {', '.join(sorted(contradictory))} contradict each other"
    unmet = [
        str(each)
        for each in whole
        if not any(other.requirements.intersects(Requirements((each,))) for other in instance_types)
    ]
    if unmet:
        return f"no instance type of the catalogue has {', '.join(sorted(unmet))}"
    return "no instance type of the catalogue has all that it requires together"


def _pod_named(pods: Sequence[Pod], name: str) -> Pod:
    found = [each for each in pods if name in (each.key, each.metadata.name)]
    if len(found) != 1:
        raise FieldError(name, f"there are {len(found)} pods of this name" if found else "there is no such pod")
    return found[0]


def _skipped(basis: PlanBasis, skipped: Mapping[str, str], worded: Callable[[str], str]) -> dict[str, str]:
    told: dict[str, str] = {}
    for pool in basis.objects.node_pools:
        name = pool.metadata.name
        reason = unusable_reason(pool, basis.settings.node_class)
        if reason is not None:
            told[name] = reason
        elif name in skipped:
            told[name] = worded(skipped[name])
            if "minValues" not in skipped[name]:
                told[name] += f": {unmet_part(pool, basis.catalogue.instance_types)}"
    return told


def _launched(name: str, launch: Launch, pods: Sequence[Pod]) -> dict[str, Any]:
    labels = {key: value for key, value in launch.labels(name).items() if key not in _TOLD_OTHERWISE}
    return {
        "name": name,
        "pool": launch.template.name,
        "cheapest_type": launch.instance_type.name,
        "instance_types": [launch.instance_type.name],
        "price": launch.shown_price,
        "price_at_worst": launch.shown_price,
        "monthly_cost": monthly(launch.shown_price),
        "pods": sorted(each.key for each in pods),
        "requests": amount_texts(total(launch.group.overhead, *(requests_of(each) for each in pods))),
        "allocatable": amount_texts(launch.allocatable),
        "requirements": [{"key": key, "operator": "In", "values": [value]} for key, value in labels.items()],
        "min_values_relaxed": False,
    }


def _new(launch: Launch) -> str:
    return f"a new node of NodePool {launch.template.name}"


def _cheapest(purchase: Purchase, well_known: frozenset[str]) -> InstanceType:
    return in_price_and_name_order(purchase.instance_types, purchase.requirements, well_known)[0]


def node_to_buy(purchase: Purchase, well_known: frozenset[str]) -> dict[str, Any]:
    """A node to buy, in JSON's types."""
    told, cheapest = purchase_as_told(purchase), _cheapest(purchase, well_known)
    price: float | None = None
    at_worst: float | None = None
    if cheapest.is_priced:
        price, at_worst = told["price"], cheapest.worst_launch_price(purchase.requirements, well_known)
    return {
        "pool": told["pool"],
        "cheapest_type": cheapest.name,
        "instance_types": told["types"],
        "price": price,
        "price_at_worst": at_worst,
        "monthly_cost": monthly(price),
        "pods": sorted(told["pods"]),
        "requests": amount_texts(told["requests"]),
        "allocatable": amount_texts(cheapest.allocatable),
        "requirements": sorted(told["requirements"], key=lambda each: (each["key"], each["operator"])),
        "min_values_relaxed": purchase.is_lowered,
    }


def monthly(hourly: float | None) -> float | None:
    """What an amount per hour comes to in a month; None if it is not known."""
    return None if hourly is None else hourly * HOURS_PER_MONTH


def sum_if_known(amounts: Iterable[float | None]) -> float | None:
    """The sum; None if one of the amounts is not known."""
    known = list(amounts)
    return None if None in known else sum(amount for amount in known if amount is not None)


def _utilisation(
    basis: PlanBasis, more: Iterable[Requests], bought: Iterable[Requests], devices: tuple[DeviceUse, DeviceUse]
) -> dict[str, Any]:
    """What pods request of what nodes have, now and after the plan.

    Args:
        more: what is requested after the plan besides what the pods on nodes that stay request.
        bought: what pods can use on each new node.
        devices: those for resource claims, now and after the plan.
    """
    staying = [each for each in basis.nodes if not each.is_leaving]
    used = total(*(each.requests for each in staying), *more)
    have = total(*(each.allocatable for each in staying), *bought)
    now = (total(*(each.requests for each in basis.nodes)), total(*(each.allocatable for each in basis.nodes)))
    before, after = devices
    return {"before": _shares(*now) | _device_shares(before), "after": _shares(used, have) | _device_shares(after)}


def _device_shares(devices: DeviceUse) -> dict[str, Any]:
    """The devices that claims hold of those there are, by driver."""
    return {
        name: {"requested": str(devices.allocated.get(name, 0)), "allocatable": str(devices.published.get(name, 0))}
        for name in sorted({*devices.published, *devices.allocated})
    }


def _shares(used: Requests, have: Requests) -> dict[str, Any]:
    devices = sorted(
        name for name in {*used, *have} if is_extended_resource(name) and (used.get(name) or have.get(name))
    )
    return {
        name: {"requested": amount_text(name, used.get(name, 0)), "allocatable": amount_text(name, have.get(name, 0))}
        for name in (*SHOWN, *devices)
    }


def _is_not_tried(pod: Pod) -> bool:
    """Whether the pod waits for a node, but not for one to be bought."""
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
        return f"is nominated to node {pod.status.nominated_node_name}"
    if pod.spec.scheduling_gates:
        return "has scheduling gates"
    return "was not found unschedulable by kube-scheduler yet, so that no node is bought for it"

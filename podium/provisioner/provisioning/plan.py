"""A plan: which nodes to buy, where pods go, and why the others stay.

Owns the values that both planners return, and how many instance types a NodeClaim names. `reports.plan` shows them.

Source: karpenter pkg/controllers/provisioning/scheduling/nodeclaimtemplate.go (ToNodeClaim), v1.15.0.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias

from podium.objects.core import Pod
from podium.objects.requests import Requests
from podium.provisioner.apis.labels import CAPACITY_TYPE, HOSTNAME, INSTANCE_TYPE, SIMULATED
from podium.provisioner.cloudprovider.instance_type_columns import InstanceTypeColumns
from podium.provisioner.cloudprovider.instance_types import NO_PRICE, InstanceType, unmet_min_values
from podium.provisioner.provisioning.candidate_nodes import CandidateNode
from podium.provisioner.provisioning.solve import Results, Solver
from podium.provisioner.provisioning.templates import Template
from podium.provisioner.scheduling.amounts import requests_of, total
from podium.provisioner.scheduling.device_use import NO_DEVICES, DeviceUse
from podium.provisioner.scheduling.refusals import Refusal
from podium.provisioner.scheduling.requirements import Requirement, Requirements

INSTANCE_TYPES_MAX: Final = 600
"""How many instance types a NodeClaim names: the cheapest."""

Rules: TypeAlias = Literal["karpenter", "podium"]
"""Who judges whether a pod fits: Karpenter's simulation, or podium's own plugins."""

_NOT_REQUIRED: Final = frozenset({HOSTNAME, *SIMULATED})


@dataclass(frozen=True, slots=True, eq=False)
class NodePlan:
    """A node to buy.

    Attributes:
        pods: The pods that it is bought for.
        requests: What they request of it, with the pods of DaemonSets.
        requirements: What it must be like.
        instance_types: Any of these will do. They are ordered by price.
        columns: All instance types.
        is_lowered: Whether its instance types have fewer different values than the NodePool's `minValues` demand.
        name: Empty until a provider is to be asked for it.
        candidate: The cheapest way to buy it; None until it is chosen.
        is_pinned: Whether it is bought as the candidate and in no other way.
        plan_id: The plan that it is part of; empty unless a provisioner carries it out.
    """

    template: Template
    pods: tuple[Pod, ...]
    requests: Requests
    requirements: Requirements
    instance_types: tuple[InstanceType, ...]
    columns: InstanceTypeColumns
    is_lowered: bool = False
    name: str = ""
    candidate: CandidateNode | None = None
    is_pinned: bool = False
    plan_id: str = ""

    @classmethod
    def of_candidate(
        cls, name: str, candidate: CandidateNode, pods: tuple[Pod, ...], columns: InstanceTypeColumns
    ) -> NodePlan:
        """Return the plan of a node that is bought in one way only."""
        instance_type = candidate.instance_type
        type_requirement = Requirement.of(INSTANCE_TYPE, "In", (instance_type.name,))
        return cls(
            template=candidate.template,
            pods=pods,
            requests=total(candidate.group.overhead, *map(requests_of, pods)),
            requirements=candidate.requirements.union(candidate.offering.requirements).add(type_requirement),
            instance_types=(instance_type,),
            columns=columns,
            name=name,
            candidate=candidate,
            is_pinned=True,
        )

    @property
    def pool(self) -> str:
        """The NodePool's name."""
        return self.template.name

    @property
    def node(self) -> CandidateNode:
        """The node as it will be, once a candidate is chosen."""
        assert self.candidate is not None
        return self.candidate

    @property
    def text(self) -> str:
        """The node in one line, for people."""
        node = self.node
        cost = "" if node.shown_price is None else f" for {node.shown_price:.4f} per hour"
        place = f"{node.offering.zone}, {node.offering.capacity_type}"
        return f"{node.instance_type.name} ({place}) of NodePool {self.pool}{cost}"

    @property
    def is_priced(self) -> bool:
        """Return True if the first of the instance types has prices."""
        return all(instance_type.is_priced(self.requirements) for instance_type in self.instance_types[:1])

    def price(self, well_known: frozenset[str]) -> float | None:
        """Return the lowest price of the first instance type that can be launched, or None if none can."""
        price = (
            self.instance_types[0].cheapest_price(self.requirements, well_known) if self.instance_types else NO_PRICE
        )
        return None if price == NO_PRICE else price

    def launchable(self, well_known: frozenset[str]) -> NodePlan:
        """Return the same node with only the instance types that can be launched, the cheapest first."""
        prices = [
            (instance_type.cheapest_price(self.requirements, well_known), instance_type)
            for instance_type in self.instance_types
        ]
        launchable = sorted((pair for pair in prices if pair[0] != NO_PRICE), key=lambda pair: pair[0])
        return dataclasses.replace(self, instance_types=tuple(instance_type for _, instance_type in launchable))

    def pinned_labels(self) -> Iterator[tuple[str, str]]:
        """Return the labels that the node is bought with, but for those that no NodeClaim requires."""
        return ((key, value) for key, value in self.node.labels(self.name).items() if key not in _NOT_REQUIRED)

    def node_claim_requirements(self) -> list[dict[str, Any]]:
        """Return the requirements of the NodeClaim that is created."""
        if self.is_pinned:
            return [in_label(key, value) for key, value in self.pinned_labels()]
        claim = node_claim_json(self)
        types = {"values": sorted(claim["types"])}
        return [form | types if form["key"] == INSTANCE_TYPE else form for form in claim["requirements"]]


@dataclass(frozen=True, slots=True, eq=False)
class Unschedulable:
    """A pod that stays, although it was planned for.

    Attributes:
        reason: A sentence, or several joined with `; `.
        by_pool: By NodePool, why no node of it helps.
        causes: By NodePool, what makes the cause where the reason does not say it.
    """

    pod: Pod
    reason: str
    by_pool: Mapping[str, str] = field(default_factory=dict)
    causes: Mapping[str, Callable[[], str]] = field(default_factory=dict)

    @classmethod
    def of(cls, pod: Pod, refusal: Refusal) -> Unschedulable:
        """Return the pod with the solver's refusal."""
        by_pool = {pool: pool_refusal.text() for pool, pool_refusal in refusal.by_pool.items()}
        causes = {pool: pool_refusal.cause for pool, pool_refusal in refusal.by_pool.items()}
        return cls(pod, "; ".join(by_pool.values()) if by_pool else refusal.text(), by_pool, causes)

    def explanations(self) -> dict[str, str]:
        """Return by NodePool why no node of it helps, with the cause. Cost: a look at all instance types."""
        causes = {pool: self.causes[pool]() if pool in self.causes else "" for pool in self.by_pool}
        return {pool: f"{text} ({causes[pool]})" if causes[pool] else text for pool, text in self.by_pool.items()}

    def explained_reason(self) -> str:
        """Return the reason with its causes. Cost: as `explanations`."""
        explanations = self.explanations()
        return "; ".join(explanations.values()) if explanations != self.by_pool else self.reason


@dataclass(frozen=True, slots=True)
class PlannedGang:
    """A gang with members that wait.

    Attributes:
        key: The namespace and name of its PodGroup.
        api: The API group of its PodGroup.
        min_count: How many members must have a node before any of them starts.
        members: How many there are.
        count: How many have a node after the plan, those that run too.
        text: Why it does not start; empty if it does.
    """

    key: str
    api: str
    min_count: int
    members: int
    count: int
    text: str = ""

    @property
    def starts(self) -> bool:
        """True if as many members have a node as the gang needs."""
        return not self.text

    def as_dict(self) -> dict[str, Any]:
        """Return the gang in JSON's types."""
        answer = {
            "gang": self.key,
            "api": self.api,
            "needed": self.min_count,
            "members": self.members,
            "placed": self.count,
            "starts": self.starts,
        }
        return answer | ({"lacks": self.text} if self.text else {})


@dataclass(frozen=True)
class Proof:
    """What is known of the price of a plan.

    Attributes:
        price: Of the plan, per hour, or what takes its place where prices are not known.
        lower_bound: What every purchase costs at least that places as many pods.
        is_cheapest: Whether every purchase that could be better was tried.
        nodes_max: How many nodes the purchases have that were tried; 0 if none were.
        seconds: After how many seconds the time was up; 0 if it was not.
        is_priced: Whether the amounts are prices, and may be shown.
    """

    price: float
    lower_bound: float
    is_cheapest: bool
    nodes_max: int = 0
    seconds: float = 0.0
    is_priced: bool = True

    @property
    def gap(self) -> float:
        """The share of the price that a cheaper plan could save at most."""
        return max(1 - self.lower_bound / self.price, 0.0) if self.price else 0.0

    @property
    def text(self) -> str:
        """The proof in a sentence."""
        if self.is_cheapest:
            among = f" of at most {self.nodes_max} nodes" if self.nodes_max and self.gap else ""
            return f"Proven: no purchase{among} places as many pods for less"
        amount = (
            f"at least {self.lower_bound:,.4f} per hour is needed, "
            if self.is_priced
            else "a cheaper one saves at most "
        )
        start = f"Not proven within {self.seconds:g} s, best so far" if self.seconds else "Not proven"
        return f"{start}: {amount}{self.gap:.1%}" + (" less" if self.is_priced else "")

    def as_dict(self) -> dict[str, Any]:
        """Return the proof in JSON's types."""
        return {
            "proven": self.is_cheapest,
            "lower_bound": self.lower_bound if self.is_priced else None,
            "gap": self.gap,
            "tried_up_to_nodes": self.nodes_max,
            "text": self.text,
        }


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """The nodes to buy, and the places of pods.

    Attributes:
        nodes: The nodes to buy.
        existing: By node that is there or on its way, the pods that go there.
        unschedulable: By pod that stays, why.
        ignored: By pod that is not planned for, why.
        skipped: By NodePool that nothing is bought from, why.
        preempted: The pods on nodes that podium then evicts.
        late: The keys of the pods that have no node before the nodes that are leaving are gone.
        devices: Those for resource claims, before the plan and after it.
        warnings: What is taken for granted, as sentences.
        gangs: Those with members that wait; by podium's rules only.
        proof: How cheap the nodes are among all that could be bought; None unless that was asked.
        solver: It answers why nodes refuse a pod; None if there was nothing to plan, and by podium's rules.
        id: Its name in the log, in Events and in the ConfigMap; empty unless a provisioner carries it out.
    """

    nodes: tuple[NodePlan, ...] = ()
    existing: Mapping[str, tuple[Pod, ...]] = field(default_factory=dict)
    unschedulable: Mapping[str, Unschedulable] = field(default_factory=dict)
    ignored: Mapping[str, str] = field(default_factory=dict)
    skipped: Mapping[str, str] = field(default_factory=dict)
    preempted: tuple[str, ...] = ()
    late: frozenset[str] = frozenset()
    devices: tuple[DeviceUse, DeviceUse] = (NO_DEVICES, NO_DEVICES)
    gangs: tuple[PlannedGang, ...] = ()
    proof: Proof | None = None
    solver: Solver | None = None
    rules: Rules = "karpenter"
    warnings: tuple[str, ...] = ()
    id: str = ""

    def with_id(self, name: str) -> Plan:
        """Return the plan, and its nodes, with this id."""
        nodes = tuple(dataclasses.replace(node, plan_id=name) for node in self.nodes)
        return dataclasses.replace(self, id=name, nodes=nodes)

    @property
    def reasons(self) -> dict[str, str]:
        """By pod that stays, the reason."""
        return {key: stay.reason for key, stay in self.unschedulable.items()}


def plan_of(results: Results, pods: Iterable[Pod], *, lower_min_values: bool) -> Plan:
    """Return the plan that follows from the solver's results: each NodeClaim gets the cheapest of its instance types.

    Args:
        pods: the pods that were to be planned.
        lower_min_values: whether a NodeClaim may have fewer different values than its NodePool demands.
    """
    by_uid = {pod.uid: pod for pod in pods}
    unschedulable = {
        by_uid[uid].key: Unschedulable.of(by_uid[uid], refusal) for uid, refusal in results.refusals.items()
    }
    nodes: list[NodePlan] = []
    for claim in results.claims:
        requirements, template = claim.final_requirements(), claim.template
        # Upstream sends a limited number of types to the provider for a launch; then minValues may no longer hold.
        types = claim.columns.in_price_order(claim.instance_types, requirements)[:INSTANCE_TYPES_MAX]
        unmet = {} if lower_min_values else unmet_min_values(types, requirements)
        if unmet:
            text = _truncation_text(template, unmet)
            unschedulable.update((pod.key, Unschedulable(pod, text)) for pod in claim.pods)
            continue
        is_lowered = template.name in results.lowered_min_values
        pods_of_claim, requests = tuple(claim.pods), claim.final_requests()
        nodes.append(NodePlan(template, pods_of_claim, requests, requirements, types, claim.columns, is_lowered))
    existing = {node.state.name: tuple(node.pods) for node in results.existing if node.pods}
    return Plan(tuple(nodes), existing, unschedulable, skipped=results.skipped)


# ------------------------------------------------------------ the form of Karpenter's recorded answers


def existing_json(plan: Plan) -> dict[str, list[str]]:
    """Return the keys of the pods by node."""
    return {name: [pod.key for pod in pods] for name, pods in plan.existing.items()}


def node_claim_json(node: NodePlan) -> dict[str, Any]:
    """Return the NodeClaim that would be created, and its price."""
    types, columns = node.instance_types, node.columns
    requirements = node.requirements.add(columns.name_requirement(types))
    # The solver may have allowed capacity types in which none of the types can be launched; a claim for them would
    # hang.
    capacity_types = columns.launchable_capacity_types(types, requirements)
    if capacity_types:
        requirements = requirements.add(Requirement(CAPACITY_TYPE, False, capacity_types))
    ordered_types = columns.in_price_order(types, requirements, then_by_name=True)
    document = {
        "pool": node.pool,
        "pods": [pod.key for pod in node.pods],
        "requirements": [
            form for requirement in requirements if requirement.key not in SIMULATED for form in _forms(requirement)
        ],
        "types": [instance_type.name for instance_type in ordered_types],
        "price": columns.cheapest_price(ordered_types[0], requirements),
        "requests": dict(node.requests),
    }
    if node.is_lowered:
        document["minValuesRelaxed"] = True
    return document


def in_label(key: str, value: str) -> dict[str, Any]:
    """Return the requirement that a label has this value, in the API's form."""
    return {"key": key, "operator": "In", "values": [value]}


def unmet_text(labels: Iterable[str]) -> str:
    """Return the sentence that some labels have fewer different values than `minValues` demands."""
    return f"minValues requirement is not met for label(s) (label(s)=[{' '.join(sorted(labels))}])"


def _truncation_text(template: Template, labels: Iterable[str]) -> str:
    return (
        "pod didn’t schedule because NodePool couldn’t meet minValues requirements, validating minValues, "
        f"{unmet_text(labels)} (NodePool={template.name})"
    )


def _forms(requirement: Requirement) -> Iterator[dict[str, Any]]:
    """Yield the requirement in the API's form; one with two bounds takes two, and a bound hides the excluded values."""
    bounds = [("Gte", requirement.gte), ("Lte", requirement.lte)]
    limits: list[tuple[str, Sequence[str] | None]] = [
        (operator, [str(limit)]) for operator, limit in bounds if limit is not None
    ]
    for operator, values in limits or [(requirement.operator, None)]:
        form: dict[str, Any] = {"key": requirement.key, "operator": operator}
        if requirement.key != INSTANCE_TYPE:
            form["values"] = sorted(requirement.values) if values is None else values
        if requirement.min_values is not None:
            form["minValues"] = requirement.min_values
        yield form

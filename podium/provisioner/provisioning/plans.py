"""Plans as they are told: where pods go, which nodes to buy for them, and why others stay.

Owns how many instance types a NodeClaim names, and the form of a plan: that of the recorded answers of Karpenter.

Source: karpenter pkg/controllers/provisioning/scheduling/nodeclaimtemplate.go (ToNodeClaim), v1.15.0.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

from podium.objects.core import Pod
from podium.objects.requests import Requests
from podium.provisioner.apis.labels import CAPACITY_TYPE, INSTANCE_TYPE, SIMULATED
from podium.provisioner.cloudprovider.instance_type_columns import InstanceTypeColumns
from podium.provisioner.cloudprovider.instance_types import (
    NO_PRICE,
    InstanceType,
    unmet_min_values,
)
from podium.provisioner.provisioning.solve import Results
from podium.provisioner.provisioning.templates import Template
from podium.provisioner.scheduling.requirements import Requirement, Requirements

INSTANCE_TYPES_MAX: Final = 600
"""How many instance types a NodeClaim names: the cheapest."""


class BoughtClaim(Protocol):
    """What a node is bought for."""

    @property
    def template(self) -> Template:
        """That of its NodePool."""

    @property
    def pods(self) -> Sequence[Pod]:
        """The pods that are planned onto it."""

    @property
    def columns(self) -> InstanceTypeColumns:
        """All instance types."""

    def final_requests(self) -> Requests:
        """What its pods take, those of DaemonSets too."""


@dataclass(frozen=True, slots=True, eq=False)
class Purchase:
    """A node to buy.

    Attributes:
        requirements: What it must be like.
        instance_types: Any of these, in the order in which they were put by price.
    """

    claim: BoughtClaim
    requirements: Requirements
    instance_types: tuple[InstanceType, ...]
    is_lowered: bool = False

    def price(self, well_known: frozenset[str]) -> float | None:
        """What it costs if the first of the instance types is launched as cheaply as possible; None if it cannot be."""
        price = (
            self.instance_types[0].cheapest_price(self.requirements, well_known) if self.instance_types else NO_PRICE
        )
        return None if price == NO_PRICE else price

    @property
    def is_priced(self) -> bool:
        """Whether the first of the instance types has prices."""
        return all(each.is_priced for each in self.instance_types[:1])

    def launchable(self, well_known: frozenset[str]) -> Purchase:
        """The purchase with only the instance types that can be launched, the cheapest first."""
        prices = [(each.cheapest_price(self.requirements, well_known), each) for each in self.instance_types]
        launched = sorted((each for each in prices if each[0] != NO_PRICE), key=lambda each: each[0])
        return dataclasses.replace(self, instance_types=tuple(each for _, each in launched))


@dataclass(frozen=True, slots=True, eq=False)
class Outcome:
    """What follows from the results of a plan.

    Attributes:
        existing: By node, the pods that were planned onto it.
        errors: By pod, why it stays.
    """

    existing: Mapping[str, tuple[Pod, ...]]
    purchases: tuple[Purchase, ...]
    errors: Mapping[str, str]


def outcome_of(results: Results, pods: Iterable[Pod], *, lower_min_values: bool) -> Outcome:
    """The results with the cheapest instance types of each NodeClaim.

    Args:
        pods: the pods that were to be planned.
        lower_min_values: whether a NodeClaim may have fewer different values than its NodePool wants.
    """
    names = {each.uid: each.key for each in pods}
    errors = {names[uid]: refusal.text() for uid, refusal in results.refusals.items()}
    purchases: list[Purchase] = []
    for claim in results.claims:
        requirements = claim.final_requirements()
        types = claim.columns.in_price_order(claim.instance_types, requirements)[:INSTANCE_TYPES_MAX]
        unmet = {} if lower_min_values else unmet_min_values(types, requirements)
        if unmet:
            text = _truncation_text(claim, unmet)
            errors.update((each.key, text) for each in claim.pods)
        else:
            is_lowered = claim.template.name in results.lowered_min_values
            purchases.append(Purchase(claim, requirements, types, is_lowered))
    existing = {each.state.name: tuple(each.pods) for each in results.existing if each.pods}
    return Outcome(existing, tuple(purchases), errors)


def existing_as_told(outcome: Outcome) -> dict[str, list[str]]:
    """The names of the pods by node."""
    return {name: [pod.key for pod in pods] for name, pods in outcome.existing.items()}


def purchase_as_told(purchase: Purchase) -> dict[str, Any]:
    """The NodeClaim that would be created, and what it costs."""
    claim, types, columns = purchase.claim, purchase.instance_types, purchase.claim.columns
    named = purchase.requirements.add(columns.named(types))
    capacity_types = columns.launchable_capacity_types(types, named)
    if capacity_types:
        named = named.add(Requirement(CAPACITY_TYPE, False, capacity_types))
    ordered = columns.in_price_order(types, named, then_by_name=True)
    told = {
        "pool": claim.template.name,
        "pods": [each.key for each in claim.pods],
        "requirements": [form for each in named if each.key not in SIMULATED for form in _forms(each)],
        "types": [each.name for each in ordered],
        "price": columns.cheapest_price(ordered[0], named),
        "requests": dict(claim.final_requests()),
    }
    if purchase.is_lowered:
        told["minValuesRelaxed"] = True
    return told


def unmet_text(labels: Iterable[str]) -> str:
    """That some labels have fewer different values than wanted."""
    return f"minValues requirement is not met for label(s) (label(s)=[{' '.join(sorted(labels))}])"


def _truncation_text(claim: BoughtClaim, labels: Iterable[str]) -> str:
    return (
        "pod didn’t schedule because NodePool couldn’t meet minValues requirements, validating minValues, "
        f"{unmet_text(labels)} (NodePool={claim.template.name})"
    )


def _forms(requirement: Requirement) -> Iterator[dict[str, Any]]:
    """The requirement in the API's form; one with two bounds takes two, and a bound hides what is excluded."""
    bounds = [("Gte", requirement.gte), ("Lte", requirement.lte)]
    told: list[tuple[str, list[str] | None]] = [
        (operator, [str(bound)]) for operator, bound in bounds if bound is not None
    ]
    for operator, values in told or [(requirement.operator, None)]:
        form: dict[str, Any] = {"key": requirement.key, "operator": operator}
        if requirement.key != INSTANCE_TYPE:
            form["values"] = sorted(requirement.values) if values is None else values
        if requirement.min_values is not None:
            form["minValues"] = requirement.min_values
        yield form

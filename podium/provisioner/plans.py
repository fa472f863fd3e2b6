"""Plans as they are told: where pods go, which nodes to buy for them, and why others stay.

Owns the form of a plan: that of the recorded answers of Karpenter.

Source: karpenter pkg/controllers/provisioning/scheduling/nodeclaimtemplate.go (ToNodeClaim), v1.15.0.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from podium.objects.core import Pod
from podium.provisioner.instance_types import InstanceType, in_price_and_name_order, in_price_order, unmet_min_values
from podium.provisioner.labels import CAPACITY_TYPE, INSTANCE_TYPE
from podium.provisioner.node_claims import PlannedClaim
from podium.provisioner.requirements import Requirement, Requirements
from podium.provisioner.solve import Results
from podium.provisioner.templates import SIMULATED

INSTANCE_TYPES_MAX: Final = 600
"""How many instance types a NodeClaim names: the cheapest."""


def plan_of(
    results: Results, pods: Sequence[Pod], well_known: frozenset[str], *, lower_min_values: bool
) -> dict[str, Any]:
    """The results as a plan: `skipped`, `existing`, `claims` and `errors`.

    Args:
        pods: the pods that were to be planned.
        lower_min_values: whether a NodeClaim may have fewer different values than its NodePool wants.
    """
    names = {each.uid: each.key for each in pods}
    errors = {names[uid]: refusal.text() for uid, refusal in results.refusals.items()}
    claims: list[dict[str, Any]] = []
    for claim in results.claims:
        requirements = claim.final_requirements()
        types = in_price_order(claim.instance_types, requirements, well_known)[:INSTANCE_TYPES_MAX]
        unmet = {} if lower_min_values else unmet_min_values(types, requirements)
        if unmet:
            text = _truncation_text(claim, sorted(unmet))
            errors.update((each.key, text) for each in claim.pods)
        else:
            told = _claim(claim, requirements, types, well_known)
            if claim.template.name in results.lowered_min_values:
                told["minValuesRelaxed"] = True
            claims.append(told)
    existing = {each.state.name: [pod.key for pod in each.pods] for each in results.existing if each.pods}
    return {"skipped": dict(results.skipped), "existing": existing, "claims": claims, "errors": errors}


def _truncation_text(claim: PlannedClaim, labels: Sequence[str]) -> str:
    return (
        "pod didn’t schedule because NodePool couldn’t meet minValues requirements, validating minValues, "
        f"minValues requirement is not met for label(s) (label(s)=[{' '.join(labels)}]) "
        f"(NodePool={claim.template.name})"
    )


def _claim(
    claim: PlannedClaim, requirements: Requirements, types: list[InstanceType], well_known: frozenset[str]
) -> dict[str, Any]:
    named = requirements.add(Requirement(INSTANCE_TYPE, False, frozenset(each.name for each in types)))
    capacity_types = {
        offering.capacity_type
        for each in types
        for offering in each.offerings
        if offering.is_launchable and named.is_compatible(offering.requirements, well_known)
    }
    if capacity_types:
        named = named.add(Requirement(CAPACITY_TYPE, False, frozenset(capacity_types)))
    ordered = in_price_and_name_order(types, named, well_known)
    return {
        "pool": claim.template.name,
        "pods": [each.key for each in claim.pods],
        "requirements": [form for each in named if each.key not in SIMULATED for form in _forms(each)],
        "types": [each.name for each in ordered],
        "price": ordered[0].cheapest_price(named, well_known),
        "requests": dict(claim.final_requests()),
    }


def _forms(requirement: Requirement) -> Iterator[dict[str, Any]]:
    """The requirement in the API's form; one with two bounds takes two, and a bound hides what is excluded."""
    bounds = [("Gte", requirement.gte), ("Lte", requirement.lte)]
    told = [(operator, [str(bound)]) for operator, bound in bounds if bound is not None]
    for operator, values in told or [(requirement.operator, sorted(requirement.values))]:
        form: dict[str, Any] = {"key": requirement.key, "operator": operator}
        if requirement.key != INSTANCE_TYPE:
            form["values"] = values
        if requirement.min_values is not None:
            form["minValues"] = requirement.min_values
        yield form

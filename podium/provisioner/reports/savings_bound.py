"""The most that a consolidation could save, whatever is searched: the linear relaxation of keeping and buying nodes."""

from __future__ import annotations

from podium.provisioner.disruption.disruption_state import DisruptionState
from podium.provisioner.planners.price_bound import price_bound
from podium.provisioner.scheduling.amounts import less, requests_of, total
from podium.provisioner.state.costs import sum_in_order


def savings_bound(state: DisruptionState) -> float:
    """Return the most that any commands could save in an hour, budgets aside.

    All candidates may go. What their pods request beyond what is free on the other nodes is bought in fractions: of the
    candidates themselves at what they cost, and of the instance types at their lowest price.
    """
    candidates = state.candidates
    names = {candidate.name for candidate in candidates}
    staying_nodes = [node for node in state.basis.nodes if node.name not in names and not node.is_leaving]
    requests = total(*(requests_of(pod) for candidate in candidates for pod in candidate.pods))
    # A node over its capacity has nothing free, and takes nothing from others.
    free = total(*({name: max(amount, 0) for name, amount in node.available.items()} for node in staying_nodes))
    # Any offering of a group will do, so the cheapest counts.
    offers = [
        (min(offering.price for offering in group.offerings), group.allocatable)
        for instance_type in state.basis.catalogue.instance_types
        for group in instance_type.groups
        if group.offerings
    ]
    offers += [(candidate.price, candidate.state.allocatable) for candidate in candidates]
    needed_price = price_bound([price for price, _ in offers], [room for _, room in offers], less(requests, free))
    return sum_in_order(candidate.price for candidate in candidates) - needed_price

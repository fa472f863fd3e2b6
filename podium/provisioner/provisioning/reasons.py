"""Reasons in two wordings: Karpenter's, which recorded answers have, and podium's own.

Owns the value, and podium's words for labels that a pod demands. Plans by Karpenter's rules give its sentences, plans
by podium's own rules give podium's.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from types import MappingProxyType
from typing import Final, Self

from podium.provisioner.scheduling.requirements import Requirement, Requirements


class Reason(str):
    """Karpenter's sentence, as a text; `own` says the same in podium's words."""

    # A str, so that recorded answers compare with it and every format prints it without knowing of the second wording.
    __slots__ = ("own",)
    own: str

    def __new__(cls, karpenters: str, own: str) -> Self:
        """Take both wordings."""
        reason = super().__new__(cls, karpenters)
        reason.own = own
        return reason


_WHY_NODES_GO: Final[Mapping[str, str]] = MappingProxyType(
    {"Underutilized": "Pods fit elsewhere", "Drifted": "Differs from its NodePool"}
)


def removal_reason(reason: str) -> Reason:
    """Return Karpenter's reason why a node goes, in both wordings."""
    return Reason(reason, _WHY_NODES_GO.get(reason, reason))


def in_own_words(text: str) -> str:
    """Give podium's wording of a reason, and any other text as it is."""
    return text.own if isinstance(text, Reason) else text


def in_karpenters_words(text: str) -> str:
    """Give Karpenter's wording of a reason, and any other text as it is: a plain text, which every format takes."""
    return str(text)


def unmet_demands(offers: Requirements, demands: Requirements, allow_undefined: AbstractSet[str]) -> Iterator[str]:
    """Yield the reasons why nodes like these do not suit a pod: a sentence for each label, in order of name.

    Args:
        offers: what the labels of the nodes are.
        demands: what the pod demands of them.
        allow_undefined: as in `Requirements.is_compatible`.
    """
    for demand in sorted(demands, key=lambda demand: demand.key):
        if demand.key not in offers:
            if demand.key not in allow_undefined and not demand.admits_absence:
                yield f"the pod demands {_demand_text(demand)}, and its nodes do not have that label"
            continue
        offer = offers.get(demand.key)
        if not offer.has_intersection(demand) and not (offer.admits_absence and demand.admits_absence):
            yield f"the pod demands {_demand_text(demand)}, and its nodes have {_demand_text(offer)}"


def demands_text(demands: Requirements) -> str:
    """Return all that is demanded, in order of the labels' names."""
    return ", ".join(_demand_text(demand) for demand in sorted(demands, key=lambda demand: demand.key))


def _demand_text(demand: Requirement) -> str:
    """Return the demand as label selectors are written."""
    values = ", ".join(sorted(demand.values))
    parts = [
        f"{demand.key} {sign} {limit}" for sign, limit in ((">=", demand.gte), ("<=", demand.lte)) if limit is not None
    ]
    if values:
        parts.append(f"{demand.key} {'notin' if demand.complement else 'in'} ({values})")
    return ", ".join(parts) or (demand.key if demand.complement else f"!{demand.key}")

"""The seam between plans and whatever makes machines: a provider that the loops ask for nodes."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from typing import Protocol

from podium.lib.error_text import UserFacingError
from podium.provisioner.apis.objects import ProvidedNode
from podium.provisioner.planners.planner import Removal
from podium.provisioner.provisioning.plan import NodePlan


class ProviderUnusableError(UserFacingError):
    """The cluster lacks what the provider needs; the message says what."""


class Provider(Protocol):
    """Makes nodes and removes them. Every method may be repeated: what has happened already happens no second time."""

    async def create(self, node: NodePlan) -> bool:
        """Buy the node under its name, unless it is there already, and return whether there will be such a node.

        Raises:
            ApiError: it may or may not be bought; `list` tells.
        """
        ...

    async def delete(self, node: ProvidedNode, removal: Removal) -> None:
        """Begin to remove a node of the plan; its pods are evicted first, as PodDisruptionBudgets allow.

        Raises:
            ApiError: it may or may not have begun; the node itself tells.
        """
        ...

    async def list(self) -> AbstractSet[str]:
        """Return the names under which nodes are bought now, as the API server says at this moment.

        Raises:
            ApiError: the API server does not answer.
        """
        ...

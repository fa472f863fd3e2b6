"""Plugins that can give a pod several things on one node, such as one set of devices or another."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Hashable

from podium.framework.contract.cycle_state import CycleState
from podium.framework.contract.plugin import Plugin


class ChoosingPlugin(Plugin):
    """Offers several ways to place a pod on a node, if the state of the attempt has a `ThoroughSearch`."""

    @abstractmethod
    def ways(self, state: CycleState, node_name: str) -> int:
        """Return the number of ways to place the pod on a node that passed Filter; 1 without a choice."""

    @abstractmethod
    def choose(self, state: CycleState, node_name: str, way: int) -> Hashable:
        """Choose one of the ways, counted from 0, for the Reserve that follows.

        Returns:
            What it takes away from other pods: equal values leave equal choices to them.
        """

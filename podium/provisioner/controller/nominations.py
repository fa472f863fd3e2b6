"""Nodes that pods are about to be placed on, or that were bought and are not seen yet."""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Set as AbstractSet

from podium.lib.clock import Clock


class Nominations:
    """Nodes that disruption leaves alone for a while, because pods were planned onto them.

    Args:
        lasts_s: for how long.

    Invariant: before the first plan of this process nothing is known: earlier nominations went with their process.

    Source: karpenter pkg/controllers/state/statenode.go (Nominate, nominationWindow), v1.15.0.
    """

    def __init__(self, clock: Clock, lasts_s: float) -> None:
        self._clock = clock
        self._lasts_s = lasts_s
        self._until_s: dict[str, float] = {}
        self.is_known = False

    def add(self, nodes: Iterable[str]) -> None:
        """Nominate nodes onto which pods are planned now."""
        until_s = self._clock.monotonic() + self._lasts_s
        self._until_s.update(dict.fromkeys(nodes, until_s))

    def know(self) -> None:
        """Note that the waiting pods have been planned once, or that there were none."""
        self.is_known = True

    def current(self) -> AbstractSet[str]:
        """Return the nodes that are to be left alone."""
        # Monotonic: a clock that is set must not let a node go while its pods are on their way.
        now_s = self._clock.monotonic()
        self._until_s = {name: until_s for name, until_s in self._until_s.items() if until_s > now_s}
        return self._until_s.keys()

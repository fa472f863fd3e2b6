"""Node claims: which nodes a replica may run on, by row.

Owns compiled node claims: selector, required affinity and tolerations. Each is matched once against every distinct
label value and set of taints, and kept for the next question. Never looks at resources.

Cost: one gather per label that the claim names and one for taints.
Source: karmada pkg/estimator/server/nodes/filter.go, v1.18.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

import msgspec
import numpy as np

from podium.cluster import Rows, Snapshot
from podium.cluster.matching.lookup import Lookup
from podium.cluster.matching.node_selectors import RowSelector
from podium.cluster.matching.taints import CORDONED, is_repelled
from podium.cluster.snapshot import BoolArray
from podium.estimator.requirements import NodeClaim
from podium.objects.core import Taint
from podium.objects.selectors import compile_node_selector
from podium.objects.tolerations import is_tolerated

_CLAIMS_MAX: Final = 1024
_NO_CLAIM: Final = NodeClaim()

_encode = msgspec.msgpack.Encoder(order="deterministic").encode


class CompiledClaim:
    """One compiled claim. A term that cannot be parsed, or is empty, matches no node."""

    def __init__(self, claim: NodeClaim) -> None:
        affinity = claim.hard_node_affinity
        matcher = None if affinity is None else compile_node_selector(affinity)
        self._selector = RowSelector(claim.node_selector, matcher)
        self._tolerates_cordon = is_tolerated(claim.tolerations, CORDONED)
        self._repelled: Lookup[tuple[Taint, ...], np.bool_] = Lookup(
            lambda taints: is_repelled(claim.tolerations, taints), np.bool_
        )

    def matching_nodes(self, snapshot: Snapshot, rows: Rows) -> BoolArray:
        """Return which rows match the selector and the affinity. Shape: one entry per row of `rows`."""
        return self._selector.matching(snapshot, rows)

    def tolerated_nodes(self, snapshot: Snapshot, rows: Rows) -> BoolArray:
        """Return which rows have only taints that the replica tolerates, the one of cordoned nodes included.

        Shape: one entry per row of `rows`.
        """
        tolerated_nodes: BoolArray = ~self._repelled.over(snapshot.taint_sets).take(snapshot.taint_set.take(rows))
        return tolerated_nodes if self._tolerates_cordon else tolerated_nodes & ~snapshot.unschedulable.take(rows)

    def allowed_nodes(self, snapshot: Snapshot, rows: Rows) -> BoolArray:
        """Return which rows the replica may run on. Shape: one entry per row of `rows`."""
        tolerated_nodes = self.tolerated_nodes(snapshot, rows)
        return tolerated_nodes if self._selector.everything else tolerated_nodes & self.matching_nodes(snapshot, rows)


class Claims:
    """A cache of the most recently used compiled claims, by content."""

    def __init__(self) -> None:
        self._compiled: OrderedDict[bytes, CompiledClaim] = OrderedDict()

    def compile_claim(self, claim: NodeClaim | None) -> CompiledClaim:
        """Compile a claim, or return the cached one. None has no selector and no tolerations."""
        claim = claim or _NO_CLAIM
        key = _encode(claim)
        compiled_claim = self._compiled.get(key)
        if compiled_claim is None:
            compiled_claim = self._compiled[key] = CompiledClaim(claim)
            if len(self._compiled) > _CLAIMS_MAX:
                self._compiled.popitem(last=False)
        else:
            self._compiled.move_to_end(key)
        return compiled_claim

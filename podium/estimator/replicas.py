"""Counts the equal replicas that fit.

Source: karmada pkg/estimator/server/framework/plugins/noderesource/noderesource.go, v1.18.
"""

from __future__ import annotations

from collections.abc import Sequence

from podium.cluster import IntArray
from podium.estimator.amounts import demands
from podium.estimator.component_sets import without_assumed
from podium.estimator.free_capacity import FreeCapacity, fitting
from podium.estimator.requirements import AssumedWorkload, Requirements, saturate


def replicas_by_node(capacity: FreeCapacity, requirements: Requirements | None) -> IntArray:
    """Return how many replicas fit on each node. Without requirements a replica uses only a pod slot on any node.

    Raises:
        FieldError: an amount cannot be read.

    Shape: one entry per node, in the estimator's node order.
    """
    if requirements is None:
        return fitting(capacity, (), None)
    return fitting(capacity, demands(requirements.resource_request), requirements.node_claim)


def max_available_replicas(
    capacity: FreeCapacity, requirements: Requirements | None, assumed_workloads: Sequence[AssumedWorkload] = ()
) -> int:
    """Return how many replicas fit beside the assumed workloads.

    Raises:
        FieldError: an amount cannot be read.
    """
    return saturate(
        int(
            replicas_by_node(
                without_assumed(capacity, assumed_workloads) if assumed_workloads else capacity, requirements
            ).sum()
        )
    )

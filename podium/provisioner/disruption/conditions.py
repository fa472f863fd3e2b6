"""The conditions of NodeClaims by which nodes are disrupted, as Karpenter would set them now.

Owns when a node may be consolidated, and when it has drifted from its NodePool. Reads no clock, and never changes a
NodeClaim.

Source: karpenter pkg/controllers/nodeclaim/disruption and pkg/utils/disruption/disruption.go, v1.15.0.
Differs: an instance type that is gone is noticed at once, and a provider of its own finds no drift.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from podium.objects.times import parse_time
from podium.provisioner.apis.dialects import RESERVATION_IDS
from podium.provisioner.apis.labels import CAPACITY_TYPE, INSTANCE_TYPE, NODE_CLASS, NODE_POOL, ON_DEMAND, RESERVED
from podium.provisioner.apis.objects import ClusterObjects, NodeClaim, NodePool, true_condition
from podium.provisioner.cloudprovider.catalogue import Catalogue
from podium.provisioner.cloudprovider.instance_types import InstanceType
from podium.provisioner.provisioning.templates import is_of_provider
from podium.provisioner.provisioning.topology import required_of
from podium.provisioner.scheduling.requirements import Requirement, Requirements

HASH: Final = "karpenter.sh/nodepool-hash"
HASH_VERSION: Final = "karpenter.sh/nodepool-hash-version"
INSTANCE_TYPE_CHECKED_AFTER_S: Final = 3600.0
"""How old a NodeClaim must be before its instance type is looked for in the catalogue."""

CONSOLIDATABLE: Final = "Consolidatable"
_DRIFTED: Final = "Drifted"
_INITIALIZED: Final = "Initialized"


@dataclass(frozen=True, slots=True)
class ClaimConditions:
    """The conditions of a NodeClaim.

    Attributes:
        is_consolidatable: Whether its node may be consolidated.
        drifted: In what it differs from its NodePool; empty if it does not.
        drifted_since_s: Since when, in seconds since the epoch.
    """

    is_consolidatable: bool = False
    drifted: str = ""
    drifted_since_s: float = 0.0


def conditions_of(
    claims: Iterable[NodeClaim],
    node_pools: Iterable[NodePool],
    catalogue: Catalogue,
    now_s: float,
    node_class: tuple[str, str] | None = NODE_CLASS,
) -> Mapping[str, ClaimConditions]:
    """Return the conditions of NodeClaims, by name.

    Claims that are being deleted, or that have no NodePool, keep what they say.

    Args:
        now_s: the time, in seconds since the epoch.
        node_class: group and kind of the provider's node class; None for any provider's.
    """
    pools = {pool.metadata.name: pool for pool in node_pools}
    return {
        claim.metadata.name: _conditions(claim, pools.get(claim.metadata.labels.get(NODE_POOL, "")), catalogue, now_s)
        if is_of_provider(claim.spec.node_class_ref, node_class)
        else _conditions_kept(claim)
        for claim in claims
    }


def consolidatable_in_s(claim: NodeClaim, pool: NodePool, now_s: float) -> float | None:
    """Return in how many seconds the condition Consolidatable becomes true: 0 if it is, None if only a change helps.

    Args:
        now_s: the time, in seconds since the epoch.
    """
    duration_s = pool.spec.disruption.consolidate_after_s
    initialized = true_condition(claim.status.conditions, _INITIALIZED)
    if pool.spec.replicas is not None or duration_s is None or initialized is None:
        return None
    quiet_since = claim.status.last_pod_event_time or initialized.last_transition_time
    return 0.0 if quiet_since is None else max(0.0, duration_s - (now_s - parse_time(quiet_since)))


def next_consolidatable_s(objects: ClusterObjects, now_s: float) -> float | None:
    """Return in how many seconds the next NodeClaim becomes consolidatable; None if none is about to.

    Args:
        now_s: the time, in seconds since the epoch.
    """
    pools = {pool.metadata.name: pool for pool in objects.node_pools}
    known_claims = ((claim, pools.get(claim.metadata.labels.get(NODE_POOL, ""))) for claim in objects.node_claims)
    times = (consolidatable_in_s(claim, pool, now_s) for claim, pool in known_claims if pool is not None)
    return min((time_s for time_s in times if time_s), default=None)


def is_under_consolidate_after(claim: NodeClaim, pool: NodePool, now_s: float) -> bool:
    """Return True if pods arrived on the node, or left it, less than the NodePool's `consolidateAfter` ago."""
    duration_s = pool.spec.disruption.consolidate_after_s
    initialized = true_condition(claim.status.conditions, _INITIALIZED)
    if not duration_s or initialized is None:
        return False
    # Before the first pod, the time counts from when pods could have come.
    quiet_since = claim.status.last_pod_event_time or initialized.last_transition_time
    return quiet_since is not None and now_s - parse_time(quiet_since) < duration_s


def _conditions(claim: NodeClaim, pool: NodePool | None, catalogue: Catalogue, now_s: float) -> ClaimConditions:
    kept_conditions = _conditions_kept(claim)
    is_leaving = claim.metadata.deletion_timestamp is not None
    if pool is None or is_leaving:
        return kept_conditions
    drifted = _drift_reason(claim, pool, catalogue, now_s)
    return ClaimConditions(
        # The controller leaves the condition of static NodePools alone.
        kept_conditions.is_consolidatable if pool.spec.replicas is not None else _is_consolidatable(claim, pool, now_s),
        drifted,
        # The transition time stays while the reason changes, and with it the node's turn among those that have drifted.
        kept_conditions.drifted_since_s if kept_conditions.drifted else now_s,
    )


def _conditions_kept(claim: NodeClaim) -> ClaimConditions:
    drifted = true_condition(claim.status.conditions, _DRIFTED)
    is_consolidatable = true_condition(claim.status.conditions, CONSOLIDATABLE) is not None
    if drifted is None:
        return ClaimConditions(is_consolidatable)
    since_s = parse_time(drifted.last_transition_time) if drifted.last_transition_time else 0.0
    return ClaimConditions(is_consolidatable, drifted.reason or _DRIFTED, since_s)


def _is_consolidatable(claim: NodeClaim, pool: NodePool, now_s: float) -> bool:
    return (
        pool.spec.disruption.consolidate_after_s is not None
        and true_condition(claim.status.conditions, _INITIALIZED) is not None
        and not is_under_consolidate_after(claim, pool, now_s)
    )


# ---------------------------------------------------------------- drift


def _drift_reason(claim: NodeClaim, pool: NodePool, catalogue: Catalogue, now_s: float) -> str:
    # Before the launch the labels are only what was asked for, so they say nothing about drift.
    if true_condition(claim.status.conditions, "Launched") is None:
        return ""
    if _hash_differs(claim, pool):
        return "NodePoolDrifted"
    labels = Requirements.of_labels(claim.metadata.labels)
    if not labels.is_compatible(required_of(pool)):
        return "RequirementsDrifted"
    creation_time = claim.metadata.creation_timestamp
    age_s = now_s - (parse_time(creation_time) if creation_time else 0.0)
    # Upstream looks up the type only of NodeClaims that are an hour old: what was just launched was on offer.
    if age_s > INSTANCE_TYPE_CHECKED_AFTER_S and not _is_offered(claim, labels, catalogue):
        return "InstanceTypeNotFound"
    return ""


def _hash_differs(claim: NodeClaim, pool: NodePool) -> bool:
    """Return True if the NodePool has changed. Hashes of different versions cannot be compared."""
    claim_annotations, pool_hashes = claim.metadata.annotations, pool.metadata.annotations
    if not {HASH, HASH_VERSION} <= claim_annotations.keys() & pool_hashes.keys():
        return False
    return claim_annotations[HASH_VERSION] == pool_hashes[HASH_VERSION] and claim_annotations[HASH] != pool_hashes[HASH]


def _is_offered(claim: NodeClaim, labels: Requirements, catalogue: Catalogue) -> bool:
    """Return True if the catalogue still has the NodeClaim's instance type in its zone, available or not."""
    name = claim.metadata.labels.get(INSTANCE_TYPE, "")
    instance_type = first_named(catalogue.instance_types, name)
    if instance_type is None:
        return False
    if claim.metadata.labels.get(CAPACITY_TYPE) == RESERVED:
        # A node may go on as on-demand once its reservation ends, before its label tells so.
        requirements = (
            requirement for requirement in labels if requirement.key not in (CAPACITY_TYPE, *RESERVATION_IDS)
        )
        labels = Requirements(requirements).add(Requirement(CAPACITY_TYPE, False, frozenset((RESERVED, ON_DEMAND))))
    well_known = catalogue.well_known.union(RESERVATION_IDS)
    return any(labels.is_compatible(offering.requirements, well_known) for offering in instance_type.offerings)


def first_named(instance_types: Iterable[InstanceType], name: str) -> InstanceType | None:
    """Return the first instance type of this name."""
    return next((instance_type for instance_type in instance_types if instance_type.name == name), None)

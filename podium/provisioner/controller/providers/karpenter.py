"""The provider that writes NodeClaims: a Karpenter in the cluster launches and removes the machines.

Owns the form of a NodeClaim. Only for clusters whose Karpenter does not plan by itself.

Source: karpenter pkg/controllers/provisioning/scheduling/nodeclaimtemplate.go (ToNodeClaim), v1.15.0.
"""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from typing import Any

import msgspec

from podium.binder import ApiClient
from podium.client.listing import all_objects
from podium.client.session import ApiSession
from podium.lib.log import get_logger
from podium.objects.api_errors import AlreadyExists, NotFound
from podium.objects.meta import ObjectMeta
from podium.provisioner.apis.labels import NODE_POOL, PLANNED_PODS
from podium.provisioner.apis.objects import NodeClaim, ProvidedNode
from podium.provisioner.controller.provider import ProviderUnusableError
from podium.provisioner.controller.watched import WatchedCluster
from podium.provisioner.disruption.conditions import HASH, HASH_VERSION
from podium.provisioner.planners.planner import Removal
from podium.provisioner.provisioning.plan import NodePlan
from podium.provisioner.scheduling.amounts import quantities
from podium.provisioner.state.manifests import NODE_CLAIMS

log = get_logger("provisioner")


async def demand_node_claims(session: ApiSession) -> None:
    """Check that the API server serves NodeClaims.

    Raises:
        ProviderUnusableError: it does not.
        ApiError: it cannot be asked.
    """
    try:
        await session.request("GET", f"{NODE_CLAIMS.path}?limit=1")
    except NotFound:
        raise ProviderUnusableError(
            "--provider karpenter writes NodeClaims, and this cluster has no nodeclaims.karpenter.sh: install "
            "Karpenter's CustomResourceDefinitions, or choose another provider"
        ) from None


class KarpenterProvider:
    """Implements `podium.provisioner.controller.provider.Provider`."""

    def __init__(self, client: ApiClient, session: ApiSession, cluster: WatchedCluster) -> None:
        self._client = client
        self._session = session
        self._watched = cluster

    async def create(self, node: NodePlan) -> bool:
        """Create the NodeClaim."""
        item = NodeClaim(metadata=ObjectMeta(name=node.name))
        try:
            await self._client.create(NODE_CLAIMS, item, node_claim(node))
        except AlreadyExists:
            claim = await self._client.read(NODE_CLAIMS, item)
            # A claim that is going cannot be this node; the next plan chooses another name.
            if claim.metadata.deletion_timestamp is not None:
                raise
            log.info("NodeClaim already exists", node_claim=node.name)
        return True

    async def delete(self, node: ProvidedNode, removal: Removal) -> None:
        """Delete the node's NodeClaim: Karpenter drains the node and ends the machine."""
        machine = node.spec.provider_id
        for claim in self._watched.node_claims():
            # Without a machine's name a node belongs to no NodeClaim, and certainly not to all that have none yet.
            if machine and claim.status.provider_id == machine and claim.metadata.deletion_timestamp is None:
                log.info(
                    "Removing NodeClaim",
                    node_claim=claim.metadata.name,
                    node=node.name,
                    plan=removal.id,
                    reason=removal.reason,
                )
                await self._client.delete(NODE_CLAIMS, claim)

    async def list(self) -> AbstractSet[str]:
        """Return the names of the NodeClaims."""
        claims = await all_objects(self._session, NODE_CLAIMS, may_be_absent=False)
        return {claim["metadata"]["name"] for claim in claims}


def node_claim(node: NodePlan) -> Mapping[str, Any]:
    """Return the NodeClaim as it is created."""
    pool = node.template.pool
    template, spec = pool.spec.template, pool.spec.template.spec
    pool_annotations = pool.metadata.annotations
    # Without the NodePool's hash, Karpenter could not see later that the NodePool has changed.
    hashes = {key: pool_annotations[key] for key in (HASH, HASH_VERSION) if key in pool_annotations}
    claim_spec: dict[str, Any] = {
        "requirements": node.node_claim_requirements(),
        "resources": {"requests": quantities(node.requests)},
        "taints": msgspec.to_builtins(spec.taints),
        "startupTaints": msgspec.to_builtins(spec.startup_taints),
        "nodeClassRef": msgspec.to_builtins(spec.node_class_ref),
    }
    times = {"terminationGracePeriod": spec.termination_grace_period, "expireAfter": spec.expire_after}
    claim_spec |= {key: value for key, value in times.items() if value is not None}
    # As Karpenter's own claims: they go with their NodePool.
    owner = {
        "apiVersion": NODE_CLAIMS.api_version,
        "kind": "NodePool",
        "name": node.pool,
        "uid": pool.metadata.uid,
        "blockOwnerDeletion": True,
    }
    return {
        "apiVersion": NODE_CLAIMS.api_version,
        "kind": NODE_CLAIMS.kind,
        "metadata": {
            "name": node.name,
            "labels": {**template.metadata.labels, NODE_POOL: node.pool},
            "annotations": {
                **template.metadata.annotations,
                **hashes,
                # Until the machine is there no state says for whom it was bought; the next process has to know, too.
                PLANNED_PODS: ",".join(pod.uid for pod in node.pods),
            },
            "ownerReferences": [owner] if pool.metadata.uid else [],
        },
        "spec": {key: value for key, value in claim_spec.items() if value not in ([], (), {})},
    }

"""Prepares the pod in question as a pending one, and finds the node on which it would be placed."""

from __future__ import annotations

from podium.engine.cluster import Cluster
from podium.engine.cluster_objects import unbound
from podium.engine.placing import Engine
from podium.engine.store import ObjectStore
from podium.framework.cycle.scoring import choose, score_nodes
from podium.framework.cycle.search import filter_all
from podium.framework.profile.runtime import Framework
from podium.objects.claims import ResourceClaim
from podium.objects.core import Pod
from podium.objects.resource_types import RESOURCE_CLAIMS


def as_pending(cluster: Cluster, pod: Pod) -> tuple[Cluster, Pod]:
    """Return a pod that counts on a node as a pending one, and the cluster without it; return others unchanged."""
    if cluster.engine.cache.pod(pod.uid) is None:
        return cluster, pod
    world = cluster.fork()
    world.remove("Pod", pod.metadata.name, pod.metadata.namespace)
    # The pod's own devices are free for it, otherwise it would seem to be in its own way.
    for claim in devices_claimed(world.store, pod):
        world.put(RESOURCE_CLAIMS, claim.released_by(pod.uid))
    return world, unbound(pod)


def devices_claimed(store: ObjectStore, pod: Pod) -> list[ResourceClaim]:
    """Return the claims to devices that the pod uses, named in its spec or created for it."""
    names = [status.resource_claim_name for status in pod.status.resource_claim_statuses]
    names += [use.resource_claim_name for use in pod.spec.resource_claims]
    claims = (store.get(RESOURCE_CLAIMS, f"{pod.metadata.namespace}/{name}") for name in names if name)
    return [claim for claim in claims if claim is not None]


def best_node(engine: Engine, framework: Framework, pod: Pod) -> str | None:
    """Return the feasible node with the best score; None if no node is feasible.

    Raises:
        ScheduleError: a plugin failed.
    """
    cycle = engine.cycle(framework, pod)
    if not len(cycle.snapshot):
        return None
    rows = filter_all(cycle).rows
    if not len(rows):
        return None
    # As kube-scheduler, which does not score a single feasible node.
    if len(rows) == 1:
        return cycle.snapshot.name(int(rows[0]))
    return cycle.snapshot.name(int(rows[choose(score_nodes(cycle, rows).total)]))

"""Whether what `podium plan --rules podium` says of a cluster is what podium's daemon then does."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from podium.engine.cluster import Cluster
from podium.engine.files import LocatedManifest
from podium.provisioner.disruption.sandbox_nodes import manifest_of
from podium.provisioner.planners.placed_plans import plan_with_podium
from podium.provisioner.provisioning.plan import NodePlan, Plan
from podium.provisioner.provisioning.plan_basis import PlanBasis
from podium.provisioner.reports.cases import read_settings
from podium.provisioner.state.manifests import read_cluster
from tests.manifests import Json
from tests.provisioned.clusters import PlannedCluster, daemon_pod, planned_cluster
from tests.provisioned.sandboxed import bound_pods
from tests.virtual_time import START_S


@dataclass(slots=True)
class CheckedPlan:
    """One case.

    Attributes:
        faults: What the plan said that did not hold.
    """

    seed: int
    bought: int = 0
    promised: int = 0
    staying: int = 0
    preempted: int = 0
    faults: list[str] = field(default_factory=list)


def check_plan(seed: int) -> CheckedPlan:
    """Plan a random cluster, make the nodes of the plan, and let podium bind."""
    cluster = planned_cluster(seed)
    plan = plan_for(cluster)
    nodes = plan.nodes
    waiting = set(cluster.waiting)
    pod_lists = (*plan.existing.values(), *(node.pods for node in nodes))
    promised = {pod.metadata.name for pods in pod_lists for pod in pods}
    staying = {key.rpartition("/")[2] for key in plan.unschedulable}
    checked = CheckedPlan(seed, len(nodes), len(promised), len(staying), len(plan.preempted))
    names_after = _bound_names(cluster, nodes, seed)
    bound_names = names_after & waiting
    if missing := promised - bound_names:
        checked.faults.append(f"not bound: {_list(missing)}")
    if surplus := bound_names - promised:
        checked.faults.append(f"bound, although the plan does not say so: {_list(surplus)}")
    if unmentioned := waiting - promised - staying:
        checked.faults.append(f"not told of: {_list(unmentioned)}")
    for left_out in nodes:
        other_nodes = [node for node in nodes if node is not left_out]
        # A node may also be what keeps pods that run from being preempted.
        if names_after <= _bound_names(cluster, other_nodes, seed):
            checked.faults.append(f"can be left out: {left_out.text}")
    return checked


def plan_for(cluster: PlannedCluster) -> Plan:
    """The plan. Its nodes keep their names when they are made: among equally good nodes podium goes by their order."""
    manifests = [*cluster.objects, *cluster.pools]
    objects = read_cluster([LocatedManifest(manifest, "cluster") for manifest in manifests])
    basis = PlanBasis(objects, cluster.catalogue, read_settings({}))
    return plan_with_podium(basis, Cluster.load(cluster.objects), START_S)


def _bound_names(cluster: PlannedCluster, nodes: Iterable[NodePlan], seed: int) -> set[str]:
    """The names of the pods that have a node once podium has these nodes, but for the DaemonSets' pods on them."""
    daemons = [manifest for manifest in cluster.objects if manifest["kind"] == "DaemonSet"]
    purchases: list[Json] = []
    for node in nodes:
        manifest: Mapping[str, object] = manifest_of(node, START_S)
        purchases += [dict(manifest), *(daemon_pod(daemon, node.name) for daemon in daemons)]
    own = {manifest["metadata"]["name"] for manifest in cluster.objects if manifest["kind"] == "Pod"}
    return own & bound_pods([*cluster.objects, *purchases], seed).keys()


def _list(names: Collection[str]) -> str:
    return ", ".join(sorted(names))

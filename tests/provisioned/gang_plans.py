"""Whether a plan for gangs is the cheapest, buys nothing in vain, and binds just the pods that it names."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from typing import Final

from podium.config import (
    IN_TREE_PLUGINS,
    KubeSchedulerConfiguration,
    default_configuration,
    load,
    parse_feature_gates,
)
from podium.engine.cluster import Cluster
from podium.engine.files import LocatedManifest
from podium.framework.profile.runtime import points_of
from podium.plugins.contrib.coscheduling.plugin import Coscheduling
from podium.provisioner.cloudprovider.catalogue import read_catalogue
from podium.provisioner.disruption.sandbox_nodes import manifest_of
from podium.provisioner.planners.placed_plans import plan_with_podium
from podium.provisioner.planners.planned_devices import slices_of
from podium.provisioner.provisioning.plan import Plan
from podium.provisioner.provisioning.plan_basis import PlanBasis
from podium.provisioner.reports.cases import read_settings
from podium.provisioner.state.manifests import read_cluster
from tests.gang_manifests import COSCHEDULING
from tests.manifests import ZONE, Json
from tests.provisioned.brute_force import Outcome, best_purchase, outcome_of
from tests.provisioned.gang_cases import Case, Kind, random_case
from tests.provisioned.sandboxed import bound_pods
from tests.virtual_time import START_S

_COSCHEDULING: Final = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection: {leaderElect: false}
profiles:
- plugins:
    multiPoint: {enabled: [{name: Coscheduling}], disabled: [{name: PrioritySort}]}
"""


_GATES: Final = parse_feature_gates(["GenericWorkload=true", "TopologyAwareWorkloadScheduling=true"])


@dataclass(slots=True)
class CheckedGangs:
    """One case.

    Attributes:
        with_devices, in_one_zone: The pods bound with devices, and those of gangs that must lie in one zone.
        faults: What did not hold.
    """

    seed: int
    bought: int = 0
    starting: int = 0
    staying: int = 0
    with_devices: int = 0
    in_one_zone: int = 0
    faults: list[str] = field(default_factory=list)


def check_gangs(seed: int) -> CheckedGangs:
    """Plan a random case, compare with brute force, make the nodes of the plan, and let podium bind."""
    case = random_case(seed)
    plan = plan_for(case)
    starting = sum(gang.starts for gang in plan.gangs)
    checked = CheckedGangs(seed, len(plan.nodes), starting, len(plan.gangs) - starting)
    promised_names = {pod.metadata.name for pods in plan.existing.values() for pod in pods}
    promised_names |= {pod.metadata.name for node in plan.nodes for pod in node.pods}
    checked.faults += _faults_of_price(case, plan, promised_names, best_purchase(case))
    checked.faults += [f"{node.text} is idle" for node in plan.nodes if not node.pods]
    for unit in case.units:
        count = sum(name in promised_names for name in unit.pods)
        if count and count < unit.min_count:
            checked.faults.append(f"{count} pods of {unit.name}, which needs {unit.min_count}")
    rules = None if case.api == COSCHEDULING else _GATES.pod_groups
    objects = [*case.objects_beside, *_purchase(plan)]
    nodes = bound_pods(objects, seed, configuration(case.api), rules, case.pods_in_turn)
    if nodes.keys() != promised_names:
        checked.faults.append(f"promised {sorted(promised_names)}, bound {sorted(nodes)}")
    zones = {
        item["metadata"]["name"]: item["metadata"]["labels"].get(ZONE) for item in objects if item["kind"] == "Node"
    }
    for unit in case.units:
        unit_zones = [zones[nodes[name]] for name in unit.pods if name in nodes]
        checked.with_devices += len(unit_zones) if unit.gpus else 0
        checked.in_one_zone += len(unit_zones) if unit.tied else 0
        if unit.tied and len(set(unit_zones)) > 1:
            checked.faults.append(f"{unit.name} lies in {sorted(set(unit_zones))}")
    return checked


def plan_for(case: Case) -> Plan:
    """The plan."""
    objects = read_cluster([LocatedManifest(manifest, "case") for manifest in (*case.objects, case.pool)])
    basis = PlanBasis(objects, read_catalogue(case.catalogue), read_settings({}))
    return plan_with_podium(basis, Cluster.load(case.objects), START_S, search="exhaustive")


@cache
def configuration(api: str) -> KubeSchedulerConfiguration:
    """The configuration of a scheduler that knows such groups."""
    if api == COSCHEDULING:
        registry = {**IN_TREE_PLUGINS, Coscheduling.name: points_of(Coscheduling)}
        return load(_COSCHEDULING, "gangs", registry).config
    return default_configuration(_GATES)


def _purchase(plan: Plan) -> list[Json]:
    """The nodes as their provider makes them, and what their drivers publish."""
    nodes: list[Json] = [dict(manifest_of(node, START_S)) for node in plan.nodes]
    slices = [dict(part) for node in plan.nodes for part in slices_of(node.node.instance_type, node.name)]
    return [*nodes, *slices]


def _faults_of_price(case: Case, plan: Plan, promised_names: set[str], best: Outcome) -> list[str]:
    faults: list[str] = []
    price = sum(node.node.price for node in plan.nodes)
    if plan.proof is None or not plan.proof.is_cheapest:
        faults.append("nothing is proven")
    if len(promised_names) != len(best.bound_names):
        faults.append(f"{len(promised_names)} pods, {len(best.bound_names)} by brute force: {_text(best)}")
    elif price < best.price - 1e-6 and len(outcome_of(case, _kinds(case, plan)).bound_names) == len(promised_names):
        # Brute force names the nodes by price. Between equal nodes their order decides, and the plan has a better one.
        return faults
    elif abs(price - best.price) > 1e-6:
        faults.append(f"costs {price:.4f}, {best.price:.4f} by brute force: {_text(best)}")
    return faults


def _kinds(case: Case, plan: Plan) -> tuple[Kind, ...]:
    """The nodes of the plan, in the order of their names."""
    kinds = {(kind.name, kind.zone): kind for kind in case.kinds}
    return tuple(kinds[node.node.instance_type.name, node.node.offering.zone] for node in plan.nodes)


def _text(best: Outcome) -> str:
    return f"{[(kind.name, kind.zone) for kind in best.kinds]} for {sorted(best.bound_names)}"

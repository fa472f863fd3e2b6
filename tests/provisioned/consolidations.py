"""Whether what `podium consolidate --rules podium` says is what then happens: its commands are carried out."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from podium.engine.cluster import Cluster
from podium.engine.files import LocatedManifest
from podium.provisioner.disruption.disruption_state import DisruptionState
from podium.provisioner.disruption.searches import Search
from podium.provisioner.planners.placed_plans import settled_objects
from podium.provisioner.planners.placing_simulator import PlacingSimulator
from podium.provisioner.reports.cases import read_settings
from podium.provisioner.reports.consolidation_plan import (
    ConsolidationOptions,
    ConsolidationPlan,
    PlannedCommand,
    plan_consolidation,
)
from podium.provisioner.state.manifests import read_cluster
from podium.sandbox.embedded import Sandbox
from podium.sandbox.errors import ApiError
from podium.sandbox.pods import evict
from tests.manifests import Json
from tests.provisioned.clusters import daemon_pod
from tests.provisioned.fleets import Fleet, any_fleet, is_of_daemon_set
from tests.provisioned.sandboxed import at_rest, daemon_beside, nodes_of_pods, run, sandbox_of
from tests.unit.provisioner.clusters import NOW, catalogue
from tests.unit.provisioner.fleets import INSTANCE_TYPE
from tests.unit.provisioner.random_fleets import TYPES

_TICK_S: Final = 0.2
_DRAIN_S_MAX: Final = 300.0
_TAINT: Final = {"key": "karpenter.sh/disrupted", "effect": "NoSchedule"}


@dataclass(slots=True)
class CheckedConsolidation:
    """One case.

    Attributes:
        saved: What was saved in an hour.
        faults: What the plan said that did not hold.
    """

    seed: int
    commands: int = 0
    removals: int = 0
    moves: int = 0
    savings: float = 0.0
    faults: list[str] = field(default_factory=list)


def check_consolidation(seed: int) -> CheckedConsolidation:
    """Plan a random cluster with both searches, and carry out the commands of one of them."""
    fleet = any_fleet(seed)
    plans = {search: _plan(fleet, search) for search in ("prefix", "greedy")}
    plan = plans["greedy" if seed % 2 else "prefix"]
    checked = CheckedConsolidation(seed, len(plan.commands))
    if plans["greedy"].savings < plans["prefix"].savings - 1e-9:
        checked.faults.append("greedy saves less than prefix")
    run(lambda: _carry_out(fleet, plan, checked))
    if not math.isclose(checked.savings, plan.savings, abs_tol=1e-9):
        checked.faults.append(f"saves {checked.savings:.4f} per hour instead of {plan.savings:.4f}")
    return checked


def _plan(fleet: Fleet, search: Search) -> ConsolidationPlan:
    objects = read_cluster([LocatedManifest(document, "fleet") for document in (*fleet.objects, *fleet.managed)])
    cluster = Cluster.load(fleet.objects)
    make_simulator = partial(PlacingSimulator, cluster)
    state = DisruptionState.of(
        settled_objects(objects, cluster), catalogue(*TYPES), read_settings({}), NOW, make_simulator
    )
    return plan_consolidation(state, ConsolidationOptions(search=search))


async def _carry_out(fleet: Fleet, plan: ConsolidationPlan, checked: CheckedConsolidation) -> None:
    # Daemons are created and deleted here, as the plan foresees, not by a controller.
    objects = [manifest for manifest in fleet.objects if manifest["kind"] != "DaemonSet"]
    async with sandbox_of(objects, controllers=True) as sandbox, daemon_beside(sandbox, checked.seed):
        await at_rest(sandbox)
        cost = _cost(sandbox)
        pools = {node: fleet.pool_of(node) for node in _nodes(sandbox)}
        for number, command in enumerate(plan.commands, 1):
            checked.faults += [f"command {number}: {fault}" for fault in _over_budget(fleet, pools, command)]
            pools.update((new_node.name, new_node.pool) for new_node in command.new)
            checked.faults += [f"command {number}: {fault}" for fault in await _run_command(sandbox, fleet, command)]
            for name in command.nodes:
                del pools[name]
            checked.removals += len(command.nodes)
            checked.moves += len(command.moves)
        checked.savings = cost - _cost(sandbox)


async def _run_command(sandbox: Sandbox, fleet: Fleet, command: PlannedCommand) -> Sequence[str]:
    """What went wrong on the way."""
    store, faults = sandbox.store, []
    for new_node in command.new:
        store.create(dict(next(new_node.node.manifests(new_node.name))))
        for agent in fleet.daemon_sets:
            store.create(daemon_pod(agent, new_node.name))
    for name in command.nodes:
        store.patch("nodes", name, {"spec": {"unschedulable": True, "taints": [_TAINT]}})
    on_nodes = [pod for pod in store.list("pods") if pod["spec"].get("nodeName") in command.nodes]
    leaving = [pod for pod in on_nodes if not is_of_daemon_set(pod)]
    leaving.sort(key=lambda pod: (-pod["spec"].get("priority", 0), pod["metadata"]["name"]))
    loop, waiting = asyncio.get_running_loop(), list(leaving)
    limit = loop.time() + _DRAIN_S_MAX
    while waiting:
        if loop.time() > limit:
            return [*faults, f"not evicted: {', '.join(pod['metadata']['name'] for pod in waiting)}"]
        waiting = [pod for pod in waiting if not await _move(sandbox, pod)]
        faults += _too_few(sandbox, fleet)
        await asyncio.sleep(_TICK_S)
    for name in command.nodes:
        store.delete("nodes", name)
    for new_node in on_nodes:
        if is_of_daemon_set(new_node):
            store.delete("pods", new_node["metadata"]["name"], new_node["metadata"]["namespace"])
    await at_rest(sandbox)
    pending = fleet.running - nodes_of_pods(sandbox).keys()
    return [*faults, f"pending: {', '.join(sorted(pending))}"] if pending else faults


async def _move(sandbox: Sandbox, pod: Json) -> bool:
    """Evict the pod, and make it again as its workload would; False if a PodDisruptionBudget holds it now."""
    name, namespace = pod["metadata"]["name"], pod["metadata"]["namespace"]
    try:
        evict(sandbox.store, namespace, name, {"deleteOptions": {"gracePeriodSeconds": 0}})
    except ApiError as error:
        if error.code != 429:
            raise
        return False
    containers = [{**container, "image": "app"} for container in pod["spec"]["containers"]]
    spec = {key: value for key, value in pod["spec"].items() if key != "nodeName"} | {"containers": containers}
    metadata = {"name": name, "namespace": namespace, "labels": pod["metadata"].get("labels", {})}
    sandbox.store.create({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})
    # For the stand-in controllers, which count the pods of budgets.
    await asyncio.sleep(_TICK_S)
    return True


def _too_few(sandbox: Sandbox, fleet: Fleet) -> list[str]:
    pods = sandbox.store.list("pods")
    faults = []
    for app, least in fleet.available_min.items():
        count = sum(pod["metadata"]["labels"].get("app") == app and bool(pod["spec"].get("nodeName")) for pod in pods)
        if count < least:
            faults.append(f"{count} pods of {app} are left, fewer than its PodDisruptionBudget allows")
    return faults


def _over_budget(fleet: Fleet, pools: Mapping[str, str], command: PlannedCommand) -> list[str]:
    faults = []
    for pool, text in fleet.nodes_at_once.items():
        going = sum(pools[node] == pool for node in command.nodes)
        nodes = sum(pool_name == pool for pool_name in pools.values())
        share = math.ceil(nodes * int(text[:-1]) / 100) if text.endswith("%") else int(text)
        if going > share:
            faults.append(f"{going} nodes of {pool} go at once, more than its budget of {text}")
    return faults


def _nodes(sandbox: Sandbox) -> list[str]:
    return [node["metadata"]["name"] for node in sandbox.store.list("nodes")]


def _cost(sandbox: Sandbox) -> float:
    """What the nodes cost in an hour, by the catalogue's file."""
    types = {instance_type["name"]: instance_type["offerings"] for instance_type in TYPES}
    return math.fsum(
        _price(types[node["metadata"]["labels"][INSTANCE_TYPE]], node["metadata"]["labels"])
        for node in sandbox.store.list("nodes")
    )


def _price(offerings: Sequence[Json], labels: Mapping[str, str]) -> float:
    for offering in offerings:
        requirements = (requirement for requirement in offering["requirements"] if requirement["operator"] == "In")
        if all(labels.get(requirement["key"]) in requirement["values"] for requirement in requirements):
            return float(offering["price"])
    raise AssertionError(f"no offering has {labels}")

"""Plans for gangs by podium's own rules: many gangs that wait for nodes, and hundreds of instance types to buy."""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from rich.table import Table

from benchmarks.nodes import Json
from benchmarks.targets import Check, at_most
from benchmarks.waiting_cluster import instance_types, pool
from podium.engine.cluster import Cluster
from podium.engine.files import LocatedManifest
from podium.provisioner.cloudprovider.catalogue import read_catalogue
from podium.provisioner.planners.placed_plans import plan_with_podium
from podium.provisioner.provisioning.plan_basis import PlanBasis
from podium.provisioner.state.manifests import read_cluster
from podium.provisioner.state.settings import Settings

GANGS: Final = 100
MEMBERS: Final = 50
INSTANCE_TYPES: Final = 700
_SECONDS_MAX: Final = 5.0
_CPU_MILLI: Final = (500, 1000, 2000, 4000)
_GIB_PER_CORE: Final = 2


@dataclass(frozen=True, slots=True)
class GangPlan:
    """One plan. Units: dollars per hour, seconds; `cpu_s` is that of all threads."""

    gangs: int
    members: int
    instance_types: int
    nodes: int
    starting: int
    price: float
    wall_s: float
    cpu_s: float


def measure(gangs: int = GANGS, members: int = MEMBERS, types: int = INSTANCE_TYPES) -> GangPlan:
    """Plan once. The objects are read before."""
    objects = list(_objects(gangs, members))
    documents = [LocatedManifest(manifest, "gangs") for manifest in (*objects, _pool())]
    basis = PlanBasis(read_cluster(documents), read_catalogue(instance_types(types)), Settings())
    cluster = Cluster.load(objects)
    gc.collect()
    began_s, began_cpu_s = time.perf_counter(), time.process_time()
    plan = plan_with_podium(basis, cluster, 0.0)
    cpu_s, wall_s = time.process_time() - began_cpu_s, time.perf_counter() - began_s
    return GangPlan(
        gangs=gangs,
        members=members,
        instance_types=types,
        nodes=len(plan.nodes),
        starting=sum(gang.starts for gang in plan.gangs),
        price=sum(node.node.price for node in plan.nodes),
        wall_s=wall_s,
        cpu_s=cpu_s,
    )


def checks(plan: GangPlan) -> Iterator[Check]:
    """Check the plan against its target."""
    yield at_most(f"plan for {plan.gangs} gangs of {plan.members}", plan.wall_s, _SECONDS_MAX, " s")


def table(plan: GangPlan) -> Table:
    """Return the figures as a table."""
    rich_table = Table(title=f"Plan for gangs, {plan.instance_types} instance types", title_justify="left")
    for heading in ("gangs", "pods", "gangs that start", "nodes to buy", "$ per hour", "s", "CPU s"):
        rich_table.add_column(heading, justify="right")
    rich_table.add_row(
        f"{plan.gangs:,}",
        f"{plan.gangs * plan.members:,}",
        f"{plan.starting:,}",
        f"{plan.nodes:,}",
        f"{plan.price:,.2f}",
        f"{plan.wall_s:.2f}",
        f"{plan.cpu_s:.2f}",
    )
    return rich_table


def _objects(gangs: int, members: int) -> Iterator[Json]:
    for number in range(gangs):
        name = f"gang-{number:03}"
        policy = {"gang": {"minCount": members}}
        yield {
            "apiVersion": "scheduling.k8s.io/v1beta1",
            "kind": "PodGroup",
            "metadata": {"name": name, "namespace": "default"},
            "spec": {"schedulingPolicy": policy},
        }
        cpu = _CPU_MILLI[number % len(_CPU_MILLI)]
        requests = {"cpu": f"{cpu}m", "memory": f"{cpu * _GIB_PER_CORE * 1024 // 1000}Mi"}
        for member in range(members):
            yield {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": f"{name}-{member:03}", "namespace": "default", "uid": f"{name}-{member:03}"},
                "spec": {
                    "containers": [{"name": "main", "resources": {"requests": requests}}],
                    "schedulingGroup": {"podGroupName": name},
                },
                "status": {"conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]},
            }


def _pool() -> Json:
    return {"apiVersion": "karpenter.sh/v1", **pool("pool")}

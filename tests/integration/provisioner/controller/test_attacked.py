"""The provisioner against an API server that refuses, is silent, or answers something else: each spoils one step."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from functools import partial
from pathlib import Path

import pytest

from podium.provisioner.disruption.sandbox_nodes import REMOVED_SINCE
from podium.sandbox import Sandbox
from podium.sandbox.faults import Faults
from tests.control_plane.client import Client
from tests.e2e.waiting import eventually
from tests.integration.provisioner.controller.test_app import NODES, PODS, Cluster
from tests.manifests import pod, pods

pytestmark = pytest.mark.anyio

PAGE = "<html><body>Please sign in</body></html>"
Attack = Callable[..., None]


class Faulty(Cluster):
    """A cluster whose API server can be told what to answer."""

    @property
    def faults(self) -> Faults:
        return self.sandbox.faults

    async def bought(self, count: int) -> list[str]:
        """The names of nodes that were bought for as many pods, each of which fills one and runs there."""
        await self.put_unschedulable(*pods(count, cpu="3500m", terminationGracePeriodSeconds=0))
        async with self.run_provisioner():
            names = sorted(await self.wait_nodes(count))
        for index, name in enumerate(names):
            await self.bind(f"web-{index}", name)

        async def run() -> bool:
            return all(item["status"].get("phase") == "Running" for item in await self.admin.list(PODS))

        await eventually(run)
        return names

    async def begin_removal(self, *names: str, since: str = "2026-01-01T00:00:00Z") -> None:
        """As a provisioner does that is killed right afterwards."""
        for name in names:
            change = {"metadata": {"annotations": {REMOVED_SINCE: since}}}
            await self.admin.patch(f"{NODES}/{name}", change | {"spec": {"unschedulable": True}})

    async def wait_gone(self, *names: str) -> None:
        async def are_gone() -> bool:
            return not set(names) & (await self.nodes()).keys()

        await eventually(are_gone)


@pytest.fixture
async def cluster(anyio_backend: object, tmp_path: Path) -> AsyncIterator[Faulty]:
    async with Sandbox(controllers=True, kubelet_delay_s=0.0) as sandbox, Client(sandbox.url) as admin:
        yield Faulty(sandbox, admin, sandbox.write_kubeconfig(tmp_path / "kubeconfig"))


EVICTION = {"verb": "create", "resource": "pods", "subresource": "eviction"}
CODES = (400, 403, 404, 409, 422, 500, 503, 504)
REFUSALS: dict[str, Attack] = {
    **{f"code-{code}": partial(Faults.server_error, times=None, code=code, **EVICTION) for code in CODES},
    "busy": partial(Faults.too_many_requests, times=None, **EVICTION),
    "busy-for-long": partial(Faults.too_many_requests, times=None, retry_after_s=86_400, **EVICTION),
    "moved": partial(Faults.invalid_answer, times=None, code=307, body=PAGE, **EVICTION),
    "half": partial(Faults.invalid_answer, times=None, code=201, body='{"kind": "Sta', **EVICTION),
    "page": partial(Faults.invalid_answer, times=None, code=200, body=PAGE, **EVICTION),
    "null": partial(Faults.invalid_answer, times=None, code=201, body="null", **EVICTION),
    "silence": partial(Faults.latency, delay_s=600.0, **EVICTION),
}


async def test_an_eviction_that_is_not_answered_well_holds_up_its_own_node_only(cluster: Faulty) -> None:
    names = await cluster.bought(len(REFUSALS) + 1)
    for name, (namespace, attack) in zip(names, REFUSALS.items(), strict=False):
        cluster.put({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
        held_pod = pod("held", cpu="100m", node=name, terminationGracePeriodSeconds=0)
        held_pod["metadata"]["namespace"] = namespace
        cluster.put(held_pod)
        attack(cluster.faults, namespace=namespace)
    await cluster.begin_removal(*names)
    async with cluster.run_provisioner():
        await cluster.wait_gone(names[-1])
        assert set(names[:-1]) <= (await cluster.nodes()).keys()
        # The process lives, and goes on with its other work.
        await cluster.put_unschedulable(pod("late", cpu="3500m"))
        await cluster.wait_nodes(len(names))
        cluster.faults.clear()
        await cluster.wait_gone(*names[:-1])


LISTS = (
    PAGE,
    "null",
    json.dumps({"kind": "NodeList", "apiVersion": "v1", "metadata": {}, "items": [{"metadata": {}}]}),
    json.dumps({"kind": "PodList", "apiVersion": "v1", "metadata": {}, "items": []}),
    "",
    "[" * 100_000,
    json.dumps({"kind": "NodeList", "apiVersion": "v1", "metadata": {"continue": 7}, "items": []}),
)


async def test_an_odd_answer_to_a_look_up_after_a_lost_write_ends_nothing(cluster: Faulty) -> None:
    async with cluster.run_provisioner():
        await cluster.put_unschedulable(*pods(1, cpu="3500m"))
        await cluster.wait_nodes(1)
        cluster.faults.invalid_answer(3, code=200, body=PAGE, verb="create", resource="nodes")
        for body in LISTS:
            cluster.faults.invalid_answer(1, code=200, body=body, verb="list", resource="nodes")
        await cluster.put_unschedulable(pod("late", cpu="3500m"))

        async def are_answered() -> bool:
            return not cluster.faults.rules

        await eventually(are_answered)
        await cluster.wait_nodes(2)


async def test_a_removal_that_seems_to_lie_in_the_future_ends_like_any_other(cluster: Faulty) -> None:
    (name,) = await cluster.bought(1)
    await cluster.admin.delete(f"{PODS}/web-0")
    # As when the clock was set back after the removal had begun.
    await cluster.begin_removal(name, since="2999-01-01T00:00:00Z")
    async with cluster.run_provisioner():
        await cluster.wait_gone(name)


async def test_refused_patches_deletions_and_statuses_and_lost_watches_are_only_delays(cluster: Faulty) -> None:
    (name,) = await cluster.bought(1)
    await cluster.admin.delete(f"{PODS}/web-0")
    cluster.faults.server_error(2, code=403, verb="patch", resource="nodes")
    cluster.faults.server_error(2, code=422, verb="delete", resource="nodes")
    cluster.faults.invalid_answer(3, code=200, body=PAGE, resource="configmaps")
    async with cluster.run_provisioner():
        cluster.faults.drop_watches(mid_line=True)
        await cluster.wait_gone(name)
        cluster.faults.drop_watches()
        await cluster.put_unschedulable(pod("late", cpu="3500m"))
        await cluster.wait_nodes(1)


async def test_a_running_pod_that_planning_cannot_use_still_fills_its_node(cluster: Faulty) -> None:
    (name,) = await cluster.bought(1)
    demand = {"key": "n", "operator": "Gt", "values": ["abc"]}
    preference = {"weight": 1, "preference": {"matchExpressions": [demand]}}
    affinity = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [preference]}}
    await cluster.admin.delete(f"{PODS}/web-0")
    cluster.put(pod("odd", cpu="3500m", node=name, affinity=affinity))
    await cluster.put_unschedulable(pod("late", cpu="1"))
    async with cluster.run_provisioner():
        assert name in await cluster.wait_nodes(2)


async def test_a_node_that_is_refused_for_long_holds_up_neither_others_nor_removals(cluster: Faulty) -> None:
    (name,) = await cluster.bought(1)
    await cluster.admin.delete(f"{PODS}/web-0")
    async with cluster.run_provisioner():
        await cluster.wait_gone(name)
        cluster.faults.too_many_requests(1, retry_after_s=86_400, verb="create", resource="nodes")
        await cluster.put_unschedulable(pod("first", cpu="3500m"))

        async def is_refused() -> bool:
            return not cluster.faults.rules

        await eventually(is_refused)
        await cluster.put_unschedulable(pod("second", cpu="3500m"))
        await cluster.wait_nodes(1)


async def test_an_odd_answer_about_a_node_that_exists_ends_nothing(cluster: Faulty) -> None:
    """The name is taken, and whose it is cannot be read."""
    for body in (PAGE, "null", json.dumps({"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "x"}})):
        cluster.faults.invalid_answer(1, code=200, body=body, verb="get", resource="nodes")
    cluster.faults.server_error(3, code=409, verb="create", resource="nodes")
    async with cluster.run_provisioner():
        await cluster.put_unschedulable(*pods(1, cpu="3500m"))
        await cluster.wait_nodes(1)

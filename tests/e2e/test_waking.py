"""The change that a pod waits for wakes it at once.

Measured from the answer to the write that changes the cluster until a watch shows the pod bound. Backoff is set aside
by letting it pass first: a pod that has failed once may be tried again after a second, and nothing else holds it then.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Collection
from contextlib import aclosing
from typing import Any

import anyio
import pytest

from tests.e2e.cluster import PODS, Cluster
from tests.e2e.conftest import StartDaemon
from tests.e2e.daemon import configuration
from tests.e2e.test_volumes import CLAIMS, CLASSES, add_volume, claim, complete, storage_class, user, volume
from tests.manifests import HOSTNAME, node, nodes, pod, pods
from tests.patience import PATIENCE_S

pytestmark = pytest.mark.anyio

BACKOFF_S = 1
# Usually it is a few hundredths of a second. Whoever is not woken waits for half a minute at least: the queue looks for
# pods that have waited for five minutes every thirty seconds.
WAKES_WITHIN_S = 15.0
CONFIG = configuration(podInitialBackoffSeconds=BACKOFF_S)


async def wait_rejected_and_backed_off(cluster: Cluster, names: Collection[str]) -> None:
    """Until these pods are pending, and nothing but an event can bring them up again."""
    for name in names:
        await cluster.wait_condition(name)
    await anyio.sleep(BACKOFF_S)


async def seconds_until_bound(cluster: Cluster, names: Collection[str], write: Awaitable[Any]) -> float:
    """From the answer to a write until the last of these pods has been seen bound."""
    version = (await cluster.admin.get(PODS))["metadata"]["resourceVersion"]
    missing = set(names)
    await write
    written_s = time.monotonic()
    with anyio.fail_after(PATIENCE_S):
        async with aclosing(cluster.admin.watch(PODS, resourceVersion=version)) as events:
            async for event in events:
                if event["object"]["spec"].get("nodeName"):
                    missing.discard(event["object"]["metadata"]["name"])
                if not missing:
                    return time.monotonic() - written_s
    raise AssertionError(f"the watch has ended before these were bound: {missing}")


async def test_pods_of_a_cordoned_node_wake_when_it_is_uncordoned(cluster: Cluster, start: StartDaemon) -> None:
    await cluster.create(node("open"), node("closed", unschedulable=True))
    daemon = await start(cluster, CONFIG)
    pinned = pods(5, "pinned", nodeSelector={HOSTNAME: "closed"})
    names = [item["metadata"]["name"] for item in pinned]
    await cluster.create(*pinned)
    await wait_rejected_and_backed_off(cluster, names)
    uncordon = cluster.patch_node("closed", {"spec": {"unschedulable": False}})
    assert await seconds_until_bound(cluster, names, uncordon) < WAKES_WITHIN_S
    assert await daemon.attempts("unschedulable") == len(names)


async def test_a_gated_pod_wakes_on_its_last_gate(cluster: Cluster, start: StartDaemon) -> None:
    """It has never been tried, so there is no backoff."""
    await cluster.create(*nodes(2))
    await start(cluster)
    await cluster.create(pod("gated", schedulingGates=[{"name": "first"}, {"name": "second"}]))
    await cluster.patch_pod("gated", {"spec": {"schedulingGates": [{"name": "second"}]}})
    ungate = cluster.patch_pod("gated", {"spec": {"schedulingGates": []}})
    assert await seconds_until_bound(cluster, ["gated"], ungate) < WAKES_WITHIN_S


async def test_a_pod_that_waits_for_a_claim_wakes_when_the_claim_is_bound(cluster: Cluster, start: StartDaemon) -> None:
    await cluster.create(*nodes(2))
    at_once = storage_class("at-once", "disk.example.com") | {"volumeBindingMode": "Immediate"}
    await cluster.admin.create(CLASSES, at_once)
    await cluster.admin.create(CLAIMS, claim("data", "1Gi", "at-once"))
    await start(cluster, CONFIG)
    await cluster.create(user("web", "data"))
    await wait_rejected_and_backed_off(cluster, ["web"])
    pod_condition = await cluster.wait_condition("web")
    assert pod_condition["message"].startswith(
        "0/2 nodes are available: pod has unbound immediate PersistentVolumeClaims."
    )
    await add_volume(cluster, volume("disk-1", "at-once", "node-1"))
    assert await seconds_until_bound(cluster, ["web"], complete(cluster, "data", "disk-1")) < WAKES_WITHIN_S
    assert await cluster.placements() == {"web": "node-1"}


async def test_a_pod_wakes_when_the_room_it_waits_for_is_given_up(cluster: Cluster, start: StartDaemon) -> None:
    await cluster.create(node("only", cpu="4"), pod("before", cpu="4"))
    await start(cluster, CONFIG)
    await cluster.wait_bound(["before"])
    await cluster.create(pod("after", cpu="4"))
    await wait_rejected_and_backed_off(cluster, ["after"])
    assert await seconds_until_bound(cluster, ["after"], cluster.delete_pod("before")) < WAKES_WITHIN_S

"""Lists that replace what was known, amid attempts: they are seen as a whole or not at all."""

from __future__ import annotations

from typing import Any

import pytest

from tests.e2e.cluster import SandboxCluster
from tests.e2e.conftest import StartDaemon
from tests.e2e.waiting import eventually
from tests.manifests import node, pod

pytestmark = pytest.mark.anyio

Json = dict[str, Any]

NODES_THERE, NODES_NEW = 400, 200
PODS_PENDING = 1500


def running(name: str, node_name: str) -> Json:
    """A pod of somebody else, which leaves no room for another one."""
    return pod(name, cpu="1500m", scheduler="others", nodeName=node_name)


async def test_a_new_list_of_a_full_cluster_lets_no_pod_onto_a_full_node(
    sandbox_cluster: SandboxCluster, start: StartDaemon
) -> None:
    put_raw = sandbox_cluster.sandbox.store.put_raw
    names = [f"node-{index}" for index in range(NODES_THERE + NODES_NEW)]
    for name in names[:NODES_THERE]:
        put_raw(node(name, cpu="2"))
    daemon = await start(sandbox_cluster)
    # All at once, and unseen: others fill every node, new ones among them, and pods come that fit on empty ones only.
    sandbox_cluster.sandbox.faults.drop_watches()
    for name in names[NODES_THERE:]:
        put_raw(node(name, cpu="2"))
    # Those that wait come before those that run: by name, as an API server lists them.
    for index in range(PODS_PENDING):
        put_raw(pod(f"a-{index}", cpu="1"))
    for name in names:
        put_raw(running(f"z-{name}", name))
    sandbox_cluster.sandbox.store.compact()

    async def all_tried() -> bool:
        return await daemon.attempts("unschedulable") + await daemon.attempts("scheduled") >= PODS_PENDING

    await eventually(all_tried, within_s=60.0)
    assert await daemon.attempts("scheduled") == 0
    assert not [name for name in await sandbox_cluster.placements() if name.startswith("a-")]
    # Nothing holds decisions back from then on.
    await sandbox_cluster.delete_pod("z-node-7")

    async def there_are_two() -> bool:
        return [node for name, node in (await sandbox_cluster.placements()).items() if name.startswith("a-")] == [
            "node-7",
            "node-7",
        ]

    await eventually(there_are_two)

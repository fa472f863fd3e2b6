"""An etcd that is restored from a backup under a running podium: a real one, and the sandbox's."""

from __future__ import annotations

from collections import Counter

import anyio
import anyio.to_thread
import pytest

from tests.e2e.cluster import RealCluster, SandboxCluster
from tests.e2e.conftest import StartDaemon
from tests.e2e.waiting import eventually
from tests.manifests import nodes, pods

pytestmark = pytest.mark.anyio

NODES, CORES = 4, 4


def names(count: int, prefix: str) -> set[str]:
    return {f"{prefix}-{index}" for index in range(count)}


def store_names(cluster: SandboxCluster) -> set[str]:
    return {item["metadata"]["name"] for item in cluster.sandbox.store.list("pods")}


GONE_BACK = "The API server's history has gone back, as when etcd is restored"


@pytest.mark.control_plane
@pytest.mark.parametrize("is_caught_up", [False, True], ids=["versions below", "versions caught up"])
async def test_pods_whose_bindings_were_lost_are_bound_again_and_no_node_is_overfull(
    own_cluster: RealCluster, start: StartDaemon, is_caught_up: bool
) -> None:
    await own_cluster.create(*nodes(NODES, cpu=str(CORES)))
    # Half of the room is taken before, and the other half both before the restore, by some, and after it, by others.
    await own_cluster.create(*pods(8, "before", cpu="1"))
    daemon = await start(own_cluster)
    await own_cluster.wait_bound(names(8, "before"))
    await own_cluster.create(*pods(4, "rolled-back", cpu="1", schedulingGates=[{"name": "wait"}]))
    backup = await anyio.to_thread.run_sync(own_cluster.plane.back_up_etcd)
    for name in names(4, "rolled-back"):

        async def let_go(name: str = name) -> object:
            return await own_cluster.patch_pod(name, {"spec": {"schedulingGates": []}})

        await eventually(let_go)
    await own_cluster.create(*pods(4, "lost", cpu="1"))
    await own_cluster.wait_bound(names(4, "rolled-back") | names(4, "lost"))
    await daemon.wait_told_bound(names(4, "rolled-back") | names(4, "lost"))

    def restore() -> None:
        own_cluster.plane.restore_etcd(backup, restart_apiserver=True)

    await anyio.to_thread.run_sync(restore)
    # etcd knows of eight bound pods and of four with gates.
    assert (await own_cluster.placements()).keys() == names(8, "before")
    if is_caught_up:
        for number in range(60):
            await own_cluster.patch_node("node-0", {"metadata": {"labels": {"number": str(number)}}})
    for name in names(4, "rolled-back"):
        await own_cluster.patch_pod(name, {"spec": {"schedulingGates": []}})
    await own_cluster.create(*pods(4, "after", cpu="1"))
    expected_names = names(8, "before") | names(4, "rolled-back") | names(4, "after")
    placements = await own_cluster.wait_bound(expected_names, within_s=60.0)
    assert placements.keys() == expected_names
    assert Counter(placements.values()) == {f"node-{index}": CORES for index in range(NODES)}
    await daemon.wait_log(GONE_BACK)
    assert daemon.is_running


@pytest.mark.control_plane
async def test_an_api_server_that_was_not_restarted_with_its_etcd_is_complained_of_until_it_is(
    own_cluster: RealCluster, start: StartDaemon
) -> None:
    await own_cluster.create(*nodes(1, cpu="2"))
    daemon = await start(own_cluster)
    await own_cluster.create(*pods(2, cpu="1", schedulingGates=[{"name": "wait"}]))
    plane = own_cluster.plane
    backup = await anyio.to_thread.run_sync(plane.back_up_etcd)
    for name in names(2, "web"):

        async def let_go(name: str = name) -> object:
            return await own_cluster.patch_pod(name, {"spec": {"schedulingGates": []}})

        await eventually(let_go)
    await own_cluster.wait_bound(names(2, "web"))
    await daemon.wait_told_bound(names(2, "web"))
    await anyio.to_thread.run_sync(lambda: plane.restore_etcd(backup, restart_apiserver=False))
    await daemon.wait_log("The API server still serves objects that etcd has lost: restart it")
    await anyio.to_thread.run_sync(plane.restart_apiserver)
    assert await own_cluster.placements() == {}
    for name in names(2, "web"):
        await own_cluster.patch_pod(name, {"spec": {"schedulingGates": []}})
    assert await own_cluster.wait_bound(names(2, "web"), within_s=60.0) == dict.fromkeys(names(2, "web"), "node-0")


@pytest.mark.parametrize("is_caught_up", [False, True], ids=["versions below", "versions caught up"])
@pytest.mark.parametrize("lost_share", [0.0, 0.5], ids=["nodes as before", "nodes made later are gone"])
async def test_a_sandbox_that_goes_back_has_all_pods_bound_again(
    sandbox_cluster: SandboxCluster, start: StartDaemon, is_caught_up: bool, lost_share: float
) -> None:
    store, faults = sandbox_cluster.sandbox.store, sandbox_cluster.sandbox.faults
    count_before = int(20 * (1 - lost_share))
    sandbox_cluster.put(*nodes(count_before, cpu="2"))
    daemon = await start(sandbox_cluster)
    sandbox_cluster.put(*pods(10, "first", cpu="1"))
    await sandbox_cluster.wait_bound(names(10, "first"))
    # Pending in the backup, and bound by the time of the restore.
    sandbox_cluster.put(*pods(10, "rolled-back", cpu="1"))
    revision = store.revision
    sandbox_cluster.put(*nodes(20, cpu="2")[count_before:], *pods(20, "lost", cpu="1"))
    await sandbox_cluster.wait_bound(names(10, "rolled-back") | names(20, "lost"))
    store.rewind(revision)
    faults.refuse_connections(0.2)
    sandbox_cluster.put(*pods(2 * count_before - 20, "after", cpu="1"))
    if is_caught_up:
        for number in range(200):
            store.patch("nodes", "node-0", {"metadata": {"labels": {"number": str(number)}}})
    expected_names = store_names(sandbox_cluster)
    placements = await sandbox_cluster.wait_bound(expected_names, within_s=60.0)
    assert placements.keys() == expected_names
    assert max(Counter(placements.values()).values()) <= 2
    await daemon.wait_log(GONE_BACK)

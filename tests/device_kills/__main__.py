"""`python -m tests.device_kills`: no device is given twice, however often podium and the API server are killed.

Runs the real API server with the real claim controller. Pods with a claim each are created; podium is killed again and
again with claims that are allocated and pods that are not bound yet, and every third time the API server, too. Exits
with 1 if two claims hold one device, a claim holds none or several, or a pod is not bound in the end.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import click

from tests.control_plane.builder import BuildError, obtain
from tests.control_plane.client import Client
from tests.control_plane.progress import Progress
from tests.control_plane.servers import ControlPlane
from tests.device_kills.kills import check_no_device_twice, kill_at
from tests.e2e.cluster import RealCluster
from tests.e2e.daemon import Daemon, configuration
from tests.e2e.test_devices import CLASSES, SLICES, device_class, device_slice
from tests.e2e.test_devices_for_real import TEMPLATES, exactly, from_template, gpu, template
from tests.manifests import nodes

_DEVICES = 20
"""Of each node."""
_QPS = 60.0


@click.command(help=__doc__)
@click.option("--pods", type=click.IntRange(1), default=1000, show_default=True)
@click.option("--kills", type=click.IntRange(1), default=25, show_default=True)
def main(pods: int, kills: int) -> None:
    try:
        plane = ControlPlane.start(obtain(Progress()))
    except BuildError as problem:
        raise click.ClickException(str(problem)) from problem
    try:
        with tempfile.TemporaryDirectory() as directory:
            click.echo(anyio.run(_try, plane, pods, kills, Path(directory)))
    except AssertionError as wrong:
        raise click.ClickException(str(wrong)) from wrong
    finally:
        plane.stop()


async def _try(plane: ControlPlane, pods: int, kills: int, directory: Path) -> str:
    controllers = ("resourceclaim-controller", "garbage-collector-controller")
    process = await anyio.to_thread.run_sync(plane.start_controllers, *controllers)
    lives: list[Daemon] = []
    try:
        async with Client(plane.url, token=plane.admin_token, tls=plane.ssl_context()) as admin:
            cluster = RealCluster(admin, plane.kubeconfig(), plane)
            names = [f"web-{number}" for number in range(pods)]
            await _set_up(cluster, names)

            async def start(config: dict[str, Any]) -> Daemon:
                lives.append(Daemon(directory / f"podium-{len(lives)}", cluster.kubeconfig, config, token=admin.token))
                return lives[-1]

            async def kill_api_server(life: int) -> None:
                if life % 3 == 2:
                    assert plane.apiserver is not None
                    plane.apiserver.kill()
                    await anyio.to_thread.run_sync(plane.start_apiserver)

            goals = [pods * (life + 1) // (kills + 1) for life in range(kills)]
            caught = await kill_at(cluster, start, goals, qps=_QPS, trouble=kill_api_server)
            await start(configuration())
            await cluster.wait_bound(names)
            devices_by_claim = await check_no_device_twice(cluster)
            assert sorted(len(devices) for devices in devices_by_claim.values()) == [1] * pods, devices_by_claim
            return (
                f"{pods} pods, {kills} kills, {caught} times a pod had a device and no node at a kill: "
                f"every pod is bound, no device was given twice"
            )
    finally:
        for live in lives:
            live.kill()
        await anyio.to_thread.run_sync(process.kill)


async def _set_up(cluster: RealCluster, names: list[str]) -> None:
    count = -(-len(names) // _DEVICES)
    await cluster.create(*nodes(count))
    await cluster.admin.create(CLASSES, device_class())
    for number in range(count):
        await cluster.admin.create(SLICES, device_slice(f"node-{number}", *(gpu(index) for index in range(_DEVICES))))
    await cluster.admin.create(TEMPLATES, template("one", {"exactly": exactly()}))
    await cluster.create(*(from_template(name, "one") for name in names))


if __name__ == "__main__":
    sys.exit(main())

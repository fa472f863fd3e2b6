"""Both API servers, and podium running against them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import anyio.to_thread
import pytest

from podium.sandbox import Sandbox
from tests.control_plane.cleanup import empty_cluster
from tests.control_plane.client import Client
from tests.control_plane.locate import Binaries
from tests.control_plane.servers import LARGE_HEAPS, ControlPlane
from tests.e2e.cluster import Cluster, RealCluster, SandboxCluster
from tests.e2e.daemon import Daemon


@pytest.fixture
async def sandbox_cluster(anyio_backend: object, tmp_path: Path) -> AsyncIterator[SandboxCluster]:
    """The embedded API server, in this process."""
    async with Sandbox(kubelets=False) as sandbox, Client(sandbox.url) as admin:
        yield SandboxCluster(admin, sandbox.write_kubeconfig(tmp_path / "kubeconfig"), sandbox)


@pytest.fixture
async def real_cluster(anyio_backend: object, control_plane: ControlPlane) -> AsyncIterator[RealCluster]:
    """The real API server, empty."""
    tls = control_plane.ssl_context()
    async with Client(control_plane.url, token=control_plane.admin_token, tls=tls) as admin:
        await empty_cluster(admin)
        yield RealCluster(admin, control_plane.kubeconfig(), control_plane)
        await empty_cluster(admin)


@pytest.fixture
async def own_cluster(anyio_backend: object, control_plane_binaries: Binaries) -> AsyncIterator[RealCluster]:
    """Another control plane with a real API server, which a test may stop or take back to an earlier state."""
    async with new_cluster(control_plane_binaries) as cluster:
        yield cluster


@asynccontextmanager
async def new_cluster(binaries: Binaries, *flags: str) -> AsyncIterator[RealCluster]:
    """A control plane whose API server has these flags, too."""
    plane = await anyio.to_thread.run_sync(partial(ControlPlane.start, binaries, LARGE_HEAPS, flags))
    try:
        async with Client(plane.url, token=plane.admin_token, tls=plane.ssl_context()) as admin:
            yield RealCluster(admin, plane.kubeconfig(), plane)
    finally:
        await anyio.to_thread.run_sync(plane.stop)


@pytest.fixture(params=["sandbox_cluster", pytest.param("real_cluster", marks=pytest.mark.control_plane)])
def cluster(request: pytest.FixtureRequest) -> Cluster:
    """Each in turn."""
    requested_cluster: Cluster = request.getfixturevalue(request.param)
    return requested_cluster


class StartDaemon(Protocol):
    """Starts podium against a cluster."""

    async def __call__(
        self,
        cluster: Cluster,
        config: Mapping[str, Any] | None = None,
        *,
        kubeconfig: Path | None = None,
        flags: tuple[str, ...] = (),
        ready: bool = True,
        stderr: int | None = None,
        through: tuple[str, ...] = (),
    ) -> Daemon: ...


@pytest.fixture
async def start(anyio_backend: object, tmp_path: Path) -> AsyncIterator[StartDaemon]:
    """Starts podium, as often as a test likes; what still runs at the end has to end well, with a clean log."""
    daemons: list[Daemon] = []

    async def start_one(
        cluster: Cluster,
        config: Mapping[str, Any] | None = None,
        *,
        kubeconfig: Path | None = None,
        flags: tuple[str, ...] = (),
        ready: bool = True,
        stderr: int | None = None,
        through: tuple[str, ...] = (),
    ) -> Daemon:
        directory = tmp_path / f"podium-{len(daemons)}"
        used_kubeconfig = kubeconfig or cluster.kubeconfig
        daemons.append(
            Daemon(
                directory,
                used_kubeconfig,
                config,
                token=cluster.admin.token,
                flags=flags,
                stderr=stderr,
                through=through,
                warm=True,
            )
        )
        if ready:
            await daemons[-1].wait_ready()
        return daemons[-1]

    try:
        yield start_one
        for daemon in daemons:
            if daemon.is_running:
                assert await daemon.stop() == 0, daemon.output()
            assert "Traceback" not in daemon.output()
            assert not [entry for entry in daemon.log() if entry["msg"] == "The cache refused a change"]
    finally:
        for daemon in daemons:
            daemon.kill()

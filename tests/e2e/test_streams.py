"""podium with standard streams that nobody reads, that are closed, or that cannot be written."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator

import anyio
import anyio.to_thread
import pytest

from tests import lifeline
from tests.control_plane.processes import free_ports
from tests.e2e.cluster import SandboxCluster
from tests.e2e.conftest import StartDaemon
from tests.e2e.waiting import eventually
from tests.manifests import node, nodes, pods

pytestmark = pytest.mark.anyio

PODS = 300


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    reader, writer = os.pipe()
    yield reader, writer
    for end in (reader, writer):
        with contextlib.suppress(OSError):
            os.close(end)


def _entries(reader: int) -> list[dict[str, object]]:
    with open(reader, "rb", closefd=False) as read:
        return [json.loads(line) for line in read]


async def test_a_log_reader_that_has_stopped_holds_up_nothing(
    sandbox_cluster: SandboxCluster, start: StartDaemon, pipe: tuple[int, int]
) -> None:
    reader, writer = pipe
    await sandbox_cluster.create(*nodes(4), *pods(PODS))
    daemon = await start(sandbox_cluster, stderr=writer)
    os.close(writer)
    # Two lines of some hundred bytes for each pod are more than a pipe holds.
    await sandbox_cluster.wait_bound([f"web-{index}" for index in range(PODS)])
    assert await daemon.get("/livez") == (200, "ok")
    read: list[dict[str, object]] = []
    reading = threading.Thread(target=lambda: read.extend(_entries(reader)))
    reading.start()
    assert await daemon.stop() == 0
    reading.join()
    assert sum(entry["msg"] == "Successfully bound pod to node" for entry in read) == PODS
    assert [entry["ts"] for entry in read] == sorted(str(entry["ts"]) for entry in read)
    assert read[-1]["msg"] == "Stopped"


async def test_a_log_that_is_never_read_does_not_hold_up_the_end(
    sandbox_cluster: SandboxCluster, start: StartDaemon, pipe: tuple[int, int]
) -> None:
    _, writer = pipe
    await sandbox_cluster.create(*nodes(4), *pods(PODS))
    daemon = await start(sandbox_cluster, stderr=writer)
    await sandbox_cluster.wait_bound([f"web-{index}" for index in range(PODS)])
    assert await daemon.stop() == 0


async def test_a_log_on_a_full_disk_holds_up_nothing(sandbox_cluster: SandboxCluster, start: StartDaemon) -> None:
    await sandbox_cluster.create(node("node-0", cpu="64"), *pods(10))
    full = os.open("/dev/full", os.O_WRONLY)
    daemon = await start(sandbox_cluster, stderr=full)
    os.close(full)
    await sandbox_cluster.wait_bound([f"web-{index}" for index in range(10)])
    assert await daemon.stop() == 0


async def test_a_log_reader_that_has_stopped_holds_up_no_estimator(
    sandbox_cluster: SandboxCluster, pipe: tuple[int, int]
) -> None:
    _, writer = pipe
    grpc_port, health_port, metrics_port = free_ports(3)
    serve = (
        *(sys.executable, "-m", "podium", "estimator", "serve", "--kubeconfig", str(sandbox_cluster.kubeconfig), "-v"),
        *("10", "--cluster-name", "m1", "--bind-address", "127.0.0.1", "--server-port", str(grpc_port)),
        *("--health-probe-bind-address", f"127.0.0.1:{health_port}"),
        *("--metrics-bind-address", f"127.0.0.1:{metrics_port}"),
    )
    async with await anyio.open_process(
        lifeline.guard(serve), stdin=subprocess.DEVNULL, stdout=None, stderr=writer, pass_fds=lifeline.PASSED
    ) as process:
        try:

            async def is_healthy() -> bool:
                return await anyio.to_thread.run_sync(_answer, health_port, b"GET /healthz HTTP/1.1\r\nHost: x") == 200

            await eventually(is_healthy)
            # Each is a line of more than a hundred bytes: more than a pipe holds.
            for _ in range(800):
                assert await anyio.to_thread.run_sync(_answer, metrics_port, b"nonsense") == 400
            assert await is_healthy()
            process.terminate()
            with anyio.fail_after(30):
                assert await process.wait() == 0
        finally:
            with contextlib.suppress(ProcessLookupError):
                process.kill()


def _answer(port: int, request: bytes) -> int:
    """The status that is answered; 0 while nobody listens."""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=20) as connection:
            connection.sendall(request + b"\r\n\r\n")
            return int(connection.recv(4096).split()[1])
    except (ConnectionError, TimeoutError):
        return 0


@pytest.mark.parametrize("closes", ["2>&-", "<&-", ">&- 2>&- <&-"])
async def test_podium_runs_with_closed_streams(
    sandbox_cluster: SandboxCluster, start: StartDaemon, closes: str
) -> None:
    await sandbox_cluster.create(node("node-0", cpu="64"), *pods(10))
    daemon = await start(sandbox_cluster, through=("sh", "-c", f'exec "$@" {closes}', "sh"))
    await sandbox_cluster.wait_bound([f"web-{index}" for index in range(10)])
    # None of podium's own descriptors may get the number of a stream: what goes to the stream would go there.
    assert {os.readlink(f"/proc/{daemon.pid}/fd/{number}") for number in range(3)} <= {
        "/dev/null",
        str(daemon.log_file),
    }
    assert await daemon.stop() == 0

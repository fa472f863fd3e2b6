"""podium with standard streams that nobody reads, that are closed, or that cannot be written."""

from __future__ import annotations

import contextlib
import json
import os
import threading
from collections.abc import Iterator

import pytest

from tests.e2e.cluster import SandboxCluster
from tests.e2e.conftest import StartDaemon
from tests.e2e.objects import node, nodes, pods

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

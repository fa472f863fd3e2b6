"""The answers of running podiums that the documentation shows (`<!-- answer: NAME -->`), made again in the sandbox.

The others are made by tests/unit/test_shown_answers.py.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final

import aiohttp
import anyio.to_thread
import pytest

from tests import lifeline, shown_answers
from tests.control_plane.processes import free_ports
from tests.e2e.cluster import SandboxCluster
from tests.e2e.conftest import StartDaemon
from tests.e2e.shown import Shell
from tests.e2e.waiting import eventually
from tests.manifests import node, pod
from tests.shown_answers import Block

pytestmark = pytest.mark.anyio

_VARIES: Final = {
    r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z": "TIME",
    r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}": "UID",
    r"\d+\.\d ms": "DURATION",
}
"""What is another one each time, and what stands for it."""

Made = Callable[[Block, SandboxCluster, StartDaemon, Path], Awaitable[str]]


def alike(text: str) -> list[str]:
    """The lines of an answer without what varies."""
    for pattern, word in _VARIES.items():
        text = re.sub(pattern, word, text)
    return [line.rstrip() for line in text.strip().splitlines()]


async def queue(block: Block, cluster: SandboxCluster, start: StartDaemon, folder: Path) -> str:
    taint = {"key": "team", "value": "a", "effect": "NoSchedule"}
    tainted = [node(name, "4", taints=[taint]) for name in ("node-2", "node-3")]
    await cluster.create(node("node-1", "4"), *tainted, pod("web-1", cpu="8"))
    daemon = await start(cluster)
    await cluster.wait_condition("web-1")
    instead = {"https://localhost:10259": f"https://localhost:{daemon.port}", "$TOKEN": str(cluster.admin.token)}
    (command,) = block.commands
    return await Shell(folder / "home", cluster.kubeconfig, folder, instead=instead).run(command)


async def shadow(block: Block, cluster: SandboxCluster, start: StartDaemon, folder: Path) -> str:
    """The other scheduler is this test: its bindings overtake each other, and one is a bad choice."""
    await cluster.create(node("big", "6"), node("small", "5"))
    (port,) = free_ports(1)
    shell = Shell(folder / "home", cluster.kubeconfig, folder)
    command = [sys.executable, "-m", "podium", "shadow", "--kubeconfig", str(cluster.kubeconfig), "--for", "10m"]
    process = lifeline.start(
        [*command, "--health-probe-bind-address", f"127.0.0.1:{port}", "--metrics-bind-address", ""],
        env=shell.environment,
        stdout=subprocess.PIPE,
    )

    async def is_ready() -> bool:
        async with aiohttp.ClientSession() as client, client.get(f"http://127.0.0.1:{port}/readyz") as answer:
            return answer.ok

    async def create(*names: str, host_port: int | None = None) -> None:
        for name in names:
            await cluster.create(pod(name, cpu="1", scheduler="default-scheduler", host_port=host_port))

    await eventually(is_ready)
    await create("a", "b")
    await cluster.bind("b", "small")
    await cluster.bind("a", "big")
    await create("d")
    await cluster.bind("d", "small")
    await create("c", host_port=80)
    # Its change is in the same watch as the pods, so that the order in which they are seen is certain.
    await cluster.create(pod("proxy", node="big", host_port=80))
    await cluster.bind("c", "big")
    process.terminate()
    printed, _ = await anyio.to_thread.run_sync(process.communicate)
    return printed.decode()


PRODUCERS: Final[dict[str, Made]] = {"queue": queue, "shadow": shadow}


@pytest.mark.parametrize("name", shown_answers.live_answers())
async def test_the_answer_of_a_running_podium_is_as_shown(
    name: str, sandbox_cluster: SandboxCluster, start: StartDaemon, tmp_path: Path
) -> None:
    block = shown_answers.live_answers()[name]
    answer = await PRODUCERS[name](block, sandbox_cluster, start, tmp_path)
    assert alike(answer) == alike(block.output), f"{block.place} shows something else:\n{answer}"


def test_every_producer_has_its_answer_in_a_page() -> None:
    assert shown_answers.live_answers().keys() == PRODUCERS.keys()

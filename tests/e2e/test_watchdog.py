"""A plugin that never returns: the log names it, probes fail, and SIGTERM still ends the process."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import anyio
import pytest

from podium.daemon.watchdog import STOP_S_MAX
from tests.e2e.cluster import SandboxCluster
from tests.e2e.daemon import Daemon, Json, configuration
from tests.e2e.waiting import eventually
from tests.manifests import nodes, pod, pods

pytestmark = pytest.mark.anyio

HANGS = '''
import asyncio
import re
import sys
import time

from podium.framework import *


class Hangs(PreEnqueuePlugin, FilterPlugin, ScorePlugin, PreBindPlugin):
    """Never returns at the extension point that the pod's name says."""

    def at(self, point, pod):
        if pod.metadata.name == point:
            while True:
                pass

    def pre_enqueue(self, pod):
        self.at("preenqueue", pod)

    def filter(self, state, pod, node):
        self.at("filter", pod)
        if pod.metadata.name == "sleeps":
            time.sleep(1000)
        if pod.metadata.name == "holds":  # the interpreter's lock, all the time
            print("holding", file=sys.stderr, flush=True)
            re.match("(a|a)*b", "a" * 60)
        if pod.metadata.name == "pauses":
            time.sleep(8)

    def score(self, state, pod, node):
        self.at("score", pod)
        return 0

    async def pre_bind(self, state, pod, node_name):
        self.at("prebind", pod)
        while pod.metadata.name == "ignores":
            try:
                print("ignoring", file=sys.stderr, flush=True)
                await asyncio.sleep(1)
            except asyncio.CancelledError:
                pass
'''
POINTS = {"preenqueue": "PreEnqueue", "filter": "Filter", "score": "Score", "prebind": "PreBind", "sleeps": "Filter"}
GRACE_S = 20.0
"""As in deploy/."""
BUSY_MACHINE = 1.5
"""By so much the test's own clock may be late."""


async def start_hanging(cluster: SandboxCluster, directory: Path) -> Daemon:
    plugin = directory / "hangs.py"
    plugin.write_text(HANGS)
    plugins = {"multiPoint": {"enabled": [{"name": "Hangs"}]}}
    config = configuration(profiles=[{"schedulerName": "podium", "plugins": plugins}])
    daemon = Daemon(directory / "podium", cluster.kubeconfig, config, flags=("--plugin", f"{plugin}:Hangs"))
    await daemon.wait_ready()
    return daemon


async def stuck(daemon: Daemon, message: str = "The event loop is stuck") -> Json:
    """What the log says of it."""

    async def read_entry() -> Json:
        lines = daemon.log(message)
        assert lines
        return lines[0]

    return await eventually(read_entry)


def says(daemon: Daemon, word: str) -> Callable[[], Awaitable[bool]]:
    """Whether its output has the word."""

    async def is_said() -> bool:
        return word in daemon.output()

    return is_said


@pytest.mark.parametrize("name", POINTS)
async def test_a_plugin_that_never_returns_is_named_and_sigterm_ends_the_process(
    sandbox_cluster: SandboxCluster, tmp_path: Path, name: str
) -> None:
    """Within its grace; a second one ends it at once, which spares the test some waiting."""
    await sandbox_cluster.create(*nodes(2))
    daemon = await start_hanging(sandbox_cluster, tmp_path)
    try:
        assert (await daemon.get("/livez"))[0] == 200
        await sandbox_cluster.create(pod(name))
        line = await stuck(daemon)
        assert (line["plugin"], line["extension_point"], line["pod"]) == ("Hangs", POINTS[name], f"default/{name}")
        assert line["seconds"] >= 5.0
        assert "hangs.py" in line["stack"]

        status, text = await daemon.get("/livez")
        assert (status, text) == (500, "[-]event-loop failed: reason withheld\nlivez check failed\n")
        assert (await daemon.get("/metrics"))[0] == 503

        daemon.terminate()
        began_s = time.monotonic()
        while daemon.is_running and name != "prebind":
            await anyio.sleep(0.1)  # signals of one kind that come at once are one
            daemon.terminate()
        assert await daemon.wait_ended() == 1
        assert time.monotonic() - began_s < (BUSY_MACHINE * GRACE_S if name == "prebind" else STOP_S_MAX)
        (last,) = daemon.log("Still running after the stop deadline: exiting")
        assert (last["plugin"], last["extension_point"], last["pod"]) == ("Hangs", POINTS[name], f"default/{name}")
    finally:
        daemon.kill()


async def test_sigterm_ends_a_process_whose_plugin_holds_the_interpreter(
    sandbox_cluster: SandboxCluster, tmp_path: Path
) -> None:
    await sandbox_cluster.create(*nodes(2))
    daemon = await start_hanging(sandbox_cluster, tmp_path)
    try:
        await sandbox_cluster.create(pod("holds"), *pods(1))

        await eventually(says(daemon, "holding"))
        daemon.terminate()
        assert await daemon.wait_ended() == 1
        assert "hangs.py" in daemon.output()
    finally:
        daemon.kill()


async def test_sigterm_ends_a_process_whose_plugin_ignores_that_it_is_cancelled(
    sandbox_cluster: SandboxCluster, tmp_path: Path
) -> None:
    await sandbox_cluster.create(*nodes(2))
    daemon = await start_hanging(sandbox_cluster, tmp_path)
    try:
        await sandbox_cluster.create(pod("ignores"), *pods(1))

        await eventually(says(daemon, "ignoring"))
        assert (await daemon.get("/livez"))[0] == 200
        daemon.terminate()
        began_s = time.monotonic()
        assert await daemon.wait_ended() == 1
        assert time.monotonic() - began_s < BUSY_MACHINE * GRACE_S
    finally:
        daemon.kill()


async def test_a_plugin_that_returns_late_is_counted_and_all_goes_on(
    sandbox_cluster: SandboxCluster, tmp_path: Path
) -> None:
    await sandbox_cluster.create(*nodes(1))
    daemon = await start_hanging(sandbox_cluster, tmp_path)
    try:
        await sandbox_cluster.create(pod("pauses"))
        await stuck(daemon)
        await sandbox_cluster.create(*pods(3))
        await sandbox_cluster.wait_bound(["pauses", "web-0", "web-1", "web-2"], 60)
        assert (await daemon.get("/livez"))[0] == 200
        assert await daemon.metric("podium_loop_stuck_total", plugin="Hangs", extension_point="Filter") == 1
        await stuck(daemon, "The event loop responds again")
        assert await daemon.stop() == 0
    finally:
        daemon.kill()

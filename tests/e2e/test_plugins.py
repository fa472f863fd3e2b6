"""Users' own plugins in a running podium: what they may do, and what happens when they fail."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import anyio
import pytest
import yaml

from tests.e2e.cluster import Cluster, Json, SandboxCluster
from tests.e2e.conftest import StartDaemon
from tests.e2e.daemon import Daemon, configuration
from tests.e2e.waiting import eventually
from tests.manifests import nodes, pod, pods

pytestmark = pytest.mark.anyio

GANG = Path(__file__).parents[2] / "examples/plugins/gang.py"


def gang_of_three(seconds: float) -> dict[str, Any]:
    """The example's configuration, with another time-out."""
    config: dict[str, Any] = copy.deepcopy(yaml.safe_load(GANG.with_suffix(".yaml").read_text()))
    config["profiles"][0]["pluginConfig"][0]["args"] = {"seconds": seconds}
    return configuration(profiles=config["profiles"])


def members(*names: str) -> list[dict[str, Any]]:
    gang_pods = [pod(name) for name in names]
    for item in gang_pods:
        item["metadata"]["labels"] = {"example.com/gang": "train", "example.com/gang-size": "3"}
    return gang_pods


async def test_a_gang_waits_for_its_last_member_and_is_bound_together(cluster: Cluster, start: StartDaemon) -> None:
    await cluster.create(*nodes(3), *members("a", "b"))
    daemon = await start(cluster, gang_of_three(60), flags=("--plugin", f"{GANG}:Gang"))

    async def both_wait() -> bool:
        pods = await cluster.pods()
        return all(pods[name]["status"].get("nominatedNodeName") for name in "ab")

    await eventually(both_wait)
    assert await cluster.placements() == {}
    await cluster.create(pod("stranger"))
    assert (await cluster.wait_bound(["stranger"])).keys() == {"stranger"}

    await cluster.create(*members("c"))
    await cluster.wait_bound(["a", "b", "c"])
    assert await daemon.attempts("unschedulable") == await daemon.attempts("error") == 0


async def test_a_gang_that_does_not_come_together_gives_its_room_back_together(
    cluster: Cluster, start: StartDaemon
) -> None:
    await cluster.create(*nodes(1, cpu="1"), *members("a"))
    daemon = await start(cluster, gang_of_three(6), flags=("--plugin", f"{GANG}:Gang"))

    async def a_waits() -> object:
        return (await cluster.pod("a"))["status"].get("nominatedNodeName")

    await eventually(a_waits)
    await anyio.sleep(1.0)  # so that it is not in the same moment that the second one's time is up
    await cluster.create(*members("b"))
    await cluster.wait_events("FailedScheduling", 2)
    notes = {event["regarding"]["name"]: event["note"] for event in await cluster.events("FailedScheduling")}
    assert notes == {
        "a": "0/1 nodes are available: 1 rejected due to timeout after waiting 6s at plugin Gang.",
        "b": "0/1 nodes are available: 1 a of the same gang gave up.",
    }
    await cluster.create(pod("big", cpu="900m"))
    assert (await cluster.wait_bound(["big"])).keys() == {"big"}
    assert await daemon.attempts("error") == 0


BREAKS = '''
import time

from podium.framework import *


class Breaks(PreFilterPlugin, FilterPlugin, PreScorePlugin, ScorePlugin, ReservePlugin, PermitPlugin,
             PreBindPlugin, PostBindPlugin, PostFilterPlugin, PreEnqueuePlugin):
    """Raises at the extension point that the pod's label names."""

    def at(self, point, pod):
        if pod.metadata.labels.get("break") == point:
            raise RuntimeError(f"broken in {point}")

    def pre_enqueue(self, pod):
        self.at("PreEnqueue", pod)

    def pre_filter(self, state, pod, snapshot):
        self.at("PreFilter", pod)
        return None, None

    def filter(self, state, pod, node):
        self.at("Filter", pod)

    def post_filter(self, state, pod, snapshot, filtered):
        self.at("PostFilter", pod)
        return None, unschedulable("no help")

    def pre_score(self, state, pod, snapshot, rows):
        self.at("PreScore", pod)

    def score(self, state, pod, node):
        if pod.metadata.labels.get("break") == "Slow":
            time.sleep(0.15)
        self.at("Score", pod)
        return 0

    def reserve(self, state, pod, node_name):
        self.at("Reserve", pod)

    def unreserve(self, state, pod, node_name):
        self.at("Unreserve", pod)
        if pod.metadata.labels.get("break") == "Permit":
            raise RuntimeError("broken in Unreserve")

    def permit(self, state, pod, node_name):
        self.at("Permit", pod)
        return None, 0

    async def pre_bind(self, state, pod, node_name):
        self.at("PreBind", pod)

    async def post_bind(self, state, pod, node_name):
        self.at("PostBind", pod)
        self.handle.record(pod, "Noticed", f"It is on {node_name}.", action="Binding", is_warning=True)
'''
FAIL_THE_ATTEMPT = ("PreFilter", "Filter", "PreScore", "Score", "Reserve", "Permit", "PreBind")


def breaking(point: str, **fields: Any) -> dict[str, Any]:
    item = pod(point.lower(), **fields)
    item["metadata"]["labels"] = {"break": point}
    return item


async def test_a_plugin_that_breaks_is_named_everywhere_and_podium_goes_on(
    sandbox_cluster: SandboxCluster, tmp_path: Path
) -> None:
    plugin = tmp_path / "breaks.py"
    plugin.write_text(BREAKS)
    plugins = {"multiPoint": {"enabled": [{"name": "Breaks"}]}}
    config = configuration(profiles=[{"schedulerName": "podium", "plugins": plugins}])
    points = (*FAIL_THE_ATTEMPT, "PreEnqueue", "PostBind")
    await sandbox_cluster.create(*nodes(2), *map(breaking, points), breaking("PostFilter", cpu="99"), breaking("Slow"))
    # Not by the fixture, which finds tracebacks in the log: here they belong there.
    daemon = Daemon(tmp_path / "podium", sandbox_cluster.kubeconfig, config, flags=("--plugin", f"{plugin}:Breaks"))
    try:
        await daemon.wait_ready()
        await sandbox_cluster.create(*pods(5))
        await sandbox_cluster.wait_bound([*(f"web-{index}" for index in range(5)), "slow", "postbind"])
        await sandbox_cluster.wait_events("Noticed", 6)
        (noticed,) = await sandbox_cluster.events("Noticed", name="web-0")
        assert noticed["note"] == f"It is on {(await sandbox_cluster.placements())['web-0']}."
        assert (noticed["type"], noticed["action"]) == ("Warning", "Binding")
        assert noticed["reportingController"] == "podium"
        for point in FAIL_THE_ATTEMPT:
            pod_condition = await sandbox_cluster.wait_condition(point.lower(), "SchedulerError")
            assert '"Breaks"' in pod_condition["message"], pod_condition
            assert f"broken in {point}" in pod_condition["message"]
        assert "broken in PostFilter" in (await sandbox_cluster.wait_condition("postfilter"))["message"]
        assert set(await sandbox_cluster.placements()).isdisjoint({*map(str.lower, FAIL_THE_ATTEMPT), "preenqueue"})

        async def all_told() -> list[Json]:
            entries = daemon.log("Plugin failed")
            assert {entry["extension_point"] for entry in entries} == {*points, "PostFilter", "Unreserve"}
            return entries

        failures = await eventually(all_told)
        assert {entry["plugin"] for entry in failures} == {"Breaks"}
        assert {entry["pod"] for entry in failures if entry["extension_point"] == "Filter"} == {"default/filter"}
        assert await daemon.metric("podium_unexpected_errors_total", where="plugin") >= len(points) + 2
        assert 'podium_unexpected_errors_total{where="plugin",name="Breaks"}' in (await daemon.get("/metrics"))[1]

        # On a machine that is busy others may be slow as well.
        told_slow = daemon.log("Slow plugin")
        (slow,) = [
            entry for entry in told_slow if entry["pod"] == "default/slow" and entry["extension_point"] == "Score"
        ]
        assert slow["plugin"] == "Breaks"
        assert slow["seconds"] >= 0.3
        assert await daemon.metric("podium_slow_plugin_calls_total", plugin="Breaks", extension_point="Score") >= 1
        assert await daemon.readyz() == 200
        assert await daemon.stop() == 0
    finally:
        daemon.kill()


JUNK = '''
import asyncio

from podium.framework import *


class Junk(PreEnqueuePlugin, FilterPlugin, PermitPlugin, PreBindPlugin, PostBindPlugin):
    """Answers and raises what the pod's name says, three times."""

    def __init__(self, args, handle):
        super().__init__(args, handle)
        self.times = {}

    def at(self, point, pod):
        name = pod.metadata.name
        if not name.startswith(point):
            return None
        self.times[name] = self.times.get(name, 0) + 1
        if self.times[name] > 3:
            return None
        way = name.partition("-")[2]
        if way == "true":
            return True
        if way == "status":
            return Status(99)
        if way == "mute":
            class Mute(Exception):
                def __str__(self):
                    raise SystemExit(3)
            raise Mute
        raise {"exit": SystemExit(0), "interrupt": KeyboardInterrupt(), "cancelled": asyncio.CancelledError(),
               "closed": GeneratorExit(), "key": KeyError("team")}[way]

    def pre_enqueue(self, pod):
        return self.at("preenqueue", pod)

    def filter(self, state, pod, node):
        return self.at("filter", pod)

    def permit(self, state, pod, node_name):
        return self.at("permit", pod), float("nan") if pod.metadata.name == "permit-true" else 0

    async def pre_bind(self, state, pod, node_name):
        if pod.metadata.name == "prebind-cancelled" and self.times.get("prebind-cancelled", 0) < 3:
            asyncio.current_task().cancel()
        return self.at("prebind", pod)

    async def post_bind(self, state, pod, node_name):
        return self.at("postbind", pod)
'''
WAYS = ("true", "status", "mute", "exit", "interrupt", "cancelled", "closed", "key")


async def test_junk_from_plugins_costs_an_attempt_each_and_nothing_more(
    sandbox_cluster: SandboxCluster, tmp_path: Path
) -> None:
    plugin = tmp_path / "junk.py"
    plugin.write_text(JUNK)
    plugins = {"multiPoint": {"enabled": [{"name": "Junk"}]}}
    config = configuration(profiles=[{"schedulerName": "podium", "plugins": plugins}])
    # "permit-true" has seconds that are not a number in all attempts.
    names = [f"{point}-{way}" for point in ("preenqueue", "filter", "permit", "prebind", "postbind") for way in WAYS]
    names.remove("permit-true")
    await sandbox_cluster.create(*nodes(2), *map(pod, names), pod("permit-true"), *pods(5))
    daemon = Daemon(tmp_path / "podium", sandbox_cluster.kubeconfig, config, flags=("--plugin", f"{plugin}:Junk"))
    try:
        await daemon.wait_ready()
        await sandbox_cluster.wait_bound([*(f"web-{index}" for index in range(5)), *names], 120)
        pod_condition = await sandbox_cluster.wait_condition("permit-true", "SchedulerError")
        assert 'running Permit plugin "Junk": answered nan' in pod_condition["message"]

        async def all_told() -> bool:
            failed_names = {entry["pod"].removeprefix("default/") for entry in daemon.log("Plugin failed")}
            return failed_names == {*names, "permit-true"}

        await eventually(all_told)
        assert await daemon.readyz() == 200
        assert await daemon.stop() == 0
    finally:
        daemon.kill()

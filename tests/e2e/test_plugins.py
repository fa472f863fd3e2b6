"""Users' own plugins in a running podium: what they may do, and what happens when they fail."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import anyio
import pytest
import yaml

from tests.e2e.cluster import SandboxCluster
from tests.e2e.conftest import StartDaemon
from tests.e2e.daemon import configuration
from tests.e2e.objects import nodes, pod
from tests.e2e.waiting import eventually

pytestmark = pytest.mark.anyio

GANG = Path(__file__).parents[2] / "examples/plugins/gang.py"


def gang_of_three(seconds: float) -> dict[str, Any]:
    """The example's configuration, with another time-out."""
    config: dict[str, Any] = copy.deepcopy(yaml.safe_load(GANG.with_suffix(".yaml").read_text()))
    config["profiles"][0]["pluginConfig"][0]["args"] = {"seconds": seconds}
    return configuration(profiles=config["profiles"])


def members(*names: str) -> list[dict[str, Any]]:
    found = [pod(name) for name in names]
    for each in found:
        each["metadata"]["labels"] = {"example.com/gang": "train", "example.com/gang-size": "3"}
    return found


async def test_a_gang_waits_for_its_last_member_and_is_bound_together(
    sandbox_cluster: SandboxCluster, start: StartDaemon
) -> None:
    await sandbox_cluster.create(*nodes(3), *members("a", "b"))
    daemon = await start(sandbox_cluster, gang_of_three(60), flags=("--plugin", f"{GANG}:Gang"))

    async def both_wait() -> bool:
        pods = await sandbox_cluster.pods()
        return all(pods[name]["status"].get("nominatedNodeName") for name in "ab")

    await eventually(both_wait)
    assert await sandbox_cluster.placements() == {}
    await sandbox_cluster.create(pod("stranger"))
    assert (await sandbox_cluster.wait_bound(["stranger"])).keys() == {"stranger"}

    await sandbox_cluster.create(*members("c"))
    await sandbox_cluster.wait_bound(["a", "b", "c"])
    assert await daemon.attempts("unschedulable") == await daemon.attempts("error") == 0


async def test_a_gang_that_does_not_come_together_gives_its_room_back_together(
    sandbox_cluster: SandboxCluster, start: StartDaemon
) -> None:
    await sandbox_cluster.create(*nodes(1, cpu="1"), *members("a"))
    daemon = await start(sandbox_cluster, gang_of_three(2), flags=("--plugin", f"{GANG}:Gang"))

    async def a_waits() -> object:
        return (await sandbox_cluster.pod("a"))["status"].get("nominatedNodeName")

    await eventually(a_waits)
    await anyio.sleep(0.5)  # so that it is not in the same moment that the second one's time is up
    await sandbox_cluster.create(*members("b"))
    await sandbox_cluster.wait_events("FailedScheduling", 2)
    notes = {each["regarding"]["name"]: each["note"] for each in await sandbox_cluster.events("FailedScheduling")}
    assert notes == {
        "a": "0/1 nodes are available: 1 rejected due to timeout after waiting 2s at plugin Gang.",
        "b": "0/1 nodes are available: 1 a of the same gang gave up.",
    }
    await sandbox_cluster.create(pod("big", cpu="900m"))
    assert (await sandbox_cluster.wait_bound(["big"])).keys() == {"big"}
    assert await daemon.attempts("error") == 0

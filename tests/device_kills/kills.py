"""Kills podium between the allocation of claims and the binding of their pods."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from tests.e2e.cluster import Cluster
from tests.e2e.daemon import Daemon, configuration
from tests.e2e.test_devices import CLAIMS
from tests.e2e.waiting import eventually

Json = dict[str, Any]


async def devices_by_claim(cluster: Cluster) -> dict[str, list[tuple[str, str]]]:
    """The pool and name of each device that each claim holds."""
    devices = {}
    for item in await cluster.admin.list(CLAIMS):
        results = item.get("status", {}).get("allocation", {}).get("devices", {}).get("results", [])
        devices[item["metadata"]["name"]] = [(result["pool"], result["device"]) for result in results]
    return devices


async def check_no_device_twice(cluster: Cluster) -> dict[str, list[tuple[str, str]]]:
    """As `devices_by_claim`. Raises: AssertionError if two claims hold one device."""
    by_claim = await devices_by_claim(cluster)
    counts = Counter(device for devices in by_claim.values() for device in devices)
    assert not [device for device, count in counts.items() if count > 1], by_claim
    return by_claim


async def kill_at(
    cluster: Cluster,
    start: Callable[[Json], Awaitable[Daemon]],
    goals: Sequence[int],
    *,
    qps: float,
    trouble: Callable[[int], Awaitable[None]] | None = None,
) -> int:
    """Start podium and kill it as soon as so many claims are allocated, for each of the goals.

    Args:
        start: starts podium with a configuration, and does not wait until it is ready.
        qps: slow enough that some claims are allocated and their pods not bound yet.
        trouble: called with the number of each life of podium as it begins.

    Returns how many pods, over all kills, had a device and no node.
    """
    caught = 0
    for life, goal in enumerate(goals):
        daemon = await start(configuration(qps=qps, burst=5))
        if trouble is not None:
            await trouble(life)

        async def has_come_so_far(goal: int = goal) -> bool:
            return sum(map(bool, (await devices_by_claim(cluster)).values())) >= goal

        await eventually(has_come_so_far)
        daemon.kill()
        devices = await check_no_device_twice(cluster)
        caught += sum(map(bool, devices.values())) - len(await cluster.placements())
    return caught

"""Records podium in a simulated cluster where nothing goes wrong: users, kubelets, and preemption."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from pathlib import Path
from random import Random

from podium.lib.garbage_collection import thaw
from podium.sandbox.embedded import Sandbox
from podium.sandbox.resources import resource_named
from tests import manifests
from tests.simulation.network import SimulatedLoop
from tests.simulation.observed import ObservedApp
from tests.simulation.random_objects import ZONE, ZONES
from tests.virtual_time import START_S

_PODS = resource_named("pods")
_SIZES = ("250m", "500m", "1", "2")


def record_calm(directory: Path, *, nodes: int = 6, pods: int = 60, seed: int = 1) -> None:
    """Leave a recording in the directory.

    Args:
        pods: are created one after the other; some end, some are deleted, and the last ones preempt others.
    """
    with asyncio.Runner(loop_factory=SimulatedLoop) as runner:
        try:
            runner.run(_record(directory, nodes, pods, Random(seed)))
        finally:
            thaw()


async def _record(directory: Path, nodes: int, pods: int, random: Random) -> None:
    loop = asyncio.get_running_loop()
    uids = Random(random.getrandbits(32))
    async with Sandbox(
        now=lambda: datetime.fromtimestamp(START_S + loop.time(), UTC), new_uid=lambda: f"{uids.getrandbits(64):016x}"
    ) as sandbox:
        store = sandbox.store
        for index in range(nodes):
            store.create(manifests.node(f"node-{index}", "4", labels={ZONE: ZONES[index % 2]}))
        app = ObservedApp(sandbox.url, Random(1), lambda *_: None, recorded_to=directory)
        running = asyncio.create_task(app.run(lambda: None))
        await asyncio.sleep(2.0)
        for index in range(pods):
            is_urgent = index >= pods - 4
            store.create(
                manifests.pod(
                    f"web-{index}",
                    "3500m" if is_urgent else random.choice(_SIZES),
                    memory=random.choice(("64Mi", "4Gi")),
                    priority=100 if is_urgent else random.choice((0, 1)),
                    terminationGracePeriodSeconds=0,
                )
            )
            await asyncio.sleep(random.choice((0.1, 0.5, 2.0)))
            if index % 5 == 4 and not is_urgent:
                bound_pods = [pod for pod in store.list("pods") if pod["spec"].get("nodeName")]
                metadata = random.choice(bound_pods)["metadata"]
                store.delete_record(
                    _PODS, store.record(_PODS, metadata["namespace"], metadata["name"]), {"gracePeriodSeconds": 0}
                )
        await asyncio.sleep(30.0)
        app.stop()
        await running
        assert app.recorder is not None
        app.recorder.close()

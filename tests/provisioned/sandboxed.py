"""The whole daemon beside the sandbox in virtual time, until nothing happens any more."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import UTC, datetime
from random import Random
from typing import Any, Final, TypeVar

import anyio
import structlog

from podium.config import KubeSchedulerConfiguration, PodGroupRules, default_configuration
from podium.daemon.app import App
from podium.daemon.faces import FACES, stall_watch
from podium.daemon.options import Options
from podium.lib.clock import Clock
from podium.lib.garbage_collection import thaw
from podium.plugins import IN_TREE
from podium.plugins.contrib import CONTRIB
from podium.sandbox.embedded import Sandbox
from tests.manifests import Json
from tests.simulation.network import SimulatedLoop
from tests.virtual_time import START_S, LoopClock

REST_S: Final = 30.0
"""Of virtual time: when no pod has changed for so long, none will. Backoff lasts 10 s at most."""

_REST_S_MAX: Final = 600.0
_TICK_S: Final = 1.0
_T = TypeVar("_T")


def bound_pods(
    objects: Iterable[Json],
    seed: int,
    configuration: KubeSchedulerConfiguration | None = None,
    pod_groups: PodGroupRules | None = None,
    arrivals: Iterable[Iterable[Json]] = (),
) -> Mapping[str, str]:
    """The pods that the daemon binds in a cluster of these objects, by name, each with its node.

    Args:
        arrivals: more objects, which are created once the daemon runs: those of each group at once, a second later
            than the group before.
    """

    async def bind() -> Mapping[str, str]:
        async with sandbox_of(objects) as sandbox, daemon_beside(sandbox, seed, configuration, pod_groups):
            for group in arrivals:
                for manifest in group:
                    sandbox.store.put_raw(manifest)
                await asyncio.sleep(_TICK_S)
            await at_rest(sandbox)
            return nodes_of_pods(sandbox)

    return run(bind)


def run(main: Callable[[], Coroutine[Any, Any, _T]]) -> _T:
    """Run in virtual time, without podium's own log."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    try:
        with asyncio.Runner(loop_factory=SimulatedLoop) as runner:
            return runner.run(main())
    finally:
        # The daemon freezes what it finds at its start; the next run must not carry this one's objects along.
        thaw()


def sandbox_of(
    objects: Iterable[Json], *, controllers: bool = False, **options: Any
) -> AbstractAsyncContextManager[Sandbox]:
    """A sandbox with these objects, whose time is the loop's."""
    loop, uids = asyncio.get_running_loop(), Random(1)
    sandbox = Sandbox(
        now=lambda: datetime.fromtimestamp(START_S + loop.time(), UTC),
        new_uid=lambda: f"{uids.getrandbits(64):016x}",
        controllers=controllers,
        bookmark_interval_s=1000.0,
        **options,
    )
    for manifest in objects:
        sandbox.store.put_raw(manifest)
    return sandbox


@asynccontextmanager
async def daemon_beside(
    sandbox: Sandbox,
    seed: int,
    configuration: KubeSchedulerConfiguration | None = None,
    pod_groups: PodGroupRules | None = None,
    clock: Clock | None = None,
) -> Any:
    """The daemon as it is, with one source of randomness."""
    start, end = anyio.Event(), anyio.Event()
    app = App(
        configuration or default_configuration(),
        Options(
            master=sandbox.url,
            secure_port=0,
            recorder_bytes=0,
            plugins={**IN_TREE, **CONTRIB},
            pod_groups=pod_groups,
        ),
        clock=clock or LoopClock(),
        random=Random(seed),
        # Virtual time stands still while anybody works: the stall watch would see nothing.
        faces=tuple(face for face in FACES if face is not stall_watch),
    )

    async def live() -> None:
        await app.run(start.set)
        end.set()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(live)
        await start.wait()
        yield
        app.stop()
        await end.wait()


async def at_rest(sandbox: Sandbox, rest_s: float = REST_S) -> None:
    """Wait until no pod has changed for a while."""
    loop = asyncio.get_running_loop()
    since, former, limit = loop.time(), _pods(sandbox), loop.time() + _REST_S_MAX
    while loop.time() < since + rest_s:
        assert loop.time() < limit, f"pods still change after {_REST_S_MAX} s"
        await asyncio.sleep(_TICK_S)
        pods = _pods(sandbox)
        if pods != former:
            since, former = loop.time(), pods


def nodes_of_pods(sandbox: Sandbox) -> Mapping[str, str]:
    """The pods that have a node, by name."""
    return {
        pod["metadata"]["name"]: pod["spec"]["nodeName"]
        for pod in sandbox.store.list("pods")
        if pod["spec"].get("nodeName")
    }


def _pods(sandbox: Sandbox) -> list[tuple[str, str]]:
    return [(pod["metadata"]["uid"], pod["spec"].get("nodeName", "")) for pod in sandbox.store.list("pods")]

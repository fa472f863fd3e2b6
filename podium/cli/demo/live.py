"""`podium demo --ui`: a cluster whose pods come and go until Ctrl-C, and the live page on a loopback address."""

from __future__ import annotations

import os
import sys
import webbrowser
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import count
from pathlib import Path
from random import Random
from typing import Any, Final

import anyio
import anyio.to_thread
import orjson
from aiohttp.typedefs import Handler

from podium.cli.demo.run import PODS_PATH, Plan, Progress, create, without_limits
from podium.cli.demo.server import ServerError, server_process
from podium.client.credentials import load
from podium.client.session import ApiSession
from podium.daemon.app import App
from podium.daemon.face import Face, MakeFace
from podium.daemon.faces import FACES
from podium.daemon.options import Options
from podium.daemon.scheduler import Scheduler
from podium.lib.system_clock import SystemClock
from podium.objects.api_errors import AlreadyExists, NotFound
from podium.sandbox.device_drivers import DeviceKind
from podium.sandbox.fill import (
    filling_deployment,
    gangs_and_pods,
    unplaceable_gang,
    unplaceable_pods,
    urgent_pod,
    varied_pods,
)
from podium.sandbox.fill_devices import device_claims_and_pods, no_such_device
from podium.server.serving.plain import refuse_other_sites, serve_plain

_STEP_S: Final = 0.5
_RUNNING_SHARE: Final = 0.7
_CHANGED_SHARE: Final = 0.02
_DEVICES: Final = (DeviceKind.parse("gpu=4"),)
_DEVICE_PODS_MAX: Final = 40
_GANGS: Final = 4
_URGENT_S: Final = 10.0
_LOOPBACK: Final = "127.0.0.1"


async def run_live(
    plan: Plan,
    progress: Progress,
    tell: Callable[[str, Path], None],
    fix_command: Callable[[str], tuple[str, ...]],
    *,
    opens_browser: bool,
) -> None:
    """Run until SIGINT or SIGTERM.

    Args:
        fix_command: returns the command that prints what would make a pod fit, given the kubeconfig.
        tell: called with the address of the page, and the kubeconfig of the demo's API server.
        opens_browser: whether to show the page in one, if there is a screen.

    Raises:
        ServerError: the API server did not start, or ended.
        ExceptionGroup: holds the exceptions of `App.run`.
    """

    async def show(url: str) -> None:
        tell(url, kubeconfig)
        if opens_browser and has_screen():
            await anyio.to_thread.run_sync(webbrowser.open, url)

    progress.begin("starting an API server", 1)
    async with server_process(plan.nodes, plan.seed, _DEVICES) as (kubeconfig, process):
        progress.advance(1)
        async with ApiSession(await load(str(kubeconfig), SystemClock())) as session:
            name = plan.config.profiles[0].scheduler_name
            pods = varied_pods(plan.pods, plan.seed, name)
            begin = max(1, int(len(pods) * _RUNNING_SHARE))
            await create(_background(plan, name), "filling the nodes", session, progress)
            await create([*pods[:begin], *unplaceable_pods(name)], "creating pods", session, progress)
            options = Options(
                kubeconfig=str(kubeconfig),
                secure_port=0,
                plugins=plan.plugins,
                pod_groups=plan.pod_groups,
                has_live_page=True,
                fix_command=fix_command(str(kubeconfig)),
            )
            app = App(without_limits(plan.config), options, faces=serve_plainly(FACES, show))

            async def watch_server() -> None:
                await process.wait()
                raise ServerError(f"the demo's API server ended with exit code {process.returncode}")

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(watch_server)
                tasks.start_soon(come_and_go, pods, begin, session, Random(plan.seed))
                tasks.start_soon(preempt_now_and_then, name, session)
                await app.run()
                tasks.cancel_scope.cancel()


def has_screen() -> bool:
    """Return whether a browser has a screen to open on."""
    return sys.platform in ("darwin", "win32") or any(map(os.environ.get, ("DISPLAY", "WAYLAND_DISPLAY")))


def serve_plainly(faces: Sequence[MakeFace], show: Callable[[str], Any]) -> list[MakeFace]:
    """Add a face that serves the pages of the others without TLS and authorization, to this machine only.

    Args:
        show: awaited with the address of the live page.
    """
    pages: dict[str, Handler] = {}

    def with_pages_recorded(make: MakeFace) -> MakeFace:
        def make_face(scheduler: Scheduler) -> Face:
            face = make(scheduler)
            pages.update({**face.pages, **face.open_pages})
            return face

        return make_face

    async def serve() -> None:
        async with serve_plain(_LOOPBACK, 0, pages, middlewares=[refuse_other_sites]) as port:
            await show(f"http://{_LOOPBACK}:{port}/ui")
            await anyio.sleep_forever()

    return [*map(with_pages_recorded, faces), lambda _: Face(tasks={"plain pages": serve})]


def _background(plan: Plan, scheduler_name: str) -> list[dict[str, Any]]:
    """Return what fills the nodes, and what waits: claims for devices, and gangs where the configuration has them."""
    claims, pods = device_claims_and_pods(_DEVICES, plan.nodes, scheduler_name)
    claim, pod = no_such_device(_DEVICES[0], scheduler_name)
    objects = [filling_deployment(plan.nodes, scheduler_name), *claims, claim, *pods[:_DEVICE_PODS_MAX], pod]
    if plan.pod_groups is not None:
        groups, members = gangs_and_pods(_GANGS, scheduler_name)
        group, no_members = unplaceable_gang(scheduler_name)
        objects += [*groups, group, *members, *no_members]
    return objects


async def preempt_now_and_then(scheduler_name: str, session: ApiSession) -> None:
    """Create a pod that preempts others, and delete it some time later, again and again."""
    for number in count():
        pod = urgent_pod(number, scheduler_name)
        await session.post(PODS_PATH, orjson.dumps(pod))
        await anyio.sleep(_URGENT_S)
        with suppress(NotFound):
            await session.request("DELETE", f"{PODS_PATH}/{pod['metadata']['name']}")
        await anyio.sleep(_URGENT_S)


async def come_and_go(pods: Sequence[dict[str, Any]], begin: int, session: ApiSession, random: Random) -> None:
    """Delete some pods and create others, again and again.

    Args: the first `begin` of the pods exist.
    """
    running, waiting = list(pods[:begin]), deque(pods[begin:])
    while True:
        await anyio.sleep(_STEP_S)
        for _ in range(max(1, int(len(running) * _CHANGED_SHARE))):
            leaving = running.pop(random.randrange(len(running)))
            waiting.append(leaving)
            with suppress(NotFound):  # It was preempted.
                await session.request("DELETE", f"{PODS_PATH}/{leaving['metadata']['name']}")
            coming = waiting.popleft()
            with suppress(AlreadyExists):  # It is still being deleted: its turn comes again.
                await session.post(PODS_PATH, orjson.dumps(coming))
            running.append(coming)

"""Start and stop a sandbox: store, HTTP server, stand-in kubelets and controllers together."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import anyio
import anyio.abc
import anyio.lowlevel
import yaml
from aiohttp import web

from podium.sandbox.controllers import Controllers
from podium.sandbox.device_drivers import DeviceDrivers, DeviceKind
from podium.sandbox.faults import Faults
from podium.sandbox.kubelets import Kubelets
from podium.sandbox.server import ApiServer
from podium.sandbox.store import Store, random_uid, utc_now

HOST = "127.0.0.1"
# A sandbox that starts later has higher resourceVersions, if the earlier one had fewer writes per second than this.
_REVISIONS_PER_S = 1000
# The shutdown timeout for open requests, mostly watches. aiohttp treats 0 as no timeout.
_GRACE_S = 0.05
_NAMESPACES = ("default", "kube-node-lease", "kube-public", "kube-system")
_PRIORITY_CLASSES = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}


class Sandbox:
    """An API server on 127.0.0.1 that runs within `async with`.

    Args:
        port: the port to listen on; 0 takes a free one.
        token: the bearer token that requests need; None for none. kubectl sends no token over plain HTTP.
        kubelets: whether stand-in kubelets run bound pods and remove deleted ones.
        controllers: whether stand-in controllers create the pods of workloads and the claims of pods, and update the
            status of budgets.
        devices: the devices that every node has; stand-in drivers publish them.
        kubelet_delay_s: the time until a bound pod runs, and until a deleted pod is removed.
        ending_s: returns how long a pod takes to end that is to end from a loop time on; None for `kubelet_delay_s`.
        job_s: how long the pods of Jobs run, if there are controllers.
        heartbeat_s: the interval of the nodes' heartbeats; None for a single one.
        history_limit: how many changes per type watches can still read.
        bookmark_interval_s: the interval of a watch's bookmarks.
        now: the wall clock, for timestamps and ages.
        new_uid: creates the UID of each new object.
    """

    def __init__(
        self,
        port: int = 0,
        token: str | None = None,
        *,
        kubelets: bool = True,
        controllers: bool = False,
        devices: Sequence[DeviceKind] = (),
        kubelet_delay_s: float = 0.05,
        ending_s: Callable[[dict[str, Any], float], float] | None = None,
        job_s: float = 2.0,
        heartbeat_s: float | None = None,
        history_limit: int = 20_000,
        bookmark_interval_s: float = 10.0,
        now: Callable[[], datetime] = utc_now,
        new_uid: Callable[[], str] = random_uid,
    ) -> None:
        self.port = port
        self.token = token
        self.store = Store(
            history_limit=history_limit,
            now=now,
            new_uid=new_uid,
            first_revision=int(now().timestamp() * _REVISIONS_PER_S),
        )
        self.faults = Faults(self._refuse)
        self._api = ApiServer(self.store, self.faults, token=token, bookmark_interval_s=bookmark_interval_s)
        self._actors: dict[str, Callable[[], Coroutine[None, None, None]]] = {}
        if kubelets:
            runs_s = job_s if controllers else None
            played = Kubelets(
                self.store, delay_s=kubelet_delay_s, job_s=runs_s, heartbeat_s=heartbeat_s, ending_s=ending_s
            )
            self._actors["stand-in kubelets"] = played.run
        if controllers:
            self._actors["stand-in controllers"] = Controllers(self.store).run
        if devices:
            self._actors["stand-in device drivers"] = DeviceDrivers(self.store, devices).run
        self._server: web.Server | None = None
        self._listener: asyncio.Server | None = None
        self._tasks: anyio.abc.TaskGroup | None = None
        _furnish(self.store)

    @property
    def url(self) -> str:
        """The URL of the API server."""
        return f"http://{HOST}:{self.port}"

    def kubeconfig(self) -> dict[str, Any]:
        """Return a kubeconfig whose only context is this sandbox."""
        name = "podium-sandbox"
        return {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": name, "cluster": {"server": self.url}}],
            "users": [{"name": name, "user": {"token": self.token} if self.token else {}}],
            "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
            "current-context": name,
        }

    def write_kubeconfig(self, path: str | Path) -> Path:
        """Write the kubeconfig to a file, readable by its owner only."""
        target = Path(path)
        target.touch(mode=0o600)
        target.write_text(yaml.safe_dump(self.kubeconfig(), sort_keys=False))
        return target

    async def __aenter__(self) -> Self:
        self._server = web.Server(self._api.handle, handler_cancellation=True, access_log=None)
        await self._listen()
        self._tasks = anyio.create_task_group()
        await self._tasks.__aenter__()
        for name, run in self._actors.items():
            self._tasks.start_soon(run, name=name)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        assert self._tasks is not None
        assert self._server is not None
        self._tasks.cancel_scope.cancel()
        try:
            # An error of the block is raised unchanged. Only a cancellation may come from the task group.
            if isinstance(error, asyncio.CancelledError):
                return await self._tasks.__aexit__(kind, error, trace)
            await self._tasks.__aexit__(None, None, None)
            return False
        finally:
            with anyio.CancelScope(shield=True):
                self._stop_listening()
                await _arrivals()
                await self._server.shutdown(_GRACE_S)

    async def _listen(self) -> None:
        loop = asyncio.get_running_loop()
        assert self._server is not None
        self._listener = await loop.create_server(self._server, HOST, self.port, backlog=1024)
        self.port = self._listener.sockets[0].getsockname()[1]

    def _stop_listening(self) -> None:
        """Accept no more connections.

        The listener is closed a turn of the loop later: Python 3.11 loses a connection that is left open if its
        listener is closed between its arrival and the next turn.
        """
        if self._listener is not None:
            loop = asyncio.get_running_loop()
            for listener_socket in self._listener.sockets:
                loop.remove_reader(listener_socket.fileno())
            loop.call_soon(self._listener.close)
            self._listener = None

    def _refuse(self, duration_s: float) -> None:
        assert self._tasks is not None
        self._stop_listening()
        self._abort_connections()
        self._tasks.start_soon(self._listen_again, duration_s, name="refusing connections")

    def _abort_connections(self) -> None:
        assert self._server is not None
        for connection in self._server.connections:
            if connection.transport is not None:
                connection.transport.abort()

    async def _listen_again(self, delay_s: float) -> None:
        await _arrivals()
        self._abort_connections()
        await anyio.sleep(delay_s)
        if self._listener is None:
            await self._listen()


async def _arrivals() -> None:
    """Wait until the server knows the connections that arrived before: they get a task first, then a protocol."""
    for _ in range(2):
        await anyio.lowlevel.checkpoint()


def _furnish(store: Store) -> None:
    for name in _NAMESPACES:
        store.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    for name, value in _PRIORITY_CLASSES.items():
        metadata = {"name": name}
        store.create(
            {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": metadata, "value": value}
        )

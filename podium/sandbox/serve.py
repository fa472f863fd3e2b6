"""Serve a sandbox as a process of its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import anyio

from podium.sandbox.device_drivers import DeviceKind
from podium.sandbox.embedded import Sandbox
from podium.sandbox.fill import priority_classes, varied_nodes


async def serve(
    port: int = 0,
    nodes: int = 0,
    write_kubeconfig: str | Path | None = None,
    *,
    seed: int = 0,
    devices: Sequence[DeviceKind] = (),
    token: str | None = None,
    started: Callable[[Sandbox], None] = lambda _sandbox: None,
) -> None:
    """Serve a sandbox with controllers and this number of varied nodes, until cancelled.

    Args:
        port: the port to listen on; 0 takes a free one.
        devices: the devices that every node has.
        started: called once the sandbox answers, for example to print its URL.

    Raises:
        OSError: the port is taken, or the kubeconfig cannot be written.
    """
    async with Sandbox(port, token, controllers=True, devices=devices) as sandbox:
        for obj in [*priority_classes(), *varied_nodes(nodes, seed)]:
            sandbox.store.create(obj)
        if write_kubeconfig is not None:
            sandbox.write_kubeconfig(write_kubeconfig)
        started(sandbox)
        await anyio.sleep_forever()

"""The demo's API server: a sandbox in a separate process, so that it does not share the scheduler's event loop.

The process ends when its standard input is closed, as it is even if the demo is killed with SIGKILL (`lib.lifeline`).
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from subprocess import PIPE
from tempfile import TemporaryDirectory

import anyio
import anyio.abc

from podium.cli import event_loop
from podium.lib.lifeline import end_with
from podium.sandbox.device_drivers import DeviceKind

_START_S_MAX = 30.0
_STOP_S_MAX = 5.0


class ServerError(Exception):
    """The sandbox's process did not start, or ended."""


@asynccontextmanager
async def server_process(
    nodes: int, seed: int, devices: Sequence[DeviceKind] = ()
) -> AsyncIterator[tuple[Path, anyio.abc.Process]]:
    """Run a sandbox with this number of nodes during the block; yield its kubeconfig and its process.

    Args: `devices` are those of every node.

    Raises:
        ServerError: the process does not start.
    """
    # The child uses this process's module path: another interpreter would not find the modules of the single file.
    code = f"import sys; sys.path[:] = {sys.path!r}; from podium.cli.demo import server; server.main()"
    # A new session, so that Ctrl-C reaches only the demo, which needs the server until its bindings are finished.
    kinds = [f"--devices={kind.name}={kind.count}" for kind in devices]
    process = await anyio.open_process(
        [sys.executable, "-c", code, f"--nodes={nodes}", f"--seed={seed}", *kinds],
        stdin=PIPE,
        stdout=PIPE,
        stderr=None,
        start_new_session=True,
    )
    try:
        yield await _wait_started(process), process
    finally:
        await _end(process)


async def _wait_started(process: anyio.abc.Process) -> Path:
    assert process.stdout is not None
    try:
        with anyio.fail_after(_START_S_MAX):
            line = await process.stdout.receive()
    except (anyio.EndOfStream, TimeoutError) as error:
        raise ServerError("the demo's API server did not start") from error
    return Path(os.fsdecode(line.rstrip(b"\n")))


async def _end(process: anyio.abc.Process) -> None:
    with anyio.CancelScope(shield=True):
        assert process.stdin is not None
        await process.stdin.aclose()
        with anyio.move_on_after(_STOP_S_MAX):
            await process.wait()
        if process.returncode is None:
            process.kill()
        await process.aclose()


async def _serve(nodes: int, seed: int, devices: Sequence[DeviceKind]) -> None:
    from podium.sandbox import Sandbox, serve

    # Created here and not by the demo, so that it is deleted however the demo ends.
    with TemporaryDirectory(prefix="podium-demo-") as directory:
        kubeconfig = Path(directory) / "kubeconfig"

        def tell(sandbox: Sandbox) -> None:
            del sandbox
            print(kubeconfig, flush=True)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(partial(serve, 0, nodes, kubeconfig, seed=seed, devices=devices, started=tell))
            # Nothing is ever written to standard input, so it becomes readable only at its end.
            await anyio.wait_readable(sys.stdin)
            tasks.cancel_scope.cancel()


def main() -> None:
    """Print the path of the kubeconfig, and serve until standard input ends."""
    parser = argparse.ArgumentParser(prog="podium.cli.demo.server")
    parser.add_argument("--nodes", type=int, required=True)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--devices", type=DeviceKind.parse, action="append", default=[])
    arguments = parser.parse_args()
    end_with(sys.stdin.fileno(), _STOP_S_MAX)
    event_loop.run(partial(_serve, arguments.nodes, arguments.seed, arguments.devices))

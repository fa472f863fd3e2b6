"""The demo's API server: a sandbox in a process of its own, so that it and the scheduler do not share one loop.

It ends when its standard input does, which happens even when the demo is killed outright.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from subprocess import PIPE
from tempfile import TemporaryDirectory

import anyio
import anyio.abc

from podium.cli import event_loop

_START_S_MAX = 30.0
_STOP_S_MAX = 5.0


class ServerError(Exception):
    """The sandbox's process did not come up, or has ended."""


@asynccontextmanager
async def server_process(nodes: int, seed: int) -> AsyncIterator[tuple[Path, anyio.abc.Process]]:
    """A sandbox with so many nodes, for as long as the block lasts: its kubeconfig and its process.

    Raises:
        ServerError: it does not come up.
    """
    # A session of its own: Ctrl-C is for the demo, which still needs the server to finish what is under way.
    process = await anyio.open_process(
        [sys.executable, "-m", "podium.cli.demo_server", f"--nodes={nodes}", f"--seed={seed}"],
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
            told = await process.stdout.receive()
    except (anyio.EndOfStream, TimeoutError) as error:
        raise ServerError("the demo's API server did not start") from error
    return Path(os.fsdecode(told.rstrip(b"\n")))


async def _end(process: anyio.abc.Process) -> None:
    with anyio.CancelScope(shield=True):
        assert process.stdin is not None
        await process.stdin.aclose()
        with anyio.move_on_after(_STOP_S_MAX):
            await process.wait()
        if process.returncode is None:
            process.kill()
        await process.aclose()


async def _serve(nodes: int, seed: int) -> None:
    from podium.sandbox import Sandbox, serve

    # Made here and not by the demo, so that it goes away however the demo ends.
    with TemporaryDirectory(prefix="podium-demo-") as directory:
        kubeconfig = Path(directory) / "kubeconfig"

        def tell(sandbox: Sandbox) -> None:
            del sandbox
            print(kubeconfig, flush=True)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(partial(serve, 0, nodes, kubeconfig, seed=seed, started=tell))
            # Nothing is ever written to it, so it becomes readable when it ends.
            await anyio.wait_readable(sys.stdin)
            tasks.cancel_scope.cancel()


def main() -> None:
    """Tell where the kubeconfig is, and serve until standard input ends."""
    parser = argparse.ArgumentParser(prog="podium.cli.demo_server")
    parser.add_argument("--nodes", type=int, required=True)
    parser.add_argument("--seed", type=int, required=True)
    given = parser.parse_args()
    event_loop.run(partial(_serve, given.nodes, given.seed))


if __name__ == "__main__":
    main()

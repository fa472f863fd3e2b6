"""`podium sandbox`: run the embedded API server on its own."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from podium.cli import event_loop
from podium.cli.options.devices import devices_option
from podium.cli.output import say

if TYPE_CHECKING:
    from podium.sandbox.device_drivers import DeviceKind
    from podium.sandbox.embedded import Sandbox


@click.command()
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="The port on 127.0.0.1; 0 takes a free one.")
@click.option(
    "--nodes", type=click.IntRange(0, 100_000), default=0, show_default=True, help="The number of nodes at the start."
)
@click.option("--write-kubeconfig", type=click.Path(path_type=Path), help="Write a kubeconfig for it to this file.")
@click.option("--seed", default=0, show_default=True, help="The same seed gives the same nodes.")
@devices_option("Devices of every node, such as gpu=8, with a device class and claim templates for them. Repeatable.")
def command(port: int, nodes: int, write_kubeconfig: Path | None, seed: int, devices: tuple[DeviceKind, ...]) -> None:
    """Serve a Kubernetes API from memory, for trials. Ctrl-C stops it."""
    from podium.sandbox import serve

    def tell(sandbox: Sandbox) -> None:
        say(f"Serving on {sandbox.url} with {nodes} nodes. Nothing is kept when it stops.")
        for kind in devices:
            say(f"Each node has {kind.count} devices of class {kind.driver}, also as resource {kind.resource}.")
        if write_kubeconfig is not None:
            say(f"kubectl --kubeconfig {write_kubeconfig} get nodes")

    async def main() -> None:
        await serve(port, nodes, write_kubeconfig, seed=seed, devices=devices, started=tell)

    try:
        event_loop.run(main)
    except OSError as error:
        if error.filename:
            problem = f"cannot write {error.filename}: {error.strerror or error}"
        else:
            # asyncio's text repeats the address as a tuple.
            reason = os.strerror(error.errno) if error.errno else str(error)
            problem = f"cannot serve on port {port}: {reason}; change --port (0 takes a free one)"
        raise click.ClickException(problem) from error
    except KeyboardInterrupt:
        say("Stopped.")

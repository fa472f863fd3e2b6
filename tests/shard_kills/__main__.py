"""`python -m tests.shard_kills`: members of a group of shards are killed while pods come, on a real API server.

Each round kills one of three members, and often something else happens: another member is stopped and comes back,
etcd or the API server is restarted. Exits with 1 if a pod is bound twice or never, a node is overfull, two members act
on one node at a time, or a killed member's nodes are not taken over in time.
"""

from __future__ import annotations

import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from random import Random
from statistics import median

import anyio
import click

from tests.control_plane.builder import BuildError, obtain
from tests.control_plane.client import Client
from tests.control_plane.progress import Progress
from tests.control_plane.servers import ControlPlane
from tests.e2e.cluster import RealCluster
from tests.shard_kills.rounds import Round, Trouble, random_rounds
from tests.shard_kills.server import server_flags
from tests.shard_kills.trial import MEMBERS, Outcome, Timings, Trial


@click.command(help=__doc__)
@click.option("--kills", type=click.IntRange(1), default=100, show_default=True)
@click.option("--seed", type=int, default=1, show_default=True, help="Of the rounds.")
@click.option(
    "--lease", "lease_s", type=click.IntRange(3), default=8, show_default=True, help="A Lease's duration, in s."
)
@click.option(
    "--allowance",
    "allowance_s",
    type=float,
    default=3.0,
    show_default=True,
    help="How much longer than that a take-over may last, in s.",
)
@click.option(
    "--logs",
    "directory",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="Where the members' logs are left. [nowhere]",
)
def main(kills: int, seed: int, lease_s: int, allowance_s: float, directory: Path | None) -> None:
    rounds = random_rounds(kills, len(MEMBERS), Random(seed))
    timings = Timings(lease_s, renew_deadline_s=0.75 * lease_s, retry_s=lease_s / 8)
    with ExitStack() as stack:
        folder = directory or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        try:
            plane = ControlPlane.start(obtain(Progress()), flags=server_flags(folder))
        except BuildError as problem:
            raise click.ClickException(str(problem)) from problem
        stack.callback(plane.stop)
        outcome = anyio.run(_run, plane, folder, timings, allowance_s, rounds)
    click.echo(_table(outcome))
    click.echo(
        f"{kills} kills, {outcome.bound_count:,} pods, each bound once, no node overfull, no two members on a node; "
        f"members ended {outcome.ends.total()} times, {outcome.ends[1]} of them with a lost Lease; "
        f"{outcome.refusals} bindings refused, {outcome.unattributed} of unknown members"
    )
    if late_rounds := [number for number, item in enumerate(outcome.take_overs, 1) if item.is_late]:
        raise click.ClickException(f"nodes were taken over too late in the rounds {late_rounds}")


async def _run(
    plane: ControlPlane, directory: Path, timings: Timings, allowance_s: float, rounds: list[Round]
) -> Outcome:
    async with Client(plane.url, token=plane.admin_token, tls=plane.ssl_context()) as admin:
        cluster = RealCluster(admin, plane.kubeconfig(), plane)
        return await Trial(cluster, directory, timings, allowance_s, click.echo).run(rounds)


def _table(outcome: Outcome) -> str:
    lines = [f"{'a member killed':56}{'times':>8}{'taken over after, median':>28}{'longest':>10}"]
    for trouble in Trouble:
        durations_s = [item.seconds for item in outcome.take_overs if item.trouble is trouble]
        if durations_s:
            times = f"{median(durations_s):26.1f} s{max(durations_s):8.1f} s"
            lines.append(f"{trouble.value:56}{len(durations_s):8}{times}")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())

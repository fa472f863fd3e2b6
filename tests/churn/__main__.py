"""`python -m tests.churn --minutes 20`: record podium while pods come and go on the real API server, and replay it.

There are priorities with preemption, pods that wait at Permit for the next of their kind, claims whose volumes are
bound while podium waits, cordoned nodes, deleted pods, and an API server that restarts. In the middle podium is killed,
and another one goes on. Each of the two recordings is replayed twice. Exits with 1 if a decision differs, or if both
together are replayed in more CPU time than `--times` says.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import anyio
import anyio.to_thread
import click

from benchmarks.cluster import cluster
from benchmarks.schedulers import RUN_PODIUM, start_podium
from tests.churn.actors import SCHEDULER, Actors
from tests.control_plane.builder import BuildError, obtain
from tests.control_plane.client import Client
from tests.control_plane.processes import ServerProcess
from tests.control_plane.progress import Progress
from tests.control_plane.servers import ControlPlane
from tests.manifests import ZONE, node

_PLUGIN = "pairs.py"
_PERMIT = '''
from podium.framework import Code, PermitPlugin, Status


class Pairs(PermitPlugin):
    """Lets a pod of a pair wait for the next one, many of them in vain."""

    def permit(self, state, pod, node_name):
        if "pair" not in pod.metadata.labels:
            return None, 0.0
        for other in self.handle.waiting_pods:
            other.allow(self.name)
        return Status(Code.WAIT), 3.0
'''


def _node(number: int) -> dict[str, Any]:
    return node(f"node-{number:05}", "4", memory="16Gi", pods="20", labels={ZONE: f"zone-{number % 3}"})


def _replay(directory: Path) -> tuple[dict[str, Any], float]:
    """The summary of a replay, and the CPU seconds of its process, which a busy machine changes less than its time.

    From the second one on, its bytecode is there, as that of an installed podium is.
    """
    before_s = _children_cpu_s()
    plugin = f"{directory.parent / _PLUGIN}:Pairs"
    command = [sys.executable, "-m", "podium", "replay", str(directory), "--plugin", plugin, "-o", "json"]
    bytecode = {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": str(directory.parent / "bytecode")}
    result = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, **bytecode})
    click.echo(result.stderr, err=True, nl=False)
    lines = result.stdout.splitlines()
    for line in lines[:-1]:
        click.echo(f"  {line[:2000]}")
    summary: dict[str, Any] = json.loads(lines[-1])
    return summary, _children_cpu_s() - before_s


def _children_cpu_s() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


@dataclass(frozen=True, slots=True)
class _Replays:
    """Two replays of one recording; `cpu_s` is that of the faster one."""

    is_same: bool
    recorded_s: float
    cpu_s: float


def _report(directory: Path) -> _Replays:
    """Replay a recording twice, and say how it went."""
    (first, one_s), (second, other_s) = _replay(directory), _replay(directory)
    is_same = first["same"] and second["same"]
    is_same = is_same and first["digest"] == second["digest"] == first["recorded_digest"]
    replays = _Replays(is_same and first["attempts"] > 0, first["virtual_s"], min(one_s, other_s))
    speed = replays.recorded_s / replays.cpu_s
    click.echo(
        f"{directory.name}: {first['attempts']} attempts in {first['virtual_s']:.0f} s, replayed in "
        f"{one_s:.1f} s and {other_s:.1f} s of CPU ({speed:.0f} times as fast), digest "
        f"{first['digest'][:16]}, {'the same' if is_same else 'NOT THE SAME'}"
    )
    return replays


def _life(plane: ControlPlane, directory: Path, plugin: Path) -> ServerProcess:
    plugins = {"multiPoint": {"enabled": [{"name": "Pairs"}]}}
    profiles = {"profiles": [{"schedulerName": SCHEDULER, "plugins": plugins}]}
    command = [*RUN_PODIUM, "--record", str(directory), "--plugin", f"{plugin}:Pairs"]
    return start_podium(plane, profiles, command=command).process


async def _churn(plane: ControlPlane, directory: Path, plugin: Path, minutes: float, pods: int, nodes: int) -> Actors:
    async with Client(plane.url, token=plane.admin_token, tls=plane.ssl_context()) as admin:
        actors = Actors(admin, Random(1), nodes)
        await actors.furnish()
        process = _life(plane, directory / "killed", plugin)
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(actors.run, pods, minutes * 60.0)
                await anyio.sleep(minutes * 30.0)
                process.kill()
                process = _life(plane, directory / "stopped", plugin)
                await anyio.sleep(minutes * 10.0)
                await anyio.to_thread.run_sync(plane.restart_apiserver)
        finally:
            await anyio.to_thread.run_sync(process.stop)
        return actors


@click.command(help=__doc__)
@click.option("--minutes", type=float, default=20.0, show_default=True)
@click.option("--pods", type=int, default=10_000, show_default=True, help="Pods that are created in all.")
@click.option("--nodes", type=int, default=1000, show_default=True)
@click.option("--times", type=float, default=0.0, help="The speed below which it fails, such as 200 times real time.")
def main(minutes: float, pods: int, nodes: int, times: float) -> None:
    try:
        binaries = obtain(Progress())
    except BuildError as problem:
        raise click.ClickException(str(problem)) from problem
    with tempfile.TemporaryDirectory() as directory_name:
        directory = Path(directory_name)
        plugin = directory / _PLUGIN
        plugin.write_text(_PERMIT)
        with cluster(binaries, nodes, _node) as plane:
            actors = anyio.run(_churn, plane, directory, plugin, minutes, pods, nodes)
        click.echo(f"{actors.created} pods created, {actors.deleted} deleted, {actors.refused} requests in vain")
        lives = [_report(directory / name) for name in ("killed", "stopped")]
    speed = sum(life.recorded_s for life in lives) / sum(life.cpu_s for life in lives)
    click.echo(f"both together: {speed:.0f} times as fast as they were recorded")
    sys.exit(int(speed < times or not all(life.is_same for life in lives)))


if __name__ == "__main__":
    main()

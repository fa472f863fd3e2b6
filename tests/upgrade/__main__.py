"""`python -m tests.upgrade`: the last release and this tree side by side under load, there and back.

5,000 pods come while one version leads and the other stands by: an upgrade, a reload, the way back, another reload,
and an upgrade amid which the leader is killed. Every pod is bound once, no node is overfull, and what either version
has recorded replays to the same decisions.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import anyio
import click

from podium.sandbox import Sandbox
from tests.control_plane.builder import BuildError, obtain
from tests.control_plane.client import Client
from tests.control_plane.progress import Progress
from tests.control_plane.servers import ControlPlane
from tests.e2e.cluster import Cluster, RealCluster, SandboxCluster
from tests.upgrade.trial import BEFORE, NOW, ROOT, Trial, has_commit, last_release, replay_all, unpack


@click.command(help=__doc__)
@click.option("--pods", type=int, default=5000, show_default=True)
@click.option("--commit", default=last_release(), show_default=True, help="The version before.")
@click.option("--sandbox", is_flag=True, help="The embedded API server in place of the real one.")
def main(pods: int, commit: str, sandbox: bool) -> None:
    if not has_commit(commit):
        raise click.ClickException(f"this clone does not have commit {commit}")
    with tempfile.TemporaryDirectory() as name:
        versions = {BEFORE: unpack(commit, Path(name) / "before"), NOW: ROOT}
        try:
            trial = anyio.run(_in_sandbox if sandbox else _on_the_real_server, Path(name), versions, pods)
            recordings = replay_all(trial)
        except AssertionError as problem:
            raise click.ClickException(str(problem)) from problem
        counts = [f"{len(daemon.bound_pods()):,} by {version}" for version, daemon in trial.lives]
    click.echo(f"{pods:,} pods bound once, {', '.join(counts)}; {recordings} recordings replay to the same decisions")


async def _in_sandbox(directory: Path, versions: dict[str, Path], pods: int) -> Trial:
    async with Sandbox() as sandbox, Client(sandbox.url) as admin:
        kubeconfig = sandbox.write_kubeconfig(directory / "kubeconfig")
        return await _run(SandboxCluster(admin, kubeconfig, sandbox), directory, versions, pods)


async def _on_the_real_server(directory: Path, versions: dict[str, Path], pods: int) -> Trial:
    try:
        plane = ControlPlane.start(obtain(Progress()))
    except BuildError as problem:
        raise click.ClickException(str(problem)) from problem
    try:
        async with Client(plane.url, token=plane.admin_token, tls=plane.ssl_context()) as admin:
            return await _run(RealCluster(admin, plane.kubeconfig(), plane), directory, versions, pods)
    finally:
        plane.stop()


async def _run(cluster: Cluster, directory: Path, versions: dict[str, Path], pods: int) -> Trial:
    trial = Trial(cluster, directory, versions, pods)
    await trial.run()
    return trial


if __name__ == "__main__":
    main()

"""`python -m tests.upstream_e2e`: upstream's own end-to-end specs, with podium in the place of kube-scheduler.

Runs the real API server with all controllers of the real kube-controller-manager but the one that watches kubelets,
stand-in kubelets, and podium under the name default-scheduler. By default these specs are selected: those of device
claims that need no kubelet, and those of workloads and pod groups. Exits with 1 if one of them does not pass,
or none is selected.
"""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Final

import anyio
import anyio.to_thread
import click

from tests import manifests
from tests.control_plane.builder import BuildError
from tests.control_plane.builder import obtain as obtain_control_plane
from tests.control_plane.client import Client
from tests.control_plane.progress import Progress
from tests.control_plane.servers import ControlPlane
from tests.e2e.cluster import RealCluster
from tests.e2e.daemon import Daemon, configuration
from tests.upstream_e2e import kubelets
from tests.upstream_e2e.suite import Results, obtain, results

_NO_KUBELET: Final = (
    "(DRA || FeatureGate: containsAny GenericWorkload) && !(Feature: containsAny DynamicResourceAllocation)"
)
_GATES: Final = "GenericWorkload=true,GangScheduling=true"
_SERVER_GATES: Final = f"--feature-gates={_GATES},WorkloadWithJob=true,DRAResourcePoolStatus=true"
_VERSIONS: Final = ("scheduling.k8s.io/v1beta1", "resource.k8s.io/v1alpha3")
_CONTROLLERS: Final = ("*", "-node-lifecycle-controller")
_NODES: Final = 4
_BRACKETS: Final = re.compile(r"\[[^]]*\] ?")
"""Labels in the name of a spec."""


@click.command(help=__doc__)
@click.option("--labels", default=_NO_KUBELET, show_default=True, help="which specs, as ginkgo's filter of labels")
@click.option("--focus", default="", help="of these, the ones whose name, labels in brackets included, matches this")
@click.option("--skip", default="", help="and not this one")
@click.option("--log", type=click.Path(path_type=Path), help="where the suite's own output goes")
@click.option("--page", type=click.Path(path_type=Path), help="write the results into this page of the documentation")
def main(labels: str, focus: str, skip: str, log: Path | None, page: Path | None) -> None:
    progress = Progress()
    try:
        program = obtain(progress)
        binaries = obtain_control_plane(progress)
    except BuildError as problem:
        raise click.ClickException(str(problem)) from problem
    versions = ",".join(f"{version}=true" for version in _VERSIONS)
    plane = ControlPlane.start(binaries, flags=(_SERVER_GATES, f"--runtime-config={versions}", "--allow-privileged"))
    try:
        with tempfile.TemporaryDirectory() as directory:
            filters = (f"--ginkgo.label-filter={labels}", f"--ginkgo.focus={focus}", f"--ginkgo.skip={skip}")
            suite_results = anyio.run(_run, plane, program, filters, Path(directory), log)
    finally:
        plane.stop()
    _print(suite_results)
    if page is not None:
        page.write_text(_page(suite_results))
    sys.exit(not suite_results.is_good)


async def _run(
    plane: ControlPlane, program: Path, filters: tuple[str, ...], directory: Path, log: Path | None
) -> Results:
    controllers = await anyio.to_thread.run_sync(
        lambda: plane.start_controllers(*_CONTROLLERS, more_flags=(_SERVER_GATES,))
    )
    config = configuration(profiles=[{"schedulerName": "default-scheduler"}])
    flags = (f"--feature-gates={_GATES}", "--as-default-scheduler")
    podium = Daemon(directory / "podium", plane.kubeconfig(), config, flags=flags)
    try:
        async with Client(plane.url, token=plane.admin_token, tls=plane.ssl_context()) as admin:
            await RealCluster(admin, plane.kubeconfig(), plane).create(*manifests.nodes(_NODES))
            played = asyncio.ensure_future(kubelets.run(admin))
            try:
                report = directory / "report.json"
                flags = (
                    "--provider=skeleton",
                    "--ginkgo.no-color",
                    "--dump-logs-on-failure=false",
                    "--ginkgo.timeout=1h",
                )
                command = [program, f"--kubeconfig={plane.kubeconfig()}", f"--ginkgo.json-report={report}", *flags]
                with (log or directory / "log").open("wb") as output:
                    await anyio.run_process([*command, *filters], stdout=output, stderr=subprocess.STDOUT, check=False)
                assert podium.is_running, podium.output()
                return results(report)
            finally:
                played.cancel()
    finally:
        podium.kill()
        await anyio.to_thread.run_sync(controllers.kill)


def _print(suite_results: Results) -> None:
    for spec in suite_results.specs:
        click.echo(f"{spec.state:8} {spec.seconds:5.0f} s  {spec.name}")
        if not spec.has_passed:
            click.echo("".join(f"    {line}\n" for line in spec.message.splitlines()[:4]), nl=False)
    click.echo(_counts_text(suite_results))


def _counts_text(suite_results: Results) -> str:
    counts = Counter(spec.state for spec in suite_results.specs)
    return f"{len(suite_results.specs)} specs: " + ", ".join(
        f"{count} {state}" for state, count in sorted(counts.items())
    )


def _page(suite_results: Results) -> str:
    counts, kubelet_count = _counts_text(suite_results), len(suite_results.for_kubelets)
    lines = [
        "# Upstream's own tests",
        "",
        "Kubernetes tests itself with end-to-end specs. Those of device claims that need no kubelet, and those of",
        "workloads and pod groups, run with podium in the place of kube-scheduler, under the name `default-scheduler`,",
        "on the real kube-apiserver and kube-controller-manager 1.36.2 with stand-in kubelets. This page is written by",
        "`python -m tests.upstream_e2e --page docs/upstream-e2e.md`.",
        "",
        f"{counts}. {kubelet_count} more specs of device claims are not run: they need a kubelet",
        "that prepares devices and starts containers, whose output they read. Those of objects alone (CRUD, slices,",
        "pool status, permissions) do not depend on the scheduler, and are counted all the same.",
        "",
        "| spec | result |",
        "|---|---|",
        *(f"| {_BRACKETS.sub('', spec.name).strip()} | {spec.state} |" for spec in suite_results.specs),
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()

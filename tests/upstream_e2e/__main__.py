"""`python -m tests.upstream_e2e`: upstream's own end-to-end specs, with podium in the place of kube-scheduler.

Runs the real API server with all controllers of the real kube-controller-manager but the one that watches kubelets,
stand-in kubelets, and podium under the name default-scheduler. By default these specs are selected: those of
scheduling, of workloads and pod groups, and those of device claims that need no kubelet. Exits with 1 if one of them
does not pass, or none is selected. `--scheduler podium --scheduler kube-scheduler` runs them with both, side by side.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

import anyio
import anyio.to_thread
import click

from tests.control_plane.builder import BuildError
from tests.control_plane.builder import obtain as obtain_control_plane
from tests.control_plane.client import Client
from tests.control_plane.locate import Binaries
from tests.control_plane.processes import ServerProcess
from tests.control_plane.progress import Progress
from tests.control_plane.servers import ControlPlane
from tests.e2e.daemon import Daemon, configuration
from tests.upstream_e2e import kubelets
from tests.upstream_e2e.page import counts_text, page_text
from tests.upstream_e2e.suite import Results, obtain, results

_NO_KUBELET: Final = (
    "(sig-scheduling || DRA || FeatureGate: containsAny {GenericWorkload, WorkloadWithJob})"
    " && !(Feature: containsAny DynamicResourceAllocation) && !(FeatureGate: containsAny DRADeviceCompatibilityGroups)"
)
_GATES: Final = "--feature-gates=GenericWorkload=true"
_SERVER_GATES: Final = f"{_GATES},WorkloadWithJob=true,DRAResourcePoolStatus=true,DRAPartitionableDevicesType=true"
_SCHEDULERS: Final = ("podium", "kube-scheduler")
_VERSIONS: Final = ("scheduling.k8s.io/v1beta1", "resource.k8s.io/v1alpha3")
_CONTROLLERS: Final = ("*", "-node-lifecycle-controller")


@click.command(help=__doc__)
@click.option("--labels", default=_NO_KUBELET, show_default=True, help="which specs, as ginkgo's filter of labels")
@click.option("--focus", default="", help="of these, the ones whose name, labels in brackets included, matches this")
@click.option("--skip", default="", help="and not this one")
@click.option("--scheduler", "schedulers", type=click.Choice(_SCHEDULERS), multiple=True, default=_SCHEDULERS[:1])
@click.option("--log", type=click.Path(path_type=Path, file_okay=False), help="a folder for the suite's own output")
@click.option("--page", type=click.Path(path_type=Path), help="write the results into this page of the documentation")
def main(labels: str, focus: str, skip: str, schedulers: tuple[str, ...], log: Path | None, page: Path | None) -> None:
    progress = Progress()
    try:
        program = obtain(progress)
        binaries = obtain_control_plane(progress)
    except BuildError as problem:
        raise click.ClickException(str(problem)) from problem
    if log is not None:
        log.mkdir(parents=True, exist_ok=True)
    filters = (f"--ginkgo.label-filter={labels}", f"--ginkgo.focus={focus}", f"--ginkgo.skip={skip}")
    by_scheduler = anyio.run(_run_all, schedulers, binaries, (str(program), *filters), log)
    for scheduler, suite_results in by_scheduler.items():
        click.echo(f"== {scheduler}")
        _print(suite_results)
    if page is not None:
        page.write_text(page_text(by_scheduler))
    sys.exit(not all(suite_results.is_good for suite_results in by_scheduler.values()))


async def _run_all(
    schedulers: tuple[str, ...], binaries: Binaries, command: tuple[str, ...], log: Path | None
) -> dict[str, Results]:
    by_scheduler: dict[str, Results] = {}

    async def run_with(scheduler: str) -> None:
        plane = await anyio.to_thread.run_sync(lambda: ControlPlane.start(binaries, flags=_server_flags()))
        try:
            with tempfile.TemporaryDirectory() as directory:
                by_scheduler[scheduler] = await _run(plane, scheduler, command, Path(directory), log or Path(directory))
        finally:
            plane.stop()

    # Specs wait most of the time, so clusters side by side cost little more than one.
    async with anyio.create_task_group() as tasks:
        for scheduler in schedulers:
            tasks.start_soon(run_with, scheduler)
    return {scheduler: by_scheduler[scheduler] for scheduler in schedulers}


def _server_flags() -> tuple[str, ...]:
    versions = ",".join(f"{version}=true" for version in _VERSIONS)
    return (_SERVER_GATES, f"--runtime-config={versions}", "--allow-privileged")


async def _run(plane: ControlPlane, scheduler: str, command: tuple[str, ...], directory: Path, log: Path) -> Results:
    controllers = await anyio.to_thread.run_sync(
        lambda: plane.start_controllers(*_CONTROLLERS, more_flags=(_SERVER_GATES,))
    )
    process = await anyio.to_thread.run_sync(_start, scheduler, plane, directory)
    try:
        async with Client(plane.url, token=plane.admin_token, tls=plane.ssl_context()) as admin:
            await kubelets.join(admin)
            played = asyncio.ensure_future(kubelets.run(admin))
            try:
                report = directory / "report.json"
                flags = (
                    f"--kubeconfig={plane.kubeconfig()}",
                    f"--ginkgo.json-report={report}",
                    "--provider=skeleton",
                    f"--num-nodes={kubelets.COUNT}",
                    "--ginkgo.no-color",
                    "--dump-logs-on-failure=false",
                    "--ginkgo.timeout=1h",
                )
                with (log / f"{scheduler}.log").open("wb") as output:
                    await anyio.run_process([*command, *flags], stdout=output, stderr=subprocess.STDOUT, check=False)
                assert process.is_running, f"{scheduler} has ended"
                return results(report)
            finally:
                played.cancel()
    finally:
        process.kill()
        await anyio.to_thread.run_sync(controllers.kill)


def _start(scheduler: str, plane: ControlPlane, directory: Path) -> Daemon | ServerProcess:
    if scheduler == "kube-scheduler":
        return plane.start_scheduler(flags=(_GATES,)).process
    config = configuration(profiles=[{"schedulerName": "default-scheduler"}])
    return Daemon(directory / "podium", plane.kubeconfig(), config, flags=(_GATES, "--as-default-scheduler"))


def _print(suite_results: Results) -> None:
    for spec in suite_results.specs:
        click.echo(f"{spec.state:8} {spec.seconds:5.0f} s  {spec.name}")
        if not spec.has_passed:
            click.echo("".join(f"    {line}\n" for line in spec.message.splitlines()[:4]), nl=False)
    click.echo(counts_text(suite_results))


if __name__ == "__main__":
    main()

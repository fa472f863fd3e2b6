"""`python -m tests.skew`: podium against kube-apiserver and kube-controller-manager of several minor releases.

Builds each release once, runs the end-to-end tests of each topic against it, and prints a table. Exits with 1 if a test
failed, or if a topic had none.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

import click

from tests.control_plane import catalogue
from tests.control_plane.builder import BuildError
from tests.control_plane.progress import Progress
from tests.skew.releases import MINORS, VARIABLE, module_of, obtain
from tests.skew.results import Result, read_result, table

E2E: Final = Path(__file__).parents[1] / "e2e"
TOPICS: Final = {
    "Deployment, missing kinds, doctor": ("test_skew.py",),
    "binding and Events": ("test_scheduling.py",),
    "preemption": ("test_preemption.py",),
    "volumes": ("test_volumes.py",),
}


@click.command(help=__doc__)
@click.option("--minor", "minors", multiple=True, type=click.Choice(MINORS), help="By default all of them.")
@click.option("--build-only", is_flag=True, help="Build the releases and run nothing.")
def main(minors: tuple[str, ...], build_only: bool) -> None:
    results: dict[str, dict[str, Result]] = {}
    for minor in minors or MINORS:
        version = catalogue.kubernetes_version(module_of(minor))
        environ = {**os.environ, VARIABLE: minor, "PODIUM_REQUIRE_CONTROL_PLANE": "1"}
        try:
            obtain(Progress(), environ)
        except BuildError as problem:
            raise click.ClickException(f"Kubernetes {version}: {problem}") from problem
        if not build_only:
            results[version] = {}
            for topic, files in TOPICS.items():
                click.echo(f"== Kubernetes {version}: {topic}")
                results[version][topic] = _run(files, environ)
    if results:
        click.echo(table(results, list(TOPICS)))
    sys.exit(not all(result.is_good for by_topic in results.values() for result in by_topic.values()))


def _run(files: tuple[str, ...], environ: dict[str, str]) -> Result:
    with tempfile.TemporaryDirectory() as directory:
        report = Path(directory) / "report.xml"
        paths = [str(E2E / name) for name in files]
        command = [sys.executable, "-m", "pytest", "-q", "-m", "control_plane", f"--junitxml={report}", *paths]
        subprocess.run(command, env=environ, check=False)
        return read_result(report)


if __name__ == "__main__":
    main()

"""`python -m tests.helm`: write what the chart has from the code, and render the plain manifests in deploy/."""

from __future__ import annotations

import sys

import click

from tests.control_plane.builder import BuildError
from tests.control_plane.progress import Progress
from tests.go_tools.binaries import HELM, obtain
from tests.helm import values_schema
from tests.helm.chart import Helm
from tests.helm.manifests import DEPLOY, render


@click.command(help=__doc__)
def main() -> None:
    progress = Progress(interval_s=3.0)
    try:
        helm = Helm(obtain(progress)[HELM])
    except BuildError as problem:
        progress.phase(f"not available: {problem}")
        sys.exit(1)
    values_schema.SCHEMA.write_text(values_schema.schema_text())
    for path, text in render(helm):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        click.echo(path.relative_to(DEPLOY.parent))


if __name__ == "__main__":
    main()

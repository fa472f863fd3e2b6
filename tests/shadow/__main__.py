"""`python -m tests.shadow`: kube-scheduler's choices, pod by pod, beside what podium would have done.

Runs the workloads of the benchmarks on the real control plane, with `podium shadow` beside the real kube-scheduler.
Exits with 1 if podium disagrees about a pod and has no reason for it.
"""

from __future__ import annotations

import json
import sys

import click

from benchmarks.cluster import cluster
from benchmarks.workloads import WORKLOADS
from tests.control_plane.builder import BuildError, obtain
from tests.control_plane.progress import Progress
from tests.shadow.beside import compare, unexplained_disagreements

SHOWN = 5


@click.command(help=__doc__)
@click.option("--pods", type=int, default=1000, show_default=True, help="Pods of each kind, as far as they fit.")
@click.option("--nodes", type=int, default=1100, show_default=True)
@click.option("--workload", "names", multiple=True, type=click.Choice(list(WORKLOADS)), help="By default all of them.")
@click.option(
    "--percentage",
    type=click.IntRange(0, 100),
    default=100,
    show_default=True,
    help="kube-scheduler's percentageOfNodesToScore; 0 is its adaptive default.",
)
def main(pods: int, nodes: int, names: tuple[str, ...], percentage: int) -> None:
    try:
        binaries = obtain(Progress())
    except BuildError as problem:
        raise click.ClickException(str(problem)) from problem
    wrong = 0
    with cluster(binaries, nodes) as plane:
        for name in names or WORKLOADS:
            workload = WORKLOADS[name]
            count = workload.pods_that_fit(nodes, pods)
            report = compare(plane, workload, nodes, count, percentage=percentage)
            open_ = unexplained_disagreements(report)
            wrong += len(open_) + count - report["compared"]
            reasons = {reason: count for reason, count in report["reasons"].items() if count}
            click.echo(
                f"{name}: {report['compared']} of {count} compared, {report['agreed']} agreed, "
                f"reasons {reasons or 'none needed'}, {len(open_)} unexplained, "
                f"evaluation p50 {report['evaluation_s']['p50'] * 1e3:.1f} ms"
            )
            for disagreement in open_[:SHOWN]:
                click.echo(f"  {json.dumps(disagreement)}")
    sys.exit(int(bool(wrong)))


if __name__ == "__main__":
    main()

"""`podium make-room`: which pods must move so that a pod or a gang fits?"""

from __future__ import annotations

import functools
from pathlib import Path
from typing import TYPE_CHECKING

import click

from podium.cli import event_loop, files
from podium.cli.asking import errors_shown, load_cluster
from podium.cli.exit_codes import EXIT_NO
from podium.cli.interrupts import exit_130_at_once
from podium.cli.options.cluster import cluster_options_with
from podium.cli.options.configuration import plugin_option
from podium.cli.options.durations import duration
from podium.cli.options.names import name_in
from podium.cli.options.releases import as_the_cluster
from podium.cli.options.time_limit import lift_time_limit, start_time_limit, warn_of_time_limit
from podium.cli.output import TEXT, output_option, print_value, say

if TYPE_CHECKING:
    from podium.insight import Cluster
    from podium.insight.room.plan import RoomAnswer


@click.command()
@cluster_options_with("10s")
@click.option(
    "--for",
    "subject",
    required=True,
    metavar="NAMESPACE/NAME",
    callback=name_in,
    help="The pending pod or gang to make room for.",
)
@click.option("--config", type=click.Path(path_type=Path), help="A KubeSchedulerConfiguration, YAML or JSON.")
@plugin_option
@as_the_cluster
@click.option("--carry-out", "carries_out", is_flag=True, help="Move the pods in the running cluster, step by step.")
@click.option(
    "--dry-run", "is_dry_run", is_flag=True, help="With --carry-out: send only dry-run requests, and change nothing."
)
@click.option(
    "--step-timeout",
    default="5m",
    show_default=True,
    metavar="DURATION",
    callback=duration,
    help="With --carry-out: how long a replacement pod may take to start.",
)
@click.option(
    "--exit-code",
    "tells_by_status",
    is_flag=True,
    help=f"Exit with {EXIT_NO} if no moves are found that make room.",
)
@output_option()
def command(
    clusters: tuple[str, ...],
    kubeconfig: str | None,
    context: str | None,
    subject: str,
    config: Path | None,
    plugins: tuple[str, ...],
    carries_out: bool,
    is_dry_run: bool,
    step_timeout: float,
    tells_by_status: bool,
    output: str,
) -> None:
    """Show the fewest moves of other pods after which a pod or a gang fits. Changes nothing without --carry-out.

    \b
    podium make-room -f cluster.yaml --for shop/report
    podium make-room --kubeconfig FILE --for shop/report --carry-out --dry-run
    podium make-room --kubeconfig FILE --for shop/report --carry-out

    Each step was rehearsed: no PodDisruptionBudget is violated, and a pod has its place before it is evicted.
    """  # noqa: D301
    if clusters and carries_out:
        raise click.UsageError("--carry-out moves pods of a running cluster: give --kubeconfig instead of files")
    if is_dry_run and not carries_out:
        raise click.UsageError("--dry-run goes with --carry-out; without both nothing is changed")
    # Ctrl-C may end a question at once; after moves the nodes that were cordoned are uncordoned first.
    if not carries_out:
        click.get_current_context().with_resource(exit_130_at_once())
    files.demand_one_stdin((*clusters, config))
    with errors_shown():
        from podium.insight.room.make_room import make_room, subject_named

        load_result = load_cluster(clusters, (kubeconfig, context), config, plugins)
        pod = subject_named(load_result.cluster, subject)
        answer = make_room(load_result.cluster, pod, start_time_limit())
    from podium.cli.cluster_source import warn_of_missing

    warn_of_missing(load_result.missing_kinds())
    warn_of_time_limit(output)
    if output == TEXT:
        from podium.cli.room_table import print_answer

        print_answer(answer)
    else:
        print_value(answer.as_dict() | load_result.basis(), output)
    if carries_out and answer.plan is not None:
        _carry_out(load_result.cluster, answer, (kubeconfig, context), step_timeout, output, is_dry_run=is_dry_run)
    if tells_by_status and answer.plan is None and answer.nodes is None:
        raise SystemExit(EXIT_NO)


def _carry_out(
    cluster: Cluster,
    answer: RoomAnswer,
    live: tuple[str | None, str | None],
    step_timeout_s: float,
    output: str,
    *,
    is_dry_run: bool,
) -> None:
    """Move the pods, and say what was done: with text output on standard output, otherwise on standard error."""
    from podium.insight.room.carrying_out import CarryingOutError, Expectation, carrying_out_with

    plan = answer.plan
    assert plan is not None
    lift_time_limit()
    report = functools.partial(say, err=output != TEXT)
    expectation = Expectation.of(cluster, plan)

    async def carry_out() -> None:
        async with carrying_out_with(live, report, step_s_max=step_timeout_s) as carrier:
            # First without any effect: what would be refused at the third step must not begin.
            await carrier.dry_run(plan, expectation)
            if not is_dry_run:
                await carrier.carry_out(plan, expectation)

    try:
        event_loop.run(carry_out)
    except CarryingOutError as error:
        raise click.ClickException(str(error)) from error

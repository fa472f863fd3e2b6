"""`podium outlook`: does a pod get a node now, later or never?"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from podium.cli import files
from podium.cli.asking import errors_shown, load_cluster
from podium.cli.exit_codes import EXIT_NO
from podium.cli.interrupts import exit_130_at_once
from podium.cli.options.cluster import cluster_options
from podium.cli.options.configuration import plugin_option
from podium.cli.options.releases import as_the_cluster
from podium.cli.options.time_limit import current_time_limit, warn_of_time_limit
from podium.cli.output import TEXT, output_option, print_value, say
from podium.cli.why import PodName

if TYPE_CHECKING:
    from podium.insight.loading import LoadResult
    from podium.insight.outlook import Outlook
    from podium.insight.steps import Apply


def _time(_: click.Context, __: click.Parameter, value: str | None) -> float | None:
    """Read a time. Raises: click.BadParameter: it has another form."""
    from podium.objects.times import parse_time

    try:
        return None if value is None else parse_time(value)
    except ValueError as error:
        raise click.BadParameter(str(error)) from error


@click.command()
@click.argument("pod")
@click.option("-n", "--namespace", help="The namespace of the pod; POD is then a name, and no file.")
@cluster_options
@click.option("--config", type=click.Path(path_type=Path), help="A KubeSchedulerConfiguration, YAML or JSON.")
@plugin_option
@as_the_cluster
@click.option(
    "--at",
    "at_s",
    metavar="TIME",
    callback=_time,
    help="Ask as of this time, such as 2026-01-31T12:00:00Z.  [default: now, or with -f the latest time in the files]",
)
@click.option("--exit-code", "tells_by_status", is_flag=True, help=f"Exit with {EXIT_NO} if a pod never gets a node.")
@output_option()
def command(
    pod: str,
    namespace: str | None,
    clusters: tuple[str, ...],
    kubeconfig: str | None,
    context: str | None,
    config: Path | None,
    plugins: tuple[str, ...],
    at_s: float | None,
    tells_by_status: bool,
    output: str,
) -> None:
    """Show whether a pod gets a node now, after a preemption, when other pods end, or never.

    \b
    podium outlook pod.yaml -f cluster.yaml
    podium outlook report -n shop --kubeconfig FILE

    POD is a file of pods or workloads that the cluster does not have yet, or a pod of the cluster, by its name or as
    NAMESPACE/NAME. The pods that are ahead of it in the scheduler's queue take what they take first. A time is only
    given where an object says when a pod ends. Changes nothing in any cluster.
    """  # noqa: D301
    click.get_current_context().with_resource(exit_130_at_once())
    is_file = namespace is None and (pod == "-" or Path(pod).is_file())
    name = None if is_file else PodName.read(pod, namespace)
    files.demand_one_stdin((*clusters, pod if is_file else None, config))
    with errors_shown():
        from podium.insight.forecast import outlook_of
        from podium.insight.steps import pods_applied

        step = _step(pod) if is_file else None
        pods = [] if step is None else pods_applied([step])
        load_result = load_cluster(clusters, (kubeconfig, context), config, plugins, pods)
        target: Any = step.objects if step is not None else None
        if name is not None:
            target = name.in_context(clusters, kubeconfig, context).found_in(load_result)
        outlook = outlook_of(
            load_result.cluster,
            target if isinstance(target, Sequence) else target.key,
            load_result.time_s(is_dump=bool(clusters)) if at_s is None else at_s,
            limit=current_time_limit(),
        )
    if step is not None:
        from podium.cli.cluster_source import warn_of_left_out

        warn_of_left_out(step.objects, pod)
    _print(load_result, outlook, output)
    if tells_by_status and outlook.verdict.value == "never":
        raise SystemExit(EXIT_NO)


def _step(name: str) -> Apply:
    from podium.cli.cluster_source import objects_in
    from podium.insight.steps import Apply

    return Apply(name, objects_in([name]))


def _print(load_result: LoadResult, outlook: Outlook, output: str) -> None:
    from podium.cli.cluster_source import warn_of_missing

    warn_of_missing(load_result.missing_kinds())
    warn_of_time_limit(output)
    if output != TEXT:
        answer: dict[str, Any] = outlook.as_dict()
        print_value(answer | load_result.basis(), output)
        return
    for line in outlook.lines():
        say(line)

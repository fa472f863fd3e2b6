"""`podium outlook`: does a pod get a node now, later or never?"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
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
from podium.cli.options.running_podium import lease_option
from podium.cli.options.time_limit import start_time_limit, warn_of_time_limit
from podium.cli.output import TEXT, output_option, print_value, say
from podium.cli.why import Leader, PodName, ask_running_podium, take_lease

if TYPE_CHECKING:
    from podium.insight.loading import LoadResult
    from podium.insight.outlook import Outlook
    from podium.insight.steps import Apply

_SUFFIXES = (".yaml", ".yml", ".json", ".jsonl")
"""With these a name is meant as that of a file."""
_NO_POD = "-"
"""The name under which the running podium knows no pod: it is asked for its configuration only."""


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
@lease_option
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
    lease: str,
) -> None:
    """Show whether a pod gets a node now, after a preemption, when other pods end, or never.

    \b
    podium outlook pod.yaml -f cluster.yaml
    podium outlook report -n shop --kubeconfig FILE

    POD is a file of pods or workloads that the cluster does not have yet, or a pod of the cluster, by its name or as
    NAMESPACE/NAME. Pods ahead of it in the scheduler's queue are placed first. A time is given only if an object says
    when a pod ends. With a kubeconfig the running podium is asked for its configuration, which decides, and for its own
    queue. Changes nothing in any cluster.
    """  # noqa: D301
    click.get_current_context().with_resource(exit_130_at_once())
    is_file = namespace is None and (pod == "-" or Path(pod).is_file())
    if namespace is None and not is_file and pod.endswith(_SUFFIXES):
        raise click.UsageError(f"there is no file {pod}; for a pod of that name give its namespace with -n")
    name = None if is_file else PodName.read(pod, namespace)
    files.demand_one_stdin((*clusters, pod if is_file else None, config))
    lease = take_lease({"lease": lease}, goes_with_cluster=not clusters)
    with errors_shown():
        from podium.insight.outlook_questions import outlook_of
        from podium.insight.steps import pods_applied

        step = _step(pod) if is_file else None
        pods = [] if step is None else pods_applied([step])
        name = name and name.in_context(clusters, kubeconfig, context)
        leader, ask = Leader(), partial(ask_running_podium, (kubeconfig, context), lease, node="")
        # With files, or a configuration of one's own, the running podium has another queue.
        if not clusters and config is None and not plugins and lease:
            leader = ask(name or PodName(_NO_POD, "default", is_given=True))
        load_result = load_cluster(clusters, (kubeconfig, context), config, plugins, pods, running=leader.configuration)
        target: Any = step.objects if step is not None else None
        if name is not None:
            target = name.found_in(load_result)
            # The pod's namespace may only follow from the cluster; the leader was asked about the default one.
            leader = leader if target.key == name.key else leader.about(target, ask)
        outlook = outlook_of(
            load_result.cluster,
            target if isinstance(target, Sequence) else target.key,
            load_result.time_s(is_dump=bool(clusters)) if at_s is None else at_s,
            limit=start_time_limit(),
            has_one_queue=not load_result.any_scheduler,
        )
    if step is not None:
        from podium.cli.cluster_source import warn_of_left_out

        warn_of_left_out(step.objects, pod)
    _print(load_result, outlook, leader, output)
    if tells_by_status and outlook.verdict.value == "never":
        raise SystemExit(EXIT_NO)


def _step(name: str) -> Apply:
    from podium.cli.cluster_source import objects_in
    from podium.insight.steps import Apply

    return Apply(name, objects_in([name]))


def _print(load_result: LoadResult, outlook: Outlook, leader: Leader, output: str) -> None:
    from podium.cli.cluster_source import warn_of_missing
    from podium.cli.story import queue_lines

    warn_of_missing(load_result.missing_kinds())
    warn_of_time_limit(output)
    for text in outlook.warnings:
        say(f"warning: {text}", err=True)
    if leader.problem:
        say(f"computed from the cluster alone: {leader.problem}", err=True)
    if output != TEXT:
        answer: dict[str, Any] = outlook.as_dict()
        running = {} if leader.story is None else {"leader": leader.as_dict()}
        print_value(answer | running | load_result.basis(), output)
        return
    story = [] if leader.story is None else queue_lines(leader.story, leader.name)
    for line in (*story, *outlook.lines()):
        say(line)

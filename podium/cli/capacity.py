"""`podium capacity`: how many more of a pod fit, and what stops the next one?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from podium.cli import files
from podium.cli.asking import errors_shown, load_cluster
from podium.cli.exit_codes import EXIT_NO
from podium.cli.interrupts import exit_130_at_once
from podium.cli.new_nodes import check_new_node_options, new_node_options, new_nodes_in, pool_resources
from podium.cli.options.cluster import cluster_options
from podium.cli.options.configuration import plugin_option
from podium.cli.options.paths import FILE
from podium.cli.options.releases import as_the_cluster
from podium.cli.options.time_limit import start_time_limit, warn_of_time_limit
from podium.cli.output import TEXT, output_option, print_value

if TYPE_CHECKING:
    from collections.abc import Sequence

    from podium.insight import Capacity
    from podium.insight.loading import LoadResult
    from podium.library.new_nodes import NewNodeCapacity
    from podium.objects.core import Pod


@click.command()
@cluster_options
@click.option(
    "--pod",
    "pod_files",
    multiple=True,
    required=True,
    type=FILE,
    help="Pods, or workloads with a pod template, in a file or directory. Repeatable.",
)
@click.option("--config", type=click.Path(path_type=Path), help="A KubeSchedulerConfiguration, YAML or JSON.")
@click.option("--profile", metavar="NAME", help="The profile that decides; by default the one that the pod names.")
@plugin_option
@as_the_cluster
@click.option("--together", is_flag=True, help="Place one of each pod in turn, instead of each pod alone.")
@click.option("--explain", is_flag=True, help="Show for each node how many fit and what blocks the next one.")
@new_node_options
@click.option("--headroom", type=click.IntRange(min=1), metavar="N", help="Show how large a pod may be to fit N times.")
@click.option(
    "--exit-code",
    "tells_by_status",
    is_flag=True,
    help=f"Exit with {EXIT_NO} if one of the pods fits nowhere.",
)
@output_option()
def command(
    clusters: tuple[str, ...],
    kubeconfig: str | None,
    context: str | None,
    pod_files: tuple[str, ...],
    config: Path | None,
    profile: str | None,
    plugins: tuple[str, ...],
    together: bool,
    explain: bool,
    catalogues: tuple[str, ...],
    node_pools: str | None,
    headroom: int | None,
    tells_by_status: bool,
    output: str,
) -> None:
    """Show how many more of a pod the scheduler would place, and what limits them.

    \b
    podium capacity -f cluster.yaml --pod deployment.yaml --explain
    podium capacity --kubeconfig FILE --pod small.yaml --pod large.yaml --together
    podium capacity -f cluster.yaml --pod pod.yaml --headroom 10
    podium capacity -f cluster.yaml --pod pod.yaml --catalogue instance-types.json

    With --catalogue it also shows how many fit on one new node of each instance type, with its devices. The copies
    preempt no pods, and pending pods are not placed before them. Nothing changes in any cluster.
    """  # noqa: D301
    click.get_current_context().with_resource(exit_130_at_once())
    if headroom is not None and (together or explain):
        raise click.UsageError("--headroom asks about each pod alone, without --together and --explain")
    check_new_node_options(catalogues, node_pools)
    if catalogues and (headroom is not None or together):
        raise click.UsageError("--catalogue asks about each pod alone, without --together and --headroom")
    files.demand_one_stdin((*clusters, *pod_files, *catalogues, node_pools, config))
    with errors_shown():
        from podium.cli.cluster_source import pods_in

        asked_pods = pods_in(pod_files)
        # A workload's file may hold its claims and classes, too.
        extra_objects = [item for _, other_objects in asked_pods for item in other_objects]
        load_result = load_cluster(
            clusters,
            (kubeconfig, context),
            config,
            plugins,
            [pod for pod, _ in asked_pods],
            extra_objects,
            kept_resources=pool_resources() if catalogues else (),
        )
        pods = [_with_profile(profile, load_result, load_result.read_pod(document)) for document, _ in asked_pods]
        if headroom is not None:
            _print_headroom(load_result, pods, headroom, output)
            return
        limit = start_time_limit()
        if together:
            capacities = load_result.cluster.capacity_together(pods, limit=limit)
        else:
            capacities = [load_result.cluster.capacity(pod, limit=limit) for pod in pods]
        on_new_nodes = [_on_new_nodes(load_result, pod, catalogues, node_pools) for pod in pods] if catalogues else []
    warn_of_time_limit(output)
    _warn(load_result)
    _print(load_result, capacities, on_new_nodes, output, together=together, explain=explain)
    if tells_by_status and not all(_fits(capacity) for capacity in capacities):
        raise SystemExit(EXIT_NO)


def _fits(capacity: Capacity) -> bool:
    """Return whether one more pod, or one more whole gang, fits."""
    # Of a gang, one more pod alone would be of no use.
    return bool(capacity.fits if capacity.gang is None or capacity.gang.problem else capacity.gang.fits)


def _with_profile(profile: str | None, load_result: LoadResult, pod: Pod) -> Pod:
    """Return the pod with the scheduler name of the given profile."""
    if profile is None:
        return pod
    renamed_pod = msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, scheduler_name=profile))
    # At once, so that an unknown name is refused before the count begins.
    load_result.cluster.framework_for(renamed_pod)
    return renamed_pod


def _warn(load_result: LoadResult) -> None:
    from podium.cli.cluster_source import warn_of_missing

    warn_of_missing(load_result.missing_kinds())


def _on_new_nodes(
    load_result: LoadResult, pod: Pod, catalogues: tuple[str, ...], node_pools: str | None
) -> Sequence[NewNodeCapacity]:
    from podium.library.new_nodes import capacities_of

    new_nodes = new_nodes_in(load_result, pod, catalogues, node_pools)
    return capacities_of(load_result.cluster, pod, new_nodes, start_time_limit())


def _print(
    load_result: LoadResult,
    capacities: Sequence[Capacity],
    on_new_nodes: Sequence[Sequence[NewNodeCapacity]],
    output: str,
    *,
    together: bool,
    explain: bool,
) -> None:
    if output == TEXT:
        from podium.cli.capacity_table import print_capacities, print_new_nodes

        print_capacities(capacities, together=together, explain=explain)
        for entries in on_new_nodes:
            print_new_nodes(entries)
        return
    answers: list[Any] = [capacity.as_dict(explain=explain) for capacity in capacities]
    for answer, entries in zip(answers, on_new_nodes, strict=False):
        answer["new_nodes"] = [entry.as_dict() for entry in entries]
    if together:
        answers = [{"fits": sum(capacity.fits for capacity in capacities), "together": True, "pods": answers}]
    for answer in answers:
        print_value(answer | load_result.basis(), output)


def _print_headroom(load_result: LoadResult, pods: Sequence[Pod], times: int, output: str) -> None:
    limit = start_time_limit()
    answers = [load_result.cluster.headroom(pod, times, limit) for pod in pods]
    _warn(load_result)
    warn_of_time_limit(output)
    if output == TEXT:
        from podium.cli.capacity_table import print_headroom

        print_headroom(answers)
        return
    for headroom in answers:
        print_value(headroom.as_dict() | load_result.basis(), output)

"""`podium estimator summary`: the resource summary and the grades that a member reports to Karmada."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from podium.cli import files
from podium.cli.estimate import STATUS_GATES
from podium.cli.interrupts import exit_at_sigint
from podium.cli.options.cluster import demand_one_cluster, source_options
from podium.cli.options.karmada import as_karmada_option, boolean_gates
from podium.cli.options.paths import FILE
from podium.cli.output import TEXT, output_option, print_value
from podium.estimator.errors import EstimateError


@click.command()
@source_options
@click.option(
    "--cluster-object", type=FILE, help="Karmada's Cluster object, for its resource models.  [default: Karmada's own]"
)
@as_karmada_option
@click.option(
    "--enable-cluster-resource-modeling",
    type=bool,
    default=True,
    show_default=True,
    metavar="BOOL",
    help="If false, show no summary, as with this flag of Karmada.",
)
@click.option(
    "--feature-gates",
    default="",
    metavar="NAME=BOOL,...",
    help="Karmada's feature gate CustomizedClusterResourceModeling.",
)
@output_option()
def summary(
    clusters: tuple[str, ...],
    kubeconfig: str | None,
    context: str | None,
    cluster_object: str | None,
    as_karmada: str | None,
    enable_cluster_resource_modeling: bool,
    feature_gates: str,
    output: str,
) -> None:
    """Show the part of a Cluster's status that Karmada collects from a member's nodes and pods.

    \b
    podium estimator summary --kubeconfig ~/.kube/config
    kubectl get nodes,pods -A -o yaml | podium estimator summary -f - -o yaml

    As Karmada's flag and gate, --enable-cluster-resource-modeling=false leaves all of it out, and
    CustomizedClusterResourceModeling=false leaves the grades out.
    """  # noqa: D301
    click.get_current_context().with_resource(exit_at_sigint())
    demand_one_cluster(clusters, kubeconfig, context)
    files.demand_one_stdin((*clusters, cluster_object))
    gates = boolean_gates(feature_gates, STATUS_GATES)
    from podium.cli.cluster_source import objects_in, objects_of_cluster
    from podium.engine.errors import ClusterError
    from podium.estimator.division.answers import summary_answer
    from podium.estimator.manifests import karmada_cluster_in, nodes_and_pods
    from podium.estimator.resource_models import default_models
    from podium.estimator.summaries import summarise
    from podium.objects.errors import FieldError
    from podium.objects.resource_types import NODES, PODS

    try:
        models = default_models()
        if cluster_object is not None:
            models = karmada_cluster_in(objects_in([cluster_object]), cluster_object).spec.resource_models
        sources = objects_in(clusters) if clusters else objects_of_cluster(kubeconfig, context, (NODES, PODS))
        nodes, pods = nodes_and_pods([source.manifest for source in sources])
        # An empty summary would look like a cluster without room.
        if not nodes:
            raise EstimateError("no nodes: nothing can be summarised")
        graded = models if all(gates.values()) else ()
        member_summary = summarise(nodes, pods, graded, skips_after_full_node=as_karmada is not None)
    except (EstimateError, ClusterError, FieldError) as error:
        raise click.ClickException(str(error)) from error
    answer = summary_answer(member_summary) if enable_cluster_resource_modeling else {}
    if output == TEXT:
        _print_summary(answer)
    else:
        print_value(answer, output)


def _print_summary(answer: Mapping[str, Any]) -> None:
    from rich import box
    from rich.table import Table

    from podium.cli.plain_text import console, plain

    out = console()
    if not answer:
        out.print("Nothing is collected")
        return
    nodes, resources = answer["nodeSummary"], answer["resourceSummary"]
    out.print(f"{nodes.get('totalNum', 0):,} nodes, {nodes.get('readyNum', 0):,} of them ready")
    columns = ("allocatable", "allocated", "allocating")
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("RESOURCE", overflow="fold")
    for column in columns:
        table.add_column(column.upper(), justify="right")
    for name in dict.fromkeys(name for column in columns for name in sorted(resources.get(column, ()))):
        table.add_row(plain(name), *(plain(resources.get(column, {}).get(name, "-")) for column in columns))
    out.print(table)
    modelings = resources.get("allocatableModelings", ())
    grades = ", ".join(f"{item['count']} of grade {item['grade']}" for item in modelings if item["count"])
    if modelings:
        out.print(plain(f"Nodes by what they have left: {grades or 'none'}"))

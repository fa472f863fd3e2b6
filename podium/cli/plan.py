"""`podium plan`: which nodes would Karpenter buy for the pods that wait?"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import orjson

from podium.cli import files
from podium.cli.asking import errors_shown, warn_of_broken
from podium.cli.command_errors import EXIT_FAILED
from podium.cli.interrupts import exit_130_at_sigint
from podium.cli.options.configuration import plugin_option, usable
from podium.cli.output import EXIT_FITS_NOWHERE, TEXT, as_json, output_option, print_value
from podium.cli.progress import counting
from podium.objects.errors import FieldError
from podium.telemetry.log_text import printable

if TYPE_CHECKING:
    from podium.engine.files import Found
    from podium.provisioner.catalogue import Catalogue
    from podium.provisioner.objects import ClusterObjects
    from podium.provisioner.plan_basis import PlanBasis
    from podium.provisioner.purchase_plans import PlacedPurchases, PurchasePlan


@click.command()
@click.option(
    "-f", "--cluster", "clusters", multiple=True, metavar="FILE", help="The objects of a cluster. Repeatable."
)
@click.option("--kubeconfig", help="The kubeconfig of a running cluster. By default, without -f, kubectl's.")
@click.option("--context", help="The context of the kubeconfig.")
@click.option("--node-pools", metavar="FILE", help="NodePools to buy from, instead of those of the cluster.")
@click.option("--adopt-nodes", is_flag=True, help="Buy more nodes like those of a cluster that has no NodePools.")
@click.option("--catalogue", metavar="FILE", help="The instance types, in the JSON form of kwok's.")
@click.option("--add", "added", multiple=True, metavar="FILE", help="Workloads to plan for as well. Repeatable.")
@click.option(
    "--assume-unschedulable", is_flag=True, help="Plan also for pods that kube-scheduler has not tried to place yet."
)
@click.option(
    "--preference-policy",
    type=click.Choice(["Respect", "Ignore"]),
    default="Respect",
    show_default=True,
    help="Whether pods' preferences count until they cannot be met.",
)
@click.option(
    "--min-values-policy",
    type=click.Choice(["Strict", "BestEffort"]),
    default="Strict",
    show_default=True,
    help="Whether a NodePool's minValues must be met.",
)
@click.option(
    "--rules",
    type=click.Choice(["karpenter", "podium"]),
    default="karpenter",
    show_default=True,
    help="Who judges whether a pod fits: Karpenter's simulation, or podium's own plugins.",
)
@click.option(
    "--config",
    type=click.Path(path_type=Path),
    help="A KubeSchedulerConfiguration, YAML or JSON, for --rules podium.",
)
@plugin_option
@click.option("--why", metavar="POD", help="Explain what became of one pod.")
@click.option("--cases", metavar="FILE", help="Answer recorded cases, one JSON object per line.")
@click.option("--exit-code", "tells_by_status", is_flag=True, help=f"Exit with {EXIT_FITS_NOWHERE} if a pod stays.")
@output_option()
def command(
    clusters: tuple[str, ...],
    kubeconfig: str | None,
    context: str | None,
    node_pools: str | None,
    adopt_nodes: bool,
    catalogue: str | None,
    added: tuple[str, ...],
    assume_unschedulable: bool,
    preference_policy: str,
    min_values_policy: str,
    rules: str,
    config: Path | None,
    plugins: tuple[str, ...],
    why: str | None,
    cases: str | None,
    tells_by_status: bool,
    output: str,
) -> None:
    """Plan which nodes to buy for the pods that wait, as Karpenter does. Changes nothing in any cluster.

    \b
    podium plan --kubeconfig FILE --catalogue instance-types.json
    podium plan -f cluster.yaml --add deployment.yaml
    podium plan -f cluster.yaml --why default/web-1

    These read a running cluster, or one from files: YAML documents, JSON, or the output of `kubectl get -o yaml`;
    - is standard input. Without --catalogue there are generic instance types with made-up prices.

    \b
    podium plan --cases FILE

    This answers recorded cases, always in JSON: one JSON object per line, with the objects of a cluster, the time and
    the settings. A line without an id defines a catalogue of instance types for the lines after it.
    """  # noqa: D301
    click.get_current_context().with_resource(exit_130_at_sigint())
    is_live = kubeconfig is not None or context is not None
    if cases is not None and (clusters or is_live or node_pools or catalogue or added or why or adopt_nodes):
        raise click.UsageError("--cases brings its own clusters and catalogues")
    if clusters and is_live:
        raise click.UsageError("give either files with -f, or a running cluster with --kubeconfig and --context")
    if node_pools is not None and adopt_nodes:
        raise click.UsageError("give either --node-pools or --adopt-nodes")
    is_podium = rules == "podium"
    if (config is not None or plugins) and not is_podium:
        raise click.UsageError("--config and --plugin are for --rules podium")
    if is_podium and cases is not None:
        raise click.UsageError("--cases are answered by Karpenter's rules")
    files.demand_one_stdin((*clusters, node_pools, catalogue, *added))
    if cases is not None:
        if not _answer_cases(cases):
            raise SystemExit(EXIT_FAILED)
        return
    sources = _Sources(clusters, (kubeconfig, context), node_pools, added, catalogue)
    settings = {"preferencePolicy": preference_policy, "minValuesPolicy": min_values_policy}
    with errors_shown():
        try:
            basis = _basis(sources, settings, adopt_nodes=adopt_nodes, assume_unschedulable=assume_unschedulable)
            plan = _placed(basis, sources.found(), config, plugins) if is_podium else _planned(basis)
            answer = plan.as_dict() if why is None else plan.why(why)
        except FieldError as error:
            raise click.ClickException(str(error)) from error
    if output != TEXT:
        print_value(answer, output)
    elif why is None:
        from podium.cli.plan_table import print_plan

        print_plan(answer)
    else:
        from podium.cli.plan_table import print_reasons

        print_reasons(answer)
    if tells_by_status and answer.get("unschedulable"):
        raise SystemExit(EXIT_FITS_NOWHERE)


@dataclass(frozen=True, slots=True)
class _Sources:
    """Where the cluster and the instance types are read from."""

    clusters: tuple[str, ...]
    live: tuple[str | None, str | None]
    node_pools: str | None
    added: tuple[str, ...]
    catalogue: str | None

    def found(self) -> list[Found]:
        """All objects, with the pods of added workloads."""
        from podium.cli.cluster_source import objects_in, objects_of_cluster
        from podium.provisioner.manifests import NODE_POOLS, RESOURCES, pods_of_workloads

        found = objects_in(self.clusters) if self.clusters else objects_of_cluster(*self.live, RESOURCES)
        if self.node_pools is not None:
            found = [each for each in found if each.manifest.get("kind") != NODE_POOLS.kind]
            found += objects_in([self.node_pools])
        return [*found, *(pod for name in self.added for pod in pods_of_workloads(objects_in([name]), name))]

    def read_catalogue(self) -> Catalogue | None:
        """The catalogue of the file; None without one."""
        from podium.provisioner.catalogue import read_catalogue

        name = self.catalogue
        if name is None:
            return None
        try:
            return read_catalogue(orjson.loads(files.content(name)), "")
        except orjson.JSONDecodeError as error:
            raise click.ClickException(f"{name}: not JSON: {error}") from error
        except FieldError as error:
            raise click.ClickException(f"{name}: {error}") from error


def _planned(basis: PlanBasis) -> PurchasePlan:
    from podium.lib.system_clock import SystemClock
    from podium.provisioner.purchase_plans import PurchasePlan

    return PurchasePlan.of(basis, SystemClock().now())


def _placed(basis: PlanBasis, found: list[Found], config: Path | None, plugins: tuple[str, ...]) -> PlacedPurchases:
    from podium.insight.loading import Loader
    from podium.lib.system_clock import SystemClock
    from podium.provisioner.placed_plans import plan_with_podium
    from podium.provisioner.purchase_plans import PlacedPurchases

    good = usable(config, plugins, to_run=False)
    loader = Loader(good.config, good.plugins, any_scheduler=config is None, may_be_empty=True)
    loaded = loader.read(found)
    warn_of_broken(loaded)
    return PlacedPurchases(basis, plan_with_podium(basis, loaded.cluster, SystemClock().now()))


def _basis(
    sources: _Sources, settings: Mapping[str, str], *, adopt_nodes: bool, assume_unschedulable: bool
) -> PlanBasis:
    from podium.provisioner.cases import read_settings
    from podium.provisioner.manifests import read_cluster
    from podium.provisioner.plan_basis import PlanBasis
    from podium.provisioner.purchase_plans import built_in_catalogue

    catalogue = sources.read_catalogue()
    objects = read_cluster(sources.found(), assume_unschedulable=assume_unschedulable)
    if catalogue is None:
        catalogue = built_in_catalogue(objects)
    if adopt_nodes:
        objects, catalogue = _adopted(objects, catalogue)
    elif not objects.node_pools:
        raise click.ClickException(
            "there are no NodePools, so nothing can be bought: add them with --node-pools FILE "
            "(kubectl get nodepools -o yaml), or buy nodes like those that are there with --adopt-nodes"
        )
    return PlanBasis(objects, catalogue, replace(read_settings(settings), node_class=None))


def _adopted(objects: ClusterObjects, catalogue: Catalogue) -> tuple[ClusterObjects, Catalogue]:
    from podium.provisioner.adoption import adopt_nodes

    if objects.node_pools:
        raise click.ClickException("--adopt-nodes is for clusters without NodePools, and this one has some")
    if not objects.nodes:
        raise click.ClickException("--adopt-nodes: there are no nodes that more could be like")
    adopted = adopt_nodes(objects.nodes, catalogue)
    return replace(objects, node_pools=adopted.node_pools), adopted.catalogue


def _answer_cases(name: str) -> bool:
    """Print the answers in the order of the file, and return whether every line could be read."""
    from podium.provisioner.cases import Cases

    cases, out, answered, is_whole = Cases(), sys.stdout.buffer, 0, True
    with counting("answered") as advance:
        for number, line in files.lines(name):
            try:
                answer = cases.answer(_row(line))
            except FieldError as error:
                is_whole = False
                click.echo(printable(f"Error: {name}:{number}: {error}"), err=True)
                continue
            if answer is not None:
                out.write(as_json(answer) + b"\n")
                out.flush()
                answered += 1
                advance()
    if not answered and is_whole:
        raise click.ClickException(f"{name}: no line of it is a case that can be answered")
    return is_whole


def _row(line: bytes) -> Mapping[str, Any]:
    try:
        row = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        raise FieldError("not a case", str(error)) from error
    if not isinstance(row, dict):
        raise FieldError("not a case", "expected an object with named fields")
    return row

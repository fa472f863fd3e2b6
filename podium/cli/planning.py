"""The question of `podium plan` and `podium consolidate`: the cluster, its NodePools and the instance types."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import orjson

from podium.cli import files
from podium.cli.options.cluster import cluster_options, demand_one_cluster
from podium.cli.options.configuration import plugin_option
from podium.cli.options.paths import FILE
from podium.cli.options.releases import as_the_cluster, release_asked, take_release_of
from podium.cli.options.several import with_options
from podium.cli.options.time_limit import note_size
from podium.cli.output import say
from podium.objects.errors import FieldError

if TYPE_CHECKING:
    from podium.engine.cluster import Cluster
    from podium.engine.files import LocatedManifest
    from podium.provisioner.apis.objects import ClusterObjects, NodePool
    from podium.provisioner.cloudprovider.catalogue import Catalogue
    from podium.provisioner.state.settings import Settings, UnknownLabels

PROVIDERS = click.Choice(["plan-only", "sandbox", "karpenter"])
RULES = click.Choice(["karpenter", "podium"])


def _feature_gates(_: click.Context, parameter: click.Parameter, text: str) -> Mapping[str, bool]:
    """Parse `--feature-gates`, and warn of gates that planning does not know. Raises: click.BadParameter."""
    from podium.provisioner.state.settings import FEATURE_GATES, GATES_THAT_COUNT, parse_feature_gates

    try:
        gates = parse_feature_gates(text)
    except FieldError as error:
        raise click.BadParameter(str(error), param=parameter) from error
    for name, is_on in gates.items():
        if is_on != FEATURE_GATES[name] and name not in GATES_THAT_COUNT:
            say(f"warning: --feature-gates: what {name} switches on is not planned", err=True)
    return gates


_NODE_POOLS = click.option("--node-pools", type=FILE, help="NodePools to buy from, instead of those of the cluster.")
_CATALOGUE = click.option(
    "--catalogue",
    "catalogues",
    multiple=True,
    type=FILE,
    help="The instance types, in the JSON form of kwok's or of a provider's command line; or prices. Repeatable.",
)
_POLICIES = (
    click.option(
        "--preference-policy",
        type=click.Choice(["Respect", "Ignore"]),
        default="Respect",
        show_default=True,
        help="Whether pods' preferences count until they cannot be met.",
    ),
    click.option(
        "--min-values-policy",
        type=click.Choice(["Strict", "BestEffort"]),
        default="Strict",
        show_default=True,
        help="Whether a NodePool's minValues must be met.",
    ),
    click.option(
        "--feature-gates",
        default="",
        metavar="GATE=BOOL,...",
        callback=_feature_gates,
        help="Karpenter's feature gates, such as SpotToSpotConsolidation=true.",
    ),
)
_IGNORE_LABELS = click.option(
    "--ignore-unknown-labels",
    is_flag=True,
    help="Ignore, with a warning, requirements on labels that no instance type has, instead of refusing them.",
)
_OPTIONS = (
    _NODE_POOLS,
    click.option("--adopt-nodes", is_flag=True, help="Buy more nodes like those of a cluster that has no NodePools."),
    _CATALOGUE,
    click.option(
        "--types-of-nodes", is_flag=True, help="Also buy the instance types of existing nodes, each as its nodes are."
    ),
    click.option("--add", "added", multiple=True, type=FILE, help="Workloads to plan for as well. Repeatable."),
    click.option(
        "--assume-unschedulable",
        is_flag=True,
        help="Plan also for pods that kube-scheduler has not tried to place yet.",
    ),
    _IGNORE_LABELS,
    *_POLICIES,
)


def planning_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that a `Question` is made from."""
    return cluster_options(with_options(function, _OPTIONS))


def rules_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that say who judges whether a pod fits: `rules`, `config`, `plugins`, and `--decide-as`."""
    config = click.option(
        "--config",
        type=click.Path(path_type=Path),
        help="A KubeSchedulerConfiguration, YAML or JSON, for --rules podium.",
    )
    rules = click.option(
        "--rules",
        type=RULES,
        default="karpenter",
        show_default=True,
        help="Who judges whether a pod fits: Karpenter's simulation, or podium's own plugins.",
    )
    return rules(config(plugin_option(as_the_cluster(function))))


def demand_rules(rules: str, config: Path | None, plugins: tuple[str, ...]) -> bool:
    """Return True if podium's own plugins judge. Raises: click.UsageError if only options for them are given."""
    if (config is not None or plugins or release_asked() is not None) and rules != "podium":
        raise click.UsageError("--config, --plugin and --decide-as are for --rules podium")
    return rules == "podium"


def scheduled_cluster(
    question: Question, objects: list[LocatedManifest], config: Path | None, plugins: tuple[str, ...]
) -> Cluster:
    """Return the cluster as podium's own plugins see it, by its own minor's rules unless `--decide-as` names one.

    What cannot be read is left out, with a warning.

    Raises: click.ClickException if the configuration or a plugin cannot be used.
    """
    from podium.cli.asking import warn_of_broken
    from podium.cli.options.configuration import usable
    from podium.insight.loading import Loader

    take_release_of(question.clusters, question.kubeconfig, question.context)
    good = usable(config, plugins, to_run=False)
    # Without a configuration any scheduler name is podium's, since nothing says which names are served.
    result = Loader(good.config, good.plugins, any_scheduler=config is None, may_be_empty=True).read(objects)
    warn_of_broken(result)
    return result.cluster


def warn_of_not_counted(warnings: Iterable[str]) -> None:
    """Warn on standard error about everything that was given and does not count in plans."""
    for text in warnings:
        say(f"warning: {text}", err=True)


def purchase_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add those of them that say what to buy, for a command that runs on one cluster."""
    return with_options(function, (_NODE_POOLS, _CATALOGUE, _IGNORE_LABELS, *_POLICIES))


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """The options, by their names, and what they name."""

    clusters: tuple[str, ...] = ()
    kubeconfig: str | None = None
    context: str | None = None
    node_pools: str | None
    adopt_nodes: bool = False
    catalogues: tuple[str, ...] = ()
    types_of_nodes: bool = False
    added: tuple[str, ...] = ()
    assume_unschedulable: bool = False
    ignore_unknown_labels: bool = False
    preference_policy: str
    min_values_policy: str
    feature_gates: Mapping[str, bool]

    @property
    def is_asked(self) -> bool:
        """Return True if any option names something."""
        names = (self.clusters, self.kubeconfig, self.context, self.node_pools, self.catalogues, self.added)
        return any(names) or self.adopt_nodes

    def check(self, config: Path | None) -> None:
        """Refuse options that contradict each other."""
        demand_one_cluster(self.clusters, self.kubeconfig, self.context)
        if self.node_pools is not None and self.adopt_nodes:
            raise click.UsageError("give either --node-pools or --adopt-nodes")
        files.demand_one_stdin((*self.clusters, self.node_pools, *self.catalogues, *self.added, config))

    def objects(self) -> list[LocatedManifest]:
        """Return all objects, with the pods of added workloads. To be called once: standard input is read."""
        from podium.cli.cluster_source import objects_in, objects_of_cluster, warn_of_left_out
        from podium.objects.resource_types import WITHOUT_GATES
        from podium.provisioner.state.manifests import NODE_POOLS, OPTIONAL_RESOURCES, RESOURCES, pods_of_workloads

        # podium's own plugins read kinds that Karpenter does not.
        resources = tuple(dict.fromkeys((*RESOURCES, *WITHOUT_GATES)))
        live = (self.kubeconfig, self.context)
        objects = (
            objects_in(self.clusters) if self.clusters else objects_of_cluster(*live, resources, OPTIONAL_RESOURCES)
        )
        if self.node_pools is not None:
            # A file of NodePools replaces those of the cluster rather than adding to them.
            objects = [item for item in objects if item.manifest.get("kind") != NODE_POOLS.kind]
            objects += objects_in([self.node_pools])
        added_objects = [(name, objects_in([name])) for name in self.added]
        objects += [pod for name, items in added_objects for pod in pods_of_workloads(items, name, objects)]
        for name, items in added_objects:
            warn_of_left_out(items, name)
        kinds = Counter(str(item.manifest.get("kind")) for item in objects)
        note_size(kinds["Node"], kinds["Pod"])
        return objects

    def pools(self) -> tuple[NodePool, ...] | None:
        """Return the NodePools of the file, or None without a file.

        Raises:
            click.ClickException: the file cannot be read, or has no NodePools.
            FieldError: a NodePool cannot be read.
        """
        from podium.cli.cluster_source import objects_in
        from podium.provisioner.state.manifests import read_cluster

        if self.node_pools is None:
            return None
        pools = read_cluster(objects_in([self.node_pools])).node_pools
        if not pools:
            raise click.ClickException(f"{self.node_pools}: has no NodePools")
        return pools

    def settings(self) -> Settings:
        """Return Karpenter's settings."""
        from podium.provisioner.reports.cases import read_settings

        policies = {
            "preferencePolicy": self.preference_policy,
            "minValuesPolicy": self.min_values_policy,
            "featureGates": self.feature_gates,
        }
        # Whoever asks may have NodePools of any provider.
        labels: UnknownLabels = "ignored" if self.ignore_unknown_labels else "refused"
        return replace(read_settings(policies), node_class=None, unknown_labels=labels)

    def cluster(self, objects_found: list[LocatedManifest]) -> tuple[ClusterObjects, Catalogue]:
        """Return the objects that planning reads, with NodePools, and the instance types.

        Raises:
            click.ClickException: there are no NodePools, or the catalogue cannot be read.
            FieldError: an object cannot be read.
        """
        from podium.provisioner.cloudprovider.catalogue import built_in_catalogue, zones_of
        from podium.provisioner.state.adoption import with_types_of_nodes
        from podium.provisioner.state.manifests import read_cluster
        from podium.provisioner.state.state_node import notes_on_uncounted

        objects = read_cluster(objects_found, assume_unschedulable=self.assume_unschedulable, on_fault=_warn_of_fault)
        if not self.adopt_nodes:
            for text in notes_on_uncounted(objects):
                _warn_of_fault(text)
        catalogue = self.instance_types(zones_of(objects)) or built_in_catalogue(objects)
        if self.types_of_nodes:
            catalogue = with_types_of_nodes(objects.nodes, catalogue if self.catalogues else None)
        if self.adopt_nodes:
            return _adopt(objects, catalogue)
        if not objects.node_pools and not objects.closed_pools:
            raise click.ClickException(
                "there are no NodePools, so nothing can be bought: add them with --node-pools FILE "
                "(kubectl get nodepools -o yaml), or buy nodes like the existing ones with --adopt-nodes"
            )
        return objects, catalogue

    def instance_types(self, zones: Iterable[str] = ()) -> Catalogue | None:
        """Return the instance types of the files, or None without a file.

        Args:
            zones: the zones of instance types of which no file says where they are.

        Raises:
            click.ClickException: a file cannot be read.
        """
        return catalogue_in(self.catalogues, zones)


def catalogue_in(names: Iterable[str], zones: Iterable[str]) -> Catalogue | None:
    """Return the instance types of the files of these names, as `Question.instance_types`; None without a file."""
    from podium.provisioner.cloudprovider.imports import import_catalogue

    documents: list[tuple[str, object]] = []
    for name in names:
        try:
            documents.append((f"{name}: ", orjson.loads(files.content(name))))
        except orjson.JSONDecodeError as error:
            raise click.ClickException(f"{name}: not JSON: {error}") from error
    try:
        return import_catalogue(documents, zones) if documents else None
    except FieldError as error:
        raise click.ClickException(str(error)) from error


def _warn_of_fault(text: str) -> None:
    say(f"warning: {text}", err=True)


def _adopt(objects: ClusterObjects, catalogue: Catalogue) -> tuple[ClusterObjects, Catalogue]:
    from podium.provisioner.state.adoption import adopt_nodes
    from podium.provisioner.state.left_out import left_out

    if objects.node_pools:
        raise click.ClickException("--adopt-nodes is for clusters without NodePools, and this one has some")
    if not objects.nodes:
        raise click.ClickException("--adopt-nodes: the cluster has no nodes to copy")
    reasons = left_out(objects.nodes, objects.pods)
    fleet = adopt_nodes(objects.nodes, catalogue, reasons.keys())
    changes: Mapping[str, Any] = {
        "node_pools": fleet.node_pools,
        "nodes": fleet.nodes,
        "node_claims": fleet.claims,
        "left_out": reasons,
    }
    return replace(objects, **changes), fleet.catalogue

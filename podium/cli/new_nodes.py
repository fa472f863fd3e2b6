"""The options of questions that add nodes of a catalogue's instance types, and these nodes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import click

from podium.cli.options.paths import FILE
from podium.cli.output import say

if TYPE_CHECKING:
    from podium.insight.loading import LoadResult
    from podium.library.new_nodes import NewNode
    from podium.objects.core import Pod
    from podium.objects.resource_types import ResourceType


def new_node_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options `catalogues` and `node_pools`."""
    catalogue = click.option(
        "--catalogue",
        "catalogues",
        multiple=True,
        type=FILE,
        help="Instance types, as for podium plan: also consider new nodes of these types, with devices. Repeatable.",
    )
    node_pools = click.option(
        "--node-pools", type=FILE, help="With --catalogue: the NodePools of such nodes, instead of the cluster's."
    )
    return catalogue(node_pools(function))


def check_new_node_options(catalogues: Sequence[str], node_pools: str | None) -> None:
    """Refuse NodePools without a catalogue."""
    if node_pools is not None and not catalogues:
        raise click.UsageError("--node-pools goes with --catalogue")


def pool_resources() -> Sequence[ResourceType[Any]]:
    """Return the kind that says what new nodes are like."""
    from podium.provisioner.state.manifests import NODE_POOLS

    return (NODE_POOLS,)


def new_nodes_in(
    load_result: LoadResult, pod: Pod, catalogues: tuple[str, ...], node_pools: str | None
) -> list[NewNode]:
    """Return the nodes that may suit the pod; warn on standard error about objects that cannot be used.

    Raises:
        click.ClickException: a file cannot be read.
    """
    from podium.cli.cluster_source import objects_in
    from podium.cli.planning import catalogue_in
    from podium.library.new_nodes import new_nodes_for
    from podium.objects.errors import FieldError
    from podium.objects.topology_labels import ZONE

    nodes = load_result.cluster.nodes
    zones = sorted({node.metadata.labels[ZONE] for node in nodes if ZONE in node.metadata.labels})
    catalogue = catalogue_in(catalogues, zones)
    assert catalogue is not None
    pools = load_result.kept_objects if node_pools is None else objects_in([node_pools])
    try:
        new_nodes = new_nodes_for(load_result.cluster, pod, catalogue, pools, _warn)
    except FieldError as error:
        raise click.ClickException(str(error)) from error
    if not new_nodes:
        _warn(f"no instance type of the catalogue suits {pod.key}, or the limits of the NodePools allow none")
    return new_nodes


def _warn(text: str) -> None:
    say(f"warning: {text}", err=True)

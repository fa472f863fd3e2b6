"""`podium mcp`: questions about a cluster as tools of the Model Context Protocol, over standard input and output."""

from __future__ import annotations

import os
from pathlib import Path

import click

from podium.cli.options.cluster import demand_one_cluster, source_options
from podium.cli.options.configuration import plugin_option, usable
from podium.cli.options.durations import duration
from podium.cli.options.releases import as_the_cluster, take_release_of
from podium.lib.lifeline import end_with_writer

_ENDING_S = 5.0
"""The time in which a question under way may be answered once standard input is closed."""
_STDIN = 0


@click.command()
@source_options
@click.option("--config", type=click.Path(path_type=Path), help="A KubeSchedulerConfiguration, YAML or JSON.")
@plugin_option
@as_the_cluster
@click.option(
    "--time-limit",
    "limit_s",
    default="30s",
    show_default=True,
    metavar="DURATION",
    callback=duration,
    help="How long one question may take. What was found by then is the answer, marked as partial.",
)
@click.option(
    "--refresh-after",
    "refresh_s",
    default="10s",
    show_default=True,
    metavar="DURATION",
    callback=duration,
    help="Read the cluster or the files again for a question this long after the last time.",
)
@click.option(
    "--answer-bytes",
    type=click.IntRange(min=2000),
    default=60_000,
    show_default=True,
    help="The size of the largest answer. A larger one is cut, and says so.",
)
def command(
    clusters: tuple[str, ...],
    kubeconfig: str | None,
    context: str | None,
    config: Path | None,
    plugins: tuple[str, ...],
    limit_s: float,
    refresh_s: float,
    answer_bytes: int,
) -> None:
    """Answer a language model's questions about a cluster, and change nothing in it.

    \b
    podium mcp --kubeconfig ~/.kube/config
    podium mcp -f cluster.yaml

    This is a server of the Model Context Protocol, which a client starts and talks to over standard input and output.
    Its tools are the questions of podium: why, fixes, what_if, capacity, outlook, make_room, plan and
    queue. It ends with its standard input. It needs podium[mcp].
    """  # noqa: D301
    demand_one_cluster(clusters, kubeconfig, context)
    if "-" in clusters:
        raise click.UsageError("standard input (-) is the client's")
    take_release_of(clusters, kubeconfig, context)
    good = usable(config, plugins, to_run=False)
    try:
        from podium.cli.mcp_server import server_of
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("mcp", "pydantic"):
            raise
        raise click.ClickException(f"this needs podium[mcp]: {error.name} is not installed") from error
    from podium.cli.mcp_source import ClusterSource
    from podium.cli.mcp_tools import Tools

    source = ClusterSource(
        clusters, (kubeconfig, context), good.config, good.plugins, any_scheduler=config is None, refresh_s=refresh_s
    )
    # A question that is under way must not keep the process alive once its client has gone.
    end_with_writer(_STDIN, _ENDING_S)
    server_of(Tools(source, limit_s, answer_bytes)).run("stdio")
    os._exit(0)

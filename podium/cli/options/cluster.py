"""The options that select the cluster that a command asks about: files of objects, or a running cluster."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import click

from podium.cli.options.paths import FILE
from podium.cli.options.several import with_options
from podium.cli.options.time_limit import time_limit_option

_OPTIONS = (
    click.option(
        "-f",
        "--cluster",
        "clusters",
        multiple=True,
        type=FILE,
        help="A file or directory of the objects of a cluster. Repeatable.",
    ),
    click.option(
        "--kubeconfig", type=FILE, help="The kubeconfig of a running cluster. By default, without -f, kubectl's."
    ),
    click.option("--context", help="The context of the kubeconfig."),
)


def cluster_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add `-f`, `--kubeconfig`, `--context` and `--time-limit` to a command that asks about a cluster."""
    return source_options(time_limit_option(command))


def cluster_options_with(time_limit: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Add the same options with another default of the time limit, to a command whose search may have no end."""
    return lambda command: source_options(time_limit_option(command, time_limit))


def source_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add `-f`, `--kubeconfig` and `--context` to a command whose answer takes no time."""
    return with_options(command, _OPTIONS)


def demand_one_cluster(clusters: Sequence[str], kubeconfig: str | None, context: str | None) -> None:
    """Refuse files and a running cluster at once.

    Raises:
        click.UsageError: both are given.
    """
    if clusters and (kubeconfig is not None or context is not None):
        raise click.UsageError("give either files with -f, or a running cluster with --kubeconfig and --context")

"""Shared parts of the commands that ask about a cluster: reading it, warnings about broken objects, and errors."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from podium.cli.interrupts import printed_whole
from podium.cli.options.cluster import demand_one_cluster
from podium.cli.options.time_limit import note_size
from podium.cli.output import say
from podium.lib.plurals import count_of

if TYPE_CHECKING:
    from rich.console import RenderableType

    from podium.config import KubeSchedulerConfiguration
    from podium.engine.files import LocatedManifest
    from podium.insight.loading import LoadResult
    from podium.objects.resource_types import ResourceType

_SHOWN_MAX = 10


def load_cluster(
    clusters: Sequence[str],
    live: tuple[str | None, str | None],
    config: Path | None,
    plugins: tuple[str, ...],
    asked_pods: Iterable[LocatedManifest] = (),
    extra_objects: Iterable[LocatedManifest] = (),
    running: KubeSchedulerConfiguration | None = None,
    kept_resources: Sequence[ResourceType[Any]] = (),
) -> LoadResult:
    """Read the cluster that the command line names. Broken objects are named on standard error.

    Args:
        live: the kubeconfig and its context.
        asked_pods: the pods in question, from other files.
        extra_objects: more objects of the cluster, from the files of these pods.
        running: the configuration of a running podium, which decides if the command line names none.
        kept_resources: kinds that a scheduler does not read, whose objects are kept as far as they may be listed.

    Raises:
        click.ClickException: the cluster cannot be read.
        ClusterError: the cluster cannot answer questions.
    """
    from podium.cli.cluster_source import objects_in, objects_of_cluster
    from podium.cli.options.configuration import usable
    from podium.cli.options.releases import release_asked, take_release_of
    from podium.config import NEWEST
    from podium.insight.loading import Loader
    from podium.lib.system_clock import SystemClock
    from podium.objects import resource_types

    demand_one_cluster(clusters, *live)
    if running is None:
        take_release_of(clusters, *live)
    elif release_asked() is None and running.release.minor != NEWEST.minor:
        say(f"deciding as kube-scheduler {running.release.minor}: the running podium does", err=True)
    good = usable(config, plugins, to_run=False)
    kinds = () if clusters else resource_types.WITHOUT_GATES
    is_known = config is not None or running is not None
    now_s = SystemClock().now()
    kept_kinds = [resource.kind for resource in kept_resources]
    loader = Loader(
        running or good.config, good.plugins, kinds, any_scheduler=not is_known, now_s=now_s, kept_kinds=kept_kinds
    )
    documents = (
        objects_in(clusters, loader.report)
        if clusters
        else objects_of_cluster(*live, resource_types.WITHOUT_GATES, kept_resources)
    )
    load_result = loader.read([*documents, *extra_objects], asked_pods)
    warn_of_broken(load_result)
    note_size(len(load_result.cluster.nodes), len(load_result.cluster.pods))
    return load_result


def warn_of_broken(load_result: LoadResult) -> None:
    """Name objects that cannot be read on standard error."""
    if load_result.read_errors:
        count = len(load_result.read_errors)
        say(f"warning: {count_of(count, 'object')} cannot be read in full, and the answer may be off:", err=True)
        for text in load_result.read_errors[:_SHOWN_MAX]:
            say(f"  {text}", err=True)
        if count > _SHOWN_MAX:
            say(f"  and {count - _SHOWN_MAX} more", err=True)


@contextmanager
def errors_shown() -> Iterator[None]:
    """Turn errors of the question into errors of the command."""
    from podium.engine.errors import ClusterError
    from podium.framework.contract.status import PluginError, ScheduleError

    try:
        yield
    except (ClusterError, ScheduleError, PluginError) as error:
        raise click.ClickException(f"{error}{_advice(error)}") from error


def _advice(error: Exception) -> str:
    """Advise what to do about a plugin that no question runs."""
    from podium.framework.contract.status import GateNeededError

    cause = error.__cause__
    if not isinstance(cause, GateNeededError):
        return ""
    return (
        f", and questions are answered without feature gates: they know the gangs of PodGroups without {cause.plugin}. "
        "Leave it out of --config, or ask the podium that runs with it (--url, or --kubeconfig alone)"
    )


def show(*parts: RenderableType) -> None:
    """Print these parts at once, so that a command that is interrupted prints nothing or all."""
    from podium.cli.plain_text import console

    out = console()
    with out.capture() as captured:
        for part in parts:
            out.print(part)
    with printed_whole():
        # Escaped by the console, which has added its own styles.
        click.echo(captured.get(), nl=False)  # noqa: TID251

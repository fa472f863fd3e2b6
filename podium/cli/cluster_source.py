"""Reads the objects of a question from files or from an API server. This module decides nothing about them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any

import click

from podium.cli import event_loop, files
from podium.cli.output import say
from podium.engine.derivation.pods import asked_pod
from podium.engine.derivation.workload_kinds import left_out_workloads, templates_in
from podium.engine.errors import ClusterError
from podium.engine.files import LocatedManifest, OnBroken
from podium.engine.object_files import objects_of, sources_of
from podium.objects.resource_types import ResourceType

_NOTES_MAX = 10


def objects_in(names: Sequence[str], on_broken: OnBroken | None = None) -> list[LocatedManifest]:
    """Read the objects in files and directories. Name objects that are left out or replaced on standard error.

    Args:
        on_broken: receives an error for each document that is no object, instead of the caller.

    Raises:
        click.ClickException: a file cannot be read.
        ManifestError: the content of a file cannot be parsed.
    """
    notes: list[str] = []
    try:
        documents = objects_of(sources_of(names, files.content, notes.append), notes.append, on_broken)
    except OSError as error:
        raise click.ClickException(f"{error.filename}: {error.strerror}") from error
    for note in notes[:_NOTES_MAX]:
        say(f"warning: {note}", err=True)
    if len(notes) > _NOTES_MAX:
        say(f"warning: and {len(notes) - _NOTES_MAX} more such", err=True)
    return documents


def pods_in(names: Sequence[str]) -> list[tuple[LocatedManifest, list[LocatedManifest]]]:
    """Read the pods, and a pod of each workload, in files and directories, each with the other objects of its file.

    Raises:
        click.ClickException, ManifestError: a file cannot be read, or has neither a pod nor a workload.
    """
    pods: list[tuple[LocatedManifest, list[LocatedManifest]]] = []
    for name in names:
        documents = objects_in([name])
        other_documents = [item for item in documents if not templates_in(item.manifest)]
        workloads = [item for item in documents if templates_in(item.manifest)]
        pods += [asked_pod([workload, *other_documents], name) for workload in workloads] or [
            asked_pod(documents, name)
        ]
        warn_of_left_out(documents, name)
    return pods


def warn_of_left_out(objects: Iterable[LocatedManifest], name: str) -> None:
    """Warn on standard error about workloads of unknown kinds among the objects of a file.

    Args:
        name: what to call the file.
    """
    if text := left_out_workloads(objects):
        say(f"warning: {name}: {text}", err=True)


def objects_of_cluster(
    kubeconfig: str | None,
    context: str | None,
    resources: Sequence[ResourceType[Any]],
    optional_resources: Sequence[ResourceType[Any]] = (),
) -> list[LocatedManifest]:
    """List the objects of a running cluster.

    Args:
        optional_resources: more kinds, as far as the cluster serves them and they may be listed.

    Raises:
        click.ClickException: the cluster cannot be reached, or denies the request.
    """
    from podium.client.credentials import ConnectionConfigError
    from podium.insight.running_cluster import list_objects

    try:
        objects, _ = event_loop.run(lambda: list_objects(kubeconfig, context, resources, optional_resources))
        return objects
    except ConnectionConfigError as error:
        instead = "" if kubeconfig else "; give one with --kubeconfig, or the cluster's objects with -f"
        raise click.ClickException(f"{error}{instead}") from error
    except ClusterError as error:
        raise click.ClickException(str(error)) from error


def warn_of_missing(kinds: Collection[str]) -> None:
    """Warn on standard error about kinds that the answer depends on and that the files do not contain."""
    if not kinds:
        return
    plural = ",".join(sorted(kinds))
    say(
        f"warning: the answer depends on {plural.replace(',', ', ')}, and the files hold none; if the cluster has any, "
        f"add them: kubectl get {plural} -A -o yaml (or ask the cluster itself with --kubeconfig)",
        err=True,
    )

"""Reads the members of a fleet from files or from API servers, and prices. One member never spoils another."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import anyio
import click
import msgspec

from podium.cli import event_loop, files
from podium.cli.cluster_source import objects_in
from podium.cli.kubeconfig_contexts import contexts_of
from podium.cli.options.configuration import BadConfiguration, Usable
from podium.cli.options.releases import release_asked
from podium.cli.output import say
from podium.client.credentials import ConnectionConfigError
from podium.config import NEWEST, KubeSchedulerConfiguration, Release
from podium.engine.errors import ClusterError
from podium.engine.files import LocatedManifest
from podium.engine.object_files import ENDINGS
from podium.fleets.ordering import Prices
from podium.insight.running_cluster import list_objects
from podium.lib.yaml_reader import YamlError, read_documents

_LISTS_AT_ONCE_MAX: Final = 16

_NAMES_SHOWN_MAX: Final = 5


@dataclass
class FleetObjects:
    """The objects of the members.

    Attributes:
        objects: those of each member that can be read.
        releases: of the members that are API servers; dumps do not say theirs.
        without: the members that cannot be read, and why.
    """

    objects: dict[str, list[LocatedManifest]] = field(default_factory=dict)
    releases: dict[str, Release] = field(default_factory=dict)
    without: dict[str, str] = field(default_factory=dict)

    def configurations(self, good: Usable) -> dict[str, KubeSchedulerConfiguration]:
        """Return the configuration as the release of each running member has it; none if `--decide-as` is given.

        A member whose release cannot read it is left out. Older releases are named on standard error.
        """
        configs: dict[str, KubeSchedulerConfiguration] = {}
        if release_asked() is not None:
            return configs
        for release in sorted(set(self.releases.values()), key=lambda release: release.minor):
            names = sorted(name for name, member_release in self.releases.items() if member_release is release)
            try:
                configs |= dict.fromkeys(names, good.as_of(release).config)
            except BadConfiguration as error:
                for name in names:
                    del self.objects[name]
                    self.without[name] = f"its API server is of {release.minor}: {'; '.join(error.lines)}"
                continue
            if release.minor != NEWEST.minor:
                more_count = len(names) - _NAMES_SHOWN_MAX
                text = ", ".join(names[:_NAMES_SHOWN_MAX]) + (f" and {more_count} more" if more_count > 0 else "")
                say(f"deciding as kube-scheduler {release.minor} in {text}: the API server says so", err=True)
        return configs


def member_files(folders: Sequence[str], members: Sequence[str]) -> dict[str, str]:
    """Return the path of each member's dump: the entries of these directories, and those given as NAME=FILE.

    Raises:
        click.UsageError, click.ClickException: a name is given twice, or a directory has no dumps.
    """
    dumps: dict[str, str] = {}
    for folder in folders:
        entries = _entries(folder)
        if not entries:
            raise click.ClickException(f"{folder}: it holds neither directories nor files of objects")
        for name, path in entries:
            _add(dumps, name, path)
    for text in members:
        name, equals, path = text.partition("=")
        if not equals or not name or not path:
            raise click.UsageError(f"--member: expected NAME=FILE, got {text!r}")
        _add(dumps, name, path)
    return dumps


def _entries(folder: str) -> list[tuple[str, str]]:
    with files.errors_reported(folder):
        paths = sorted(Path(folder).iterdir())
    return [
        (path.name if path.is_dir() else _stem(path.name), str(path))
        for path in paths
        if not path.name.startswith(".") and (path.is_dir() or path.name.removesuffix(".gz").endswith(ENDINGS))
    ]


def _stem(name: str) -> str:
    return os.path.splitext(name.removesuffix(".gz"))[0]


def _add(dumps: dict[str, str], name: str, path: str) -> None:
    # Answers go by name, so one of the two would be lost.
    if name in dumps:
        raise click.UsageError(f"member {name} is given twice: {dumps[name]} and {path}")
    dumps[name] = path


def objects_of_members(dumps: Mapping[str, str], kubeconfig: str | None, contexts: Sequence[str]) -> FleetObjects:
    """Read the objects of each member.

    Raises:
        click.ClickException: the kubeconfig cannot be read, or a member has the name of another.
    """
    fleet = FleetObjects()
    # A fleet is rarely whole: what can be read answers, and the answer names the rest.
    for name, path in dumps.items():
        try:
            fleet.objects[name] = objects_in([path])
        except (ClusterError, click.ClickException) as error:
            fleet.without[name] = error.message if isinstance(error, click.ClickException) else str(error)
    if kubeconfig is not None or contexts:
        names = list(dict.fromkeys(contexts)) or contexts_of(str(kubeconfig))
        if twice := sorted(dumps.keys() & set(names)):
            raise click.UsageError(f"member {twice[0]} is given twice: {dumps[twice[0]]} and as a context")
        event_loop.run(lambda: _list_all(kubeconfig, names, fleet))
    return fleet


async def _list_all(kubeconfig: str | None, contexts: Sequence[str], fleet: FleetObjects) -> None:
    """List the objects of these contexts, a few at once: a member that is slow must not keep the others waiting."""
    # Lists of thousands of clusters at once would need as many connections and all of their objects in memory.
    limiter = anyio.CapacityLimiter(_LISTS_AT_ONCE_MAX)

    async def list_one(context: str) -> None:
        async with limiter:
            try:
                fleet.objects[context], fleet.releases[context] = await list_objects(kubeconfig, context)
            except (ClusterError, ConnectionConfigError) as error:
                fleet.without[context] = str(error)

    async with anyio.create_task_group() as group:
        for context in contexts:
            group.start_soon(list_one, context)


def prices_in(name: str | None) -> Prices:
    """Read a file that maps instance types to hourly prices.

    Raises:
        click.ClickException, ClusterError: it cannot be read, or holds something else.
    """
    if name is None:
        return Prices()
    try:
        documents = [document for document in read_documents(files.content(name)) if document is not None]
    except (YamlError, msgspec.DecodeError) as error:
        raise click.ClickException(f"{name}: {error}") from error
    if len(documents) != 1 or not isinstance(documents[0], dict):
        raise click.ClickException(f"{name}: expected one mapping of instance types to hourly prices")
    return Prices(documents[0])

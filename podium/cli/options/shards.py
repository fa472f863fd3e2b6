"""The options `--shard...`: make a scheduler a member of a group that divides the nodes among its members."""

from __future__ import annotations

import re
import socket
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final

import click

from podium.cli.options.configuration import Usable
from podium.config import KubeSchedulerConfiguration, Profile
from podium.config.types import Plugin
from podium.objects.topology_labels import ZONE
from podium.shards import ShardIdentity
from podium.shards.announcement import NAME

_LABEL_KEY: Final = re.compile(r"([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([-\w.]{0,61}[A-Za-z0-9])?")


def shard_name(_: click.Context, parameter: click.Parameter, text: str | None) -> str | None:
    """Check the name of a group or a member, as a callback. Raises: click.BadParameter."""
    if text is not None and not NAME.fullmatch(text):
        rule = "lower-case letters, digits and dashes between them, 63 at most"
        raise click.BadParameter(f"{text!r:.80} is not a name: {rule}", param=parameter)
    return text


def _label_key(_: click.Context, parameter: click.Parameter, text: str) -> str:
    if not _LABEL_KEY.fullmatch(text):
        raise click.BadParameter(f"{text!r:.80} is not the key of a label", param=parameter)
    return text


def shard_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of shards to a command that runs the daemon."""
    for option in (
        click.option(
            "--shard-key",
            default=ZONE,
            show_default=True,
            callback=_label_key,
            help="The label whose values are divided among the shards; nodes without it are divided one by one.",
        ),
        click.option(
            "--shard-member",
            metavar="NAME",
            callback=shard_name,
            help="This scheduler's name in the group; every member needs a different one. [the name of the host]",
        ),
        click.option(
            "--shards",
            "shard_group",
            metavar="GROUP",
            callback=shard_name,
            help="Schedule as a member of this group, which divides the nodes among its members; see docs/shards.md.",
        ),
    ):
        command = option(command)
    return command


def take_shard_options(options: dict[str, Any], *, records: bool, reloads: bool) -> ShardIdentity | None:
    """Take the options of shards out of those given; None if the scheduler is no shard.

    Raises: UsageError for a part of them without `--shards`, options that exclude it, or a host whose name cannot be
        that of a member.
    """
    group, member, shard_key = (options.pop(name) for name in ("shard_group", "shard_member", "shard_key"))
    if group is None:
        if member is not None or shard_key != ZONE:
            raise click.UsageError("--shard-member and --shard-key need --shards")
        return None
    # A replay would need the other members' Leases, and a configuration that is read again lacks the plugin.
    if records or reloads:
        raise click.UsageError("--shards excludes --record and --reload")
    if member is None:
        member = socket.gethostname().partition(".")[0].lower()
        if not NAME.fullmatch(member):
            cause = f"the name of the host, {member!r:.80}, cannot be that of a member"
            raise click.UsageError(f"--shards: {cause}; give one with --shard-member")
    return ShardIdentity(group, member, shard_key)


def as_shard(good: Usable, identity: ShardIdentity) -> Usable:
    """Return the configuration of a member: with the plugin Shards in every profile, and a Lease of its own.

    Raises: UsageError if the configuration turns leader election off, or schedules PodGroups as a whole.
    """
    from podium.plugins.shards import Shards

    if not good.config.leader_election.leader_elect:
        raise click.UsageError("--shards needs leader election, by which a member holds its Lease")
    # The owner of a node sees one pod of a group, and would wait for the others.
    if good.pod_groups is not None:
        raise click.UsageError("--shards excludes the feature gate GenericWorkload")
    if Shards.name in good.plugins:
        raise click.UsageError(f"--shards: the plugin name {Shards.name} is reserved")
    plugins: Mapping[str, Any] = {**good.plugins, Shards.name: Shards}
    return replace(good, config=shard_configuration(good.config, identity), plugins=plugins)


def shard_configuration(config: KubeSchedulerConfiguration, identity: ShardIdentity) -> KubeSchedulerConfiguration:
    """Return the configuration with the plugin Shards first at each of its points, and the Lease of the member."""
    election = replace(config.leader_election, resource_name=identity.lease_name)
    return replace(config, leader_election=election, profiles=tuple(_with_shards(item) for item in config.profiles))


def _with_shards(profile: Profile) -> Profile:
    plugin_set = profile.plugins.multi_point
    # First of all at each of its points: plugins that are enabled for a single point come after those for all points.
    first = replace(plugin_set, enabled=(Plugin("Shards"), *plugin_set.enabled))
    return replace(profile, plugins=replace(profile.plugins, multi_point=first))

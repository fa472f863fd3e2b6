"""Tests for the options of shards."""

from __future__ import annotations

from dataclasses import replace

import click
import pytest
from click.testing import CliRunner

from podium.cli.options.configuration import usable
from podium.cli.options.shards import as_shard
from podium.cli.run import command
from podium.framework.profile.runtime import expand
from podium.plugins.shards import Shards
from podium.shards import ShardIdentity

IDENTITY = ShardIdentity("podium", "m1", "rack")


def test_a_member_has_the_plugin_first_and_a_lease_of_its_own() -> None:
    good = as_shard(usable(None), IDENTITY)
    assert good.config.leader_election.resource_name == "podium-m1"
    points = expand(good.config.profiles[0], good.plugins).at
    assert {point.value: names[0] for point, names in points.items() if Shards.name in names} == dict.fromkeys(
        ("preFilter", "filter", "postFilter", "reserve", "bind"), Shards.name
    )


def test_a_member_needs_leader_election() -> None:
    good = usable(None)
    election = replace(good.config.leader_election, leader_elect=False)
    with pytest.raises(click.UsageError, match="leader election"):
        as_shard(replace(good, config=replace(good.config, leader_election=election)), IDENTITY)


def test_pod_groups_as_a_whole_are_refused() -> None:
    with pytest.raises(click.UsageError, match="excludes the feature gate GenericWorkload"):
        as_shard(usable(None, feature_gates=("GenericWorkload=true",)), IDENTITY)


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["--shard-member", "m1"], "--shard-member and --shard-key need --shards"),
        (["--shards", "Group"], "'Group' is not a name"),
        (["--shards", "g", "--shard-member", "a" * 64], "is not a name"),
        (["--shards", "g", "--shard-key", "a b"], "'a b' is not the key of a label"),
        (["--shards", "g", "--shard-member", "m1", "--reload"], "--shards excludes --record and --reload"),
    ],
)
def test_bad_options_are_refused_by_name(arguments: list[str], reason: str) -> None:
    result = CliRunner().invoke(command, arguments)
    assert result.exit_code == 2
    assert reason in result.output

from __future__ import annotations

import re
import sys

import pytest

from podium.config import ARGS_BY_PLUGIN, IN_TREE_PLUGINS, ExtensionPoint, args
from podium.framework.contract.bind import BindPlugin, PermitPlugin, PreBindPlugin, ReservePlugin
from podium.framework.contract.filter import FilterPlugin, PreFilterPlugin, TableFilterPlugin
from podium.framework.contract.group_post_filter import PodGroupPostFilterPlugin
from podium.framework.contract.placements import PlacementGeneratePlugin, PlacementScorePlugin
from podium.framework.contract.plugin import Plugin, PreEnqueuePlugin, QueueSortPlugin
from podium.framework.contract.post_filter import PostFilterPlugin
from podium.framework.contract.score import PreScorePlugin, ScorePlugin, TableScorePlugin
from podium.plugins import IN_TREE
from tests.unit.plugins.clusters import RecordingHandle

INTERFACES = {
    ExtensionPoint.PRE_ENQUEUE: PreEnqueuePlugin,
    ExtensionPoint.QUEUE_SORT: QueueSortPlugin,
    ExtensionPoint.PRE_FILTER: PreFilterPlugin,
    ExtensionPoint.FILTER: FilterPlugin,
    ExtensionPoint.POST_FILTER: PostFilterPlugin,
    ExtensionPoint.PRE_SCORE: PreScorePlugin,
    ExtensionPoint.SCORE: ScorePlugin,
    ExtensionPoint.RESERVE: ReservePlugin,
    ExtensionPoint.PERMIT: PermitPlugin,
    ExtensionPoint.PRE_BIND: PreBindPlugin,
    ExtensionPoint.BIND: BindPlugin,
    ExtensionPoint.PLACEMENT_GENERATE: PlacementGeneratePlugin,
    ExtensionPoint.PLACEMENT_SCORE: PlacementScorePlugin,
    ExtensionPoint.POD_GROUP_POST_FILTER: PodGroupPostFilterPlugin,
}


def build(name: str) -> Plugin:
    kind = ARGS_BY_PLUGIN.get(name)
    return IN_TREE[name](args.RawArgs(None) if kind is None else kind(), RecordingHandle())


@pytest.mark.parametrize("name", IN_TREE)
def test_a_plugin_is_known_by_its_class_and_lives_in_a_file_or_folder_of_that_name(name: str) -> None:
    plugin = build(name)
    assert (plugin.name, type(plugin).__name__) == (name, name)
    snake_case = re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()
    assert type(plugin).__module__.removesuffix(".plugin") == f"podium.plugins.{snake_case}"


@pytest.mark.parametrize("name", IN_TREE)
def test_a_plugin_runs_where_the_configuration_says(name: str) -> None:
    plugin = build(name)
    points = {point for point, kind in INTERFACES.items() if isinstance(plugin, kind)}
    assert points == IN_TREE_PLUGINS[name]
    assert isinstance(plugin, TableFilterPlugin) == isinstance(plugin, FilterPlugin)
    assert isinstance(plugin, TableScorePlugin) == isinstance(plugin, ScorePlugin)


@pytest.mark.parametrize("name", IN_TREE)
def test_every_plugin_has_a_card(name: str) -> None:
    head = sys.modules[type(build(name)).__module__].__doc__
    assert head is not None
    assert head.startswith(f"{name}: ")
    assert re.findall(r"^(Runs at|Verdict|Requeue|Cost|Source): ", head, re.MULTILINE) == [
        "Runs at",
        "Verdict",
        "Requeue",
        "Cost",
        "Source",
    ]

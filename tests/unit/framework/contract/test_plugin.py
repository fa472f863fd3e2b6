from __future__ import annotations

import numpy as np
import pytest

from podium import framework
from podium.config import ExtensionPoint
from podium.framework.contract.cluster_event import ALL_EVENTS
from podium.framework.contract.filter import FilterPlugin, PreFilterPlugin
from podium.framework.contract.plugin import Plugin
from podium.framework.contract.score import ScorePlugin, TableScorePlugin
from podium.framework.profile.runtime import points_of

ABSTRACT = {
    "PreEnqueuePlugin": {"pre_enqueue"},
    "QueueSortPlugin": {"less"},
    "PreFilterPlugin": {"pre_filter"},
    "PreFilterExtensions": {"add_pod", "remove_pod"},
    "FilterPlugin": {"filter"},
    "TableFilterPlugin": {"filter_rows", "explain"},
    "PostFilterPlugin": {"post_filter"},
    "PreScorePlugin": {"pre_score"},
    "ScorePlugin": {"score"},
    "TableScorePlugin": {"score_rows"},
    "ReservePlugin": {"reserve", "unreserve"},
    "PermitPlugin": {"permit"},
    "PreBindPlugin": {"pre_bind"},
    "BindPlugin": {"bind"},
    "PostBindPlugin": {"post_bind"},
}
POINT = {
    "PreEnqueuePlugin": "preEnqueue",
    "QueueSortPlugin": "queueSort",
    "PreFilterPlugin": "preFilter",
    "FilterPlugin": "filter",
    "TableFilterPlugin": "filter",
    "PostFilterPlugin": "postFilter",
    "PreScorePlugin": "preScore",
    "ScorePlugin": "score",
    "TableScorePlugin": "score",
    "ReservePlugin": "reserve",
    "PermitPlugin": "permit",
    "PreBindPlugin": "preBind",
    "BindPlugin": "bind",
    "PostBindPlugin": "postBind",
}


class Spread(FilterPlugin):
    def filter(self, state, pod, node):
        return None


@pytest.mark.parametrize(("name", "methods"), ABSTRACT.items())
def test_class_of_each_point_says_what_must_be_written(name, methods):
    assert getattr(framework, name).__abstractmethods__ == methods


@pytest.mark.parametrize(("name", "point"), POINT.items())
def test_class_of_each_point_stands_for_that_point(name, point):
    assert points_of(getattr(framework, name)) == {ExtensionPoint(point)}


def test_plugin_extends_the_points_of_all_its_bases():
    class Many(Spread, PreFilterPlugin, ScorePlugin, TableScorePlugin):
        pass

    assert points_of(Many) == {ExtensionPoint.FILTER, ExtensionPoint.PRE_FILTER, ExtensionPoint.SCORE}
    assert points_of(Plugin) == frozenset()


def test_misspelt_method_is_noticed_when_the_plugin_is_built():
    class Misspelt(FilterPlugin):
        def fliter(self, state, pod, node):
            return None

    with pytest.raises(TypeError, match="filter"):
        Misspelt()


def test_plugin_is_named_after_its_class_unless_it_names_itself():
    class Tight(Spread):
        name = "Packing"

    class Tighter(Tight):
        pass

    assert (Spread.name, Tight.name, Tighter.name) == ("Spread", "Packing", "Tighter")


def test_what_a_plugin_does_not_say_has_a_default():
    class Plain(PreFilterPlugin, TableScorePlugin, framework.PreBindPlugin):
        def pre_filter(self, state, pod, snapshot):
            return None, None

        def score_rows(self, state, pod, snapshot, rows):
            return rows

        async def pre_bind(self, state, pod, node_name):
            return None

    plain, scores = Plain(None, None), np.array([3, 1])
    assert plain.events_to_register() is ALL_EVENTS
    assert plain.pre_filter_extensions() is None
    assert plain.normalize_scores(None, None, scores) is scores
    assert plain.pre_bind_pre_flight(None, None, "n1") == (None, None)

import json
from dataclasses import replace
from typing import ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.config import expansion
from podium.config.args import NodeResourcesFitArgs, RawArgs, ResourceSpec, ScoringStrategy
from podium.config.defaults import complete, default_configuration
from podium.config.expansion import build_errors, expand_plugins
from podium.config.extension_points import IN_TREE_PLUGINS, ExtensionPoint
from podium.config.feature_gates import default_gates, parse_feature_gates
from podium.config.field_errors import ConfigError
from podium.config.loader import load
from podium.config.releases import RELEASES
from podium.config.types import (
    KubeSchedulerConfiguration,
    Plugin,
    PluginConfig,
    Plugins,
    PluginSet,
    Profile,
)

FILTER, SCORE, BIND, QUEUE_SORT = (
    ExtensionPoint.FILTER,
    ExtensionPoint.SCORE,
    ExtensionPoint.BIND,
    ExtensionPoint.QUEUE_SORT,
)
REGISTRY = {
    "Sort": frozenset({QUEUE_SORT}),
    "Sort2": frozenset({QUEUE_SORT}),
    "Bind": frozenset({BIND}),
    "A": frozenset({FILTER, SCORE}),
    "B": frozenset({FILTER, SCORE}),
    "C": frozenset({FILTER}),
    "P1": frozenset({ExtensionPoint.PLACEMENT_GENERATE, ExtensionPoint.PLACEMENT_SCORE}),
    "P2": frozenset({ExtensionPoint.PLACEMENT_GENERATE}),
}
CREATING = "creating profile for scheduler name me: "


def plugin_set(enabled_plugins="", disabled=""):
    return PluginSet(
        tuple(
            Plugin(name, int(weight or 0))
            for name, _, weight in (item.partition(":") for item in enabled_plugins.split())
        ),
        tuple(Plugin(name) for name in disabled.split()),
    )


def profile(multi_point="", *, name="me", needed_plugins="Sort Bind", plugin_config=(), **points):
    plugins = Plugins(multi_point=plugin_set(f"{needed_plugins} {multi_point}"), **points)
    return Profile(name, plugins=plugins, plugin_config=plugin_config)


def errors_of(*profiles, registry=REGISTRY):
    config = KubeSchedulerConfiguration(profiles=profiles)
    return [error.text for error in build_errors(config, registry)]


def test_multi_point_reaches_every_point_its_plugins_extend():
    expanded_plugins = expand_plugins(profile("A C B"), REGISTRY)
    assert expanded_plugins.at[FILTER] == ("A", "C", "B")
    assert expanded_plugins.at[SCORE] == ("A", "B")
    assert expanded_plugins.at[BIND] == ("Bind",)
    assert expanded_plugins.at[ExtensionPoint.PERMIT] == ()
    assert expanded_plugins.names() == {"Sort", "Bind", "A", "B", "C"}


@pytest.mark.parametrize(
    ("multi_point", "filters", "order"),
    [
        ("A B C", plugin_set("", "B"), ("A", "C")),
        ("A B C", plugin_set("", "*"), ()),
        ("A B", plugin_set("C", "*"), ("C",)),
        ("A B C", plugin_set("C B"), ("C", "B", "A")),
        ("A B", plugin_set("C"), ("A", "B", "C")),
        ("A", plugin_set("C A B"), ("A", "C", "B")),
        ("A B", plugin_set("A", "A"), ("B", "A")),
        ("", plugin_set("C B"), ("C", "B")),
    ],
    ids=[
        "a disabled plugin is left out",
        "a star leaves all out",
        "a star leaves the explicit ones in",
        "overridden plugins come first in the order of the point",
        "plugins that are not in multiPoint come last",
        "overridden first, then the others in order",
        "disabled and enabled at the point: explicit, not overridden",
        "the point alone",
    ],
)
def test_order_at_a_point(multi_point, filters, order):
    assert expand_plugins(profile(multi_point, filter=filters), REGISTRY).at[FILTER] == order


@pytest.mark.parametrize(
    ("multi_point", "scores", "weights"),
    [
        ("A:3 B", plugin_set(), {"A": 3, "B": 1}),
        ("A:3 B", plugin_set("A:5"), {"A": 5, "B": 1}),
        ("A:3 B", plugin_set("A"), {"A": 1, "B": 1}),
        ("A:3 C:9", plugin_set(), {"A": 3}),
        ("A:3", plugin_set("", "A"), {"A": 3}),
    ],
    ids=[
        "zero counts as one",
        "the point decides before multiPoint",
        "even with zero",
        "only plugins that score have weights",
        "a weight stays where the plugin is disabled",
    ],
)
def test_score_weight_comes_from_the_extension_point_before_multi_point_and_is_1_without_a_value(
    multi_point, scores, weights
):
    assert expand_plugins(profile(multi_point, score=scores), REGISTRY).score_weights == weights


@pytest.mark.parametrize(
    ("me", "errors"),
    [
        (
            profile(filter=plugin_set("Nobody")),
            [f'profiles[0].plugins.filter.enabled[0]: {CREATING}FilterPlugin "Nobody" does not exist'],
        ),
        (
            profile(permit=plugin_set("A")),
            [f'profiles[0].plugins.permit.enabled[0]: {CREATING}plugin "A" does not extend PermitPlugin plugin'],
        ),
        (
            profile(filter=plugin_set("A A")),
            [f'profiles[0].plugins.filter.enabled[1]: {CREATING}plugin "A" already registered as "FilterPlugin"'],
        ),
        (
            profile("A B A"),
            [f'profiles[0].plugins.multiPoint.enabled: {CREATING}plugin "A" already registered as "FilterPlugin"'],
        ),
        (
            profile("Nobody"),
            [f'profiles[0].plugins.multiPoint.enabled: {CREATING}PreFilterPlugin "Nobody" does not exist'],
        ),
        (
            profile(needed_plugins="Bind"),
            [
                (
                    f"profiles[0].plugins.queueSort: {CREATING}only one queue sort plugin required for "
                    f'profile with scheduler name "me", but got 0'
                )
            ],
        ),
        (
            profile("Sort2"),
            [
                (
                    f"profiles[0].plugins.queueSort: {CREATING}only one queue sort plugin required for "
                    f'profile with scheduler name "me", but got 2'
                )
            ],
        ),
        (
            profile(needed_plugins="Sort"),
            [
                (
                    f"profiles[0].plugins.bind: {CREATING}at least one bind plugin is needed for "
                    f'profile with scheduler name "me"'
                )
            ],
        ),
        (
            profile("P1 P2"),
            [
                (
                    f"profiles[0].plugins.placementGenerate: {CREATING}at most one placement generate plugin is "
                    f'allowed for profile with scheduler name "me"'
                )
            ],
        ),
        (
            profile(needed_plugins="Bind", queue_sort=plugin_set("A")),
            [f'profiles[0].plugins.queueSort.enabled[0]: {CREATING}plugin "A" does not extend QueueSortPlugin plugin'],
        ),
        (
            profile("A:92233720368547759"),
            [f"profiles[0].plugins.score: {CREATING}score plugins: total score of Score plugins could overflow"],
        ),
        (profile("A A", filter=plugin_set("A"), score=plugin_set("", "*")), []),
    ],
)
def test_profile_that_cannot_be_built_says_why(me, errors):
    assert errors_of(me) == errors


OVERFLOW = "total score of Score plugins could overflow"


@pytest.mark.parametrize(
    ("plugins", "is_refused"),
    [
        ("A:-1 Score2", True),
        ("A Score2:-1", False),
        ("A:2 Score2:-1 Score3", False),
        ("A Score2:-2 Score3", True),
        ("A:-1", False),
    ],
)
def test_a_negative_weight_is_refused_where_another_plugin_follows_a_negative_total(plugins, is_refused):
    registry = {**REGISTRY, "Score2": REGISTRY["A"], "Score3": REGISTRY["A"]}
    config = KubeSchedulerConfiguration(profiles=(profile(plugins),))
    assert any(OVERFLOW in error.text for error in build_errors(config, registry)) is is_refused


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("NodeResourceFit", '; did you mean "NodeResourcesFit"?'),
        ("podtopologyspread", '; did you mean "PodTopologySpread"?'),
        ("Zebra", "; give --plugin MODULE:CLASS if it is a plugin of your own"),
        # Similar to PrioritySort, which does not score.
        ("PrioritySorts", "; give --plugin MODULE:CLASS if it is a plugin of your own"),
    ],
)
def test_an_unknown_plugin_is_refused_with_the_name_that_may_have_been_meant(name, hint):
    config = default_configuration()
    plugins = replace(config.profiles[0].plugins, score=plugin_set(name))
    config = replace(config, profiles=(replace(config.profiles[0], plugins=plugins),))
    errors = build_errors(config)
    with pytest.raises(ConfigError) as error:
        raise ConfigError(errors)
    assert error.value.lines()[0].endswith(f'ScorePlugin "{name}" does not exist{hint}')
    assert errors[0].text.endswith(f'ScorePlugin "{name}" does not exist')


def test_a_plugin_at_the_wrong_point_is_refused_with_the_points_that_it_extends():
    config = default_configuration()
    plugins = replace(config.profiles[0].plugins, filter=plugin_set("ImageLocality"))
    config = replace(config, profiles=(replace(config.profiles[0], plugins=plugins),))
    with pytest.raises(ConfigError) as error:
        raise ConfigError(build_errors(config))
    assert error.value.lines()[0].endswith(
        'plugin "ImageLocality" does not extend FilterPlugin plugin; it extends score'
    )


def test_every_reason_is_found_at_once_and_raised_together():
    me = profile("A A Nobody", needed_plugins="", filter=plugin_set("Bind"))
    assert len(errors_of(me)) == 5
    with pytest.raises(ConfigError) as error:
        expand_plugins(me, REGISTRY)
    assert len(error.value.errors) == 5


def test_profiles_that_sort_differently_after_expansion_are_refused():
    second = profile(name="other", needed_plugins="Sort2 Bind")
    assert errors_of(profile(), second) == [
        'profiles[1].plugins.queueSort: different queue sort plugins for profile "other": "Sort2", first: "Sort"'
    ]


def test_profiles_whose_sort_has_different_args_are_refused():
    def sorting(name, x):
        return profile(name=name, plugin_config=(PluginConfig("Sort", RawArgs({"x": x})),))

    assert errors_of(sorting("me", 1), sorting("other", 1)) == []
    assert errors_of(sorting("me", 1), sorting("other", 2)) == [
        'profiles[1].pluginConfig: different queue sort plugin args for profile "other"'
    ]


def test_fit_args_are_checked_where_the_plugin_is_built():
    wrong = NodeResourcesFitArgs(scoring_strategy=ScoringStrategy("LeastAllocated", (ResourceSpec("cpu", 101),)))
    me = replace(default_configuration().profiles[0], plugin_config=(PluginConfig("NodeResourcesFit", wrong),))
    assert errors_of(me, registry=IN_TREE_PLUGINS) == [
        (
            "profiles[0].pluginConfig[0].args.scoringStrategy.resources[0].weight: "
            'creating profile for scheduler name default-scheduler: initializing plugin "NodeResourcesFit": '
            "scoringStrategy.resources[0].weight: Invalid value: 101: "
            "resource weight of cpu not in valid range (0, 100]"
        )
    ]
    off = Plugins(multi_point=plugin_set("", "NodeResourcesFit"))
    config = complete(KubeSchedulerConfiguration(profiles=(replace(me, plugins=off),)))
    assert build_errors(config) == ()


def test_plugins_of_profiles_to_skip_are_not_looked_at():
    config = KubeSchedulerConfiguration(profiles=(profile(needed_plugins=""), profile(needed_plugins="")))
    assert {error.path.partition(".")[0] for error in build_errors(config, REGISTRY, skip={0})} == {"profiles[1]"}


def test_in_1_36_three_plugins_do_not_run_at_pre_filter_and_none_for_groups():
    profile = default_configuration(default_gates(RELEASES["1.36"])).profiles[0]
    expansion = expand_plugins(profile)
    assert expansion.at[ExtensionPoint.PRE_FILTER][0] == "NodeAffinity"
    assert expansion.at[ExtensionPoint.FILTER][:3] == ("NodeUnschedulable", "NodeName", "TaintToleration")
    assert expansion.at[ExtensionPoint.POD_GROUP_POST_FILTER] == ()
    plugins = replace(profile.plugins, pre_filter=PluginSet((Plugin("NodeName"),)))
    with pytest.raises(ConfigError, match='plugin "NodeName" does not extend PreFilterPlugin plugin'):
        expand_plugins(replace(profile, plugins=plugins))


def test_default_profile_runs_every_plugin_where_upstream_does():
    expanded_plugins = expand_plugins(default_configuration().profiles[0])
    assert {point.value: names for point, names in expanded_plugins.at.items() if names} == {
        "preEnqueue": ("SchedulingGates", "DynamicResources", "DefaultPreemption"),
        "queueSort": ("PrioritySort",),
        "preFilter": (
            "NodeName",
            "NodeUnschedulable",
            "TaintToleration",
            "NodeAffinity",
            "NodePorts",
            "NodeResourcesFit",
            "VolumeRestrictions",
            "NodeVolumeLimits",
            "VolumeBinding",
            "VolumeZone",
            "PodTopologySpread",
            "InterPodAffinity",
            "DynamicResources",
            "NodeDeclaredFeatures",
        ),
        "filter": (
            "NodeName",
            "NodeUnschedulable",
            "TaintToleration",
            "NodeAffinity",
            "NodePorts",
            "NodeResourcesFit",
            "VolumeRestrictions",
            "NodeVolumeLimits",
            "VolumeBinding",
            "VolumeZone",
            "PodTopologySpread",
            "InterPodAffinity",
            "DynamicResources",
            "NodeDeclaredFeatures",
        ),
        "postFilter": ("DynamicResources", "DefaultPreemption"),
        "podGroupPostFilter": ("DynamicResources", "DefaultPreemption"),
        "reserve": ("VolumeBinding", "DynamicResources"),
        "preScore": (
            "TaintToleration",
            "NodeAffinity",
            "NodeResourcesFit",
            "VolumeBinding",
            "PodTopologySpread",
            "InterPodAffinity",
            "NodeResourcesBalancedAllocation",
        ),
        "score": (
            "TaintToleration",
            "NodeAffinity",
            "NodeResourcesFit",
            "VolumeBinding",
            "PodTopologySpread",
            "InterPodAffinity",
            "DynamicResources",
            "NodeResourcesBalancedAllocation",
            "ImageLocality",
        ),
        "preBind": ("VolumeBinding", "DynamicResources"),
        "bind": ("DefaultBinder",),
        "placementScore": ("NodeResourcesFit",),
    }
    assert expanded_plugins.score_weights == {
        "TaintToleration": 3,
        "NodeAffinity": 2,
        "NodeResourcesFit": 1,
        "VolumeBinding": 1,
        "PodTopologySpread": 2,
        "InterPodAffinity": 2,
        "DynamicResources": 2,
        "NodeResourcesBalancedAllocation": 1,
        "ImageLocality": 1,
    }


NAMES = st.lists(st.sampled_from(["A", "B", "C", "Nobody"]), max_size=4, unique=True).map(" ".join)
DISABLED = st.lists(st.sampled_from(["A", "B", "C", "*"]), max_size=3).map(" ".join)


@pytest.mark.long
@given(NAMES, NAMES, DISABLED)
def test_what_runs_at_a_point_extends_it_once_and_is_asked_for(multi_point, enabled_plugins, disabled):
    me = profile(multi_point, filter=plugin_set(enabled_plugins, disabled))
    try:
        names = expand_plugins(me, REGISTRY).at[FILTER]
    except ConfigError:
        return
    assert len(set(names)) == len(names)
    assert set(names) <= set(multi_point.split()) | set(enabled_plugins.split())
    assert all(FILTER in REGISTRY[name] for name in names)
    assert set(enabled_plugins.split()) <= set(names)


def test_profiles_of_the_same_plugins_are_expanded_once_but_keep_their_own_errors(monkeypatch):
    class Counting(expansion._Expansion):
        names: ClassVar[list[str]] = []

        def run(self):
            self.names.append(self._profile.scheduler_name)
            return super().run()

    monkeypatch.setattr(expansion, "_Expansion", Counting)
    wrong = Plugins(filter=plugin_set("Unheard"))
    profiles = tuple(Profile(name, plugins=wrong if name in "bd" else Plugins()) for name in "abcde")
    errors = build_errors(complete(KubeSchedulerConfiguration(profiles=profiles)))
    assert Counting.names == ["a", "b", "d"]
    assert [error.path.partition(".")[0] for error in errors] == ["profiles[1]", "profiles[3]"]


@pytest.mark.parametrize(
    ("minor", "gates", "is_enabled"),
    [
        ("1.37", "GenericWorkload=true", True),
        ("1.37", "GenericWorkload=false", False),
        ("1.36", "GenericWorkload=true", False),
        ("1.36", "GenericWorkload=true,GangScheduling=true", True),
    ],
)
def test_gangs_are_scheduled_by_default_since_pod_groups_are(minor, gates, is_enabled):
    (profile,) = default_configuration(parse_feature_gates([gates], RELEASES[minor])).profiles
    assert ("GangScheduling" in [plugin.name for plugin in profile.plugins.multi_point.enabled]) is is_enabled


@pytest.mark.parametrize(
    ("minor", "gates", "disabled", "is_warned"),
    [
        ("1.37", "GenericWorkload=true", "GangScheduling", True),
        ("1.37", "GenericWorkload=true", "NodeName", False),
        ("1.37", "GenericWorkload=false", "GangScheduling", False),
        ("1.36", "GenericWorkload=true", "NodeName", False),
    ],
)
def test_pod_groups_without_the_plugin_that_counts_them_are_warned_about(minor, gates, disabled, is_warned):
    plugins = {"multiPoint": {"disabled": [{"name": disabled}]}}
    file = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"plugins": plugins}],
    }
    warning = (
        "profiles[0].plugins: GenericWorkload is enabled, but GangScheduling plugin is not set. Gang scheduling using "
        "PodGroups may not work as expected."
    )
    warnings = load(json.dumps(file), gates=parse_feature_gates([gates], RELEASES[minor])).warnings
    assert warnings == ((warning,) if is_warned else ())

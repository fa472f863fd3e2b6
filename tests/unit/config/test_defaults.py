from dataclasses import replace

import pytest

from podium.config.args import (
    DefaultPreemptionArgs,
    DynamicResourcesArgs,
    InterPodAffinityArgs,
    NodeAffinityArgs,
    NodeResourcesBalancedAllocationArgs,
    NodeResourcesFitArgs,
    PodTopologySpreadArgs,
    ResourceSpec,
    ScoringStrategy,
    UtilizationShapePoint,
    VolumeBindingArgs,
)
from podium.config.defaults import complete, default_configuration, default_plugins, merge_plugin_set, merge_plugins
from podium.config.extension_points import IN_TREE_PLUGINS, ExtensionPoint
from podium.config.feature_gates import DEFAULT_GATES, default_gates, parse_feature_gates
from podium.config.releases import RELEASES
from podium.config.types import (
    ClientConnection,
    KubeSchedulerConfiguration,
    LeaderElection,
    Plugin,
    PluginConfig,
    Plugins,
    PluginSet,
    Profile,
)

SHAPE = (UtilizationShapePoint(0, 10), UtilizationShapePoint(100, 0))


def plugin_set(enabled_plugins="", disabled=""):
    """``"A B:3"`` → two plugins, the second with weight 3."""
    return PluginSet(
        tuple(
            Plugin(name, int(weight or 0))
            for name, _, weight in (item.partition(":") for item in enabled_plugins.split())
        ),
        tuple(Plugin(name) for name in disabled.split()),
    )


def test_defaults_of_the_configuration():
    config = default_configuration()
    assert replace(config, profiles=()) == KubeSchedulerConfiguration(
        parallelism=16,
        leader_election=LeaderElection(
            leader_elect=True,
            lease_duration_s=15.0,
            renew_deadline_s=10.0,
            retry_period_s=2.0,
            resource_lock="leases",
            resource_name="kube-scheduler",
            resource_namespace="kube-system",
        ),
        client_connection=ClientConnection(
            kubeconfig="",
            accept_content_types="",
            content_type="application/vnd.kubernetes.protobuf",
            qps=50.0,
            burst=100,
        ),
        enable_profiling=True,
        enable_contention_profiling=True,
        percentage_of_nodes_to_score=0,
        pod_initial_backoff_s=1,
        pod_max_backoff_s=10,
        profiles=(),
        extenders=(),
        delay_cache_until_active=False,
    )


def test_default_profile_has_the_default_name_and_args_for_every_plugin_that_takes_any():
    (profile,) = default_configuration().profiles
    assert profile.scheduler_name == "default-scheduler"
    assert profile.percentage_of_nodes_to_score is None
    assert {entry.name: entry.args for entry in profile.plugin_config} == {
        "DefaultPreemption": DefaultPreemptionArgs(10, 100),
        "DynamicResources": DynamicResourcesArgs(10.0, 600.0, has_taint_rules=True),
        "InterPodAffinity": InterPodAffinityArgs(1, False),
        "NodeAffinity": NodeAffinityArgs(None),
        "NodeResourcesBalancedAllocation": NodeResourcesBalancedAllocationArgs(
            (ResourceSpec("cpu", 1), ResourceSpec("memory", 1))
        ),
        "NodeResourcesFit": NodeResourcesFitArgs(
            (), (), ScoringStrategy("LeastAllocated", (ResourceSpec("cpu", 1), ResourceSpec("memory", 1)), None)
        ),
        "PodTopologySpread": PodTopologySpreadArgs((), "System"),
        "VolumeBinding": VolumeBindingArgs(600, SHAPE),
    }


def test_in_1_36_volumes_have_no_shape_and_devices_no_taint_rules():
    (profile,) = default_configuration(default_gates(RELEASES["1.36"])).profiles
    assert profile.args_of("VolumeBinding") == VolumeBindingArgs(600, None)
    assert profile.args_of("DynamicResources") == DynamicResourcesArgs(10.0, 600.0, has_taint_rules=False)


def test_default_plugins_are_one_multi_point_list_in_order():
    plugins = default_plugins()
    assert all(plugins.at(point) == PluginSet() for point in ExtensionPoint if point is not ExtensionPoint.MULTI_POINT)
    assert plugins.multi_point == plugin_set(
        "SchedulingGates PrioritySort NodeName NodeUnschedulable TaintToleration:3 NodeAffinity:2 NodePorts "
        "NodeResourcesFit:1 VolumeRestrictions NodeVolumeLimits VolumeBinding VolumeZone PodTopologySpread:2 "
        "InterPodAffinity:2 DynamicResources:2 DefaultPreemption NodeResourcesBalancedAllocation:1 ImageLocality:1 "
        "DefaultBinder NodeDeclaredFeatures"
    )


def test_in_1_36_cordons_are_looked_at_before_names():
    gates = default_gates(RELEASES["1.36"])
    plugins = [plugin.name for plugin in default_plugins(gates).multi_point.enabled]
    assert plugins[:5] == ["SchedulingGates", "PrioritySort", "NodeUnschedulable", "NodeName", "TaintToleration"]
    assert plugins[4:] == [plugin.name for plugin in default_plugins().multi_point.enabled[4:]]


def test_every_default_plugin_is_in_tree():
    assert default_plugins().enabled_names() <= set(IN_TREE_PLUGINS)


def test_gates_add_their_plugins_at_the_end():
    gates = replace(
        DEFAULT_GATES, on_gates=DEFAULT_GATES.on_gates | {"GenericWorkload", "TopologyAwareWorkloadScheduling"}
    )
    assert default_plugins(gates).multi_point.enabled[-3:] == (
        Plugin("GangScheduling"),
        Plugin("TopologyPlacementGenerator"),
        Plugin("PodGroupPodsCount", 1),
    )


@pytest.mark.parametrize(
    ("custom", "merged_set"),
    [
        (plugin_set(), plugin_set("A B:2 C")),
        (plugin_set("X"), plugin_set("A B:2 C X")),
        (plugin_set("B:9"), plugin_set("A B:9 C")),
        (plugin_set("", "B"), plugin_set("A C", "B")),
        (plugin_set("X A", "*"), plugin_set("X A", "*")),
        (plugin_set("B:9", "B"), plugin_set("A C B:9", "B")),
        (plugin_set("X X"), plugin_set("A B:2 C X X")),
        (plugin_set("B:1 B:2"), plugin_set("A B:2 C B:1")),
        (plugin_set("", "Nobody"), plugin_set("A B:2 C", "Nobody")),
    ],
    ids=[
        "nothing asked",
        "a new plugin goes to the end",
        "a default plugin takes the new weight at its place",
        "a disabled plugin goes",
        "a star drops all defaults",
        "disabled and enabled again goes to the end",
        "repetitions stay for the expansion to refuse",
        "of two weights for a default the last one takes its place",
        "disabling a stranger changes nothing",
    ],
)
def test_merging_one_extension_point(custom, merged_set):
    assert merge_plugin_set(plugin_set("A B:2 C"), custom) == merged_set


def test_default_disabled_list_counts_too_and_weights_of_disabled_plugins_are_dropped():
    default = PluginSet(plugin_set("A B").enabled, (Plugin("B"),))
    custom = PluginSet((), (Plugin("A", 5),))
    assert merge_plugin_set(default, custom) == PluginSet((), (Plugin("A"), Plugin("B")))


def test_merging_is_done_at_every_extension_point():
    default = Plugins(**{point.name.lower(): plugin_set("A") for point in ExtensionPoint})
    custom = Plugins(**{point.name.lower(): plugin_set("B") for point in ExtensionPoint})
    plugins = merge_plugins(default, custom)
    assert all(plugins.at(point) == plugin_set("A B") for point in ExtensionPoint)


def test_only_profile_without_a_name_is_the_default_scheduler():
    config = complete(KubeSchedulerConfiguration(profiles=(Profile(),)))
    assert config.profiles[0].scheduler_name == "default-scheduler"


def test_empty_name_that_the_file_gives_stays_empty():
    config = complete(KubeSchedulerConfiguration(profiles=(Profile(),)), present={"profiles[0].schedulerName"})
    assert config.profiles[0].scheduler_name == ""


def test_nameless_profiles_beside_others_stay_nameless():
    config = complete(KubeSchedulerConfiguration(profiles=(Profile("a"), Profile())))
    assert [profile.scheduler_name for profile in config.profiles] == ["a", ""]


def test_given_args_stay_first_and_the_missing_ones_follow_sorted_by_name():
    plugin_config = PluginConfig("VolumeBinding", VolumeBindingArgs(5, SHAPE))
    (profile,) = complete(KubeSchedulerConfiguration(profiles=(Profile("a", plugin_config=(plugin_config,)),))).profiles
    assert profile.plugin_config[0] == plugin_config
    names = [entry.name for entry in profile.plugin_config[1:]]
    assert names == sorted(names)
    assert "VolumeBinding" not in names


def test_plugin_that_is_disabled_gets_no_args():
    plugins = Plugins(multi_point=plugin_set("", "InterPodAffinity"))
    (profile,) = complete(KubeSchedulerConfiguration(profiles=(Profile("a", plugins=plugins),))).profiles
    assert profile.args_of("InterPodAffinity") is None
    assert profile.args_of("NodeAffinity") == NodeAffinityArgs()


@pytest.mark.parametrize(("present_fields", "contention"), [(set(), False), ({"enableContentionProfiling"}, True)])
def test_contention_profiling_is_on_by_default_only_with_profiling(present_fields, contention):
    config = complete(KubeSchedulerConfiguration(enable_profiling=False), present=present_fields)
    assert config.enable_contention_profiling is contention


@pytest.mark.parametrize(
    ("gates", "plugin", "args"),
    [
        (
            replace(DEFAULT_GATES, on_gates=DEFAULT_GATES.on_gates - {"DRASchedulerFilterTimeout"}),
            "DynamicResources",
            DynamicResourcesArgs(None, 600.0, has_taint_rules=True),
        ),
        (
            replace(DEFAULT_GATES, on_gates=DEFAULT_GATES.on_gates - {"DRADeviceBindingConditions"}),
            "DynamicResources",
            DynamicResourcesArgs(10.0, None, has_taint_rules=True),
        ),
        (
            replace(DEFAULT_GATES, on_gates=DEFAULT_GATES.on_gates - {"DRAResourceClaimDeviceStatus"}),
            "DynamicResources",
            DynamicResourcesArgs(10.0, None, has_taint_rules=True),
        ),
        (
            replace(DEFAULT_GATES, on_gates=DEFAULT_GATES.on_gates - {"StorageCapacityScoring"}),
            "VolumeBinding",
            VolumeBindingArgs(600, None),
        ),
        (
            parse_feature_gates(["StorageCapacityScoring=true"], RELEASES["1.36"]),
            "VolumeBinding",
            VolumeBindingArgs(600, SHAPE),
        ),
        (
            replace(DEFAULT_GATES, on_gates=DEFAULT_GATES.on_gates - {"DRADeviceTaintRules"}),
            "DynamicResources",
            DynamicResourcesArgs(10.0, 600.0, has_taint_rules=False),
        ),
        (
            parse_feature_gates(["DRAFractionalCapacityRange=true"]),
            "DynamicResources",
            DynamicResourcesArgs(10.0, 600.0, has_fractional_ranges=True),
        ),
    ],
)
def test_defaults_that_hang_on_a_gate(gates, plugin, args):
    assert default_configuration(gates).profiles[0].args_of(plugin) == args


@pytest.mark.parametrize(
    ("minor", "settings", "is_needed"),
    [
        ("1.37", [], True),
        ("1.37", ["VolumeLimitScaling=false"], False),
        ("1.36", [], False),
        ("1.36", ["VolumeLimitScaling=true"], True),
    ],
)
def test_installed_drivers_are_needed_with_the_gate(minor, settings, is_needed):
    config = default_configuration(parse_feature_gates(settings, RELEASES[minor]))
    assert config.release.needs_installed_drivers is config.profiles[0].release.needs_installed_drivers is is_needed


def test_profile_is_found_by_its_name():
    config = complete(KubeSchedulerConfiguration(profiles=(Profile("a"), Profile("b"))))
    assert config.profile("b") is config.profiles[1]
    assert config.profile("c") is None

from dataclasses import replace

import pytest

from podium.config.args import InterPodAffinityArgs, NodeResourcesFitArgs, RawArgs, ScoringStrategy
from podium.config.defaults import default_configuration
from podium.config.extension_points import REMOVED_PLUGINS, ExtensionPoint
from podium.config.types import (
    ClientConnection,
    Extender,
    ExtenderManagedResource,
    ExtenderTLSConfig,
    LeaderElection,
    Plugin,
    PluginConfig,
    Plugins,
    PluginSet,
    Profile,
)
from podium.config.validation import validate

DEFAULT = default_configuration()
REMOVED = (
    'was invalid in version "kubescheduler.config.k8s.io/v1" '
    '(KubeSchedulerConfiguration is version "kubescheduler.config.k8s.io/v1")'
)


def errors_of(**fields):
    return [error.text for error in validate(replace(DEFAULT, **fields))]


def queue_sort(*names, disabled=()):
    plugins = PluginSet(tuple(map(Plugin, names)), tuple(map(Plugin, disabled)))
    return Plugins(queue_sort=plugins)


def test_default_configuration_is_valid():
    assert errors_of() == []


@pytest.mark.parametrize(
    ("fields", "errors"),
    [
        (
            {"client_connection": ClientConnection(burst=-1)},
            ["clientConnection.burst: Invalid value: -1: must be non-negative"],
        ),
        ({"parallelism": 0}, ["parallelism: Invalid value: 0: should be an integer value greater than zero"]),
        (
            {"percentage_of_nodes_to_score": 101},
            ["percentageOfNodesToScore: Invalid value: 101: not in valid range [0-100]"],
        ),
        (
            {"percentage_of_nodes_to_score": -1},
            ["percentageOfNodesToScore: Invalid value: -1: not in valid range [0-100]"],
        ),
        ({"percentage_of_nodes_to_score": 100}, []),
        ({"pod_initial_backoff_s": 0}, ["podInitialBackoffSeconds: Invalid value: 0: must be greater than 0"]),
        (
            {"pod_initial_backoff_s": 5, "pod_max_backoff_s": 4},
            ["podMaxBackoffSeconds: Invalid value: 4: must be greater than or equal to PodInitialBackoffSeconds"],
        ),
        ({"profiles": ()}, ["profiles: Required value"]),
    ],
)
def test_rule_of_a_top_level_field(fields, errors):
    assert errors_of(**fields) == errors


@pytest.mark.parametrize(
    ("election", "errors"),
    [
        (
            {"lease_duration_s": -1.0},
            [
                'leaderElection.leaseDuration: Invalid value: "-1s": must be greater than zero',
                'leaderElection.leaseDuration: Invalid value: "10s": must be greater than `RenewDeadline`',
            ],
        ),
        (
            {"renew_deadline_s": 15.0},
            ['leaderElection.leaseDuration: Invalid value: "15s": must be greater than `RenewDeadline`'],
        ),
        (
            {"renew_deadline_s": -1.0, "retry_period_s": -2.0},
            [
                'leaderElection.renewDeadline: Invalid value: "-1s": must be greater than zero',
                'leaderElection.retryPeriod: Invalid value: "-2s": must be greater than zero',
            ],
        ),
        (
            {"resource_lock": "endpoints"},
            ['leaderElection.resourceLock: Invalid value: "endpoints": resourceLock value must be "leases"'],
        ),
        (
            {"resource_lock": "", "resource_name": "", "resource_namespace": ""},
            [
                "leaderElection.resourceLock: Required value",
                'leaderElection.resourceLock: Invalid value: "": resourceLock value must be "leases"',
                "leaderElection.resourceNamespace: Required value",
                "leaderElection.resourceName: Required value",
            ],
        ),
    ],
)
def test_rule_of_leader_election_counts_only_with_leader_election(election, errors):
    assert errors_of(leader_election=LeaderElection(**election)) == errors
    assert errors_of(leader_election=LeaderElection(leader_elect=False, **election)) == []


@pytest.mark.parametrize(
    ("profiles", "errors"),
    [
        ((Profile(),), ["profiles[0].schedulerName: Required value"]),
        ((Profile("a"), Profile("a")), ['profiles[1].schedulerName: Duplicate value: "a"']),
        (
            (Profile("a", -1), Profile("b", 101), Profile("c", 0)),
            [
                "profiles[0].percentageOfNodesToScore: Invalid value: -1: not in valid range [0-100]",
                "profiles[1].percentageOfNodesToScore: Invalid value: 101: not in valid range [0-100]",
            ],
        ),
        (
            (Profile("a", plugins=queue_sort("A", "B")),),
            ["profiles[0].plugins.queueSort.Enabled: Invalid value: 2: only one queue sort plugin can be enabled"],
        ),
        (
            (Profile("a", plugins=queue_sort("A")), Profile("b", plugins=queue_sort("A", disabled=["*"]))),
            [
                (
                    'profiles[1].plugins.queueSort: Invalid value: {"enabled":[{"name":"A","weight":0}],'
                    '"disabled":[{"name":"*","weight":0}]}: must be the same for all profiles'
                )
            ],
        ),
        (
            tuple(
                Profile(name, plugins=queue_sort("A"), plugin_config=(PluginConfig("A", RawArgs({"x": x})),))
                for name, x in (("a", 1), ("b", 2))
            ),
            ['profiles[1].pluginConfig.args: Invalid value: {"x":2}: queueSort must be the same for all profiles'],
        ),
        (
            (Profile("a", plugin_config=(PluginConfig("X"), PluginConfig("Y"), PluginConfig("X"))),),
            ['profiles[0].pluginConfig[2]: Duplicate value: "X"'],
        ),
        (
            (Profile("a", plugin_config=(PluginConfig("InterPodAffinity", InterPodAffinityArgs(-1)),)),),
            ["profiles[0].pluginConfig[0].args.hardPodAffinityWeight: Invalid value: -1: not in valid range [0, 100]"],
        ),
        (
            (
                Profile(
                    "a",
                    plugin_config=(
                        PluginConfig("NodeResourcesFit", NodeResourcesFitArgs(scoring_strategy=ScoringStrategy("X"))),
                    ),
                ),
            ),
            [],
        ),
    ],
)
def test_rule_of_profiles(profiles, errors):
    assert errors_of(profiles=profiles) == errors


@pytest.mark.parametrize("name", sorted(REMOVED_PLUGINS))
def test_removed_plugin_is_refused_by_name(name):
    plugin_set = PluginSet((Plugin("X"), Plugin(name)))
    profile = Profile("a", plugins=Plugins(filter=plugin_set), plugin_config=(PluginConfig(name),))
    assert errors_of(profiles=(profile,)) == [
        f'profiles[0].plugins.filter.enabled[1]: Invalid value: "{name}": {REMOVED}',
        f'profiles[0].pluginConfig[0]: Invalid value: "{name}": {REMOVED}',
    ]


@pytest.mark.parametrize("point", ExtensionPoint)
def test_removed_plugin_is_looked_for_at_all_points_but_three(point):
    plugins = Plugins(**{point.name.lower(): PluginSet((Plugin("EBSLimits"),))})
    checked = point.value not in ("multiPoint", "placementGenerate", "placementScore")
    assert bool(errors_of(profiles=(Profile("a", plugins=plugins),))) is checked


def managing(*names, **fields):
    return Extender("http://x", managed_resources=tuple(map(ExtenderManagedResource, names)), **fields)


@pytest.mark.parametrize(
    ("extenders", "errors"),
    [
        (
            (Extender("http://x", prioritize_verb="p"),),
            ["extenders[0].weight: Invalid value: 0: must have a positive weight applied to it"],
        ),
        ((Extender("http://x", filter_verb="f", weight=-1),), []),
        (
            (Extender("http://x", bind_verb="b"), Extender("http://y", bind_verb="b")),
            ['extenders: Invalid value: "found 2 extenders implementing bind": only one extender can implement bind'],
        ),
        (
            (managing("cpu"),),
            ['extenders[0].managedResources[0].name: Invalid value: "cpu": is an invalid extended resource name'],
        ),
        (
            (managing("e.io/x"), managing("e.io/y", "e.io/x")),
            [
                (
                    'extenders[1].managedResources[1].name: Invalid value: "e.io/x": '
                    "duplicate extender managed resource name"
                )
            ],
        ),
        (
            (Extender("http://x", tls_config=ExtenderTLSConfig(insecure=True, ca_file="ca.pem")),),
            [
                (
                    "extenders[0].tlsConfig.insecure: Invalid value: true: "
                    "specifying a root certificates file with the insecure flag is not allowed"
                )
            ],
        ),
    ],
)
def test_rule_of_extenders(extenders, errors):
    assert errors_of(extenders=extenders) == errors


def test_managed_resource_must_be_a_qualified_name():
    (error,) = errors_of(extenders=(managing("b@d"),))
    assert error.startswith('extenders[0].managedResources[0].name: Invalid value: "b@d": name part must consist of')


def test_all_errors_are_found_at_once():
    assert len(errors_of(parallelism=0, pod_initial_backoff_s=0, profiles=(Profile(), Profile()))) == 5

import json

import pytest

from podium.config import (
    DEFAULT_GATES,
    IN_TREE_PLUGINS,
    RELEASES,
    ConfigError,
    ConfigGates,
    ExtensionPoint,
    Plugin,
    PluginConfig,
    RawArgs,
    default_gates,
    effective,
    load,
    load_file,
)
from podium.config.args import (
    DynamicResourcesArgs,
    InterPodAffinityArgs,
    NodeAffinityArgs,
    NodeResourcesFitArgs,
    ResourceSpec,
    ScoringStrategy,
    UtilizationShapePoint,
    VolumeBindingArgs,
)
from podium.config.types import ExtenderManagedResource, ExtenderTLSConfig

SHAPE = (UtilizationShapePoint(0, 10), UtilizationShapePoint(100, 0))
HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"


def refusal(text, **options):
    with pytest.raises(ConfigError) as error:
        load(text, **options)
    return list(error.value.lines())


def args_of(plugin, text):
    config = load(f"{HEAD}profiles:\n- pluginConfig:\n  - name: {plugin}\n    args: {text}\n").config
    return config.profiles[0].args_of(plugin)


def test_whole_file_becomes_values():
    text = (
        HEAD
        + """
parallelism: 8
leaderElection: {leaderElect: false, leaseDuration: 1m30s, resourceName: podium}
clientConnection: {kubeconfig: /k, qps: -1, burst: 7, contentType: application/json}
percentageOfNodesToScore: 30
podInitialBackoffSeconds: 2
podMaxBackoffSeconds: 20
delayCacheUntilActive: yes
enableProfiling: off
profiles:
- schedulerName: podium
  percentageOfNodesToScore: 0
  plugins:
    score:
      enabled: [{name: ImageLocality, weight: 5}]
      disabled: [{name: NodeAffinity}]
extenders:
- urlPrefix: https://x
  filterVerb: f
  weight: 3
  enableHTTPS: true
  httpTimeout: 250ms
  tlsConfig: {serverName: s, caData: aGk=}
  managedResources: [{name: e.io/x, ignoredByScheduler: true}]
"""
    )
    config = load(text).config
    assert (config.parallelism, config.percentage_of_nodes_to_score) == (8, 30)
    assert (config.pod_initial_backoff_s, config.pod_max_backoff_s) == (2, 20)
    assert (config.delay_cache_until_active, config.enable_profiling) == (True, False)
    assert config.leader_election.lease_duration_s == 90.0
    assert config.leader_election.resource_name == "podium"
    assert (config.client_connection.qps, config.client_connection.burst) == (-1.0, 7)
    (profile,) = config.profiles
    assert (profile.scheduler_name, profile.percentage_of_nodes_to_score) == ("podium", 0)
    assert profile.plugins.score.enabled == (Plugin("ImageLocality", 5),)
    assert profile.plugins.score.disabled == (Plugin("NodeAffinity"),)
    assert profile.args_of("NodeResourcesFit").ignored_resources == ("e.io/x",)
    (extender,) = config.extenders
    assert (extender.http_timeout_s, extender.weight, extender.enable_https) == (0.25, 3, True)
    assert extender.tls_config == ExtenderTLSConfig(server_name="s", ca_data="aGk=")
    assert extender.managed_resources == (ExtenderManagedResource("e.io/x", True),)


def test_json_is_read_as_well():
    text = json.dumps(
        {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration", "parallelism": 3}
    )
    assert load(text).config.parallelism == 3


def test_every_error_of_a_file_is_found_with_path_and_line():
    text = (
        HEAD
        + """parallelism: five
paralelism: 3
parallelism: [1]
leaderElection: {leaseDuration: 15}
profiles:
- plugins:
    score:
      enabled:
      - {name: ImageLocality}
      - {name: NodeAffinity, weight: five}
- schedulerName: ''
clientConnection: {burst: -1}
"""
    )
    assert refusal(text, source="c.yaml") == [
        'c.yaml:4: paralelism: unknown field: did you mean "parallelism"?',
        "c.yaml:5: parallelism: duplicate field: already set on line 3",
        "c.yaml:5: parallelism: expected int32, got a list",
        'c.yaml:6: leaderElection.leaseDuration: expected a duration such as "1m30s", got 15',
        "c.yaml:7: profiles[0].schedulerName: Required value",
        'c.yaml:12: profiles[0].plugins.score.enabled[1].weight: expected int32, got "five"',
        "c.yaml:13: profiles[1].schedulerName: Required value",
        'c.yaml:13: profiles[1].schedulerName: Duplicate value: ""',
        "c.yaml:14: clientConnection.burst: Invalid value: -1: must be non-negative",
    ]


def test_unreadable_value_is_not_reported_a_second_time():
    text = HEAD + "podMaxBackoffSeconds: x\npodInitialBackoffSeconds: 60\n"
    assert refusal(text) == ['line 3: podMaxBackoffSeconds: expected int64, got "x"']
    text = HEAD + "profiles:\n- 1\n- schedulerName: b\n"
    assert refusal(text) == ["line 4: profiles[0]: expected an object, got 1"]


def test_profile_that_cannot_be_read_is_not_built():
    text = HEAD + "profiles:\n- schedulerName: a\n  plugins: {bind: {disabled: [{name: '*'}], enabled: 5}}\n"
    assert refusal(text) == ["line 5: profiles[0].plugins.bind.enabled: expected a list, got 5"]


def test_args_of_a_profile_that_cannot_be_built_are_still_checked():
    text = (
        HEAD + "profiles:\n- plugins: {bind: 5}\n  pluginConfig:\n"
        "  - {name: NodeResourcesFit, args: {ignoredResourceGroups: [a/b]}}\n"
        "  - {name: VolumeBinding, args: {bindTimeoutSeconds: -1}}\n"
    )
    assert [line.partition(": ")[0] for line in refusal(text)] == ["line 4", "line 6", "line 7"]


@pytest.mark.parametrize(
    ("text", "errors"),
    [
        (
            "",
            [
                'apiVersion: Required value: expected "kubescheduler.config.k8s.io/v1"',
                'kind: Required value: expected "KubeSchedulerConfiguration"',
            ],
        ),
        ("- a\n- b\n", ["line 1: expected an object of kind KubeSchedulerConfiguration, got a list"]),
        ("text", ["line 1: expected an object of kind KubeSchedulerConfiguration, got a scalar"]),
        (
            "apiVersion: v1\nkind: Pod\nspec: {}\n",
            [
                'line 1: apiVersion: Unsupported value: "v1": supported values: "kubescheduler.config.k8s.io/v1"',
                'line 2: kind: Unsupported value: "Pod": supported values: "KubeSchedulerConfiguration"',
            ],
        ),
        (
            "apiVersion: kubescheduler.config.k8s.io/v1beta3\nkind: KubeSchedulerConfiguration\nparallelism: 0\n",
            [
                (
                    'line 1: apiVersion: Unsupported value: "kubescheduler.config.k8s.io/v1beta3": '
                    'supported values: "kubescheduler.config.k8s.io/v1"'
                ),
                "line 3: parallelism: Invalid value: 0: should be an integer value greater than zero",
            ],
        ),
        (
            "apiVersion: ''\nkind: KubeSchedulerConfiguration\nfoo: 1\n",
            [
                'line 1: apiVersion: Required value: expected "kubescheduler.config.k8s.io/v1"',
                "line 3: foo: unknown field",
            ],
        ),
        (HEAD + "a: [", ["line 3: yaml: did not find expected node content"]),
    ],
)
def test_file_of_another_kind_is_refused(text, errors):
    assert refusal(text) == errors


@pytest.mark.parametrize(
    "field",
    [
        "leaderElection: {leaseDuration: 0s, renewDeadline: 0s, retryPeriod: 0s}",
        "leaderElection: {resourceLock: '', resourceName: '', resourceNamespace: ''}",
        "clientConnection: {qps: 0, burst: 0, contentType: ''}",
        "profiles: []",
        "profiles: null",
        "leaderElection: null",
        "parallelism: null",
    ],
)
def test_zero_and_null_mean_the_default_where_upstream_cannot_tell(field):
    assert load(HEAD + field).config == load(HEAD).config


def test_zero_is_zero_where_upstream_can_tell():
    assert refusal(HEAD + "parallelism: 0\npodInitialBackoffSeconds: 0\n") == [
        "line 3: parallelism: Invalid value: 0: should be an integer value greater than zero",
        "line 4: podInitialBackoffSeconds: Invalid value: 0: must be greater than 0",
    ]
    assert args_of("InterPodAffinity", "{hardPodAffinityWeight: 0}") == InterPodAffinityArgs(0)


@pytest.mark.parametrize(
    ("plugin", "text", "args"),
    [
        ("VolumeBinding", "{bindTimeoutSeconds: 5}", VolumeBindingArgs(5, SHAPE)),
        ("VolumeBinding", "null", VolumeBindingArgs(shape=SHAPE)),
        (
            "VolumeBinding",
            "{apiVersion: kubescheduler.config.k8s.io/v1, kind: VolumeBindingArgs}",
            VolumeBindingArgs(shape=SHAPE),
        ),
        (
            "VolumeBinding",
            "{shape: [{utilization: 50, score: 3}]}",
            VolumeBindingArgs(shape=(UtilizationShapePoint(50, 3),)),
        ),
        ("DynamicResources", "{filterTimeout: 0s}", DynamicResourcesArgs(0.0, has_taint_rules=True)),
        ("DynamicResources", "{filterTimeout: null}", DynamicResourcesArgs(has_taint_rules=True)),
        (
            "NodeResourcesFit",
            "{scoringStrategy: {type: MostAllocated, resources: [{name: a}, {name: b, weight: 0}]}}",
            NodeResourcesFitArgs(
                scoring_strategy=ScoringStrategy("MostAllocated", (ResourceSpec("a"), ResourceSpec("b")))
            ),
        ),
        (
            "NodeResourcesFit",
            "{scoringStrategy: {type: MostAllocated, resources: []}}",
            NodeResourcesFitArgs(scoring_strategy=ScoringStrategy("MostAllocated")),
        ),
        (
            "NodeAffinity",
            (
                "{addedAffinity: {requiredDuringSchedulingIgnoredDuringExecution: "
                "{nodeSelectorTerms: [{matchExpressions: [{key: a, operator: Exists, values: []}]}]}}}"
            ),
            NodeAffinityArgs(
                {
                    "requiredDuringSchedulingIgnoredDuringExecution": {
                        "nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "Exists"}]}]
                    }
                }
            ),
        ),
        ("NodeName", "{x: 1, z: [yes]}", RawArgs({"x": 1, "z": [True]})),
        ("Mine", "{kind: InterPodAffinityArgs, bogus: 3}", RawArgs({"kind": "InterPodAffinityArgs", "bogus": 3})),
        ("Mine", "null", None),
    ],
)
def test_args_are_typed_for_plugins_that_take_any_and_raw_for_others(plugin, text, args):
    assert args_of(plugin, text) == args


@pytest.mark.parametrize(
    ("args", "error"),
    [
        ("{bogus: 3}", "args.bogus: unknown field"),
        ("[1]", "args: expected an object, got a list"),
        (
            "{kind: NopeArgs, bogus: 1}",
            'args.kind: Invalid value: "NopeArgs": has to match plugin args, expected "VolumeBindingArgs"',
        ),
        (
            "{apiVersion: kubescheduler.config.k8s.io/v1beta3}",
            (
                'args.apiVersion: Invalid value: "kubescheduler.config.k8s.io/v1beta3": '
                'has to match plugin args, expected "kubescheduler.config.k8s.io/v1"'
            ),
        ),
    ],
)
def test_args_of_another_type_are_refused(args, error):
    text = f"{HEAD}profiles:\n- pluginConfig:\n  - name: VolumeBinding\n    args: {args}\n"
    assert refusal(text) == [f"line 6: profiles[0].pluginConfig[0].{error}"]


def test_plugin_config_entry_is_strict_too():
    text = f"{HEAD}profiles:\n- pluginConfig:\n  - {{name: 5, arg: 1}}\n  - 7\n"
    assert refusal(text) == [
        "line 5: profiles[0].pluginConfig[0].name: expected string, got 5",
        'line 5: profiles[0].pluginConfig[0].arg: unknown field: did you mean "args"?',
        "line 6: profiles[0].pluginConfig[1]: expected an object, got 7",
    ]


def test_plugins_of_the_registry_may_be_enabled():
    text = HEAD + "profiles: [{plugins: {score: {enabled: [{name: Mine}]}}, pluginConfig: [{name: Mine, args: 5}]}]"
    assert "does not exist" in refusal(text)[0]
    registry = {**IN_TREE_PLUGINS, "Mine": frozenset({ExtensionPoint.SCORE})}
    (profile,) = load(text, registry=registry).config.profiles
    assert profile.plugin_config[0] == PluginConfig("Mine", RawArgs(5))


def test_the_point_for_groups_is_a_key_since_1_37():
    text = f"{HEAD}profiles:\n- plugins: {{podGroupPostFilter: {{disabled: [{{name: DefaultPreemption}}]}}}}\n"
    plugins = load(text).config.profiles[0].plugins
    assert plugins.pod_group_post_filter.disabled == (Plugin("DefaultPreemption"),)
    gates = default_gates(RELEASES["1.36"])
    (error,) = refusal(text, gates=gates)
    assert error.startswith("line 4: profiles[0].plugins.podGroupPostFilter: unknown field")
    assert 'did you mean "podGroupPostFilter"' not in error
    assert "podGroupPostFilter" in effective(load(HEAD).config)["profiles"][0]["plugins"]
    assert "podGroupPostFilter" not in effective(load(HEAD, gates=gates).config)["profiles"][0]["plugins"]


def test_a_removed_plugin_is_refused_at_the_point_for_groups():
    text = f"{HEAD}profiles:\n- plugins: {{podGroupPostFilter: {{enabled: [{{name: EBSLimits}}]}}}}\n"
    assert "profiles[0].plugins.podGroupPostFilter.enabled[0]: Invalid value" in refusal(text)[0]


def test_gate_that_is_off_forbids_only_what_the_file_sets():
    gates = ConfigGates(on_gates=DEFAULT_GATES.on_gates - {"DRASchedulerFilterTimeout"})
    assert load(HEAD, gates=gates).config.profiles[0].args_of("DynamicResources") == DynamicResourcesArgs(
        None, has_taint_rules=True
    )
    text = f"{HEAD}profiles:\n- pluginConfig:\n  - name: DynamicResources\n    args: {{filterTimeout: 10s}}\n"
    assert refusal(text, gates=gates) == [
        (
            "line 6: profiles[0].pluginConfig[0].args.filterTimeout: Forbidden: "
            "DRASchedulingFilterTimeout feature gate is disabled"
        )
    ]


def test_extender_that_ignores_resources_needs_fit_args_in_every_profile():
    text = (
        HEAD
        + """profiles:
- plugins: {multiPoint: {disabled: [{name: NodeResourcesFit}]}}
extenders:
- {urlPrefix: http://x, managedResources: [{name: e.io/x, ignoredByScheduler: true}]}
"""
    )
    assert refusal(text) == ["line 3: profiles[0].pluginConfig: can't find NodeResourcesFitArgs in plugin config"]


def test_what_the_file_sets_is_known_apart_from_the_defaults():
    configuration = load(HEAD + "parallelism: 16\nprofiles:\n- schedulerName: a\n")
    assert configuration.present == {"parallelism": 3, "profiles": 4, "profiles[0].schedulerName": 5}
    assert configuration.file_config.profiles[0].plugin_config == ()


def test_good_file_may_still_deserve_a_warning():
    assert load(HEAD).warnings == ()
    text = HEAD + "leaderElection: {retryPeriod: 12s}\n---\nmore: 1\n"
    assert load(text).warnings == (
        "only the first of 2 YAML documents is read",
        "leaderElection.renewDeadline: must be greater than 1.2 times retryPeriod for an election to start",
    )


def test_file_is_named_in_its_errors(tmp_path):
    path = tmp_path / "c.yaml"
    path.write_text("\ufeff" + HEAD + "parallelism: x\n", encoding="utf-8")
    with pytest.raises(ConfigError) as error:
        load_file(path)
    assert error.value.lines() == (f'{path}:3: parallelism: expected int32, got "x"',)
    path.write_text(HEAD)
    assert load_file(path).config == load(HEAD).config


def test_file_that_is_no_text_is_refused(tmp_path):
    path = tmp_path / "c.yaml"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ConfigError, match="not UTF-8 text"):
        load_file(path)

from dataclasses import replace

import yaml

from podium.config import configz, default_configuration, effective, load, to_dict, to_yaml
from podium.config.args import NodeResourcesFitArgs, RawArgs
from podium.config.effective import apply_extenders
from podium.config.types import Extender, ExtenderManagedResource, ExtenderTLSConfig, PluginConfig

DEFAULT = default_configuration()


def with_config(*entries):
    return replace(DEFAULT, profiles=(replace(DEFAULT.profiles[0], plugin_config=entries),))


def test_default_configuration_in_upstreams_shape():
    document = to_dict(DEFAULT)
    (profile,) = document.pop("profiles")
    assert document == {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "parallelism": 16,
        "leaderElection": {
            "leaderElect": True,
            "leaseDuration": "15s",
            "renewDeadline": "10s",
            "retryPeriod": "2s",
            "resourceLock": "leases",
            "resourceName": "kube-scheduler",
            "resourceNamespace": "kube-system",
        },
        "clientConnection": {
            "kubeconfig": "",
            "acceptContentTypes": "",
            "contentType": "application/vnd.kubernetes.protobuf",
            "qps": 50,
            "burst": 100,
        },
        "enableProfiling": True,
        "enableContentionProfiling": True,
        "percentageOfNodesToScore": 0,
        "podInitialBackoffSeconds": 1,
        "podMaxBackoffSeconds": 10,
    }
    assert profile["schedulerName"] == "default-scheduler"
    assert profile["plugins"]["filter"] == {}
    assert profile["plugins"]["multiPoint"]["enabled"][4] == {"name": "TaintToleration", "weight": 3}
    assert {
        "name": "DynamicResources",
        "args": {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "DynamicResourcesArgs",
            "filterTimeout": "10s",
            "bindingTimeout": "10m0s",
        },
    } in profile["pluginConfig"]


def test_extender_is_written_without_what_is_empty():
    tls = ExtenderTLSConfig(server_name="x")
    extender = Extender("http://x", filter_verb="f", tls_config=tls, ignorable=True)
    assert to_dict(replace(DEFAULT, extenders=(extender,)))["extenders"] == [
        {
            "urlPrefix": "http://x",
            "filterVerb": "f",
            "tlsConfig": {"serverName": "x"},
            "httpTimeout": "5s",
            "ignorable": True,
        }
    ]


def test_effective_args_are_those_of_plugins_in_use_sorted_by_name():
    config = with_config(
        PluginConfig("NodeName", RawArgs({"x": 1})),
        PluginConfig("Mine", RawArgs({"x": 1})),
        PluginConfig("ImageLocality"),
        PluginConfig("DefaultBinder", RawArgs([])),
    )
    (profile,) = effective(config)["profiles"]
    assert profile["pluginConfig"] == [{"name": "DefaultBinder", "args": []}, {"name": "NodeName", "args": {"x": 1}}]
    assert [entry["name"] for entry in to_dict(config)["profiles"][0]["pluginConfig"]] == [
        "NodeName",
        "Mine",
        "ImageLocality",
        "DefaultBinder",
    ]


def test_yaml_of_the_defaults_loads_to_the_defaults():
    configuration = load(to_yaml(DEFAULT))
    assert effective(configuration.config) == effective(DEFAULT)
    assert list(yaml.safe_load(to_yaml(DEFAULT)))[:2] == ["apiVersion", "kind"]


def test_configz_is_the_component_configuration():
    assert configz(DEFAULT) == {"componentconfig": effective(DEFAULT)}


def test_resources_that_extenders_want_ignored_replace_those_of_every_profile():
    config = replace(
        with_config(PluginConfig("X"), PluginConfig("NodeResourcesFit", NodeResourcesFitArgs(("a.io/x",)))),
        extenders=(
            Extender("http://x", managed_resources=(ExtenderManagedResource("b.io/y", True),)),
            Extender("http://y", managed_resources=(ExtenderManagedResource("c.io/z", False),)),
        ),
    )
    args = apply_extenders(config).profiles[0].args_of("NodeResourcesFit")
    assert args == NodeResourcesFitArgs(("b.io/y",))


def test_extenders_that_ignore_nothing_change_nothing():
    config = replace(DEFAULT, extenders=(Extender("http://x"),))
    assert apply_extenders(config) is config

"""Configurations that scheduler-plugins ships with are read as they are, with its names, args and defaults."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from podium.cli.exit_codes import EXIT_NO
from podium.cli.main import main

VERSION = "kubescheduler.config.k8s.io/v1"
Json = dict[str, Any]


def plugin_entries(*names: str, weight: int | None = None) -> list[Json]:
    return [{"name": name} if weight is None else {"name": name, "weight": weight} for name in names]


def check(tmp_path: Path, plugins: Json, args: Json | None = None, version: str = VERSION) -> Result:
    """Return the output of `podium config check` for a configuration as the plugins' manifests have it."""
    configuration = {
        "apiVersion": version,
        "kind": "KubeSchedulerConfiguration",
        "leaderElection": {"leaderElect": False},
        "clientConnection": {"kubeconfig": "REPLACE_ME_WITH_KUBE_CONFIG_PATH"},
        "profiles": [
            {
                "schedulerName": "second-scheduler",
                "plugins": plugins,
                "pluginConfig": [{"name": name, "args": value} for name, value in (args or {}).items()],
            }
        ],
    }
    path = tmp_path / "scheduler-config.yaml"
    path.write_text(yaml.safe_dump(configuration))
    return CliRunner().invoke(main, ["config", "check", str(path)])


NETWORK = {
    "multiPoint": {
        "enabled": plugin_entries("NetworkOverhead", weight=5),
        "disabled": plugin_entries("NodeResourcesFit"),
    },
    "queueSort": {"enabled": plugin_entries("TopologicalSort"), "disabled": plugin_entries("*")},
}
NETWORK_BY_POINT = {
    "queueSort": {"enabled": plugin_entries("TopologicalSort"), "disabled": plugin_entries("*")},
    "preFilter": {"enabled": plugin_entries("NetworkOverhead")},
    "filter": {"enabled": plugin_entries("NetworkOverhead")},
    "score": {"enabled": plugin_entries("NetworkOverhead", weight=5), "disabled": plugin_entries("NodeResourcesFit")},
}
NETWORK_ARGS = {
    "TopologicalSort": {"namespaces": ["default"]},
    "NetworkOverhead": {
        "namespaces": ["default"],
        "weightsName": "UserDefined",
        "networkTopologyName": "net-topology-test",
    },
}
METADATA: Iterable[Json] = (
    {
        "metadataKey": "example.com/priority",
        "metadataSource": "Label",
        "metadataType": "Number",
        "scoringStrategy": "Highest",
    },
    {
        "metadataKey": "example.com/cost",
        "metadataSource": "Annotation",
        "metadataType": "Number",
        "scoringStrategy": "Lowest",
    },
    {
        "metadataKey": "example.com/last-maintenance",
        "metadataSource": "Annotation",
        "metadataType": "Timestamp",
        "scoringStrategy": "Newest",
        "timestampFormat": "2006-01-02T15:04:05Z07:00",
    },
    {
        "metadataKey": "example.com/created-at",
        "metadataSource": "Label",
        "metadataType": "Timestamp",
        "scoringStrategy": "Oldest",
        "timestampFormat": "2006-01-02",
    },
)
ALLOCATABLE = {"mode": "Least", "resources": [{"name": "cpu", "weight": 1000000}, {"name": "memory", "weight": 1}]}

SHIPPED: dict[str, tuple[Json, Json]] = {
    "network": (NETWORK, NETWORK_ARGS),
    "network by extension point": (NETWORK_BY_POINT, NETWORK_ARGS),
    "allocatable": (
        {"score": {"enabled": plugin_entries("NodeResourcesAllocatable"), "disabled": plugin_entries("*")}},
        {"NodeResourcesAllocatable": ALLOCATABLE},
    ),
    "pod state": ({"score": {"enabled": plugin_entries("PodState")}}, {}),
    "quality of service": ({"queueSort": {"enabled": plugin_entries("QOSSort"), "disabled": plugin_entries("*")}}, {}),
    "system calls": (
        {"score": {"enabled": plugin_entries("SySched")}},
        {"SySched": {"defaultProfileNamespace": "default", "defaultProfileName": "full-seccomp"}},
    ),
    "toleration of preemption": (
        {
            "postFilter": {
                "enabled": plugin_entries("PreemptionToleration"),
                "disabled": plugin_entries("DefaultPreemption"),
            }
        },
        {"PreemptionToleration": {"minCandidateNodesPercentage": 10, "minCandidateNodesAbsolute": 100}},
    ),
    "quotas": (
        {
            "multiPoint": {"enabled": plugin_entries("CapacityScheduling")},
            "postFilter": {"enabled": plugin_entries("CapacityScheduling"), "disabled": plugin_entries("*")},
        },
        {},
    ),
    "NUMA": (
        {
            "multiPoint": {"enabled": plugin_entries("NodeResourceTopologyMatch")},
            "reserve": {"disabled": plugin_entries("NodeResourceTopologyMatch")},
        },
        {"NodeResourceTopologyMatch": {"scoringStrategy": {"type": "LeastAllocated"}}},
    ),
    "gangs": (
        {
            "multiPoint": {"enabled": plugin_entries("Coscheduling")},
            "queueSort": {"enabled": plugin_entries("Coscheduling"), "disabled": plugin_entries("*")},
        },
        {"Coscheduling": {"permitWaitingTimeSeconds": 10}},
    ),
    "the chart's default": (
        {
            "multiPoint": {
                "enabled": plugin_entries(
                    "Coscheduling", "CapacityScheduling", "NodeResourceTopologyMatch", "NodeResourcesAllocatable"
                ),
                "disabled": plugin_entries("PrioritySort"),
            }
        },
        {"Coscheduling": {"permitWaitingTimeSeconds": 10}},
    ),
    **{
        f"metadata {index}": ({"score": {"enabled": plugin_entries("NodeMetadata", weight=5)}}, {"NodeMetadata": args})
        for index, args in enumerate(METADATA)
    },
}


@pytest.mark.parametrize("name", SHIPPED)
def test_a_configuration_of_scheduler_plugins_is_read_as_it_is(tmp_path: Path, name: str) -> None:
    result = check(tmp_path, *SHIPPED[name])
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout.endswith("good, profiles: second-scheduler\n")


@pytest.mark.parametrize("version", ["v1beta1", "v1beta2", "v1beta3"])
def test_versions_that_are_no_longer_served_are_refused(tmp_path: Path, version: str) -> None:
    plugins, args = SHIPPED["system calls"]
    result = check(tmp_path, plugins, args, f"kubescheduler.config.k8s.io/{version}")
    assert result.exit_code == EXIT_NO
    assert f'apiVersion: Unsupported value: "kubescheduler.config.k8s.io/{version}"' in result.stderr
    assert f'supported values: "{VERSION}"' in result.stderr


@pytest.mark.parametrize(
    ("name", "plugin"),
    [
        ("network", "NetworkOverhead"),
        ("network", "TopologicalSort"),
        ("allocatable", "NodeResourcesAllocatable"),
        ("system calls", "SySched"),
        ("toleration of preemption", "PreemptionToleration"),
        ("metadata 0", "NodeMetadata"),
    ],
)
@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"surplus": 1}, "args.surplus: unknown field"),
        ({"kind": "OtherArgs"}, "args: want args to be of type {}Args, got OtherArgs"),
        ({"apiVersion": "kubescheduler.config.k8s.io/v1beta3"}, "v1beta3 is no longer served; write kubescheduler"),
    ],
)
def test_args_are_read_strictly(tmp_path: Path, name: str, plugin: str, change: Json, problem: str) -> None:
    plugins, args = SHIPPED[name]
    result = check(tmp_path, plugins, {**args, plugin: {**args[plugin], **change}})
    assert result.exit_code == EXIT_NO
    assert f'initializing plugin "{plugin}": ' in result.stderr
    assert problem.format(plugin) in result.stderr
    with_kind = {"apiVersion": VERSION, "kind": f"{plugin}Args"}
    assert check(tmp_path, plugins, {**args, plugin: {**args[plugin], **with_kind}}).exit_code == 0

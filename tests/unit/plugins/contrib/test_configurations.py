"""Configurations that scheduler-plugins ships with are read as they are, with its names, args and defaults."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from podium.cli.main import main

VERSION = "kubescheduler.config.k8s.io/v1"
Json = dict[str, Any]


def enabled(*names: str, weight: int | None = None) -> list[Json]:
    return [{"name": name} if weight is None else {"name": name, "weight": weight} for name in names]


def check(tmp_path: Path, plugins: Json, args: Json | None = None, version: str = VERSION) -> Result:
    """What `podium config check` says of a configuration as the plugins' manifests have it."""
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
    "multiPoint": {"enabled": enabled("NetworkOverhead", weight=5), "disabled": enabled("NodeResourcesFit")},
    "queueSort": {"enabled": enabled("TopologicalSort"), "disabled": enabled("*")},
}
NETWORK_BY_POINT = {
    "queueSort": {"enabled": enabled("TopologicalSort"), "disabled": enabled("*")},
    "preFilter": {"enabled": enabled("NetworkOverhead")},
    "filter": {"enabled": enabled("NetworkOverhead")},
    "score": {"enabled": enabled("NetworkOverhead", weight=5), "disabled": enabled("NodeResourcesFit")},
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
        {"score": {"enabled": enabled("NodeResourcesAllocatable"), "disabled": enabled("*")}},
        {"NodeResourcesAllocatable": ALLOCATABLE},
    ),
    "pod state": ({"score": {"enabled": enabled("PodState")}}, {}),
    "quality of service": ({"queueSort": {"enabled": enabled("QOSSort"), "disabled": enabled("*")}}, {}),
    "system calls": (
        {"score": {"enabled": enabled("SySched")}},
        {"SySched": {"defaultProfileNamespace": "default", "defaultProfileName": "full-seccomp"}},
    ),
    "toleration of preemption": (
        {"postFilter": {"enabled": enabled("PreemptionToleration"), "disabled": enabled("DefaultPreemption")}},
        {"PreemptionToleration": {"minCandidateNodesPercentage": 10, "minCandidateNodesAbsolute": 100}},
    ),
    "quotas": (
        {
            "multiPoint": {"enabled": enabled("CapacityScheduling")},
            "postFilter": {"enabled": enabled("CapacityScheduling"), "disabled": enabled("*")},
        },
        {},
    ),
    "NUMA": (
        {
            "multiPoint": {"enabled": enabled("NodeResourceTopologyMatch")},
            "reserve": {"disabled": enabled("NodeResourceTopologyMatch")},
        },
        {"NodeResourceTopologyMatch": {"scoringStrategy": {"type": "LeastAllocated"}}},
    ),
    "gangs": (
        {
            "multiPoint": {"enabled": enabled("Coscheduling")},
            "queueSort": {"enabled": enabled("Coscheduling"), "disabled": enabled("*")},
        },
        {"Coscheduling": {"permitWaitingTimeSeconds": 10}},
    ),
    "the chart's default": (
        {
            "multiPoint": {
                "enabled": enabled(
                    "Coscheduling", "CapacityScheduling", "NodeResourceTopologyMatch", "NodeResourcesAllocatable"
                ),
                "disabled": enabled("PrioritySort"),
            }
        },
        {"Coscheduling": {"permitWaitingTimeSeconds": 10}},
    ),
    **{
        f"metadata {index}": ({"score": {"enabled": enabled("NodeMetadata", weight=5)}}, {"NodeMetadata": args})
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
    assert result.exit_code == 1
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
    assert result.exit_code == 1
    assert f'initializing plugin "{plugin}": ' in result.stderr
    assert problem.format(plugin) in result.stderr
    with_kind = {"apiVersion": VERSION, "kind": f"{plugin}Args"}
    assert check(tmp_path, plugins, {**args, plugin: {**args[plugin], **with_kind}}).exit_code == 0

from __future__ import annotations

import pytest

from podium.config import IN_TREE_PLUGINS, ExtensionPoint, KubeSchedulerConfiguration, load
from podium.daemon.restarts import RestartNeededError, demand_no_restart

HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"


def read(text: str) -> KubeSchedulerConfiguration:
    return load(HEAD + text, "config.yaml", {**IN_TREE_PLUGINS, "Own": {ExtensionPoint.QUEUE_SORT}}).config


@pytest.mark.parametrize(
    ("text", "field"),
    [
        ("leaderElection: {leaderElect: false}", "leaderElection"),
        ("clientConnection: {qps: 7}", "clientConnection"),
        ("podInitialBackoffSeconds: 2\npodMaxBackoffSeconds: 20", "podInitialBackoffSeconds, podMaxBackoffSeconds"),
        ("extenders: [{urlPrefix: 'http://there', filterVerb: filter}]", "extenders"),
        ("delayCacheUntilActive: true", "delayCacheUntilActive"),
        ("enableProfiling: false", "enableProfiling"),
        ("profiles: [{schedulerName: other}]", "profiles[*].schedulerName"),
        (
            "profiles: [{plugins: {queueSort: {enabled: [{name: Own}], disabled: [{name: '*'}]}}}]",
            "profiles[0].plugins.queueSort",
        ),
    ],
)
def test_what_needs_a_restart_is_named(text: str, field: str) -> None:
    with pytest.raises(RestartNeededError) as error:
        demand_no_restart(read(""), read(text))
    assert str(error.value) == f"{field}: cannot be changed while podium runs, restart it"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "percentageOfNodesToScore: 30",
        "parallelism: 3",
        "profiles: [{percentageOfNodesToScore: 30}]",
        "profiles: [{plugins: {score: {disabled: [{name: NodeAffinity}]}}}]",
        "profiles: [{pluginConfig: [{name: InterPodAffinity, args: {hardPodAffinityWeight: 9}}]}]",
    ],
)
def test_everything_else_does_not(text: str) -> None:
    demand_no_restart(read(""), read(text))

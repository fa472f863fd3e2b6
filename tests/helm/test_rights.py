"""The roles of the chart are exactly what podium needs with the configuration that the same values give."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest

from podium.cli.options.configuration import usable
from podium.provisioner.controller.app import ProviderName
from podium.provisioner.controller.permissions import needs
from tests.helm.chart import Helm, one
from tests.helm.manifests import provisioner
from tests.rights import grants, needs_of

pytestmark = [pytest.mark.anyio, pytest.mark.control_plane]

FEATURES = ("volumes", "preemption", "devices")
PROFILES = [{"schedulerName": "a"}, {"schedulerName": "b", "plugins": {"score": {"disabled": [{"name": "*"}]}}}]


async def check(helm: Helm, tmp_path: Path, values: dict[str, Any], namespace: str = "kube-system") -> None:
    objects = helm.objects(values, namespace=namespace)
    path = tmp_path / "config.yaml"
    path.write_text(one(objects, "ConfigMap")["data"]["config.yaml"])
    gates = tuple(f"{name}={str(on).lower()}" for name, on in values.get("featureGates", {}).items())
    good = usable(path, (), gates)
    assert good.warnings == ()
    rights = list(grants(objects))
    assert len(rights) == len(set(rights))
    assert set(rights) == set((await needs_of(good, pod_groups=good.pod_groups)).permissions)


@pytest.mark.parametrize("choices", list(itertools.product((True, False), repeat=len(FEATURES))), ids=str)
async def test_each_choice_of_features_has_its_rights_and_no_others(
    helm: Helm, tmp_path: Path, choices: tuple[bool, ...]
) -> None:
    features = dict(zip(FEATURES, choices, strict=True))
    await check(helm, tmp_path, {"features": features, "configuration": {"profiles": PROFILES}})


@pytest.mark.parametrize(
    "values",
    [
        {"featureGates": {"GenericWorkload": True}},
        {"featureGates": {"GenericWorkload": True, "GangScheduling": True}},
        {"featureGates": {"DRADeviceTaintRules": True}},
        {"coscheduling": {"enabled": True}, "configuration": {"profiles": PROFILES}},
        {"replicas": 1, "configuration": {"leaderElection": {"leaderElect": False}}},
        {"configuration": {"leaderElection": {"resourceName": "ours", "resourceNamespace": "leases"}}},
    ],
    ids=str,
)
@pytest.mark.parametrize("namespace", ["kube-system", "scheduling"])
async def test_gates_leases_and_namespaces_have_theirs(
    helm: Helm, tmp_path: Path, values: dict[str, Any], namespace: str
) -> None:
    await check(helm, tmp_path, values, namespace)


def by_load(name: str, **args: Any) -> dict[str, Any]:
    return {
        "plugins": {"score": {"enabled": [{"name": name}]}},
        "pluginConfig": [{"name": name, "args": args}] if args else [],
    }


POLICIES: dict[str, dict[str, Any]] = {
    "GpuPacking": {"plugins": {"multiPoint": {"enabled": [{"name": "GpuPacking"}]}}},
    "CapacityScheduling": {"plugins": {"multiPoint": {"enabled": [{"name": "CapacityScheduling"}]}}},
    "NodeResourceTopologyMatch": {"plugins": {"multiPoint": {"enabled": [{"name": "NodeResourceTopologyMatch"}]}}},
    "NetworkOverhead": {"plugins": {"multiPoint": {"enabled": [{"name": "NetworkOverhead"}]}}},
    "PreemptionToleration": {"plugins": {"postFilter": {"enabled": [{"name": "PreemptionToleration"}]}}},
    "SySched": {"plugins": {"score": {"enabled": [{"name": "SySched"}]}}},
    "TopologicalSort": {
        "plugins": {"queueSort": {"enabled": [{"name": "TopologicalSort"}], "disabled": [{"name": "*"}]}}
    },
    "TopologyLevels": {
        "plugins": {"multiPoint": {"enabled": [{"name": "TopologyLevels"}]}},
        "pluginConfig": [{"name": "TopologyLevels", "args": {"levels": ["example.com/rack"]}}],
    },
}


@pytest.mark.parametrize(
    "profile",
    [
        by_load("NodeLoad"),
        by_load("TargetLoadPacking", targetUtilization=50),
        by_load("TargetLoadPacking", watcherAddress="http://watcher"),
        by_load("LowRiskOverCommitment", metricProvider={"type": "Prometheus"}),
        by_load("LoadVariationRiskBalancing", metricProvider={"type": "KubernetesMetricsServer"}),
        by_load("Peaks", WatcherAddress="http://watcher"),
        {"plugins": {}, "pluginConfig": [{"name": "NodeLoad", "args": {}}]},
    ],
    ids=str,
)
async def test_metrics_server_is_read_only_where_a_plugin_asks_for_it(
    helm: Helm, tmp_path: Path, profile: dict[str, Any]
) -> None:
    await check(helm, tmp_path, {"configuration": {"profiles": [{"schedulerName": "a", **profile}]}})


@pytest.mark.parametrize("name", POLICIES)
@pytest.mark.parametrize("preempts", [True, False])
async def test_each_policy_has_its_rights_and_no_others(
    helm: Helm, tmp_path: Path, name: str, *, preempts: bool
) -> None:
    profiles = [{"schedulerName": "a", **POLICIES[name]}]
    await check(helm, tmp_path, {"features": {"preemption": preempts}, "configuration": {"profiles": profiles}})


@pytest.mark.parametrize("has_gangs", [True, False])
async def test_several_policies_share_their_rights(helm: Helm, tmp_path: Path, *, has_gangs: bool) -> None:
    names = [name for name in POLICIES if name != "TopologicalSort"]
    plugins = {"multiPoint": {"enabled": [{"name": name} for name in names]}}
    profiles = [{"schedulerName": "a", "plugins": plugins, "pluginConfig": POLICIES["TopologyLevels"]["pluginConfig"]}]
    gangs = {"coscheduling": {"enabled": has_gangs}}
    await check(helm, tmp_path, {**gangs, "features": {"preemption": False}, "configuration": {"profiles": profiles}})


@pytest.mark.parametrize("provider", ["plan-only", "sandbox", "karpenter"])
@pytest.mark.parametrize("rules", ["karpenter", "podium"])
@pytest.mark.parametrize("namespace", ["kube-system", "nodes"])
def test_the_provisioner_has_the_rights_of_its_provider_and_no_others(
    helm: Helm, provider: ProviderName, rules: str, namespace: str
) -> None:
    rights = list(grants(helm.objects(provisioner(provider=provider, rules=rules), namespace=namespace)))
    assert len(rights) == len(set(rights))
    needs_listed = needs(provider, namespace=namespace, places_with_podium=rules == "podium")
    assert set(rights) == set(needs_listed.permissions)

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
from tests.rights import granted, needs_of

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
    found = list(granted(objects))
    assert len(found) == len(set(found))
    assert set(found) == set((await needs_of(good, pod_groups=good.pod_groups)).permissions)


@pytest.mark.parametrize("chosen", list(itertools.product((True, False), repeat=len(FEATURES))), ids=str)
async def test_each_choice_of_features_has_its_rights_and_no_others(
    helm: Helm, tmp_path: Path, chosen: tuple[bool, ...]
) -> None:
    features = dict(zip(FEATURES, chosen, strict=True))
    await check(helm, tmp_path, {"features": features, "configuration": {"profiles": PROFILES}})


@pytest.mark.parametrize(
    "values",
    [
        {"featureGates": {"GenericWorkload": True}},
        {"featureGates": {"GenericWorkload": True, "GangScheduling": True}},
        {"featureGates": {"DRADeviceTaintRules": False}},
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


@pytest.mark.parametrize("provider", ["plan-only", "sandbox", "karpenter"])
@pytest.mark.parametrize("rules", ["karpenter", "podium"])
@pytest.mark.parametrize("namespace", ["kube-system", "nodes"])
def test_the_provisioner_has_the_rights_of_its_provider_and_no_others(
    helm: Helm, provider: ProviderName, rules: str, namespace: str
) -> None:
    found = list(granted(helm.objects(provisioner(provider=provider, rules=rules), namespace=namespace)))
    assert len(found) == len(set(found))
    needed = needs(provider, namespace=namespace, places_with_podium=rules == "podium")
    assert set(found) == set(needed.permissions)

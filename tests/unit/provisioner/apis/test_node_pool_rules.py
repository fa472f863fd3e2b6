"""NodePools that the API server would refuse."""

from __future__ import annotations

from typing import Any

import pytest

from podium.engine.files import LocatedManifest
from podium.objects.errors import FieldError
from podium.provisioner.state.manifests import read_cluster

TEMPLATE = "spec.template.spec"
REQUIREMENT = f"{TEMPLATE}.requirements[0]"
LONG = [{"key": "a", "operator": "Exists"}] * 101


def read(**spec: Any) -> None:
    pool = {"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": "p"}, "spec": spec}
    read_cluster([LocatedManifest(pool, "pools.yaml: document 1")])


def template(**spec: Any) -> dict[str, Any]:
    return {"template": {"spec": spec}}


def requirement(operator: str, *values: str, key: str = "a", **fields: Any) -> dict[str, Any]:
    return template(requirements=[{"key": key, "operator": operator, "values": list(values), **fields}])


def test_a_pool_that_uses_every_field_is_read() -> None:
    read(
        weight=100,
        limits={"cpu": "10"},
        disruption={"consolidateAfter": "Never", "budgets": [{"nodes": "10%", "schedule": "@daily", "duration": "1h"}]},
        template={
            "metadata": {"labels": {"team": "a", "karpenter.sh/capacity-type": "spot"}},
            "spec": {
                "requirements": [
                    {"key": "a", "operator": "In", "values": ["x", "y"], "minValues": 2},
                    {"key": "b", "operator": "Gt", "values": ["0"]},
                    {"key": "c", "operator": "Exists", "minValues": 50},
                ],
                "taints": [{"key": "a/b", "effect": "NoExecute"}],
                "startupTaints": [{"key": "c", "value": "d", "effect": "PreferNoSchedule"}],
                "expireAfter": "1h30m",
                "terminationGracePeriod": "10m",
            },
        },
    )
    read(replicas=0, limits={"nodes": "3"})


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"weight": 0}, "spec.weight: 0 is less than 1"),
        ({"weight": 101}, "spec.weight: 101 is more than 100"),
        ({"replicas": -1}, "spec.replicas: -1 is less than 0"),
        ({"replicas": 1, "weight": 5}, "spec.weight: is not for a NodePool with replicas"),
        ({"replicas": 1, "limits": {"cpu": "1"}}, "spec.limits[cpu]: is not for a NodePool with replicas"),
        ({"disruption": {"consolidateAfter": "-5m"}}, "spec.disruption.consolidateAfter: must be hours"),
        ({"disruption": {"budgets": [{"nodes": "-1"}]}}, "spec.disruption.budgets[0].nodes: must be a number of nodes"),
        (
            template(expireAfter="x"),
            f"{TEMPLATE}.expireAfter: must be hours, minutes and seconds such as 1h30m or Never",
        ),
        (template(terminationGracePeriod="Never"), f"{TEMPLATE}.terminationGracePeriod: must be hours"),
        (template(taints=[{"effect": "NoSchedule"}]), f'{TEMPLATE}.taints[0].key: "" cannot be the key of a taint'),
        (template(startupTaints=[{"key": "a"}]), f'{TEMPLATE}.startupTaints[0].effect: "" is not one of NoSchedule'),
        (template(requirements=LONG), f"{TEMPLATE}.requirements: has 101 requirements, more than 100"),
        (requirement("In"), f"{REQUIREMENT}.values: In takes at least one value"),
        (
            requirement("In", "x", minValues=2),
            f"{REQUIREMENT}.values: In takes at least as many values as minValues, 2",
        ),
        (requirement("Gte", "-1"), f'{REQUIREMENT}: "-1" cannot be the value of a label'),
        (requirement("Exists", minValues=0), f"{REQUIREMENT}.minValues: 0 is less than 1"),
        (requirement("Exists", minValues=51), f"{REQUIREMENT}.minValues: 51 is more than 50"),
        (requirement("In", "x y"), f'{REQUIREMENT}: "x y" cannot be the value of a label'),
        (requirement("Exists", key="a b"), f'{REQUIREMENT}: "a b" cannot be the key of a label'),
        (
            requirement("In", "n", key="kubernetes.io/hostname"),
            f"{REQUIREMENT}: kubernetes.io/hostname is set for each",
        ),
        (
            {"template": {"metadata": {"labels": {"karpenter.sh/nodepool": "q"}}}},
            "spec.template.metadata.labels[karpenter.sh/nodepool]: karpenter.sh/nodepool is set for each node",
        ),
    ],
)
def test_what_no_api_server_would_take_is_refused_by_its_field(spec: dict[str, Any], field: str) -> None:
    with pytest.raises(FieldError) as caught:
        read(**spec)
    assert str(caught.value).startswith(f"pools.yaml: document 1: NodePool p: {field}")

"""The plain manifests in deploy/: rendered from the chart, for people without helm."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tests.helm.chart import Helm

DEPLOY: Final = Path(__file__).parents[2] / "deploy"
_HEAD: Final = "# Rendered from the chart in deploy/helm/podium by `python -m tests.helm`.\n"
_SOURCE: Final = re.compile(r"^# Source: podium/templates/(\S+)\n", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Rendering:
    """Plain manifests that one set of values gives. `files` are by the names of the templates."""

    namespace: str
    values: dict[str, Any]
    files: dict[str, str]


def provisioner(**values: Any) -> dict[str, Any]:
    """Values that install the provisioner only."""
    return {"scheduler": {"enabled": False}, "provisioner": {"enabled": True, **values}}


def policies(**plugins: list[str]) -> dict[str, Any]:
    """Return values that enable these plugins, by extension point."""
    points = {point: {"enabled": [{"name": name} for name in names]} for point, names in plugins.items()}
    return {"configuration": {"profiles": [{"schedulerName": "podium", "plugins": points}]}}


RENDERINGS: Final = (
    Rendering(
        "kube-system",
        # Nothing changes such an annotation where the configuration is edited by hand.
        {"restartOnChange": False},
        {name: name for name in ("configmap.yaml", "deployment.yaml", "poddisruptionbudget.yaml", "rbac.yaml")},
    ),
    Rendering(
        "kube-system",
        {"featureGates": {"GenericWorkload": True}},
        {"pod-groups.yaml": "pod-groups/rbac.yaml"},
    ),
    Rendering(
        "kube-system",
        {"coscheduling": {"enabled": True}},
        {"coscheduling.yaml": "coscheduling/rbac.yaml", "coscheduling-definition.yaml": "coscheduling/definition.yaml"},
    ),
    *(
        Rendering("kube-system", policies(**plugins), {"policies.yaml": f"policies/{name}/rbac.yaml", **definitions})
        for name, plugins, has_definitions in (
            ("capacity-scheduling", {"multiPoint": ["CapacityScheduling"]}, True),
            ("gpus", {"multiPoint": ["GpuPacking"]}, False),
            ("metrics-server", {"multiPoint": ["NodeLoad"]}, False),
            ("network", {"multiPoint": ["NetworkOverhead"], "queueSort": ["TopologicalSort"]}, True),
            ("node-resource-topology-match", {"multiPoint": ["NodeResourceTopologyMatch"]}, True),
            ("preemption-toleration", {"postFilter": ["PreemptionToleration"]}, False),
            ("sy-sched", {"score": ["SySched"]}, False),
            ("topology-levels", {"multiPoint": ["TopologyLevels"]}, False),
        )
        for definitions in [
            {"policies-definitions.yaml": f"policies/{name}/definitions.yaml"} if has_definitions else {}
        ]
    ),
    Rendering(
        "karmada-system",
        {
            "scheduler": {"enabled": False},
            "estimator": {"enabled": True, "members": ["member1", "member2"]},
            "memberRoles": {"enabled": True, "accurate": True},
        },
        {
            "estimator.yaml": "estimator/deployment.yaml",
            "estimator-services.yaml": "estimator/services.yaml",
            "member-rbac.yaml": "estimator/member-rbac.yaml",
            "member-rbac-accurate.yaml": "estimator/member-rbac-accurate.yaml",
        },
    ),
    Rendering(
        "kube-system",
        {
            "scheduler": {"enabled": False},
            "fleets": {"enabled": True},
            "memberRoles": {"enabled": True, "fleets": True},
        },
        {"fleets.yaml": "fleets/deployment.yaml", "member-rbac-fleets.yaml": "fleets/member-rbac.yaml"},
    ),
    Rendering(
        "kube-system",
        provisioner(),
        {"provisioner.yaml": "provisioner/deployment.yaml", "provisioner-rbac.yaml": "provisioner/rbac.yaml"},
    ),
    *(
        Rendering(
            "kube-system", provisioner(provider=name), {"provisioner-provider.yaml": f"provisioner/{name}/rbac.yaml"}
        )
        for name in ("sandbox", "karpenter")
    ),
    Rendering(
        "kube-system", provisioner(rules="podium"), {"provisioner-rules.yaml": "provisioner/rules-podium/rbac.yaml"}
    ),
)


def render(helm: Helm) -> Iterator[tuple[Path, str]]:
    """Each plain manifest and what it has to contain."""
    for rendering in RENDERINGS:
        text = helm.text(rendering.values, namespace=rendering.namespace)
        by_template: dict[str, list[str]] = {}
        for document in text.removeprefix("---\n").split("\n---\n"):
            source = _SOURCE.search(document)
            assert source is not None, document
            by_template.setdefault(source[1], []).append(_SOURCE.sub("", document).strip("\n"))
        for template, file in rendering.files.items():
            yield DEPLOY / file, _HEAD + "\n---\n".join(by_template[template]) + "\n"

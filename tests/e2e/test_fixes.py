"""The edits of `podium why --fix`, applied by kubectl to objects of a real API server."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

from tests.control_plane.locate import Binaries
from tests.e2e.cluster import Json, RealCluster
from tests.e2e.conftest import StartDaemon
from tests.e2e.shown import ROOT, Shell
from tests.manifests import node, pod

pytestmark = [pytest.mark.anyio, pytest.mark.control_plane]

DISK = "example.com/disk"
TAINTS = [{"key": "example.com/team", "value": "data", "effect": "NoSchedule"}]


@pytest.mark.parametrize(
    ("of_node", "of_pod", "kind"),
    [
        ({"taints": TAINTS}, {}, "tolerate-taint"),
        ({"taints": TAINTS}, {}, "remove-taint"),
        ({"unschedulable": True}, {}, "uncordon"),
        ({}, {"nodeSelector": {DISK: "ssd"}}, "label-node"),
    ],
)
async def test_a_pending_pod_is_bound_where_the_fix_says_once_kubectl_has_applied_it(
    real_cluster: RealCluster,
    control_plane_binaries: Binaries,
    start: StartDaemon,
    tmp_path: Path,
    of_node: Json,
    of_pod: Json,
    kind: str,
) -> None:
    programs = {"kubectl": control_plane_binaries["kubectl"]}
    shell = Shell(tmp_path / "home", real_cluster.kubeconfig, ROOT, programs)
    # As kubectl finds plugins.
    (tmp_path / "home" / "kubectl-podium").symlink_to("podium")
    await real_cluster.create(node("there", **of_node), pod("web", **of_pod))
    await start(real_cluster)
    await real_cluster.wait_condition("web")

    answer = json.loads(await shell.run("kubectl podium why web --fix -o json"))
    (fix,) = (fix for fix in answer["fixes"] if [edit["kind"] for edit in fix["edits"]] == [kind])
    for edit in fix["edits"]:
        patch = shlex.quote(json.dumps(edit["patch"]))
        await shell.run(f"kubectl patch {edit['object']['kind']} {edit['object']['name']} --type json -p {patch}")
    assert await real_cluster.wait_bound(["web"]) == {"web": fix["node"]}

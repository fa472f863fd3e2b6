"""The flight recorder's pages, and `podium why --url`, of a podium that runs."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import anyio.to_thread
import pytest

from tests import warm_podium
from tests.device_manifests import claiming, device_class, devices, exactly, resource_claim, resource_slice
from tests.e2e.cluster import Cluster, RealCluster, SandboxCluster
from tests.e2e.conftest import StartDaemon
from tests.e2e.daemon import Daemon, configuration
from tests.e2e.waiting import eventually
from tests.gang_manifests import COSCHEDULING, group, members, with_coscheduling
from tests.manifests import node, pod

pytestmark = pytest.mark.anyio

Json = dict[str, Any]
RBAC = "/apis/rbac.authorization.k8s.io/v1"


async def why(daemon: Daemon, *arguments: str) -> subprocess.CompletedProcess[str]:
    """`podium why` as a process of its own. It accepts the certificate that the daemon has made."""
    url = f"https://127.0.0.1:{daemon.port}"
    command = ["why", "--url", url, "--insecure-skip-tls-verify", *arguments]
    return await anyio.to_thread.run_sync(warm_podium.run, command)


async def run_with_two_pods(cluster: Cluster, start: StartDaemon) -> Daemon:
    """A podium that has bound the pod web and cannot place the pod huge."""
    await cluster.create(node("node-0", cpu="4"), node("node-1", cpu="2", unschedulable=True))
    daemon = await start(cluster)
    await cluster.create(pod("web", cpu="1"), pod("huge", cpu="64"))
    await daemon.wait_told_bound(["web"])
    await cluster.wait_condition("huge")
    return daemon


async def test_the_recorder_tells_of_placed_and_pending_pods(
    cluster: Cluster, start: StartDaemon, tmp_path: Path
) -> None:
    daemon = await run_with_two_pods(cluster, start)
    attempts = json.loads((await daemon.get("/debug/decisions?result=scheduled"))[1])["attempts"]
    assert [(attempt["name"], attempt["node"]) for attempt in attempts] == [("web", "node-0")]

    access: tuple[str, ...] = ()
    if cluster.admin.token:
        (tmp_path / "token").write_text(cluster.admin.token)
        access = ("--token-file", str(tmp_path / "token"))

    async def read_story() -> Json:
        # The watch may show the binding later than podium has logged it.
        story: Json = json.loads((await why(daemon, "web", "-o", "json", *access)).stdout)
        return story if story["bound_to"] else {}

    story = await eventually(read_story)
    assert (story["bound_to"], story["why"]["node"], story["queue"]) == ("node-0", "node-0", None)

    answer = await why(daemon, "huge", "--node", "node-1", *access)
    assert (answer.returncode, answer.stderr) == (0, "")
    assert "huge is pending" in answer.stdout
    assert "It waits in the queue: unschedulable" in answer.stdout
    assert "0/2 nodes are available" in answer.stdout
    assert "NodeUnschedulable: node(s) were unschedulable" in answer.stdout

    unknown = await why(daemon, "hug", *access)
    assert (unknown.returncode, unknown.stdout) == (1, "")
    assert "did you mean default/huge?" in unknown.stderr


@pytest.mark.control_plane
async def test_the_rule_that_a_refusal_names_lets_its_user_ask(
    real_cluster: RealCluster, start: StartDaemon, tmp_path: Path
) -> None:
    daemon = await run_with_two_pods(real_cluster, start)
    admin = real_cluster.admin
    await admin.create("/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": "operator"}})
    (tmp_path / "token").write_text(await admin.service_account_token("default", "operator"))
    refusal = await why(daemon, "huge", "--token-file", str(tmp_path / "token"))
    assert refusal.returncode == 1
    rule = 'nonResourceURLs: ["/debug/pods/*"], verbs: [get]'
    assert "system:serviceaccount:default:operator" in refusal.stderr
    assert rule in refusal.stderr

    rules = [{"nonResourceURLs": ["/debug/pods/*"], "verbs": ["get"]}]
    await admin.create(f"{RBAC}/clusterroles", {"metadata": {"name": "ask-podium"}, "rules": rules})
    binding = {
        "metadata": {"name": "ask-podium"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "ask-podium"},
        "subjects": [{"kind": "ServiceAccount", "name": "operator", "namespace": "default"}],
    }
    await admin.create(f"{RBAC}/clusterrolebindings", binding)

    async def may_ask() -> bool:
        return (await why(daemon, "huge", "--token-file", str(tmp_path / "token"))).returncode == 0

    await eventually(may_ask)


async def test_why_says_for_whom_and_how_long_a_member_waits_at_permit(
    sandbox_cluster: SandboxCluster, start: StartDaemon
) -> None:
    cluster = sandbox_cluster
    await cluster.create(node("node-0", cpu="4"), node("node-1", cpu="4"))
    groups = "/apis/scheduling.x-k8s.io/v1alpha1/namespaces/default/podgroups"
    await cluster.admin.create(groups, group(COSCHEDULING, 3, scheduleTimeoutSeconds=600))
    profiles = with_coscheduling(podGroupRejectPercentage=100)["profiles"]
    daemon = await start(cluster, configuration(profiles=profiles))
    await cluster.create(*members(COSCHEDULING, 3))

    async def two_wait() -> Json:
        story: Json = json.loads((await why(daemon, "train-0", "-o", "json")).stdout)
        return story["gang"] if story["gang"] and len(story["gang"].get("held", ())) == 2 else {}

    gang = await eventually(two_wait)
    assert (gang["needed"], gang["members"], len(gang["lacking"])) == (3, 3, 1)
    (lacking,) = gang["lacking"].values()
    assert "0/2 nodes are available: 2 Insufficient cpu." in lacking
    assert 0 < gang["seconds_left"] <= 600
    text = (await why(daemon, "train-0")).stdout
    assert "It is a member of the gang default/train (scheduling.x-k8s.io)" in text
    assert "1 more must get a node, so none of those that wait starts" in text


async def test_why_lists_missing_devices_by_request(sandbox_cluster: SandboxCluster, start: StartDaemon) -> None:
    cluster = sandbox_cluster
    await cluster.create(node("node-0", cpu="4"))
    resources = "/apis/resource.k8s.io/v1"
    await cluster.admin.create(f"{resources}/resourceslices", resource_slice("s", devices(2), node="node-0"))
    await cluster.admin.create(f"{resources}/deviceclasses", device_class("gpu"))
    claim = resource_claim("c", exactly(count=3))
    del claim["status"]
    await cluster.admin.create(f"{resources}/namespaces/default/resourceclaims", claim)
    daemon = await start(cluster)
    await cluster.create(pod("hungry", resourceClaims=claiming("c")))
    await cluster.wait_condition("hungry")

    async def read_explanation() -> str:
        text = (await why(daemon, "hungry")).stdout
        return text if "devices, as they are now" in text else ""

    explanation = await eventually(read_explanation)
    assert "1 cannot allocate all claims" in explanation
    assert "request gpu of claim default/c asks for 3 devices of class gpu: 2 of 2 match, 2 free" in explanation

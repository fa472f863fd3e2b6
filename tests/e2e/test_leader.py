"""`podium why` from a kubeconfig alone: it finds the leader by its Lease, and asks it through a forwarded port."""

from __future__ import annotations

import json
import re
import socket
import subprocess
from pathlib import Path

import anyio.to_thread
import pytest
import yaml

from tests import warm_podium
from tests.e2e.cluster import RealCluster
from tests.e2e.conftest import StartDaemon
from tests.e2e.daemon import Daemon, configuration
from tests.e2e.waiting import eventually
from tests.manifests import node, pod
from tests.port_forward import kubelet

pytestmark = [pytest.mark.anyio, pytest.mark.control_plane]

RBAC = "/apis/rbac.authorization.k8s.io/v1"
SYSTEM_PODS = "/api/v1/namespaces/kube-system/pods"
ELECTION = {"leaderElect": True, "resourceName": "podium", "resourceNamespace": "kube-system"}
PAGE = (Path(__file__).parents[2] / "docs" / "questions.md").read_text()
(RULES,) = re.findall(r"^```yaml\n(rules:.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


async def why(kubeconfig: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return await anyio.to_thread.run_sync(warm_podium.run, ["why", *arguments, "--kubeconfig", str(kubeconfig)])


async def leading_podium(cluster: RealCluster, start: StartDaemon, kubelet_port: int) -> Daemon:
    """A podium that leads; the pod of its name is on a node with a kubelet that forwards its port."""
    machine = node("machine", "1", unschedulable=True)
    machine["status"] |= {
        "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
        "daemonEndpoints": {"kubeletEndpoint": {"Port": kubelet_port}},
    }
    await cluster.create(machine, node("node-0", "2"))
    daemon = await start(cluster, configuration(leaderElection=ELECTION))
    own = pod(socket.gethostname(), node="machine")
    own["metadata"]["namespace"] = "kube-system"
    own["spec"]["containers"][0]["ports"] = [{"name": "https", "containerPort": daemon.port}]
    await cluster.admin.create(SYSTEM_PODS, own)
    await cluster.create(pod("huge", "64"), pod("typo", scheduler="podum"))

    async def is_told() -> bool:
        result = await why(cluster.kubeconfig, "huge", "-o", "json")
        assert (result.returncode, result.stderr) == (0, "")
        return bool(json.loads(result.stdout).get("running", {}).get("attempts"))

    await eventually(is_told)
    return daemon


async def test_the_leader_is_found_and_asked_without_any_flag(
    real_cluster: RealCluster, start: StartDaemon, tmp_path: Path
) -> None:
    async with kubelet(tmp_path) as port:
        await leading_podium(real_cluster, start, port)
        answer = await why(real_cluster.kubeconfig, "huge")
        assert (answer.returncode, answer.stderr) == (0, "")
        assert f"Told by kube-system/{socket.gethostname()}, the running podium that leads" in answer.stdout
        assert "It waits in the queue: unschedulable" in answer.stdout

        answer_with_fix = await why(real_cluster.kubeconfig, "huge", "--fix")
        assert "Answered by the profile podium of the running podium" in answer_with_fix.stdout
        assert "lower the request for cpu from 64 to 2" in answer_with_fix.stdout

        misspelt = await why(real_cluster.kubeconfig, "typo")
        first, *_ = misspelt.stdout.splitlines()
        assert first == "No profile serves spec.schedulerName podum: nothing schedules it; did you mean podium?"


async def test_a_user_with_the_documented_role_may_ask_and_another_gets_the_missing_rule(
    real_cluster: RealCluster, start: StartDaemon, tmp_path: Path
) -> None:
    admin = real_cluster.admin
    async with kubelet(tmp_path) as port:
        await leading_podium(real_cluster, start, port)
        await admin.create("/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": "operator"}})
        token = await admin.service_account_token("default", "operator")
        kubeconfig = real_cluster.plane.kubeconfig(token, tmp_path / "operator")
        refusal = await why(kubeconfig, "huge")
        assert refusal.returncode == 1  # nor may it list the cluster
        await admin.create(f"{RBAC}/clusterroles", {"metadata": {"name": "ask-podium"}, **yaml.safe_load(RULES)})
        subject = {"kind": "ServiceAccount", "name": "operator", "namespace": "default"}
        role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "ask-podium"}
        binding = {"metadata": {"name": "ask-podium"}, "roleRef": role, "subjects": [subject]}
        await admin.create(f"{RBAC}/clusterrolebindings", binding)

        async def may_ask() -> bool:
            return "Told by kube-system/" in (await why(kubeconfig, "huge")).stdout

        await eventually(may_ask)

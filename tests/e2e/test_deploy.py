"""The manifests of deploy/: the real API server takes them, and what they allow is enough and not more."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.control_plane.client import Client
from tests.control_plane.locate import Binaries
from tests.e2e.cluster import RealCluster
from tests.e2e.conftest import StartDaemon
from tests.e2e.priorities import create_priority_class
from tests.e2e.shipped import ACCOUNT, DEPLOY, apply, configuration, manifests, may, wait_granted
from tests.e2e.waiting import eventually
from tests.manifests import node, pod, pods

Json = dict[str, Any]


def test_the_deployment_runs_podium_as_the_other_manifests_expect() -> None:
    [deployment], [config_map], [account] = (
        manifests("Deployment"),
        manifests("ConfigMap"),
        manifests("ServiceAccount"),
    )
    template = deployment["spec"]["template"]["spec"]
    [container] = template["containers"]
    [volume], [mount] = template["volumes"], container["volumeMounts"]
    assert (account["metadata"]["namespace"], account["metadata"]["name"]) == ACCOUNT
    assert template["serviceAccountName"] == account["metadata"]["name"]
    assert volume["configMap"]["name"] == config_map["metadata"]["name"]
    assert volume["name"] == mount["name"]
    [file] = config_map["data"]
    assert f"--config={mount['mountPath']}/{file}" in container["args"]
    [port] = container["ports"]
    assert f"--secure-port={port['containerPort']}" in container["args"]
    for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
        assert container[probe]["httpGet"]["port"] == port["name"]
        assert container[probe]["httpGet"]["scheme"] == "HTTPS"
    # Two replicas agree on a lease that is not kube-scheduler's and that their role lets them write.
    lease = configuration()["leaderElection"]
    assert (deployment["spec"]["replicas"], lease["resourceName"]) == (2, "podium")
    [role] = manifests("Role")
    assert role["metadata"]["namespace"] == lease["resourceNamespace"]
    assert lease["resourceName"] in role["rules"][1]["resourceNames"]


def test_the_container_may_do_nothing_that_podium_does_not_need() -> None:
    [deployment] = manifests("Deployment")
    template = deployment["spec"]["template"]["spec"]
    pod_context, [container] = template["securityContext"], template["containers"]
    assert pod_context["runAsNonRoot"] is True
    assert pod_context["seccompProfile"] == {"type": "RuntimeDefault"}
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert container["resources"]["limits"]["memory"]
    assert not [volume for volume in template["volumes"] if "hostPath" in volume]
    assert "hostNetwork" not in template
    [user] = [line for line in (DEPLOY / "Dockerfile").read_text().splitlines() if line.startswith("USER")]
    assert user == f"USER {pod_context['runAsUser']}:{pod_context['runAsGroup']}"
    assert pod_context["runAsUser"] > 1000


@pytest.mark.anyio
@pytest.mark.control_plane
async def test_the_manifests_are_taken_and_their_account_may_do_what_podium_does_and_no_more(
    real_cluster: RealCluster, control_plane_binaries: Binaries, start: StartDaemon, tmp_path: Path
) -> None:
    printed = await apply(real_cluster, control_plane_binaries)
    assert sorted(line.rpartition(" ")[0] for line in printed.splitlines()) == [
        "clusterrole.rbac.authorization.k8s.io/podium",
        "clusterrolebinding.rbac.authorization.k8s.io/podium",
        "configmap/podium",
        "deployment.apps/podium",
        "poddisruptionbudget.policy/podium",
        "role.rbac.authorization.k8s.io/podium",
        "rolebinding.rbac.authorization.k8s.io/podium",
        "serviceaccount/podium",
    ]
    assert {line.rpartition(" ")[2] for line in printed.splitlines()} == {"created"}
    second_output = await apply(real_cluster, control_plane_binaries)
    changed_lines = [line for line in second_output.splitlines() if not line.endswith(" unchanged")]
    # kubectl replaces a budget's selector each time, with the same.
    assert changed_lines in ([], ["poddisruptionbudget.policy/podium configured"])

    token = await real_cluster.admin.service_account_token(*ACCOUNT)
    kubeconfig = real_cluster.plane.kubeconfig(token, tmp_path / "kubeconfig")
    async with Client(real_cluster.plane.url, token=token, tls=real_cluster.plane.ssl_context()) as account:
        await check_rights(account)
    await real_cluster.create(node("small", cpu="4"))
    config = configuration() | {"podMaxBackoffSeconds": 1}
    daemon = await start(real_cluster, config, kubeconfig=kubeconfig)
    # No kubelet is there to end a grace period.
    await real_cluster.create(*pods(20, terminationGracePeriodSeconds=0), pod("huge", cpu="64"))
    names = [f"web-{index}" for index in range(20)]
    await real_cluster.wait_bound(names)
    assert await real_cluster.wait_events("Scheduled", 20) == dict.fromkeys(names, 1)
    message = (await real_cluster.wait_condition("huge"))["message"]

    # It fails again each time that room is freed; to tell so, the first Event is patched.
    async def has_failed_again() -> bool:
        return await daemon.attempts("unschedulable") > failures

    for name in names[:2]:
        failures = await daemon.attempts("unschedulable")
        await real_cluster.delete_pod(name)
        await eventually(has_failed_again)

    async def is_counted() -> bool:
        events = await real_cluster.events("FailedScheduling", name="huge")
        return any(event.get("series", {}).get("count") == 2 for event in events)

    await eventually(is_counted)
    assert (await real_cluster.wait_condition("huge"))["message"] == message

    # A victim is deleted.
    await create_priority_class(real_cluster.admin, "urgent", 1000)
    await real_cluster.create(pod("urgent", cpu="3", priorityClassName="urgent"))
    await real_cluster.wait_bound(["urgent"])
    assert len(await real_cluster.pods()) < 20

    assert await daemon.stop() == 0
    assert daemon.complaints() == []
    assert not [line for line in daemon.output().splitlines() if "forbidden" in line.lower()]


async def check_rights(account: Client) -> None:
    """The account may do what the role grants, once the API server has taken that in, and none of these things."""
    await wait_granted(account)
    for group, resource, verb in (
        ("", "pods", "create"),
        ("", "pods", "patch"),
        ("", "nodes", "patch"),
        ("", "secrets", "get"),
        ("", "configmaps", "get"),
        ("coordination.k8s.io", "leases", "update"),
        ("events.k8s.io", "events", "list"),
        ("rbac.authorization.k8s.io", "clusterroles", "get"),
    ):
        assert not await may(account, group, resource, verb), (group, resource, verb)

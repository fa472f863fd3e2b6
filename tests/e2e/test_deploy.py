"""The manifests of deploy/: the real API server takes them, and what they allow is enough and not more."""

from __future__ import annotations

import functools
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio.to_thread
import pytest
import yaml

from tests.control_plane.client import Client
from tests.control_plane.locate import Binaries
from tests.e2e.cluster import RealCluster
from tests.e2e.conftest import StartDaemon
from tests.e2e.objects import node, pod, pods
from tests.e2e.waiting import eventually

Json = dict[str, Any]

DEPLOY = Path(__file__).parents[2] / "deploy"
PRIORITY_CLASSES = "/apis/scheduling.k8s.io/v1/priorityclasses"
ACCOUNT = ("kube-system", "podium")


def manifests(kind: str) -> list[Json]:
    documents = [item for file in sorted(DEPLOY.glob("*.yaml")) for item in yaml.safe_load_all(file.read_text())]
    return [item for item in documents if item["kind"] == kind]


def configuration() -> Json:
    [config_map] = manifests("ConfigMap")
    loaded: Json = yaml.safe_load(config_map["data"]["config.yaml"])
    return loaded


async def apply(cluster: RealCluster, binaries: Binaries, *flags: str) -> str:
    """What kubectl prints; it has to succeed, without a warning."""
    command = [binaries["kubectl"], "--kubeconfig", cluster.kubeconfig, "apply", *flags, "-f", f"{DEPLOY}/"]
    done = await anyio.to_thread.run_sync(lambda: subprocess.run(command, capture_output=True, text=True, check=False))
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def granted() -> Iterator[tuple[str, str, str]]:
    """Group, resource and verb of everything the role allows."""
    [role] = manifests("ClusterRole")
    for rule in role["rules"]:
        for group in rule["apiGroups"]:
            for resource in rule["resources"]:
                for verb in rule["verbs"]:
                    yield group, resource, verb


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
        "role.rbac.authorization.k8s.io/podium",
        "rolebinding.rbac.authorization.k8s.io/podium",
        "serviceaccount/podium",
    ]
    assert {line.rpartition(" ")[2] for line in printed.splitlines()} == {"created"}
    again = await apply(real_cluster, control_plane_binaries)
    assert {line.rpartition(" ")[2] for line in again.splitlines()} == {"unchanged"}

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
    await real_cluster.admin.create(PRIORITY_CLASSES, {"metadata": {"name": "urgent"}, "value": 1000})
    await real_cluster.create(pod("urgent", cpu="3", priorityClassName="urgent"))
    await real_cluster.wait_bound(["urgent"])
    assert len(await real_cluster.pods()) < 20

    assert await daemon.stop() == 0
    assert not [entry for entry in daemon.log() if entry["level"] != "info"], daemon.output()
    assert not [line for line in daemon.output().splitlines() if "forbidden" in line.lower()]


async def check_rights(account: Client) -> None:
    """The account may do what the role grants, once the API server has taken that in, and none of these things."""
    for group, resource, verb in granted():
        await eventually(functools.partial(may, account, group, resource, verb))
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


async def may(account: Client, group: str, resource: str, verb: str) -> bool:
    """What the API server says of the account's rights in any namespace."""
    name, _, subresource = resource.partition("/")
    attributes = {"group": group, "resource": name, "subresource": subresource, "verb": verb, "namespace": "default"}
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": attributes},
    }
    answer = await account.create("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", review)
    return bool(answer["status"]["allowed"])

import subprocess

import aiohttp
import anyio
import anyio.to_thread
import pytest

from tests.control_plane.cleanup import empty_cluster
from tests.control_plane.client import ApiError, Client
from tests.control_plane.servers import ControlPlane
from tests.e2e.waiting import eventually
from tests.manifests import node, pod
from tests.patience import PATIENCE_S

pytestmark = [pytest.mark.control_plane, pytest.mark.anyio]

PODS = "/api/v1/namespaces/default/pods"
NODES = "/api/v1/nodes"


async def _node_of(client: Client, path: str) -> str:
    with anyio.fail_after(PATIENCE_S):
        while True:
            if node_name := (await client.get(path))["spec"].get("nodeName"):
                return str(node_name)
            await anyio.sleep(0.05)


@pytest.mark.usefixtures("empty_control_plane")
async def test_a_node_and_a_pod_are_read_back_as_they_were_created(admin: Client) -> None:
    await admin.create(NODES, node("n1"))
    await admin.create(PODS, pod("web-1", scheduler="nobody"))

    n1 = await admin.get(f"{NODES}/n1")
    assert n1["status"]["allocatable"]["cpu"] == "16"
    assert "taints" not in n1["spec"]
    assert (await admin.get(f"{PODS}/web-1"))["status"]["phase"] == "Pending"


async def test_the_api_server_reports_the_version_that_was_asked_for(admin: Client) -> None:
    version = await admin.get("/version")
    assert (version["major"], version["minor"], version["gitVersion"]) == ("1", "37", "v1.37.2")


async def test_objects_survive_a_restart_of_the_api_server(empty_control_plane: ControlPlane, admin: Client) -> None:
    node_object = await admin.create(NODES, node("n1"))
    url = empty_control_plane.url

    await anyio.to_thread.run_sync(empty_control_plane.restart_apiserver)

    assert empty_control_plane.url == url
    assert (await admin.get(f"{NODES}/n1"))["metadata"]["uid"] == node_object["metadata"]["uid"]


async def test_nobody_answers_while_the_api_server_is_stopped(control_plane: ControlPlane, admin: Client) -> None:
    await anyio.to_thread.run_sync(control_plane.stop_apiserver)
    try:
        with pytest.raises(aiohttp.ClientConnectorError):
            await admin.get("/version")
    finally:
        await anyio.to_thread.run_sync(control_plane.start_apiserver)
    assert (await admin.text("/readyz")) == "ok"


@pytest.mark.usefixtures("empty_control_plane")
async def test_watch_tells_what_happens_after_the_list(admin: Client) -> None:
    version = (await admin.get(NODES))["metadata"]["resourceVersion"]
    await admin.create(NODES, node("n1"))
    await admin.patch(f"{NODES}/n1", {"metadata": {"labels": {"disk": "ssd"}}})
    await admin.delete(f"{NODES}/n1")

    event_types = []
    async for event in admin.watch(NODES, resourceVersion=version, timeoutSeconds="20"):
        event_types.append(event["type"])
        if event["type"] == "DELETED":
            break
    assert event_types == ["ADDED", "MODIFIED", "DELETED"]


@pytest.mark.usefixtures("empty_control_plane")
async def test_list_reads_every_page(admin: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.control_plane.client._PAGE_LIMIT", 2)
    for number in range(5):
        await admin.create(PODS, pod(f"web-{number}", scheduler="nobody"))
    names = [pod["metadata"]["name"] for pod in await admin.list(PODS)]
    assert names == [f"web-{number}" for number in range(5)]


@pytest.mark.usefixtures("empty_control_plane")
async def test_emptying_leaves_what_the_api_server_made_and_nothing_else(admin: Client) -> None:
    objects_by_name = {name: {"metadata": {"name": name}} for name in ("team-a", "default-b", "critical")}
    await admin.create("/api/v1/namespaces", objects_by_name["team-a"])
    await admin.create("/api/v1/namespaces", objects_by_name["default-b"])
    await admin.create(NODES, node("n1"))
    finalized_pod = pod("held", scheduler="nobody")
    finalized_pod["metadata"] |= {"namespace": "team-a", "finalizers": ["podium.invalid/held"]}
    finalized_pod["spec"]["nodeName"] = "n1"
    await admin.create("/api/v1/namespaces/team-a/pods", finalized_pod)
    await admin.create("/apis/scheduling.k8s.io/v1/priorityclasses", {**objects_by_name["critical"], "value": 7})

    await empty_cluster(admin)

    assert await admin.list(NODES) == []
    assert await admin.list("/api/v1/pods") == []
    namespaces = {namespace["metadata"]["name"] for namespace in await admin.list("/api/v1/namespaces")}
    assert {"default", "kube-system"} <= namespaces
    assert not {"team-a", "default-b"} & namespaces
    classes = {
        priority_class["metadata"]["name"]
        for priority_class in await admin.list("/apis/scheduling.k8s.io/v1/priorityclasses")
    }
    assert classes == {"system-node-critical", "system-cluster-critical"}


async def test_a_service_account_may_do_what_its_role_allows_and_no_more(
    empty_control_plane: ControlPlane, admin: Client
) -> None:
    rbac = "/apis/rbac.authorization.k8s.io/v1"
    rule = {"apiGroups": [""], "resources": ["nodes"], "verbs": ["list"]}
    subject = {"kind": "ServiceAccount", "namespace": "default", "name": "reader"}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "reader"}
    account = {"metadata": {"name": "reader"}}
    await admin.create("/api/v1/namespaces/default/serviceaccounts", account)
    await admin.create(f"{rbac}/clusterroles", {**account, "rules": [rule]})
    await admin.create(f"{rbac}/clusterrolebindings", {**account, "roleRef": role, "subjects": [subject]})
    token = await admin.service_account_token("default", "reader")

    tls = empty_control_plane.ssl_context()
    async with Client(empty_control_plane.url, token=token, tls=tls) as reader:

        async def may_list() -> bool:
            try:
                return await reader.list(NODES) == []
            except ApiError as error:
                raise AssertionError(str(error)) from error

        # The API server takes in what was granted when it gets to it.
        await eventually(may_list)
        with pytest.raises(ApiError, match="system:serviceaccount:default:reader") as failure:
            await reader.create(NODES, node("n1"))
    assert (failure.value.status, failure.value.reason) == (403, "Forbidden")


@pytest.mark.usefixtures("empty_control_plane")
async def test_kubectl_reads_the_kubeconfig(control_plane: ControlPlane, admin: Client) -> None:
    await admin.create(NODES, node("n1"))
    kubectl = str(control_plane.binaries["kubectl"])
    flags = [f"--kubeconfig={control_plane.kubeconfig()}", "--output=name"]
    answer = await anyio.run_process([kubectl, "get", "nodes", *flags], stderr=subprocess.STDOUT)
    assert answer.stdout.decode().split() == ["node/n1"]


async def test_the_real_scheduler_binds_a_pod_and_its_cpu_time_is_known(
    empty_control_plane: ControlPlane, admin: Client
) -> None:
    scheduler = await anyio.to_thread.run_sync(
        empty_control_plane.start_scheduler, {"profiles": [{"schedulerName": "reference"}]}
    )
    try:
        await admin.create(NODES, node("n1"))
        await admin.create(PODS, pod("web-1", scheduler="reference"))
        assert await _node_of(admin, f"{PODS}/web-1") == "n1"
        assert scheduler.process.cpu_s() > 0
    finally:
        scheduler.process.stop()
    cpu_by_process = empty_control_plane.cpu_s()
    assert set(cpu_by_process) == {"etcd", "kube-apiserver"}
    assert min(cpu_by_process.values()) > 0

"""Starting, stopping, credentials, stand-in kubelets, and what the server says about itself."""

import asyncio

import aiohttp
import anyio
import pytest
import yaml

from podium.sandbox import Sandbox, serve
from podium.sandbox.fill import sample_pod, varied_nodes
from podium.sandbox.resources import RESOURCES
from tests.patience import PATIENCE_S

pytestmark = pytest.mark.anyio

PODS = "/api/v1/namespaces/default/pods"


async def until(condition):
    async with asyncio.timeout(PATIENCE_S):
        while not condition():  # noqa: ASYNC110 - what is waited for has no event of its own
            await asyncio.sleep(0.01)


@pytest.mark.parametrize("path", ["/healthz", "/livez", "/readyz"])
async def test_health_paths_answer_ok(rest_api, path):
    assert await rest_api.get(path) == (200, b"ok")


async def test_it_discovers_its_types_in_both_ways(rest_api):
    assert (await rest_api.get("/version"))[1]["gitVersion"].startswith("v1.37.")
    plain = set()
    groups = [
        f"/apis/{group['preferredVersion']['groupVersion']}" for group in (await rest_api.get("/apis"))[1]["groups"]
    ]
    for path in ["/api/v1", *groups]:
        resource_list = (await rest_api.get(path))[1]
        plain |= {
            (resource_list["groupVersion"], entry["name"])
            for entry in resource_list["resources"]
            if "/" not in entry["name"]
        }
    assert plain >= {(resource.api_version, resource.plural) for resource in RESOURCES}
    accept = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
    aggregated = set()
    for path in ("/api", "/apis"):
        for group in (await rest_api.get(path, Accept=accept))[1]["items"]:
            for version in group["versions"]:
                name = "/".join(filter(None, (group["metadata"]["name"], version["version"])))
                aggregated |= {(name, entry["resource"]) for entry in version["resources"]}
    assert aggregated == plain


async def test_openapi_says_that_the_server_validates_fields(rest_api):
    _, index = await rest_api.get("/openapi/v3")
    for entry in index["paths"].values():
        _, document = await rest_api.get(entry["serverRelativeURL"])
        for operations in document["paths"].values():
            for operation in operations.values():
                assert "fieldValidation" in [parameter["name"] for parameter in operation["parameters"]]


async def test_access_reviews_allow_everything(rest_api):
    review = {"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview", "spec": {}}
    status, body = await rest_api.post("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", review)
    assert (status, body["status"]["allowed"]) == (201, True)
    status, body = await rest_api.post("/apis/authentication.k8s.io/v1/tokenreviews", {"spec": {"token": "x"}})
    assert body["status"]["authenticated"] is True


async def test_a_token_is_asked_for_when_one_is_set():
    async with Sandbox(token="secret") as sandbox, aiohttp.ClientSession(sandbox.url) as session:
        async with session.get("/api/v1/nodes") as response:
            assert response.status == 401
        async with session.get("/readyz") as response:
            assert response.status == 200
        async with session.get("/api/v1/nodes", headers={"Authorization": "Bearer secret"}) as response:
            assert response.status == 200
        assert sandbox.kubeconfig()["users"][0]["user"] == {"token": "secret"}


async def test_the_kubeconfig_is_private_and_points_here(sandbox, tmp_path):
    path = sandbox.write_kubeconfig(tmp_path / "kubeconfig")
    assert path.stat().st_mode & 0o077 == 0
    assert yaml.safe_load(path.read_text())["clusters"][0]["cluster"]["server"] == sandbox.url


async def test_a_cluster_has_its_usual_namespaces_and_priority_classes(sandbox):
    assert {item["metadata"]["name"] for item in sandbox.store.list("ns")} >= {"default", "kube-system"}
    assert sandbox.store.get("pc", "system-node-critical")["value"] == 2_000_001_000


async def test_a_stand_in_kubelet_runs_bound_pods_and_lets_deleted_ones_go():
    async with Sandbox(kubelet_delay_s=0.01) as sandbox, aiohttp.ClientSession(sandbox.url) as session:
        store = sandbox.store
        store.create(sample_pod("pending"))
        store.create(sample_pod("web"))
        async with session.post(f"{PODS}/web/binding", json={"target": {"name": "n1"}}) as response:
            assert response.status == 201
        await until(lambda: store.get("pods", "web")["status"]["phase"] == "Running")
        status = store.get("pods", "web")["status"]
        assert status["podIP"].startswith("10.")
        assert {item["type"] for item in status["conditions"]} >= {"PodScheduled", "Ready"}
        async with session.delete(f"{PODS}/web") as response:
            assert (await response.json())["metadata"]["deletionTimestamp"]
        await until(lambda: [pod["metadata"]["name"] for pod in store.list("pods")] == ["pending"])
        assert store.get("pods", "pending")["status"]["phase"] == "Pending"


async def test_how_long_a_deleted_pod_takes_to_end_may_depend_on_the_pod():
    def ending_s(pod, since_s):
        return 0.0 if pod["metadata"]["name"] == "quick" else since_s + 1e9

    async with Sandbox(kubelet_delay_s=0.0, ending_s=ending_s) as sandbox:
        for name in ("slow", "quick"):
            pod = sample_pod(name)
            sandbox.store.create(pod | {"spec": pod["spec"] | {"nodeName": "n1"}})
            sandbox.store.delete("pods", name)
        await until(lambda: [pod["metadata"]["name"] for pod in sandbox.store.list("pods")] == ["slow"])


async def test_a_stand_in_kubelet_makes_nodes_ready_and_reports_in():
    async with Sandbox(heartbeat_s=0.05) as sandbox:
        bare = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}}
        sandbox.store.create(bare)

        def ready():
            return sandbox.store.get("nodes", "n1")["status"].get("conditions", [{}])[0]

        await until(lambda: ready().get("status") == "True")
        first = ready()["lastHeartbeatTime"]
        await until(lambda: ready()["lastHeartbeatTime"] != first)


async def test_serve_fills_and_announces_itself(tmp_path):
    announcements = []
    async with anyio.create_task_group() as tasks:

        async def run():
            await serve(0, 7, tmp_path / "kubeconfig", started=announcements.append)

        tasks.start_soon(run)
        await until(lambda: bool(announcements))
        async with aiohttp.ClientSession(announcements[0].url) as session, session.get("/api/v1/nodes") as response:
            assert len((await response.json())["items"]) == 7
        assert (tmp_path / "kubeconfig").exists()
        tasks.cancel_scope.cancel()


async def test_a_port_that_is_taken_is_an_error(sandbox):
    with pytest.raises(OSError, match="address already in use"):
        async with Sandbox(port=sandbox.port):
            pass


async def test_it_stops_with_watches_open_and_an_error_inside_comes_out():
    with pytest.raises(ValueError, match="mine"):  # noqa: PT012 - the sandbox must end with a watch open
        async with Sandbox() as sandbox, aiohttp.ClientSession(sandbox.url) as session:
            sandbox.store.create(varied_nodes(1)[0])
            async with session.get("/api/v1/nodes?watch=1") as response:
                assert await response.content.readline()
                raise ValueError("mine")


async def test_it_ends_while_somebody_watches():
    async with aiohttp.ClientSession() as session:
        with anyio.fail_after(PATIENCE_S):
            async with Sandbox(kubelets=False) as sandbox:
                watch = await session.get(sandbox.url + PODS, params={"watch": "true"})
        watch.close()

"""Workloads, their scale, evictions and tokens over plain HTTP."""

from __future__ import annotations

from collections.abc import AsyncIterator

import aiohttp
import pytest

from podium.sandbox import Sandbox
from podium.sandbox.fill import sample_pod
from tests.e2e.waiting import eventually
from tests.integration.sandbox.conftest import Rest

pytestmark = pytest.mark.anyio

DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
PODS = "/api/v1/namespaces/default/pods"
BUDGETS = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
TOKEN = "/api/v1/namespaces/default/serviceaccounts/default/token"
TOKEN_REQUEST = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}


@pytest.fixture
async def api(scheduled_cluster: Sandbox) -> AsyncIterator[Rest]:
    async with aiohttp.ClientSession(scheduled_cluster.url) as session:
        yield Rest(session)


def deployment(replicas=3, **labels):
    template = {"metadata": {"labels": labels or {"app": "web"}}, "spec": sample_pod("")["spec"]}
    spec = {"replicas": replicas, "selector": {"matchLabels": {"app": "web"}}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": spec}


async def available(api, count):
    async def look():
        _, deployment = await api.get(f"{DEPLOYMENTS}/web")
        status = deployment.get("status", {})
        return status.get("availableReplicas") == status.get("replicas") == count

    await eventually(look)


async def test_a_deployment_gets_as_many_pods_as_its_scale_says(api):
    assert (await api.post(DEPLOYMENTS, deployment()))[0] == 201
    await available(api, 3)
    status, scale = await api.get(f"{DEPLOYMENTS}/web/scale")
    assert (status, scale["kind"], scale["spec"]) == (200, "Scale", {"replicas": 3})
    assert scale["status"] == {"replicas": 3, "selector": "app=web"}
    assert (await api.put(f"{DEPLOYMENTS}/web/scale", scale | {"spec": {"replicas": 1}}))[1]["spec"] == {"replicas": 1}
    assert (await api.put(f"{DEPLOYMENTS}/web/scale", scale))[0] == 409
    await available(api, 1)
    assert (await api.patch(f"{DEPLOYMENTS}/web/scale", {"spec": {"replicas": 2}}))[0] == 200
    await available(api, 2)
    status, refusal = await api.patch(f"{DEPLOYMENTS}/web/scale", {"spec": {"replicas": -1}})
    assert (status, refusal["details"]["causes"][0]["field"]) == (422, "spec.replicas")


async def test_a_pod_that_is_evicted_is_replaced_while_its_budget_holds(api):
    await api.post(DEPLOYMENTS, deployment(2))
    budget = {"selector": {"matchLabels": {"app": "web"}}, "minAvailable": 1}
    await api.post(BUDGETS, {"kind": "PodDisruptionBudget", "metadata": {"name": "web"}, "spec": budget})
    await available(api, 2)
    first, second = (pod["metadata"]["name"] for pod in (await api.get(PODS))[1]["items"])

    async def is_allowed():
        return (await api.get(f"{BUDGETS}/web"))[1]["status"]["disruptionsAllowed"] == 1

    await eventually(is_allowed)
    for node in ("node-00000", "node-00001"):
        await api.patch(f"/api/v1/nodes/{node}", {"spec": {"unschedulable": True}})
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {}}
    assert (await api.post(f"{PODS}/{first}/eviction", eviction))[0] == 201
    status, refusal = await api.post(f"{PODS}/{second}/eviction", eviction)
    assert (status, refusal["details"]["causes"][0]["reason"]) == (429, "DisruptionBudget")
    await api.patch("/api/v1/nodes/node-00001", {"spec": {"unschedulable": None}})
    await eventually(is_allowed)
    names = {pod["metadata"]["name"] for pod in (await api.get(PODS))[1]["items"]}
    assert first not in names
    assert second in names


async def test_orphans_stay_when_their_owner_goes_and_come_back_to_the_next(api, scheduled_cluster):
    await api.post(DEPLOYMENTS, deployment())
    await available(api, 3)
    uids = {pod["metadata"]["uid"] for pod in scheduled_cluster.store.list("pods")}
    await api.delete(f"{DEPLOYMENTS}/web", {"propagationPolicy": "Orphan"})
    [orphan] = scheduled_cluster.store.list("replicasets")
    assert orphan["metadata"]["ownerReferences"] == []
    await api.post(DEPLOYMENTS, deployment())
    await available(api, 3)
    assert {pod["metadata"]["uid"] for pod in scheduled_cluster.store.list("pods")} == uids


async def test_a_deployment_whose_pods_would_not_be_its_own_is_refused(api):
    status, refusal = await api.post(DEPLOYMENTS, deployment(app="api"))
    assert (status, refusal["details"]["causes"][0]["field"]) == (422, "spec.template.metadata.labels")


async def test_an_issued_token_opens_a_sandbox_that_asks_for_one():
    async with Sandbox(token="secret", controllers=True) as sandbox, aiohttp.ClientSession(sandbox.url) as session:
        rest_api, admin = Rest(session), {"Authorization": "Bearer secret"}

        async def request():
            status, answer = await rest_api.call("POST", TOKEN, TOKEN_REQUEST, **admin)
            return answer if status == 201 else None

        issued = (await eventually(request))["status"]
        bearer = {"Authorization": f"Bearer {issued['token']}"}
        assert (await rest_api.get(PODS, **bearer))[0] == 200
        assert (await rest_api.get(PODS, Authorization=f"Bearer {issued['token']}x"))[0] == 401
        assert (await rest_api.get(PODS, Authorization="Bearer ä.ö.ü"))[0] == 401
        review = {"apiVersion": "authentication.k8s.io/v1", "spec": {"token": issued["token"]}}
        _, answer = await rest_api.call("POST", "/apis/authentication.k8s.io/v1/tokenreviews", review, **admin)
        assert answer["status"]["user"]["username"] == "system:serviceaccount:default:default"

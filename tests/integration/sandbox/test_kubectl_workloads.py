"""The real kubectl making workloads, scaling, updating and draining them, and creating what it sends as protobuf."""

from __future__ import annotations

from base64 import b64decode
from pathlib import Path

import orjson
import pytest

from podium.sandbox.fill import sample_pod
from tests.integration.sandbox.kubectl import rows
from tests.patience import PATIENCE_S

pytestmark = [pytest.mark.anyio, pytest.mark.control_plane]

WEB = str(Path(__file__).parents[3] / "examples/pods/web.yaml")
WITHIN = f"--timeout={PATIENCE_S:.0f}s"
AVAILABLE = "--for=condition=Available"


async def test_a_deployment_is_created_scaled_updated_and_deleted(kubectl, scheduled_cluster):
    await kubectl("create", "deployment", "web", "--image=web:1", "--replicas=3", "--port=80")
    await kubectl("rollout", "status", "deployment/web", WITHIN)
    head, web = rows(await kubectl("get", "deployment", "web"))
    assert (head[1:4], web[1:4]) == (["READY", "UP-TO-DATE", "AVAILABLE"], ["3/3", "3", "3"])
    await kubectl("scale", "deployment", "web", "--replicas=5", "--current-replicas=3")
    await kubectl("rollout", "status", "deployment/web", WITHIN)
    assert len(scheduled_cluster.store.list("pods", label_selector="app=web")) == 5
    errors = await kubectl.fail("scale", "deployment", "web", "--replicas=1", "--current-replicas=3")
    assert "Expected replicas to be 3, was 5" in errors
    await kubectl("set", "image", "deployment/web", "web=web:2")
    await kubectl("rollout", "status", "deployment/web", WITHIN)
    running = [pod for pod in scheduled_cluster.store.list("pods") if "deletionTimestamp" not in pod["metadata"]]
    assert [pod["spec"]["containers"][0]["image"] for pod in running] == ["web:2"] * 5
    await kubectl("rollout", "undo", "deployment/web")
    await kubectl("rollout", "status", "deployment/web", WITHIN)
    assert [row[0] for row in rows(await kubectl("rollout", "history", "deployment/web"))[2:4]] == ["2", "3"]
    assert ["Replicas:", "5", "desired", "|", "5", "updated"] in [
        row[:6] for row in rows(await kubectl("describe", "deployment", "web"))
    ]
    await kubectl("delete", "deployment", "web")
    await kubectl("wait", "--for=delete", "pods", "-l", "app=web", WITHIN)
    assert scheduled_cluster.store.list("replicasets") == []


async def test_the_example_gives_pods_and_makes_up_for_those_that_are_deleted(kubectl, scheduled_cluster):
    await kubectl("apply", "-f", WEB)
    await kubectl("wait", AVAILABLE, "deployment/podium-web", WITHIN)
    first = {pod["metadata"]["name"] for pod in scheduled_cluster.store.list("pods")}
    assert len(first) == 3
    await kubectl("delete", "pod", min(first))
    await kubectl("rollout", "status", "deployment/podium-web", WITHIN)
    assert len(first & {pod["metadata"]["name"] for pod in scheduled_cluster.store.list("pods")}) == 2
    assert "unchanged" in await kubectl("apply", "-f", WEB)


async def test_a_job_runs_to_its_end(kubectl, scheduled_cluster):
    await kubectl("create", "job", "pi", "--image=perl:5", "--", "perl", "-e", "print 3")
    await kubectl("wait", "--for=condition=Complete", "job/pi", WITHIN)
    assert rows(await kubectl("get", "job", "pi"))[1][1:3] == ["Complete", "1/1"]
    [pod] = scheduled_cluster.store.list("pods", label_selector="job-name=pi")
    assert pod["status"]["phase"] == "Succeeded"
    assert pod["spec"]["containers"][0]["command"] == ["perl", "-e", "print 3"]
    await kubectl("delete", "job", "pi")
    await kubectl("wait", "--for=delete", "pods", "-l", "job-name=pi", WITHIN)


async def test_what_create_sends_as_protobuf_is_stored_whole(kubectl, cluster):
    await kubectl("create", "quota", "team", "--hard=cpu=1500m,pods=2", "--scopes=BestEffort")
    await kubectl("create", "secret", "generic", "keys", "--from-literal=password=süß")
    await kubectl("create", "secret", "docker-registry", "pull", "--docker-username=a", "--docker-password=b")
    await kubectl("create", "pdb", "web", "--selector=app=web", "--min-available=50%")
    await kubectl("create", "pdb", "db", "--selector=app=db", "--max-unavailable=1")
    await kubectl("create", "role", "reader", "--verb=get,list", "--resource=pods,deployments.apps")
    await kubectl("create", "clusterrole", "metrics", "--verb=get", "--non-resource-url=/metrics")
    await kubectl("create", "rolebinding", "readers", "--role=reader", "--serviceaccount=default:default")
    await kubectl("create", "clusterrolebinding", "ops", "--clusterrole=metrics", "--user=ann", "--group=ops")
    await kubectl("create", "service", "clusterip", "web", "--tcp=80:8080")
    get = cluster.store.get
    assert get("quota", "team")["spec"] == {"hard": {"cpu": "1500m", "pods": "2"}, "scopes": ["BestEffort"]}
    assert b64decode(get("secrets", "keys")["data"]["password"]).decode() == "süß"
    assert get("secrets", "pull")["type"] == "kubernetes.io/dockerconfigjson"
    assert get("pdb", "web")["spec"] == {"minAvailable": "50%", "selector": {"matchLabels": {"app": "web"}}}
    assert get("pdb", "db")["spec"]["maxUnavailable"] == 1
    assert get("roles", "reader")["rules"] == [
        {"verbs": ["get", "list"], "apiGroups": [""], "resources": ["pods"]},
        {"verbs": ["get", "list"], "apiGroups": ["apps"], "resources": ["deployments"]},
    ]
    assert get("clusterroles", "metrics")["rules"] == [{"verbs": ["get"], "nonResourceURLs": ["/metrics"]}]
    assert get("rolebindings", "readers")["subjects"][0]["kind"] == "ServiceAccount"
    assert [subject["name"] for subject in get("clusterrolebindings", "ops")["subjects"]] == ["ann", "ops"]
    [port] = get("services", "web")["spec"]["ports"]
    assert (port["port"], port["targetPort"]) == (80, 8080)


async def test_create_token_gives_a_token_for_an_account_that_exists(kubectl, cluster):
    await kubectl("wait", "--for=create", "serviceaccount/default", WITHIN)
    header, claims, _ = (await kubectl("create", "token", "default", "--duration=20m")).split(".")
    assert orjson.loads(b64decode(header + "==")) == {"alg": "HS256", "typ": "JWT"}
    assert orjson.loads(b64decode(claims + "=="))["sub"] == "system:serviceaccount:default:default"
    assert "not found" in await kubectl.fail("create", "token", "nobody")
    assert "10 minutes" in await kubectl.fail("create", "token", "default", "--duration=5m")


async def test_drain_moves_the_pods_of_workloads_and_asks_about_the_others(kubectl, scheduled_cluster):
    store = scheduled_cluster.store
    store.create(_daemon_set("agent"))
    await kubectl("rollout", "status", "daemonset/agent", WITHIN)
    await kubectl("create", "deployment", "web", "--image=web:1", "--replicas=4")
    await kubectl("wait", AVAILABLE, "deployment/web", WITHIN)
    assert "--ignore-daemonsets" in await kubectl.fail("drain", "node-00000")
    await kubectl("drain", "node-00000", "--ignore-daemonsets", WITHIN)
    await kubectl("rollout", "status", "deployment/web", WITHIN)
    [agent_pod] = store.list("pods", field_selector="spec.nodeName=node-00000")
    assert agent_pod["metadata"]["labels"]["app"] == "agent"
    assert len(store.list("pods", label_selector="app=web")) == 4


async def test_a_stateful_set_rolls_out_and_keeps_its_claims(kubectl, scheduled_cluster):
    store = scheduled_cluster.store
    template = {"metadata": {"labels": {"app": "db"}}, "spec": sample_pod("")["spec"]}
    claim = {"metadata": {"name": "data"}, "spec": {"resources": {"requests": {"storage": "1Gi"}}}}
    spec = {"replicas": 2, "selector": {"matchLabels": {"app": "db"}}, "template": template}
    manifest = {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "db"}}
    store.create(manifest | {"spec": spec | {"volumeClaimTemplates": [claim]}})
    await kubectl("rollout", "status", "statefulset/db", WITHIN)
    await kubectl("set", "image", "statefulset/db", "*=db:2")
    await kubectl("rollout", "status", "statefulset/db", WITHIN)
    assert {pod["spec"]["containers"][0]["image"] for pod in store.list("pods")} == {"db:2"}
    assert "2/2" in await kubectl("get", "statefulset", "db")
    await kubectl("rollout", "undo", "statefulset/db")
    await kubectl("rollout", "status", "statefulset/db", WITHIN)
    images = {pod["spec"]["containers"][0]["image"] for pod in store.list("pods")}
    assert images == {template["spec"]["containers"][0]["image"]}
    await kubectl("scale", "statefulset/db", "--replicas=1")
    await kubectl("wait", "--for=delete", "pod/db-1", WITHIN)
    assert [claim["metadata"]["name"] for claim in store.list("pvc")] == ["data-db-0", "data-db-1"]


async def test_drain_waits_for_what_a_budget_protects(kubectl, scheduled_cluster):
    store = scheduled_cluster.store
    await kubectl("create", "pdb", "web", "--selector=app=web", "--max-unavailable=0")
    await kubectl("create", "deployment", "web", "--image=web:1", "--replicas=2")
    await kubectl("wait", AVAILABLE, "deployment/web", WITHIN)
    await kubectl("wait", "--for=jsonpath={.status.currentHealthy}=2", "pdb/web", WITHIN)
    uids = {pod["metadata"]["uid"] for pod in store.list("pods")}
    errors = await kubectl.fail("drain", "node-00000", "node-00001", "--timeout=1s")
    assert "disruption budget" in errors
    assert {pod["metadata"]["uid"] for pod in store.list("pods")} == uids
    await kubectl("uncordon", "node-00001")
    await kubectl("delete", "pdb", "web")
    await kubectl("drain", "node-00000", WITHIN)
    assert store.list("pods", field_selector="spec.nodeName=node-00000") == []


def _daemon_set(name):
    labels = {"app": name}
    template = {"metadata": {"labels": labels}, "spec": sample_pod("")["spec"]}
    spec = {"selector": {"matchLabels": labels}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": name}, "spec": spec}

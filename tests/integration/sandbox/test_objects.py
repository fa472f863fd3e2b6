"""Reading and writing objects over HTTP."""

import orjson
import pytest

from podium.sandbox.fill import sample_pod, varied_nodes

pytestmark = pytest.mark.anyio

PODS = "/api/v1/namespaces/default/pods"
NODES = "/api/v1/nodes"


async def test_an_object_is_created_read_replaced_and_deleted(rest_api):
    status, created_pod = await rest_api.post(PODS, sample_pod("web"))
    assert (status, created_pod["kind"], created_pod["apiVersion"]) == (201, "Pod", "v1")
    assert await rest_api.get(f"{PODS}/web") == (200, created_pod)
    created_pod["metadata"]["labels"]["tier"] = "1"
    status, replaced_pod = await rest_api.put(f"{PODS}/web", created_pod)
    assert (status, replaced_pod["metadata"]["labels"]["tier"]) == (200, "1")
    status, _ = await rest_api.delete(f"{PODS}/web")
    assert status == 200
    status, body = await rest_api.get(f"{PODS}/web")
    assert (status, body["reason"], body["details"]["name"]) == (404, "NotFound", "web")


async def test_a_body_that_is_nested_too_deep_is_refused(rest_api):
    deep = sample_pod("web")
    for _ in range(200):
        deep["spec"] = {"a": deep["spec"]}
    status, body = await rest_api.post(PODS, deep)
    assert (status, body["message"]) == (400, "the body of the request is nested too deep")


async def test_refusals_are_status_objects_with_their_code(rest_api):
    await rest_api.post(PODS, sample_pod("web"))
    status, body = await rest_api.post(PODS, sample_pod("web"))
    assert (status, body["kind"], body["code"], body["reason"]) == (409, "Status", 409, "AlreadyExists")
    malformed_pod = sample_pod("broken")
    malformed_pod["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "lots"
    status, body = await rest_api.post(PODS, malformed_pod)
    assert (status, body["reason"]) == (422, "Invalid")
    assert body["details"]["causes"][0]["field"] == "spec.containers[0].resources.requests[cpu]"


@pytest.mark.parametrize(
    ("method", "path", "code"),
    [
        ("GET", "/api/v1/gadgets", 404),
        ("GET", "/apis/nothing/v1/pods", 404),
        ("GET", "/nowhere", 404),
        ("GET", f"{PODS}/web/log", 501),
        ("PUT", PODS, 405),
        ("TRACE", PODS, 405),
        ("GET", f"{PODS}?labelSelector=a%20b", 400),
        ("GET", f"{PODS}?fieldSelector=spec.priority%3D1", 400),
        ("GET", f"{PODS}?resourceVersion=new", 400),
        ("GET", f"{PODS}?continue=nonsense", 400),
        ("GET", f"{PODS}?resourceVersion=9999999999999999", 504),
        ("GET", f"{PODS}?watch=1&resourceVersionMatch=Exact", 422),
    ],
)
async def test_a_request_that_makes_no_sense_gets_its_code(rest_api, method, path, code):
    status, body = await rest_api.call(method, path)
    assert (status, body["kind"]) == (code, "Status")


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b'"text"'])
async def test_a_body_that_is_no_object_is_a_bad_request(rest_api, body):
    status, answer = await rest_api.call("POST", PODS, body)
    assert (status, answer["reason"]) == (400, "BadRequest")


async def test_a_binding_or_deletion_of_the_wrong_shape_is_a_bad_request(rest_api, sandbox):
    bound_pod = sample_pod("web")
    bound_pod["spec"]["nodeName"] = "n1"
    sandbox.store.create(bound_pod)
    for body in ({"target": "n1"}, {"target": {"name": "n1"}, "metadata": []}, {}):
        assert (await rest_api.post(f"{PODS}/web/binding", body))[0] == 400
    for body in ({"preconditions": []}, {"gracePeriodSeconds": "soon"}):
        assert (await rest_api.delete(f"{PODS}/web", body))[0] == 400


async def test_a_body_in_another_format_is_refused(rest_api):
    status, _ = await rest_api.call("POST", PODS, b"k8s\x00", content_type="application/cbor")
    assert status == 415
    status, _ = await rest_api.call("PATCH", f"{PODS}/web", {}, content_type="application/json")
    assert status == 415


@pytest.mark.parametrize("content_type", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data"])
async def test_a_form_of_a_web_page_creates_nothing(rest_api, content_type):
    status, body = await rest_api.call("POST", PODS, orjson.dumps(sample_pod("web")), content_type=content_type)
    assert (status, body["reason"]) == (415, "UnsupportedMediaType")
    assert (await rest_api.get(f"{PODS}/web"))[0] == 404


@pytest.mark.parametrize("headers", [{"Host": "evil.example"}, {"Origin": "http://evil.example"}])
async def test_a_web_site_in_the_same_browser_reads_and_writes_nothing(rest_api, headers):
    for method, body in (("GET", None), ("POST", sample_pod("web"))):
        status, answer = await rest_api.call(method, PODS, body, **headers)
        assert (status, answer["reason"]) == (403, "Forbidden")
    assert (await rest_api.get(f"{PODS}/web"))[0] == 404


async def test_every_kind_of_patch_reaches_the_object(rest_api, sandbox):
    sandbox.store.create(varied_nodes(1)[0])
    path = f"{NODES}/node-00000"
    assert (await rest_api.patch(path, {"metadata": {"labels": {"a": "1"}}}))[1]["metadata"]["labels"]["a"] == "1"
    taint = {"key": "k", "effect": "NoSchedule"}
    assert (await rest_api.patch(path, {"spec": {"taints": [taint]}}, "strategic"))[1]["spec"]["taints"] == [taint]
    operation = {"op": "replace", "path": "/metadata/labels/a", "value": "2"}
    assert (await rest_api.patch(path, [operation], "json"))[1]["metadata"]["labels"]["a"] == "2"
    status, body = await rest_api.patch(path, {"metadata": {"resourceVersion": "1", "labels": {"a": "3"}}})
    assert (status, body["reason"]) == (409, "Conflict")


async def test_server_side_apply_creates_and_then_merges(rest_api):
    text = b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {x: '1'}\n"
    path = "/api/v1/namespaces/default/configmaps/a?fieldManager=test"
    status, _ = await rest_api.call("PATCH", path, text, content_type="application/apply-patch+yaml")
    assert status == 201
    status, body = await rest_api.call(
        "PATCH", path, text.replace(b"x:", b"y:"), content_type="application/apply-patch+yaml"
    )
    assert (status, body["data"]) == (200, {"x": "1", "y": "1"})


async def test_status_is_patched_through_its_own_path_only(rest_api, sandbox):
    sandbox.store.create(sample_pod("web"))
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
    patch = {"status": {"conditions": [condition], "nominatedNodeName": "n1"}, "spec": {"nodeName": "n2"}}
    _, body = await rest_api.patch(f"{PODS}/web/status", patch, "strategic")
    assert (body["status"]["conditions"], body["status"]["nominatedNodeName"]) == ([condition], "n1")
    assert "nodeName" not in body["spec"]
    _, body = await rest_api.patch(f"{PODS}/web", {"status": {"phase": "Running"}})
    assert body["status"]["phase"] == "Pending"


async def test_a_dry_run_is_not_kept(rest_api, sandbox):
    status, _ = await rest_api.post(f"{PODS}?dryRun=All", sample_pod("web"))
    assert status == 201
    assert sandbox.store.list("pods") == []


async def test_a_pod_is_bound_once(rest_api, sandbox):
    created_pod = sandbox.store.create(sample_pod("web"))
    binding = {"target": {"kind": "Node", "name": "n1"}, "metadata": {"name": "web", "uid": "other"}}
    status, _ = await rest_api.post(f"{PODS}/web/binding", binding)
    assert status == 409
    binding["metadata"]["uid"] = created_pod["metadata"]["uid"]
    assert (await rest_api.post(f"{PODS}/web/binding", binding))[0] == 201
    status, body = await rest_api.post(f"{PODS}/web/binding", binding)
    assert (status, body["reason"]) == (409, "Conflict")
    assert "already assigned" in body["message"]
    assert (await rest_api.post(f"{PODS}/missing/binding", binding))[0] == 404


async def test_an_eviction_that_breaks_a_budget_is_refused_without_a_time_to_come_back(rest_api, sandbox):
    running = sample_pod("web")
    running["spec"]["nodeName"] = "n1"
    sandbox.store.put_raw(running | {"status": {"phase": "Running"}})
    budget = {"metadata": {"name": "b"}, "spec": {"selector": {"matchLabels": {"app": "sample"}}}}
    await rest_api.post("/apis/policy/v1/namespaces/default/poddisruptionbudgets", budget)
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "web"}}
    async with rest_api.session.post(f"{PODS}/web/eviction", json=eviction) as response:
        assert (response.status, response.headers.get("Retry-After")) == (429, None)
    patch = {"status": {"disruptionsAllowed": 1}}
    await rest_api.patch("/apis/policy/v1/namespaces/default/poddisruptionbudgets/b/status", patch)
    assert (await rest_api.post(f"{PODS}/web/eviction", eviction))[0] == 201
    assert sandbox.store.get("pods", "web")["metadata"]["deletionTimestamp"]


async def test_a_delete_may_have_preconditions_and_a_grace_period(rest_api, sandbox):
    bound_pod = sample_pod("web")
    bound_pod["spec"]["nodeName"] = "n1"
    sandbox.store.create(bound_pod)
    status, _ = await rest_api.delete(f"{PODS}/web", {"preconditions": {"uid": "other"}})
    assert status == 409
    status, body = await rest_api.delete(f"{PODS}/web?gracePeriodSeconds=7&propagationPolicy=Background")
    assert (status, body["metadata"]["deletionGracePeriodSeconds"]) == (200, 7)
    await rest_api.delete(f"{PODS}/web", {"gracePeriodSeconds": 0})
    assert sandbox.store.list("pods") == []


async def test_a_collection_is_deleted_by_selector(rest_api, sandbox):
    for name in ("a", "b"):
        labelled_pod = sample_pod(name)
        labelled_pod["metadata"]["labels"] = {"name": name}
        sandbox.store.create(labelled_pod)
    status, body = await rest_api.delete(f"{PODS}?labelSelector=name%3Da")
    assert (status, body["kind"], len(body["items"])) == (200, "PodList", 1)
    assert [pod["metadata"]["name"] for pod in sandbox.store.list("pods")] == ["b"]


async def test_pages_show_one_moment_while_the_collection_changes(rest_api, sandbox):
    for name in "abcde":
        sandbox.store.create(sample_pod(name))
    _, first = await rest_api.get("/api/v1/pods?limit=2")
    assert first["metadata"]["remainingItemCount"] == 3
    sandbox.store.delete("pods", "d")
    sandbox.store.create(sample_pod("cc"))
    token, names = first["metadata"]["continue"], [item["metadata"]["name"] for item in first["items"]]
    while token:
        _, page = await rest_api.get(f"/api/v1/pods?limit=2&continue={token}")
        assert page["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]
        names += [item["metadata"]["name"] for item in page["items"]]
        token = page["metadata"].get("continue")
    assert names == list("abcde")


async def test_a_continue_token_that_is_too_old_has_expired(rest_api, sandbox):
    for name in "abc":
        sandbox.store.create(sample_pod(name))
    _, first = await rest_api.get("/api/v1/pods?limit=1")
    sandbox.store.delete("pods", "c")
    sandbox.store.compact()
    status, body = await rest_api.get(f"/api/v1/pods?limit=1&continue={first['metadata']['continue']}")
    assert (status, body["reason"]) == (410, "Expired")


async def test_a_list_can_be_read_at_an_exact_revision(rest_api, sandbox):
    revision = sandbox.store.create(sample_pod("a"))["metadata"]["resourceVersion"]
    sandbox.store.create(sample_pod("b"))
    _, body = await rest_api.get(f"{PODS}?resourceVersion={revision}&resourceVersionMatch=Exact")
    assert [item["metadata"]["name"] for item in body["items"]] == ["a"]
    assert body["metadata"]["resourceVersion"] == revision


async def test_a_list_is_selected_by_namespace_labels_and_fields(rest_api, sandbox):
    sandbox.store.create(sample_pod("a", app="web"))
    sandbox.store.create(sample_pod("b", app="api", scheduler_name="other"))
    elsewhere = sample_pod("c", app="web")
    elsewhere["metadata"]["namespace"] = "team"
    sandbox.store.create(elsewhere)

    async def names(query):
        _, body = await rest_api.get(query)
        return [item["metadata"]["name"] for item in body["items"]]

    assert await names("/api/v1/pods") == ["a", "b", "c"]
    assert await names(PODS) == ["a", "b"]
    assert await names("/api/v1/pods?labelSelector=app%20in%20(web)") == ["a", "c"]
    assert await names("/api/v1/pods?fieldSelector=spec.schedulerName%3Dpodium,spec.nodeName%3D") == ["a", "c"]
    assert await names("/api/v1/pods?fieldSelector=metadata.namespace!%3Ddefault") == ["c"]


async def test_an_event_of_one_api_is_read_through_the_other(rest_api):
    event = {
        "metadata": {"name": "e"},
        "eventTime": "2026-01-01T12:00:00.000000Z",
        "regarding": {"kind": "Pod", "name": "web"},
        "type": "Normal",
        "reason": "Scheduled",
        "action": "Binding",
        "note": "hello",
        "reportingController": "podium",
        "reportingInstance": "podium-1",
    }
    status, _ = await rest_api.post("/apis/events.k8s.io/v1/namespaces/default/events", event)
    assert status == 201
    _, body = await rest_api.get("/api/v1/events?fieldSelector=involvedObject.name%3Dweb")
    assert [(item["apiVersion"], item["message"]) for item in body["items"]] == [("v1", "hello")]
    _, body = await rest_api.get("/apis/events.k8s.io/v1/events?fieldSelector=regarding.name%3Dweb")
    assert [(item["apiVersion"], item["note"]) for item in body["items"]] == [("events.k8s.io/v1", "hello")]


async def test_answers_take_the_form_the_client_accepts(rest_api, sandbox):
    sandbox.store.create(sample_pod("web"))
    _, body = await rest_api.get(PODS, Accept="application/json;as=Table;g=meta.k8s.io;v=v1,application/json")
    assert body["kind"] == "Table"
    assert body["rows"][0]["cells"][:3] == ["web", "0/1", "Pending"]
    assert body["rows"][0]["object"]["kind"] == "PartialObjectMetadata"
    _, body = await rest_api.get(PODS, Accept="application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1")
    assert "spec" not in body["items"][0]
    _, body = await rest_api.get(f"{PODS}/web", Accept="application/vnd.kubernetes.protobuf,application/json")
    assert body["kind"] == "Pod"
    status, _ = await rest_api.get(PODS, Accept="application/vnd.kubernetes.protobuf")
    assert status == 406

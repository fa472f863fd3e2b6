from datetime import UTC, datetime

import pytest

from podium.sandbox.errors import ApiError
from podium.sandbox.pods import bind, evict
from podium.sandbox.resources import RESOURCES
from podium.sandbox.store import Store

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)


@pytest.fixture
def store():
    return Store(now=lambda: NOW)


def minimal_pod(name="web", **spec):
    container = {"name": "main", "image": "web:1", "resources": {"requests": {"cpu": "100m"}}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": {"containers": [container]} | spec}


def minimal_node(name="n1", **status):
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "status": status}


def refusal(code, reason, call, *args, **options):
    with pytest.raises(ApiError) as caught:
        call(*args, **options)
    assert (caught.value.code, caught.value.reason) == (code, reason)
    return caught.value


def test_a_new_pod_gets_identity_defaults_and_tolerations(store):
    stored_pod = store.create(minimal_pod())
    metadata, spec = stored_pod["metadata"], stored_pod["spec"]
    assert metadata["namespace"] == "default"
    assert metadata["creationTimestamp"] == "2026-01-01T12:00:00Z"
    assert metadata["generation"] == 1
    assert metadata["uid"]
    assert metadata["resourceVersion"] == str(store.revision)
    assert spec["schedulerName"] == "default-scheduler"
    assert spec["restartPolicy"] == "Always"
    assert spec["priority"] == 0
    assert spec["preemptionPolicy"] == "PreemptLowerPriority"
    assert [toleration["tolerationSeconds"] for toleration in spec["tolerations"]] == [300, 300]
    assert stored_pod["status"] == {"phase": "Pending", "qosClass": "Burstable"}


def test_a_client_cannot_create_a_pod_that_runs(store):
    assert store.create(minimal_pod() | {"status": {"phase": "Running"}})["status"]["phase"] == "Pending"


def test_a_toleration_for_everything_needs_no_company(store):
    tolerations = [{"operator": "Exists"}]
    assert store.create(minimal_pod(tolerations=tolerations))["spec"]["tolerations"] == tolerations


def test_a_gated_pod_says_so(store):
    stored_pod = store.create(minimal_pod(schedulingGates=[{"name": "wait"}]))
    assert stored_pod["status"]["conditions"][0]["reason"] == "SchedulingGated"


@pytest.mark.parametrize(
    ("resources", "qos_class"),
    [
        ({}, "BestEffort"),
        ({"requests": {"cpu": "1"}}, "Burstable"),
        ({"limits": {"cpu": "1", "memory": "1Gi"}}, "Guaranteed"),
        ({"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "1000m", "memory": "1024Mi"}}, "Guaranteed"),
        ({"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "500m"}}, "Burstable"),
        ({"limits": {"cpu": "1"}}, "Burstable"),
    ],
)
def test_the_quality_of_service_follows_requests_and_limits(store, resources, qos_class):
    containers = [{"name": "main", "image": "web", "resources": resources}]
    assert store.create(minimal_pod(containers=containers))["status"]["qosClass"] == qos_class


def test_limits_are_the_requests_that_are_not_given(store):
    containers = [{"name": "main", "image": "web", "resources": {"limits": {"cpu": "2"}, "requests": {"memory": "1"}}}]
    stored_pod = store.create(minimal_pod(containers=containers))
    assert stored_pod["spec"]["containers"][0]["resources"]["requests"] == {"cpu": "2", "memory": "1"}


def test_a_priority_class_gives_the_priority(store):
    refusal(403, "Forbidden", store.create, minimal_pod(priorityClassName="high"))
    high = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "high"}, "value": 7}
    store.create(high | {"preemptionPolicy": "Never"})
    spec = store.create(minimal_pod(priorityClassName="high"))["spec"]
    assert (spec["priority"], spec["preemptionPolicy"]) == (7, "Never")


def test_the_global_default_class_is_for_pods_that_name_none(store):
    group = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass"}
    store.create(group | {"metadata": {"name": "usual"}, "value": 3, "globalDefault": True})
    spec = store.create(minimal_pod())["spec"]
    assert (spec["priority"], spec["priorityClassName"]) == (3, "usual")


def test_a_generated_name_starts_with_what_was_asked_for(store):
    names = set()
    for _ in range(3):
        unnamed = minimal_pod()
        unnamed["metadata"] = {"generateName": "web-"}
        names.add(store.create(unnamed)["metadata"]["name"])
    assert len(names) == 3
    assert all(name.startswith("web-") and len(name) == 9 for name in names)


def test_a_name_is_taken_only_once(store):
    store.create(minimal_pod())
    refusal(409, "AlreadyExists", store.create, minimal_pod())


@pytest.mark.parametrize(
    ("malformed", "field"),
    [
        (minimal_pod(name=""), "metadata.name"),
        (minimal_pod(name="Not_A_Name"), "metadata.name"),
        (minimal_pod(containers=[]), "spec.containers"),
        (minimal_pod(containers=[{"name": "a", "image": "b", "resources": {"requests": {"cpu": "lots"}}}]),
         "spec.containers[0].resources.requests[cpu]"),
        (minimal_pod(containers=[{"name": "a", "image": "b", "resources": {"limits": {"cpu": "-1"}}}]),
         "spec.containers[0].resources.limits[cpu]"),
        (minimal_pod(tolerations=[{"key": "a", "operator": "Like"}]), "spec.tolerations[0].operator"),
        (minimal_node(capacity={"cpu": "many"}), "status.capacity[cpu]"),
    ],
)  # fmt: skip
def test_a_broken_object_is_refused_with_the_field_that_is_wrong(store, malformed, field):
    error = refusal(422, "Invalid", store.create, malformed)
    assert field in [cause["field"] for cause in error.details["causes"]]
    assert error.status()["status"] == "Failure"


@pytest.mark.parametrize(
    "malformed", [minimal_pod() | {"spec": []}, minimal_pod(containers=["a"]), minimal_pod(tolerations={})]
)
def test_an_object_of_the_wrong_shape_is_a_bad_request(store, malformed):
    refusal(400, "BadRequest", store.create, malformed)


def test_a_broken_object_can_be_put_past_the_rules(store):
    malformed_pod = minimal_pod(containers=[{"name": "a", "resources": {"requests": {"cpu": "lots"}}}], nodeName="n1")
    stored_pod = store.put_raw(malformed_pod | {"status": {"phase": "Running"}})
    assert stored_pod["spec"] == malformed_pod["spec"]
    assert store.get("pods", "web")["status"] == {"phase": "Running"}
    replacement = store.put_raw(malformed_pod)
    assert replacement["metadata"]["uid"] == stored_pod["metadata"]["uid"]


def test_callers_cannot_change_what_is_stored(store):
    store.create(minimal_pod())
    store.get("pods", "web")["spec"]["containers"].clear()
    assert store.get("pods", "web")["spec"]["containers"]


def test_an_update_needs_the_present_resource_version(store):
    first = store.create(minimal_node())
    second = store.update(first | {"spec": {"unschedulable": True}})
    assert second["metadata"]["generation"] == 2
    refusal(409, "Conflict", store.update, first)


def test_a_write_that_changes_nothing_is_no_change(store):
    stored_node = store.create(minimal_node())
    assert store.update(stored_node)["metadata"]["resourceVersion"] == stored_node["metadata"]["resourceVersion"]


def test_status_and_the_rest_are_written_apart(store):
    stored_node = store.create(minimal_node(capacity={"cpu": "1"}))
    changed_node = stored_node | {"spec": {"unschedulable": True}, "status": {"capacity": {"cpu": "2"}}}
    changed_node["metadata"] = {"name": "n1"}
    assert store.update(changed_node, subresource="status")["spec"] == {}
    assert store.update(changed_node | {"status": {}})["status"]["capacity"] == {"cpu": "2"}


def test_a_pod_keeps_its_spec_but_for_a_few_fields(store):
    stored_pod = store.create(minimal_pod())
    changed_pod = stored_pod | {"spec": stored_pod["spec"] | {"nodeSelector": {"a": "b"}}}
    error = refusal(422, "Invalid", store.update, changed_pod)
    assert "nodeSelector" in error.message
    image = [stored_pod["spec"]["containers"][0] | {"image": "web:2"}]
    assert (
        store.update(stored_pod | {"spec": stored_pod["spec"] | {"containers": image}})["metadata"]["generation"] == 2
    )


def test_a_patch_meant_for_another_pod_of_that_name_is_invalid(store):
    store.create(minimal_pod())
    patch = {"metadata": {"uid": "another"}, "status": {"nominatedNodeName": "n1"}}
    error = refusal(422, "Invalid", store.patch, "pods", "web", patch, subresource="status")
    assert error.details["causes"][0]["field"] == "metadata.uid"
    refusal(409, "Conflict", store.update, minimal_pod() | {"metadata": {"name": "web", "uid": "another"}})


def test_gates_can_be_taken_away_but_not_added(store):
    gated_pod = store.create(minimal_pod(schedulingGates=[{"name": "a"}]))
    extended_spec = gated_pod["spec"] | {"schedulingGates": [{"name": "a"}, {"name": "b"}]}
    error = refusal(422, "Invalid", store.update, gated_pod | {"spec": extended_spec})
    assert error.details["causes"][0]["field"] == "spec.schedulingGates[1].name"
    assert (
        store.update(gated_pod | {"spec": gated_pod["spec"] | {"schedulingGates": []}})["spec"]["schedulingGates"] == []
    )


def test_binding_gives_the_pod_its_node_and_its_condition(store):
    store.create(minimal_pod())
    store.patch("pods", "web", {"status": {"nominatedNodeName": "n2"}}, subresource="status")
    bind(store, "default", "web", {"target": {"name": "n1"}, "metadata": {"annotations": {"a": "b"}}})
    bound_pod = store.get("pods", "web")
    assert bound_pod["spec"]["nodeName"] == "n1"
    assert bound_pod["metadata"]["generation"] == 1
    assert bound_pod["metadata"]["annotations"] == {"a": "b"}
    assert "nominatedNodeName" not in bound_pod["status"]
    (condition,) = bound_pod["status"]["conditions"]
    assert (condition["type"], condition["status"]) == ("PodScheduled", "True")


def test_a_pod_that_cannot_be_bound_is_a_conflict(store):
    target = {"target": {"name": "n1"}}
    refusal(404, "NotFound", bind, store, "default", "web", target)
    store.create(minimal_pod())
    refusal(400, "BadRequest", bind, store, "default", "web", {})
    refusal(409, "Conflict", bind, store, "default", "web", target | {"metadata": {"uid": "another"}})
    bind(store, "default", "web", target)
    refusal(409, "Conflict", bind, store, "default", "web", target)
    store.create(minimal_pod("gated", schedulingGates=[{"name": "a"}]))
    refusal(409, "Conflict", bind, store, "default", "gated", target)
    existing_pod = minimal_pod("held")
    existing_pod["metadata"]["finalizers"] = ["example.com/hold"]
    store.create(existing_pod)
    store.delete("pods", "held")
    refusal(409, "Conflict", bind, store, "default", "held", target)


def test_a_pod_without_a_node_goes_at_once_and_one_with_a_node_takes_its_time(store):
    store.create(minimal_pod())
    store.create(minimal_pod("bound", nodeName="n1", terminationGracePeriodSeconds=5))
    store.delete("pods", "web")
    store.delete("pods", "bound")
    refusal(404, "NotFound", store.get, "pods", "web")
    metadata = store.get("pods", "bound")["metadata"]
    assert (metadata["deletionTimestamp"], metadata["deletionGracePeriodSeconds"]) == ("2026-01-01T12:00:05Z", 5)
    store.delete("pods", "bound", grace_period_s=0)
    refusal(404, "NotFound", store.get, "pods", "bound")


def test_a_finalizer_holds_an_object_until_it_is_taken_away(store):
    store.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "finalizers": ["example.com/x"]}})
    store.delete("configmaps", "a")
    assert store.get("configmaps", "a")["metadata"]["deletionTimestamp"]
    store.patch("configmaps", "a", {"metadata": {"finalizers": None}})
    refusal(404, "NotFound", store.get, "configmaps", "a")


@pytest.mark.parametrize("name", ["default", "kube-public", "kube-system"])
def test_the_namespaces_of_every_cluster_stay(store, name):
    store.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    error = refusal(403, "Forbidden", store.delete, "namespaces", name)
    assert error.message == f'namespaces "{name}" is forbidden: this namespace may not be deleted'


def every_kind():
    """A type of each kind, without the views of other versions."""
    return {resource.storage: resource for resource in RESOURCES}.values()


@pytest.mark.parametrize("field", ["spec", "status", "template", "data"])
@pytest.mark.parametrize("resource", every_kind(), ids=lambda resource: resource.storage)
def test_a_field_that_is_null_is_not_there(store, resource, field):
    obj = {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": {"name": "a", "labels": None}}

    def answer(document):
        try:
            return Store(now=lambda: NOW, new_uid=lambda: "uid").create(document)
        except ApiError as error:
            return error.code, error.message

    assert answer(obj | {field: None}) == answer(obj)


def test_a_patch_may_set_a_field_to_null(store):
    store.create(minimal_pod())
    patch = [{"op": "add", "path": "/metadata/labels", "value": None}]
    assert "labels" not in store.patch("pods", "web", patch, patch_type="json")["metadata"]


def test_a_secret_is_opaque(store):
    secret = store.create({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}})
    assert secret["type"] == "Opaque"


def test_a_namespace_goes_with_everything_in_it(store):
    store.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}})
    store.create(minimal_pod(), namespace="team")
    store.create(minimal_pod())
    store.delete("namespaces", "team")
    assert [item["metadata"]["namespace"] for item in store.list("pods")] == ["default"]


def budget(disruptions):
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {"selector": {"matchLabels": {"app": "web"}}},
        "status": {"disruptionsAllowed": disruptions},
    }


def test_an_eviction_uses_up_the_budget_and_is_refused_after_that(store):
    store.put_raw(budget(disruptions=1))
    for name in ("a", "b"):
        running = minimal_pod(name, nodeName="n1")
        running["metadata"]["labels"] = {"app": "web"}
        store.put_raw(running | {"status": {"phase": "Running"}})
    evict(store, "default", "a", {})
    assert store.get("pods", "a")["metadata"]["deletionTimestamp"]
    error = refusal(429, "TooManyRequests", evict, store, "default", "b", {})
    assert error.details["causes"][0]["reason"] == "DisruptionBudget"
    assert store.get("poddisruptionbudgets", "web")["status"]["disruptedPods"] == {"a": "2026-01-01T12:00:00Z"}


def test_a_dry_run_answers_and_keeps_nothing(store):
    revision = store.revision
    with store.dry_run():
        assert store.create(minimal_pod())["spec"]["schedulerName"] == "default-scheduler"
    assert store.list("pods") == []
    assert store.revision == revision


def event(**fields):
    return {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": "e", "namespace": "default"},
        "eventTime": "2026-01-01T12:00:00.000000Z",
        "regarding": {"kind": "Pod", "name": "web", "namespace": "default"},
        "type": "Normal",
        "reason": "Scheduled",
        "action": "Binding",
        "note": "hello",
        "reportingController": "podium",
        "reportingInstance": "podium-1",
    } | fields


def test_both_event_apis_share_one_store(store):
    assert store.create(event())["note"] == "hello"
    core = store.get("events", "e")
    assert (core["apiVersion"], core["message"], core["involvedObject"]["name"]) == ("v1", "hello", "web")
    assert store.list("events.events.k8s.io")[0]["regarding"]["name"] == "web"


@pytest.mark.parametrize(
    ("fields", "wrong"),
    [
        ({"eventTime": None}, "eventTime"),
        ({"reportingController": ""}, "reportingController"),
        ({"reportingInstance": ""}, "reportingInstance"),
        ({"action": ""}, "action"),
        ({"reason": ""}, "reason"),
        ({"type": "Info"}, "type"),
        ({"note": "x" * 1025}, "message"),
        ({"regarding": {"namespace": "team"}}, "involvedObject.namespace"),
    ],
)
def test_an_event_needs_what_the_event_api_asks_for(store, fields, wrong):
    error = refusal(422, "Invalid", store.create, event(**fields))
    assert [cause["field"] for cause in error.details["causes"]] == [wrong]


def test_the_older_event_api_asks_for_less(store):
    core = {"apiVersion": "v1", "kind": "Event", "metadata": {"name": "e"}, "involvedObject": {"kind": "Node"}}
    assert store.create(core)["metadata"]["namespace"] == "default"


def test_a_kind_that_is_not_served_is_a_bad_request(store):
    refusal(400, "BadRequest", store.create, {"apiVersion": "v9", "kind": "Thing", "metadata": {"name": "a"}})


def test_a_store_goes_back_to_an_earlier_revision_and_goes_on_from_there(store):
    stored_pod = store.create(minimal_pod("kept"))
    revision = store.revision
    bind(store, "default", "kept", {"target": {"name": "n1"}})
    store.create(minimal_pod("later"))
    store.rewind(revision)
    assert store.list("pods") == [stored_pod]
    assert store.create(minimal_pod("new"))["metadata"]["resourceVersion"] == str(revision + 1)
    store.compact()
    refusal(410, "Expired", store.rewind, revision)

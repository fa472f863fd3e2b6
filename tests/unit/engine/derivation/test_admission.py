import pytest

from podium.engine.derivation.admission import Admission, RefusedError, with_node_lost_tolerations
from podium.objects.resource_types import NAMESPACES, NODES, PERSISTENT_VOLUME_CLAIMS, PODS, SERVICES
from tests.manifests import pod
from tests.workload_manifests import claim, claims_from, limit_range, runtime_class, storage

LIMITED = {"limits": {"cpu": "2", "memory": "1Gi"}, "requests": {"cpu": "1"}}
FULL = {"limits": {"cpu": "2", "memory": "1Gi"}, "requests": {"cpu": "1", "memory": "1Gi"}}


def _spec(spec, *objects):
    return Admission(objects).admit({"spec": spec}, PODS)["spec"]


def _priority_class(name, value, **fields):
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": name},
        "value": value,
        **fields,
    }


def test_what_has_a_limit_but_no_request_requests_its_limit():
    spec = {"containers": [{"resources": LIMITED}], "initContainers": [{"resources": LIMITED}], "resources": LIMITED}
    spec_after = _spec(spec)
    assert spec_after["containers"][0]["resources"] == FULL
    assert spec_after["initContainers"][0]["resources"] == FULL
    assert spec_after["resources"] == {**FULL, "requests": {"cpu": "1", "memory": str(2**30)}}


def test_ports_of_a_pod_on_the_hosts_network_are_host_ports():
    ports = [{"containerPort": 80}, {"containerPort": 81, "hostPort": 8081}]
    ports_after = [{"hostPort": 80, "containerPort": 80}, {"hostPort": 8081, "containerPort": 81}]
    assert _spec({"hostNetwork": True, "containers": [{"ports": ports}]})["containers"][0]["ports"] == ports_after
    assert _spec({"containers": [{"ports": ports}]})["containers"][0]["ports"] == ports


@pytest.mark.parametrize("resource", [PODS, NODES, NAMESPACES])
@pytest.mark.parametrize("field", ["metadata", "spec", "status"])
def test_malformed_fields_are_left_for_the_decoder(resource, field):
    assert Admission([]).admit({field: 5}, resource) == {field: 5}


def test_priority_comes_from_the_class_that_the_pod_names():
    urgent = _priority_class("urgent", 7, preemptionPolicy="Never")
    spec_after = _spec({"priorityClassName": "urgent"}, urgent)
    assert (spec_after["priority"], spec_after["preemptionPolicy"]) == (7, "Never")
    assert _spec({"priorityClassName": "system-node-critical"})["priority"] == 2_000_001_000


def test_priority_comes_from_the_default_class_where_the_pod_names_none():
    assert _spec({}, _priority_class("usual", 3, globalDefault=True))["priority"] == 3
    assert "priority" not in _spec({}, _priority_class("other", 3))


def test_fields_that_are_set_stay():
    assert _spec({"priority": 1, "priorityClassName": "system-node-critical"})["priority"] == 1


def test_node_without_allocatable_can_give_its_capacity():
    admission = Admission([])
    node = {"status": {"capacity": {"cpu": "4"}}}
    assert admission.admit(node, NODES)["status"]["allocatable"] == {"cpu": "4"}
    node = {"status": {"capacity": {"cpu": "4"}, "allocatable": {"cpu": "3"}}}
    assert admission.admit(node, NODES)["status"]["allocatable"] == {"cpu": "3"}


def test_namespace_carries_its_name_as_a_label():
    namespace_after = Admission([]).admit({"metadata": {"name": "shop", "labels": {"a": "b"}}}, NAMESPACES)
    assert namespace_after["metadata"]["labels"] == {"a": "b", "kubernetes.io/metadata.name": "shop"}


def test_other_kinds_pass_as_they_are():
    service = {"spec": {"selector": {"a": None}}}
    assert Admission([]).admit(service, SERVICES) is service


def test_malformed_objects_pass_unchanged():
    malformed = {"containers": [3, {"resources": [], "ports": [4]}], "hostNetwork": True, "priorityClassName": 5}
    assert _spec(malformed)["containers"] == [3, {"resources": {}, "ports": [4]}]
    assert _spec("x") == "x"


# ---------------------------------------------------------------- what exists already


def _existing(**spec):
    existing_pod = pod("old", **spec)
    existing_pod["metadata"]["uid"] = "u"
    return existing_pod


LIMITS = limit_range({"type": "Container", "default": {"example.com/gpu": "1"}, "max": {"cpu": "50m"}})
KATA = runtime_class(overhead={"podFixed": {"cpu": "1"}})


def test_limits_and_classes_that_came_later_do_not_change_what_exists():
    admission = Admission([LIMITS, KATA])
    old = admission.admit(_existing(runtimeClassName="kata"), PODS)["spec"]
    new = admission.admit(pod("new", runtimeClassName="kata"), PODS)["spec"]
    assert "overhead" not in old
    assert new["overhead"] == {"cpu": "1"}
    assert "limits" not in old["containers"][0]["resources"]
    assert new["containers"][0]["resources"]["limits"]["example.com/gpu"] == "1"


def test_admitted_objects_are_never_refused():
    admission = Admission([LIMITS, runtime_class("other")])
    admission.demand_admission(_existing(runtimeClassName="kata"))
    with pytest.raises(RefusedError):
        admission.demand_admission(pod("new", runtimeClassName="kata"))


# ---------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    ("spec", "objects", "message"),
    [
        (
            {"priorityClassName": "urgent"},
            [_priority_class("other", 1)],
            'pods "new" is forbidden: no PriorityClass with name urgent was found',
        ),
        (
            {"priority": 7},
            [_priority_class("other", 1)],
            (
                'pods "new" is forbidden: the integer value of priority (7) must not be provided in pod spec; '
                "priority admission controller computed 0 from the given PriorityClass name"
            ),
        ),
        (
            {"runtimeClassName": "kata"},
            [runtime_class("other")],
            'pods "new" is forbidden: pod rejected: RuntimeClass "kata" not found',
        ),
        (
            {"containers": [{"name": "main", "resources": {"requests": {"cpu": "2"}, "limits": {"cpu": "1"}}}]},
            [],
            (
                'Pod "new" is invalid: spec.containers[0].resources.requests: Invalid value: "2": must be less than '
                "or equal to cpu limit of 1"
            ),
        ),
        (
            {},
            [limit_range({"type": "Container", "min": {"cpu": "1"}})],
            'pods "new" is forbidden: minimum cpu usage per Container is 1, but request is 100m',
        ),
    ],
)
def test_pods_are_refused_in_the_words_of_the_api_server(spec, objects, message):
    with pytest.raises(RefusedError) as refusal:
        Admission(objects).demand_admission(pod("new", **spec))
    assert str(refusal.value) == message


def test_a_class_of_which_the_files_hold_no_kind_refuses_nothing_but_is_missing():
    target = pod("new", priorityClassName="urgent", runtimeClassName="kata", resourceClaims=claims_from("gpu"))
    Admission([]).demand_admission(target)
    assert Admission([]).missing_kinds(target) == ["priorityclasses", "runtimeclasses", "resourceclaimtemplates"]
    assert Admission([]).missing_kinds(pod("new", priorityClassName="system-node-critical")) == []
    assert Admission([_priority_class("urgent", 7), KATA]).missing_kinds(target) == ["resourceclaimtemplates"]


# ---------------------------------------------------------------- claims and tolerations


def _class_of(manifest, *objects):
    return Admission(objects).admit(manifest, PERSISTENT_VOLUME_CLAIMS)["spec"].get("storageClassName")


def test_a_new_claim_that_names_no_class_gets_the_default_one():
    default, plain = storage("1Gi", "fast", is_default=True)[0], storage("1Gi")[0]
    assert _class_of(claim("data", storage_class=None), default, plain) == "fast"
    assert _class_of(claim("data", storage_class=None), plain) is None
    assert _class_of(claim("data", storage_class=""), default) == ""
    assert _class_of(claim("data", storage_class="slow"), default) == "slow"
    old = claim("data", storage_class=None)
    old["metadata"]["creationTimestamp"] = "2026-01-01T00:00:00Z"
    assert _class_of(old, default) is None
    annotated = claim("data", storage_class=None)
    annotated["metadata"]["annotations"] = {"volume.beta.kubernetes.io/storage-class": "slow"}
    assert _class_of(annotated, default) is None


def test_the_newest_of_several_default_classes_counts_and_then_the_first_name():
    classes = [storage("1Gi", name, is_default=True)[0] for name in ("c", "b", "a")]
    for item, time in zip(
        classes, ("2026-02-01T00:00:00Z", "2026-02-01T00:00:00Z", "2026-01-01T00:00:00Z"), strict=True
    ):
        item["metadata"]["creationTimestamp"] = time
    assert _class_of(claim("data", storage_class=None), *classes) == "b"


def test_created_pods_tolerate_lost_nodes_for_a_while_unless_they_say_otherwise():
    tolerations = with_node_lost_tolerations(pod("new"))["spec"]["tolerations"]
    assert [(toleration["key"], toleration["tolerationSeconds"]) for toleration in tolerations] == [
        ("node.kubernetes.io/not-ready", 300),
        ("node.kubernetes.io/unreachable", 300),
    ]
    own = {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute"}
    keys = [
        toleration["key"]
        for toleration in with_node_lost_tolerations(pod("new", tolerations=[own]))["spec"]["tolerations"]
    ]
    assert keys == ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"]
    tolerant_pod = pod("new", tolerations=[{"operator": "Exists"}])
    assert with_node_lost_tolerations(tolerant_pod) is tolerant_pod
    old = _existing()
    assert with_node_lost_tolerations(old) is old

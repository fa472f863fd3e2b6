import copy

from podium.sandbox.strategic import strategic_merge


def merge(target, patch, kind="Pod"):
    original = copy.deepcopy(target)
    result = strategic_merge(target, patch, kind)
    assert target == original, "the target must stay as it is"
    return result


def test_containers_merge_by_name():
    target = {"containers": [{"name": "a", "image": "1", "tty": True}, {"name": "b", "image": "1"}]}
    patch = {"containers": [{"name": "a", "image": "2"}, {"name": "c", "image": "3"}]}
    assert merge(target, patch)["containers"] == [
        {"name": "a", "image": "2", "tty": True},
        {"name": "b", "image": "1"},
        {"name": "c", "image": "3"},
    ]


def test_conditions_merge_by_type():
    target = {"status": {"conditions": [{"type": "Ready", "status": "False"}, {"type": "Disk", "status": "True"}]}}
    patch = {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}
    assert merge(target, patch, "Node")["status"]["conditions"] == [
        {"type": "Ready", "status": "True"},
        {"type": "Disk", "status": "True"},
    ]


def test_taints_and_tolerations_are_replaced_whole():
    for field in ("taints", "tolerations"):
        assert merge({field: [{"key": "a"}]}, {field: [{"key": "b"}]})[field] == [{"key": "b"}]


def test_finalizers_are_united_and_can_be_taken_out_one_by_one():
    assert merge({"finalizers": ["a"]}, {"finalizers": ["b", "a"]}) == {"finalizers": ["a", "b"]}
    assert merge({"finalizers": ["a", "b"]}, {"$deleteFromPrimitiveList/finalizers": ["a"]}) == {"finalizers": ["b"]}


def test_an_element_is_deleted_by_its_merge_key():
    target = {"volumes": [{"name": "a"}, {"name": "b"}]}
    assert merge(target, {"volumes": [{"$patch": "delete", "name": "a"}]}) == {"volumes": [{"name": "b"}]}


def test_a_list_is_replaced_when_an_element_says_so():
    target = {"env": [{"name": "a", "value": "1"}]}
    patch = {"env": [{"$patch": "replace"}, {"name": "b", "value": "2"}]}
    assert merge(target, patch) == {"env": [{"name": "b", "value": "2"}]}


def test_an_object_is_replaced_or_emptied_by_directive():
    target = {"securityContext": {"a": 1, "b": 2}}
    assert merge(target, {"securityContext": {"$patch": "replace", "c": 3}}) == {"securityContext": {"c": 3}}
    assert merge(target, {"securityContext": {"$patch": "delete"}}) == {"securityContext": {}}


def test_null_removes_a_field():
    assert merge({"spec": {"unschedulable": True, "x": 1}}, {"spec": {"unschedulable": None}}) == {"spec": {"x": 1}}


def test_retained_keys_drop_the_others():
    target = {"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}}}
    patch = {"strategy": {"$retainKeys": ["type"], "type": "Recreate"}}
    assert merge(target, patch) == {"strategy": {"type": "Recreate"}}


def test_the_element_order_is_followed():
    target = {"containers": [{"name": "a"}, {"name": "b"}]}
    patch = {"$setElementOrder/containers": [{"name": "c"}, {"name": "a"}], "containers": [{"name": "c"}]}
    assert [item["name"] for item in merge(target, patch)["containers"]] == ["c", "a", "b"]


def test_owner_references_merge_by_uid():
    target = {"ownerReferences": [{"uid": "1", "name": "a"}]}
    patch = {"ownerReferences": [{"uid": "2", "name": "b"}, {"uid": "1", "controller": True}]}
    assert merge(target, patch)["ownerReferences"] == [
        {"uid": "1", "name": "a", "controller": True},
        {"uid": "2", "name": "b"},
    ]


def test_ports_of_a_container_and_of_a_service_have_different_keys():
    assert merge({"ports": [{"containerPort": 1}]}, {"ports": [{"containerPort": 1, "name": "x"}]}) == {
        "ports": [{"containerPort": 1, "name": "x"}]
    }
    assert merge({"ports": [{"port": 1}]}, {"ports": [{"port": 1, "name": "x"}]}, "Service") == {
        "ports": [{"port": 1, "name": "x"}]
    }

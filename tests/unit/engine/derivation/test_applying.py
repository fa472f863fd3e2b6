import json

from podium.engine.derivation.applying import apply_manifest, is_same
from tests.workload_manifests import workload

LAST = "kubectl.kubernetes.io/last-applied-configuration"


def _deployment(**container):
    return workload("Deployment", pod_spec={"containers": [{"name": "main", **container}]})


def _live(last, **fields):
    live = _deployment(**fields)
    live["metadata"]["annotations"] = {LAST: json.dumps(last)}
    return live


def _container(manifest):
    (container,) = manifest["spec"]["template"]["spec"]["containers"]
    return container


def test_fields_that_others_have_set_stay():
    live = _live(_deployment(image="a"), image="a", terminationMessagePath="/dev/log")
    assert _container(apply_manifest(live, _deployment(image="b"))) == {
        "name": "main",
        "image": "b",
        "terminationMessagePath": "/dev/log",
    }


def test_fields_that_the_last_manifest_had_go():
    live = _live(_deployment(image="a", command=["run"]), image="a", command=["run"], tty=True)
    assert _container(apply_manifest(live, _deployment(image="a"))) == {"name": "main", "image": "a", "tty": True}


def test_items_that_were_applied_go_and_items_of_others_stay():
    live, last, new = _deployment(), _deployment(), _deployment()
    spec_of = [version["spec"]["template"]["spec"] for version in (live, last, new)]
    for spec, names in zip(spec_of, (("app", "log", "sidecar"), ("app", "log"), ("app",)), strict=True):
        spec["containers"] = [{"name": name} for name in names]
    live["metadata"]["annotations"] = {LAST: json.dumps(last)}
    containers = apply_manifest(live, new)["spec"]["template"]["spec"]["containers"]
    assert [container["name"] for container in containers] == ["app", "sidecar"]


def test_lists_without_naming_fields_are_replaced():
    live, new = _deployment(), _deployment()
    live["spec"]["template"]["spec"]["tolerations"] = [{"key": "a"}]
    new["spec"]["template"]["spec"]["tolerations"] = [{"key": "b"}]
    assert apply_manifest(live, new)["spec"]["template"]["spec"]["tolerations"] == [{"key": "b"}]


def test_a_last_manifest_that_cannot_be_read_removes_nothing():
    live = _deployment(image="a", tty=True)
    live["metadata"]["annotations"] = {LAST: "{"}
    assert _container(apply_manifest(live, _deployment(image="a")))["tty"] is True


def test_amounts_are_compared_by_value():
    first, second = ({"requests": {"cpu": amount}} for amount in ("1", "1000m"))
    assert is_same(first, second)
    assert not is_same(first, {"requests": {"cpu": "1001m"}})
    assert not is_same({"name": "1"}, {"name": "1000m"})


def test_absent_and_empty_parts_are_equal_but_numbers_are_not():
    assert is_same({"tolerations": []}, {})
    assert is_same({"labels": {}}, {"labels": None})
    assert not is_same({"port": 0}, {})
    assert not is_same({"a": [1]}, {"a": [1, 2]})
    assert not is_same({"a": {"b": 1}}, {"a": 1})


def test_an_invalid_amount_is_compared_as_text():
    assert is_same({"limits": {"cpu": "x"}}, {"limits": {"cpu": "x"}})
    assert not is_same({"limits": {"cpu": "x"}}, {"limits": {"cpu": "1"}})

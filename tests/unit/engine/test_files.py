import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.engine.errors import ManifestError
from podium.engine.files import read_objects
from tests.manifests import node, pod


def _read(text):
    return [(item.location, item.manifest["metadata"]["name"]) for item in read_objects(text.encode(), "f")]


def test_documents_and_lists_within_them_are_unfolded():
    text = """
apiVersion: v1
kind: Node
metadata: {name: a}
---
---
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: Pod, metadata: {name: b}}
- apiVersion: v1
  kind: PodList
  items: [{metadata: {name: c}}]
"""
    assert _read(text) == [
        ("f: document 1", "a"),
        ("f: document 3: items[0]", "b"),
        ("f: document 3: items[1]: items[0]", "c"),
    ]


def test_items_of_a_typed_list_take_its_kind():
    (item,) = read_objects(b"{apiVersion: apps/v1, kind: ReplicaSetList, items: [{metadata: {name: a}}]}", "f")
    assert (item.manifest["apiVersion"], item.manifest["kind"]) == ("apps/v1", "ReplicaSet")


def test_json_is_read_as_it_is():
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": [node("a"), pod("b")]})
    assert [name for _, name in _read(text)] == ["a", "b"]


@pytest.mark.parametrize(
    "text",
    [
        f"{json.dumps(node('a'))}\n{json.dumps(pod('b'))}\n",
        f"{json.dumps(node('a'))}{json.dumps(pod('b'))}",
        f"{json.dumps(node('a'), indent=2)}\n\n{json.dumps(pod('b'), indent=2)}\n\n",
        f"{json.dumps(node('a'))}\n---\n{json.dumps(pod('b'))}\n---\n",
        f"{json.dumps(node('a'))}\n---\n# nothing\n---\napiVersion: v1\nkind: Pod\nmetadata: {{name: b}}\n",
        json.dumps([node("a"), pod("b")]),
    ],
    ids=["lines", "without space", "indented", "documents of YAML", "and then YAML", "array"],
)
def test_several_documents_of_json_are_read_one_after_the_other(text):
    assert [name for _, name in _read(text)] == ["a", "b"]


def test_an_object_in_a_later_document_of_json_is_named_by_its_place():
    nodes = {"apiVersion": "v1", "kind": "NodeList", "items": [{"metadata": {"name": "n"}}]}
    text = f"{json.dumps(pod('a'))} {json.dumps(nodes)}"
    assert [where for where, _ in _read(text)] == ["f: document 1", "f: document 2: items[0]"]


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
def test_a_byte_order_mark_is_left_out(encoding):
    for text in (json.dumps(pod("ä")), f"{json.dumps(pod('ä'))}\n{json.dumps(pod('ä'))}", "apiVersion: v1\nkind: Pod"):
        assert {item.manifest["kind"] for item in read_objects(text.encode(encoding), "f")} == {"Pod"}


def test_empty_file_and_empty_list_hold_nothing():
    assert _read("") == []
    assert _read("apiVersion: v1\nkind: List\nitems: null\n") == []


def test_scalars_mean_what_they_mean_to_kubectl():
    text = b"""
apiVersion: v1
kind: Pod
metadata: {creationTimestamp: 2026-01-01T00:00:00Z, labels: {a: 12:30, b: 0x10, c: yes, d: ~, e: "1", f: .inf}}
"""
    (item,) = read_objects(text, "f")
    assert item.manifest["metadata"] == {
        "creationTimestamp": "2026-01-01T00:00:00Z",
        "labels": {"a": "12:30", "b": 16, "c": True, "d": None, "e": "1", "f": ".inf"},
    }


def test_anchors_and_merges_are_followed():
    text = b"{apiVersion: v1, kind: Pod, metadata: {name: a}, x: &x {p: 1, q: 2}, z: {<<: *x, q: 3}}"
    (item,) = read_objects(text, "f")
    assert item.manifest["z"] == {"p": 1, "q": 3}


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("a: [", "f: line 2: did not find expected node content"),
        ("[]", "f: document 1: expected an object, got an array"),
        ("hello", "f: document 1: expected an object, got the value 'hello'"),
        ("metadata: {}", "f: document 1: kind: required"),
        ("kind: Pod", "f: document 1: apiVersion: required"),
        ("kind: [Pod]", "f: document 1: kind: expected a string, got an array"),
        ("kind: Pod\napiVersion: 1", "f: document 1: apiVersion: expected a string, got the value 1"),
        ("{kind: List, apiVersion: v1, items: [null]}", "f: document 1: items[0]: expected an object, got null"),
        ("{kind: List, apiVersion: v1, items: 3}", "f: document 1: items: expected an array, got the value 3"),
        ("[" * 5000, "f: "),
        ('{"kind": "Pod", "apiVersion": "v1"}\n{"kind": "Pod",\n', "f: document 2: not JSON: line 3: "),
        ('{"kind": "Pod", "apiVersion": "v1"} {"kind": "P\\ud800d"}', "f: document 2: not JSON: line 1: "),
        ('{"a": ' * 5000, "f: "),
        ("[[{}]]", "f: document 1: expected an object, got an array"),
        ('[3, {"kind": "Pod", "apiVersion": "v1"}]', "f: document 1[0]: expected an object, got the value 3"),
    ],
)
def test_what_cannot_be_read_is_named_by_file_and_place(text, error):
    with pytest.raises(ManifestError) as failure:
        _read(text)
    assert str(failure.value).startswith(error)


def test_keys_are_text():
    (item,) = read_objects(b"{apiVersion: v1, kind: Pod, metadata: {labels: {1: a, y: b, .inf: c}}}", "f")
    assert item.manifest["metadata"]["labels"] == {"1": "a", "true": "b", ".inf": "c"}


@given(st.text(alphabet="ab:{}[]-,&*!|>'\"\n #%@~?<1.", max_size=60))
def test_any_text_is_read_or_refused(text):
    error = "f: "
    try:
        kinds = [item.manifest["kind"] for item in read_objects(text.encode(), "f")]
    except ManifestError as failure:
        kinds, error = [], str(failure)
    assert all(isinstance(kind, str) for kind in kinds)
    assert error.startswith("f: ")

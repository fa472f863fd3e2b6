from __future__ import annotations

import json
import tracemalloc
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.objects import resource_types
from podium.objects.api_errors import Expired, InternalError, Malformed
from podium.objects.core import Pod
from podium.objects.resource_types import NODES, PODS
from podium.objects.wire import Bookmark, BrokenChange, Change, ObjectDecoder, without_nulls
from podium.sandbox import resources as sandbox_resources

PODS_DECODER = ObjectDecoder(PODS)
RESOURCES = {(resource_type.group, resource_type.kind): resource_type for resource_type in sandbox_resources.RESOURCES}


def pod_item(name: str = "a", **parts: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": "ns", "uid": "u", "resourceVersion": "7"}, **parts}


def event(kind: str, item: object) -> bytes:
    return json.dumps({"type": kind, "object": item}, separators=(",", ":")).encode()


LIST: dict[str, Any] = {"kind": "PodList", "apiVersion": "v1", "metadata": {"resourceVersion": "9"}, "items": []}


def page(*items: object, **metadata: str) -> bytes:
    return json.dumps({**LIST, "metadata": {"resourceVersion": "9", **metadata}, "items": items}).encode()


@pytest.mark.parametrize("kind", ["ADDED", "MODIFIED", "DELETED"])
def test_a_change_is_decoded_to_the_typed_object(kind: str) -> None:
    change = PODS_DECODER.event(event(kind, pod_item(spec={"nodeName": "n1", "unknown": [1]})))
    assert isinstance(change, Change)
    assert change.type == kind
    assert isinstance(change.object, Pod)
    assert (change.object.key, change.object.node_name) == ("ns/a", "n1")


@pytest.mark.parametrize("spaces", [False, True])
def test_bookmarks_are_recognized_however_they_are_spelled(spaces: bool) -> None:
    content: dict[str, Any] = {"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": "12"}}}
    separators = None if spaces else (",", ":")
    assert PODS_DECODER.event(json.dumps(content, separators=separators).encode()) == Bookmark("12")


def test_an_error_event_is_raised_as_what_its_status_says() -> None:
    with pytest.raises(Expired, match="too old"):
        PODS_DECODER.event(event("ERROR", {"code": 410, "reason": "Expired", "message": "too old"}))
    with pytest.raises(InternalError):
        PODS_DECODER.event(event("ERROR", {"code": 500, "metadata": {}, "status": "Failure"}))


def test_nulls_stand_for_absent_fields_as_in_go() -> None:
    change = PODS_DECODER.event(event("ADDED", pod_item(spec={"containers": None, "tolerations": [{"key": None}]})))
    assert isinstance(change, Change)
    assert change.object.spec.containers == ()
    assert change.object.spec.tolerations[0].key == ""


TEXTS = st.none() | st.sampled_from(["null", '"a":null', "[null]", ""])
SPECS = st.fixed_dictionaries(
    {
        "tolerations": st.none() | st.lists(st.none() | st.dictionaries(st.sampled_from(["key", "value"]), TEXTS)),
        "nodeSelector": st.none() | st.dictionaries(TEXTS.map(str), TEXTS),
        "unknown": st.recursive(TEXTS, lambda inner: st.lists(inner) | st.dictionaries(st.just("null"), inner)),
    }
)


@pytest.mark.long
@given(SPECS)
def test_nulls_are_taken_out_wherever_they_are_and_texts_are_left_alone(spec: dict[str, Any]) -> None:
    assert PODS_DECODER.event(event("ADDED", pod_item(spec=spec))) == Change(
        "ADDED", msgspec.convert(without_nulls(pod_item(spec=spec)), Pod)
    )


def test_content_without_nulls_is_not_copied() -> None:
    spec = {"nodeName": "null and void", "containers": [{"image": "a", "args": ["b"]}]}
    assert without_nulls(spec) == spec
    content = {"containers": [{"image": "a"}]}
    assert without_nulls(content) is content


@pytest.mark.parametrize("odd", [{(1, 2): "a"}, {"a": object()}, {"a": "\ud800"}], ids=["keys", "object", "surrogate"])
def test_nulls_are_taken_out_of_content_that_json_cannot_hold(odd: dict[Any, Any]) -> None:
    assert without_nulls({"odd": odd, "gone": None}) == {"odd": odd}


def test_an_object_that_does_not_decode_is_named_with_the_field() -> None:
    change = PODS_DECODER.event(event("MODIFIED", pod_item(spec={"tolerations": [{"key": 1}]})))
    assert isinstance(change, BrokenChange)
    assert change.type == "MODIFIED"
    broken_change = change.object
    assert (broken_change.kind, broken_change.key, broken_change.uid, broken_change.resource_version) == (
        "Pod",
        "ns/a",
        "u",
        "7",
    )
    assert "$.spec.tolerations[0].key" in broken_change.detail


def test_a_broken_object_is_named_without_building_what_its_metadata_holds_besides() -> None:
    unreadable_item = pod_item()
    unreadable_item["metadata"]["ownerReferences"] = [[[] for _ in range(100_000)]]
    line = event("ADDED", unreadable_item)
    tracemalloc.start()
    try:
        change = PODS_DECODER.event(line)
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert isinstance(change, BrokenChange)
    assert change.object.key == "ns/a"
    assert peak_bytes < 10 * len(line)


@pytest.mark.parametrize("item", [{"metadata": {"name": ["a"], "uid": "u"}}, ["not", "a", "pod"], {}, 7, None])
def test_a_change_of_something_that_cannot_be_named_is_malformed(item: object) -> None:
    with pytest.raises(Malformed):
        PODS_DECODER.event(event("ADDED", item))
    page_read = PODS_DECODER.page(page(item, pod_item("b")))
    assert [broken_object.name for broken_object in page_read.broken] == [""]
    assert len(page_read.items) == 1


@pytest.mark.parametrize(
    "line", [b"", b"{", b"[]", b"<html>", b'{"type":"ODD","object":{}}', b'{"object":{}}', b'{"type":"BOOKMARK"}']
)
def test_a_line_that_is_no_event_is_malformed(line: bytes) -> None:
    with pytest.raises(Malformed):
        PODS_DECODER.event(line)


def test_a_page_carries_items_version_and_the_way_on() -> None:
    page_read = PODS_DECODER.page(page(pod_item("a"), pod_item("b"), **{"continue": "token"}))
    assert [item.metadata.name for item in page_read.items] == ["a", "b"]
    assert (page_read.resource_version, page_read.continue_token, page_read.broken) == ("9", "token", [])


def test_the_last_page_has_no_way_on_and_may_be_empty() -> None:
    page_read = PODS_DECODER.page(
        b'{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"9"},"items":null}'
    )
    assert (page_read.items, page_read.continue_token) == ([], "")


def test_a_broken_object_in_a_page_leaves_its_neighbours_alone() -> None:
    page_read = PODS_DECODER.page(
        page(pod_item("a"), pod_item("bad", status=3), pod_item("nulls", spec=None), pod_item("z"))
    )
    assert [item.metadata.name for item in page_read.items] == ["a", "nulls", "z"]
    assert [broken_object.name for broken_object in page_read.broken] == ["bad"]


def test_what_is_no_list_is_malformed() -> None:
    for body in (b"", b"[]", b'{"items":[]}', b'{"metadata":{},"items":[}'):
        with pytest.raises(Malformed):
            PODS_DECODER.page(body)


SENSELESS_LISTS: dict[str, dict[str, Any]] = {
    "nothing": {},
    "a Status": {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 200},
    "a Status with a version": {**LIST, "kind": "Status"},
    "a portal's words": {"error": "please log in", "items": [], "metadata": {"resourceVersion": "9"}},
    "one object": {"kind": "Pod", "apiVersion": "v1", **pod_item("a")},
    "one object with items": {**LIST, "kind": "Pod"},
    "another kind's list": {**LIST, "kind": "NodeList"},
    "another group's list": {**LIST, "apiVersion": "batch/v1"},
    "a table": {**LIST, "kind": "Table", "apiVersion": "meta.k8s.io/v1"},
    "kubectl's list": {**LIST, "kind": "List"},
    "no items": {name: value for name, value in LIST.items() if name != "items"},
    "items that are no array": {**LIST, "items": {}},
    "no version": {**LIST, "metadata": {}},
    "an empty version": {**LIST, "metadata": {"resourceVersion": ""}},
    "a version that is no number": {**LIST, "metadata": {"resourceVersion": "x"}},
    "the version of no list": {**LIST, "metadata": {"resourceVersion": "0"}},
    "items of another kind": {**LIST, "items": [{"kind": "Node", "apiVersion": "v1", **pod_item("a")}]},
}


@pytest.mark.parametrize("keep", [None, lambda item, content: item], ids=["typed", "kept"])
@pytest.mark.parametrize("content", SENSELESS_LISTS.values(), ids=SENSELESS_LISTS)
def test_a_list_of_anything_else_is_malformed(content: dict[str, Any], keep: Any) -> None:
    decoder = ObjectDecoder(PODS, keep)
    assert decoder.page(json.dumps(LIST).encode()).resource_version == "9"
    with pytest.raises(Malformed):
        decoder.page(json.dumps(content).encode())


def test_a_list_that_is_refused_is_called_by_its_kind() -> None:
    for name in ("a Status", "one object", "another kind's list"):
        with pytest.raises(Malformed, match=f"a {SENSELESS_LISTS[name]['kind']}"):
            PODS_DECODER.page(json.dumps(SENSELESS_LISTS[name]).encode())


@pytest.mark.parametrize("resource", resource_types.ALL, ids=lambda resource: resource.kind)
def test_every_resource_knows_its_list(resource: Any) -> None:
    resource_type = RESOURCES[resource.group, resource.kind]
    content = {**LIST, "kind": resource_type.list_kind, "apiVersion": resource_type.api_version}
    assert ObjectDecoder(resource).page(json.dumps(content).encode()).resource_version == "9"
    assert resource.is_namespaced is resource_type.namespaced


@pytest.mark.parametrize("keep", [None, lambda item, content: item], ids=["typed", "kept"])
@pytest.mark.parametrize("type_", ["ADDED", "MODIFIED", "DELETED", "BOOKMARK"])
def test_a_change_of_another_kind_is_malformed(type_: str, keep: Any) -> None:
    decoder = ObjectDecoder(PODS, keep)
    decoder.event(event(type_, {"kind": "Pod", **pod_item("a")}))
    for kind in ("Node", "PodList", "Status", "pod"):
        with pytest.raises(Malformed):
            decoder.event(event(type_, {"kind": kind, "apiVersion": "v1", **pod_item("a")}))


@pytest.mark.parametrize("version", ["", "0", "x", "-1", "1.5", "\u0663"])
def test_a_bookmark_at_no_version_is_malformed(version: str) -> None:
    with pytest.raises(Malformed):
        PODS_DECODER.event(event("BOOKMARK", {"kind": "Pod", "metadata": {"resourceVersion": version}}))


IMPOSSIBLE_NAMES = [" ", "a b", "../x", "..", ".", "a/b", "a%2fb", "A", "a_b", "-a", "a-", "a..b", "a\n", "a\x1b[31m",
                    "\x00", "ä", "a" * 254]  # fmt: skip


@pytest.mark.parametrize("keep", [None, lambda item, content: item], ids=["typed", "kept"])
@pytest.mark.parametrize(
    ("field", "text"),
    [
        *(("name", text) for text in (*IMPOSSIBLE_NAMES, "")),
        *(("namespace", text) for text in (*IMPOSSIBLE_NAMES, "", "a.b", "a" * 64)),
        *(("uid", text) for text in ("", " ", "a b", "a\n", "\x00", "ä", "a" * 254)),
    ],
)
def test_an_object_that_no_api_server_would_have_let_through_is_broken(field: str, text: str, keep: Any) -> None:
    decoder, item = ObjectDecoder(PODS, keep), pod_item("a")
    item["metadata"][field] = text
    page_read = decoder.page(page(pod_item("before"), item, pod_item("after")))
    assert [item.metadata.name for item in page_read.items] == ["before", "after"]
    (broken_object,) = page_read.broken
    assert field in broken_object.detail
    assert len(broken_object.detail) < 200
    if item["metadata"]["name"]:
        change = decoder.event(event("ADDED", item))
        assert isinstance(change, BrokenChange)
        assert change.object == broken_object


@pytest.mark.parametrize("name", ["a", "0", "a-b", "a--b", "web-1.example.com", "a" * 253])
def test_names_that_api_servers_let_through_are_taken(name: str) -> None:
    assert not PODS_DECODER.page(page(pod_item(name))).broken


def test_a_node_with_a_namespace_is_broken() -> None:
    content = {**LIST, "kind": "NodeList", "items": [pod_item("a")]}
    assert [broken_object.name for broken_object in ObjectDecoder(NODES).page(json.dumps(content).encode()).broken] == [
        "a"
    ]


def test_what_cannot_be_a_uid_does_not_say_that_the_object_is_another_one() -> None:
    page_read = PODS_DECODER.page(page({"metadata": {"name": "a", "namespace": "ns", "uid": "u v"}, "spec": 7}))
    assert [broken_object.uid for broken_object in page_read.broken] == [""]


ANYTHING = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["metadata", "spec", "status", "name", "labels", "containers", "priority", "x"]), inner
        )
    ),
    max_leaves=12,
)


@pytest.mark.long
@given(ANYTHING)
def test_no_object_whatsoever_that_has_a_name_stops_the_stream(content: object) -> None:
    content = (
        {**content, "metadata": pod_item("a")["metadata"]} if isinstance(content, dict) else pod_item("a", spec=content)
    )
    change = PODS_DECODER.event(event("ADDED", content))
    assert isinstance(change, Change | BrokenChange)


@pytest.mark.long
@given(st.lists(ANYTHING, max_size=4))
def test_every_item_of_a_page_is_either_understood_or_named(items: list[object]) -> None:
    page_read = PODS_DECODER.page(page(*items))
    assert len(page_read.items) + len(page_read.broken) == len(items)


def kept_by(keep: Any) -> ObjectDecoder[Pod]:
    return ObjectDecoder(PODS, keep)


def as_kept(item: Any, content: Any) -> Any:
    return item.metadata.name, json.loads(bytes(content))


def test_bytes_of_an_object_go_to_whoever_keeps_them() -> None:
    decoder, item = kept_by(as_kept), pod_item("a", spec={"unknown": [1]})
    assert decoder.event(event("ADDED", item)).object == ("a", item)  # type: ignore[union-attr]
    assert decoder.page(page(item)).items == [("a", item)]


def test_object_with_nulls_is_kept_as_it_came() -> None:
    decoder, item = kept_by(as_kept), pod_item("a", spec={"containers": None})
    assert decoder.event(event("MODIFIED", item)).object == ("a", item)  # type: ignore[union-attr]
    assert decoder.page(page(item)).items == [("a", item)]


def test_nothing_is_kept_of_what_cannot_be_understood() -> None:
    decoder, item = kept_by(as_kept), pod_item("a", spec={"priority": "high"})
    assert isinstance(decoder.event(event("ADDED", item)), BrokenChange)
    assert [broken_object.name for broken_object in decoder.page(page(item)).broken] == ["a"]
    assert isinstance(decoder.event(event("BOOKMARK", pod_item("a"))), Bookmark)


def deep_pod(name: str) -> bytes:
    """As users can make one: nobody looks into `managedFields`."""
    fields = b'{"f":' * 9_000 + b"1" + b"}" * 9_000
    head = b'"name":"%b","namespace":"ns","uid":"u"' % name.encode()
    return b'{"metadata":{%b,"managedFields":[{"fieldsV1":%b}]}}' % (head, fields)


@pytest.mark.parametrize("keep", [None, lambda item, content: item])
def test_nesting_as_deep_as_an_api_server_allows_is_no_obstacle(keep: Any) -> None:
    decoder = ObjectDecoder(PODS, keep)
    page_read = decoder.page(page(pod_item("b")).replace(b'"items": [', b'"items": [%b,' % deep_pod("a")))
    assert len(page_read.items) == 2
    assert not page_read.broken
    assert isinstance(decoder.event(b'{"type":"ADDED","object":%b}' % deep_pod("a")), Change)


def test_an_object_that_is_broken_besides_is_still_named_however_deep_it_nests() -> None:
    line = b'{"type":"ADDED","object":%b}' % deep_pod("a").replace(b'"name"', b'"labels":1,"name"')
    change = ObjectDecoder(PODS).event(line)
    assert isinstance(change, BrokenChange)
    assert change.object.name == "a"


@pytest.mark.parametrize("line", [b"[" * 100_000, b'{"type":"ADDED","object":' * 50_000])
def test_bottomless_nesting_is_malformed(line: bytes) -> None:
    with pytest.raises(Malformed):
        ObjectDecoder(PODS).event(line)
    with pytest.raises(Malformed):
        ObjectDecoder(PODS).page(line)

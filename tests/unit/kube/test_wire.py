from __future__ import annotations

import json
import tracemalloc
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.kube.api_errors import Expired, InternalError, Malformed
from podium.kube.objects import Pod
from podium.kube.resource_types import NODES, PODS
from podium.kube.wire import Bookmark, BrokenChange, BrokenObject, Change, ObjectDecoder, without_nulls

PODS_DECODER = ObjectDecoder(PODS)


def pod(name: str = "a", **parts: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": "ns", "uid": "u", "resourceVersion": "7"}, **parts}


def event(kind: str, item: object) -> bytes:
    return json.dumps({"type": kind, "object": item}, separators=(",", ":")).encode()


def page(*items: object, **metadata: str) -> bytes:
    return json.dumps({"kind": "PodList", "metadata": {"resourceVersion": "9", **metadata}, "items": items}).encode()


@pytest.mark.parametrize("kind", ["ADDED", "MODIFIED", "DELETED"])
def test_a_change_is_decoded_to_the_typed_object(kind: str) -> None:
    change = PODS_DECODER.event(event(kind, pod(spec={"nodeName": "n1", "unknown": [1]})))
    assert isinstance(change, Change)
    assert change.type == kind
    assert isinstance(change.object, Pod)
    assert (change.object.key, change.object.node_name) == ("ns/a", "n1")


@pytest.mark.parametrize("spaces", [False, True])
def test_bookmarks_are_told_from_changes_however_they_are_spelled(spaces: bool) -> None:
    content: dict[str, Any] = {"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": "12"}}}
    separators = None if spaces else (",", ":")
    assert PODS_DECODER.event(json.dumps(content, separators=separators).encode()) == Bookmark("12")


def test_an_error_event_is_raised_as_what_its_status_says() -> None:
    with pytest.raises(Expired, match="too old"):
        PODS_DECODER.event(event("ERROR", {"code": 410, "reason": "Expired", "message": "too old"}))
    with pytest.raises(InternalError):
        PODS_DECODER.event(event("ERROR", {"code": 500, "metadata": {}, "status": "Failure"}))


def test_nulls_stand_for_absent_fields_as_in_go() -> None:
    change = PODS_DECODER.event(event("ADDED", pod(spec={"containers": None, "tolerations": [{"key": None}]})))
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


@given(SPECS)
def test_nulls_are_taken_out_wherever_they_are_and_texts_are_left_alone(spec: dict[str, Any]) -> None:
    assert PODS_DECODER.event(event("ADDED", pod(spec=spec))) == Change(
        "ADDED", msgspec.convert(without_nulls(pod(spec=spec)), Pod)
    )


def test_an_object_that_does_not_decode_is_named_with_the_field() -> None:
    change = PODS_DECODER.event(event("MODIFIED", pod(spec={"tolerations": [{"key": 1}]})))
    assert isinstance(change, BrokenChange)
    assert change.type == "MODIFIED"
    broken = change.object
    assert (broken.kind, broken.key, broken.uid, broken.resource_version) == ("Pod", "ns/a", "u", "7")
    assert "$.spec.tolerations[0].key" in broken.detail


def test_a_broken_object_is_named_without_building_what_its_metadata_holds_besides() -> None:
    broken = pod()
    broken["metadata"]["ownerReferences"] = [[[] for _ in range(100_000)]]
    line = event("ADDED", broken)
    tracemalloc.start()
    try:
        change = PODS_DECODER.event(line)
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert isinstance(change, BrokenChange)
    assert change.object.key == "ns/a"
    assert peak_bytes < 10 * len(line)


def test_a_name_that_is_no_text_is_none() -> None:
    change = PODS_DECODER.event(event("ADDED", {"metadata": {"name": ["a"], "uid": "u"}}))
    assert isinstance(change, BrokenChange)
    assert (change.object.name, change.object.uid) == ("", "u")


def test_a_broken_object_without_metadata_still_has_a_key() -> None:
    change = ObjectDecoder(NODES).event(event("ADDED", ["not", "a", "node"]))
    assert change == BrokenChange("ADDED", BrokenObject("Node", "", "", "", "", change.object.detail))  # type: ignore[union-attr]


@pytest.mark.parametrize(
    "line", [b"", b"{", b"[]", b"<html>", b'{"type":"ODD","object":{}}', b'{"object":{}}', b'{"type":"BOOKMARK"}']
)
def test_a_line_that_is_no_event_is_malformed(line: bytes) -> None:
    with pytest.raises(Malformed):
        PODS_DECODER.event(line)


def test_a_page_carries_items_version_and_the_way_on() -> None:
    found = PODS_DECODER.page(page(pod("a"), pod("b"), **{"continue": "token"}))
    assert [item.metadata.name for item in found.items] == ["a", "b"]
    assert (found.resource_version, found.continue_token, found.broken) == ("9", "token", [])


def test_the_last_page_has_no_way_on_and_may_be_empty() -> None:
    found = PODS_DECODER.page(b'{"metadata":{"resourceVersion":"9"},"items":null}')
    assert (found.items, found.continue_token) == ([], "")


def test_a_broken_object_in_a_page_leaves_its_neighbours_alone() -> None:
    found = PODS_DECODER.page(page(pod("a"), pod("bad", status=3), pod("nulls", spec=None), pod("z")))
    assert [item.metadata.name for item in found.items] == ["a", "nulls", "z"]
    assert [broken.name for broken in found.broken] == ["bad"]


def test_what_is_no_list_is_malformed() -> None:
    for body in (b"", b"[]", b'{"items":[]}', b'{"metadata":{},"items":[}'):
        with pytest.raises(Malformed):
            PODS_DECODER.page(body)


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


@given(ANYTHING)
def test_no_object_whatsoever_stops_the_stream(content: object) -> None:
    found = PODS_DECODER.event(event("ADDED", content))
    assert isinstance(found, Change | BrokenChange)


@given(st.lists(ANYTHING, max_size=4))
def test_every_item_of_a_page_is_either_understood_or_named(items: list[object]) -> None:
    found = PODS_DECODER.page(page(*items))
    assert len(found.items) + len(found.broken) == len(items)


def kept_by(keep: Any) -> ObjectDecoder[Pod]:
    return ObjectDecoder(PODS, keep)


def as_kept(item: Any, content: Any) -> Any:
    return item.metadata.name, json.loads(bytes(content))


def test_bytes_of_an_object_go_to_whoever_keeps_them() -> None:
    decoder, item = kept_by(as_kept), pod("a", spec={"unknown": [1]})
    assert decoder.event(event("ADDED", item)).object == ("a", item)  # type: ignore[union-attr]
    assert decoder.page(page(item)).items == [("a", item)]


def test_object_with_nulls_is_kept_as_it_came() -> None:
    decoder, item = kept_by(as_kept), pod("a", spec={"containers": None})
    assert decoder.event(event("MODIFIED", item)).object == ("a", item)  # type: ignore[union-attr]
    assert decoder.page(page(item)).items == [("a", item)]


def test_nothing_is_kept_of_what_cannot_be_understood() -> None:
    decoder, item = kept_by(as_kept), pod("a", spec={"priority": "high"})
    assert isinstance(decoder.event(event("ADDED", item)), BrokenChange)
    assert [broken.name for broken in decoder.page(page(item)).broken] == ["a"]
    assert isinstance(decoder.event(event("BOOKMARK", pod("a"))), Bookmark)


def deep_pod(name: str) -> bytes:
    """As users can make one: nobody looks into `managedFields`."""
    fields = b'{"f":' * 9_000 + b"1" + b"}" * 9_000
    return b'{"metadata":{"name":"%b","managedFields":[{"fieldsV1":%b}]}}' % (name.encode(), fields)


@pytest.mark.parametrize("keep", [None, lambda item, content: item])
def test_nesting_as_deep_as_an_api_server_allows_is_no_obstacle(keep: Any) -> None:
    decoder = ObjectDecoder(PODS, keep)
    found = decoder.page(b'{"metadata":{},"items":[%b,{"metadata":{"name":"b"}}]}' % deep_pod("a"))
    assert len(found.items) == 2
    assert not found.broken
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

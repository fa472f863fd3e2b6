from __future__ import annotations

import itertools
import json
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.client import list_body
from podium.client.list_body import ListBody
from podium.objects.api_errors import Malformed
from podium.objects.core import Pod
from podium.objects.resource_types import PODS
from podium.objects.wire import ObjectDecoder, Page

DECODER = ObjectDecoder(PODS)
KEEPER: ObjectDecoder[Any] = ObjectDecoder(PODS, lambda _, content: json.loads(bytes(content)))
"""Hands out the JSON of each item."""


def pod_item(name: str, **parts: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": "ns", "uid": "u"}, **parts}


def encode(content: object) -> bytes:
    return json.dumps(content, separators=(",", ":"), ensure_ascii=False).encode()


HEAD: dict[str, Any] = {"kind": "PodList", "apiVersion": "v1", "metadata": {"resourceVersion": "9"}}


def body(*items: object, **metadata: str) -> bytes:
    return encode({**HEAD, "metadata": {**HEAD["metadata"], **metadata}, "items": items})


def split(content: bytes, *places: int) -> list[bytes]:
    edges = sorted({0, len(content), *(place % (len(content) + 1) for place in places)})
    return [content[start:end] for start, end in itertools.pairwise(edges)]


def read(chunks: Sequence[bytes], decoder: ObjectDecoder[Any] = DECODER) -> tuple[list[Page[Any]], Page[Any]]:
    """The pieces, and the end."""
    reading = ListBody(decoder)
    pieces = [piece for chunk in chunks for piece in reading.feed(chunk)]
    return pieces, reading.finish()


def names(pages: Sequence[Page[Pod]]) -> list[str]:
    return [item.metadata.name for page in pages for item in page.items]


@pytest.fixture
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(list_body, "_PIECE_BYTES", 1)


def test_items_come_while_the_list_still_arrives(small_pieces: None) -> None:
    first, second = split(body(pod_item("a"), pod_item("b"), pod_item("c")), 160)
    assert b'"b"' in first
    assert b'"c"' not in first
    reading = ListBody(DECODER)
    assert names([*reading.feed(first)]) == ["a"]
    assert names([*reading.feed(second)]) == ["b"]
    last = reading.finish()
    assert names([last]) == ["c"]
    assert (last.resource_version, last.continue_token) == ("9", "")


def test_a_list_that_comes_byte_by_byte_is_cut_like_any_other(small_pieces: None) -> None:
    list_body = body(pod_item("a"), {"apiVersion": "v1", **pod_item("b")}, pod_item("c"))
    assert read(split(list_body, *range(len(list_body)))) == read([list_body])


def test_many_small_items_are_one_piece() -> None:
    items = [pod_item(f"pod-{number}") for number in range(5_000)]
    pieces, last = read(split(body(*items), *range(0, 300_000, 10_000)))
    assert names([*pieces, last]) == [f"pod-{number}" for number in range(5_000)]
    assert len(pieces) == len(body(*items)) // (64 * 1024)


def test_what_looks_like_the_end_of_an_item_inside_one_is_none(small_pieces: None) -> None:
    nested = pod_item(
        "a", spec={"x": [pod_item("c"), pod_item("d"), pod_item("e")]}, status={"message": '},{"metadata":{'}
    )
    pieces, last = read(split(body(nested, pod_item("b"), nested), 100, 150))
    assert names([*pieces, last]) == ["a", "b", "a"]


def test_items_may_begin_with_kind_or_version(small_pieces: None) -> None:
    kind, version = {"kind": "Pod"}, {"apiVersion": "v1"}
    pieces, last = read([body(pod_item("a"), {**kind, **pod_item("b")}, {**version, **pod_item("c")}, pod_item("d"))])
    assert names(pieces) == ["a", "b", "c"]
    assert names([last]) == ["d"]


def test_items_that_begin_otherwise_come_with_their_neighbours(small_pieces: None) -> None:
    pieces, last = read(
        [body(pod_item("a"), {"spec": {}, **pod_item("b")}, pod_item("c"), {"status": {}, **pod_item("d")})]
    )
    assert [names([piece]) for piece in pieces] == [["a", "b"]]
    assert names([last]) == ["c", "d"]


def test_metadata_may_come_after_the_items(small_pieces: None) -> None:
    meta = {"resourceVersion": "9", "continue": "x"}
    content = {"items": [pod_item("a"), pod_item("b")], "kind": "PodList", "apiVersion": "v1", "metadata": meta}
    pieces, last = read(split(encode(content), 70, 90))
    assert names([*pieces, last]) == ["a", "b"]
    assert (last.resource_version, last.continue_token) == ("9", "x")


def test_another_array_after_the_items_is_not_taken_for_more_of_them(small_pieces: None) -> None:
    content = {"items": [pod_item("a"), pod_item("b")], "more": [pod_item("c"), pod_item("d")]}
    pieces, last = read([encode({**HEAD, **content})])
    assert names([*pieces, last]) == ["a", "b"]


_A_AND_B = body(pod_item("a"), pod_item("b"))[1:]


@pytest.mark.parametrize(
    "content",
    [
        b"{" + _A_AND_B.replace(b":", b": "),
        b'{"x":{"items":[{"metadata":1},{"metadata":2}]},' + _A_AND_B,
        b'{"x\\"items":[{"metadata":1},{"metadata":2}],' + _A_AND_B,
        b'{"x":%b{"items":[{"a":1}]}%b,' % (b"[" * 9_000, b"]" * 9_000) + _A_AND_B,
    ],
    ids=["with spaces", "after other items", "after a name that ends in quoted items", "after deep nesting"],
)
def test_a_list_that_is_written_otherwise_comes_in_one_piece(small_pieces: None, content: bytes) -> None:
    pieces, last = read(split(content, 40, 90))
    assert not pieces
    assert names([last]) == ["a", "b"]


@pytest.mark.parametrize("items", [[], None])
def test_an_empty_list_is_one(items: object) -> None:
    pieces, last = read([encode({**HEAD, "items": items})])
    assert (pieces, last) == ([], Page([], [], "9", ""))


def test_a_broken_object_leaves_its_neighbours_alone(small_pieces: None) -> None:
    pieces, last = read([body(pod_item("a"), pod_item("bad", status=3), pod_item("nulls", spec=None), pod_item("z"))])
    assert names([*pieces, last]) == ["a", "nulls", "z"]
    assert [broken_object.name for piece in pieces for broken_object in piece.broken] == ["bad"]


def test_a_list_without_the_end_of_an_item_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(list_body, "_REST_BYTES_MAX", 1_000)
    reading = ListBody(DECODER)
    assert not [*reading.feed(b'{"metadata":{"resourceVersion":"9"},"items":[{"metadata":{"name":"')]
    with pytest.raises(Malformed):
        list(reading.feed(b"x" * 1_000))


def test_what_is_no_list_is_malformed() -> None:
    for content in (b"", b"[]", b"<html>", b'{"kind":"Status","code":500}', b'{"items":[{"metadata":{}}]}'):
        with pytest.raises(Malformed):
            read([content])


def test_nothing_is_taken_early_of_another_kinds_list(small_pieces: None) -> None:
    reading = ListBody(DECODER)
    assert not [*reading.feed(body(pod_item("a"), pod_item("b"), pod_item("c")).replace(b"PodList", b"NodeList"))]
    with pytest.raises(Malformed, match="a NodeList"):
        reading.finish()


def test_an_object_full_of_false_ends_costs_in_proportion_to_its_size(
    small_pieces: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    given_bytes: list[int] = []
    decode = ObjectDecoder.items

    def count_and_decode(decoder: ObjectDecoder[Any], array: bytes) -> Page[Any]:
        given_bytes.append(len(array))
        return decode(decoder, array)

    monkeypatch.setattr(ObjectDecoder, "items", count_and_decode)
    content = body(pod_item("a", spec={"x": [pod_item("c")] * 10_000}), pod_item("b"))
    pieces, last = read(split(content, *range(0, len(content), 5_000)))
    assert names([*pieces, last]) == ["a", "b"]
    assert sum(given_bytes) < 3 * len(content)


# Objects as hard to cut as can be: they nest others, and their texts hold what stands between two.
TEXTS = st.sampled_from(['},{"metadata":{', '"items":[{"', "\\", '"', "]}", "ä\u2028😀", ""]) | st.text(max_size=4)
INNER = st.recursive(
    st.none() | st.booleans() | st.integers() | TEXTS,
    lambda inner: (
        st.lists(st.fixed_dictionaries({"metadata": inner}) | inner, max_size=4)
        | st.dictionaries(st.sampled_from(["metadata", "items", "x"]) | TEXTS, inner, max_size=3)
    ),
    max_leaves=8,
)
ITEMS = st.lists(
    st.builds(lambda text, y, x: {**pod_item("a"), "x": x, "y": y, "z": text}, TEXTS, INNER, INNER), max_size=4
)
CUTS = st.lists(st.integers(0, 5_000), max_size=12)


@pytest.mark.long
@given(ITEMS, CUTS, st.sampled_from([1, 40, 300]))
def test_any_list_cut_anywhere_gives_its_items(items: list[Any], cuts: list[int], piece_bytes: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(list_body, "_PIECE_BYTES", piece_bytes)
        pieces, last = read(split(body(*items), *cuts), KEEPER)
    assert [item for piece in [*pieces, last] for item in piece.items] == items
    assert last.resource_version == "9"


@pytest.mark.long
@given(ITEMS, CUTS, st.integers(1, 5_000))
def test_a_list_torn_anywhere_is_malformed(items: list[Any], cuts: list[int], torn: int) -> None:
    array = body(*items)
    content = array[: -(1 + torn % len(array))]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(list_body, "_PIECE_BYTES", 1)
        with pytest.raises(Malformed):
            read(split(content, *cuts), KEEPER)


@pytest.mark.long
@given(ITEMS, CUTS)
def test_where_a_list_is_cut_makes_no_difference_to_what_is_broken(items: list[Any], cuts: list[int]) -> None:
    array = body(*items, pod_item("bad", spec={"priority": "high"}), pod_item("z"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(list_body, "_PIECE_BYTES", 1)
        pieces, last = read(split(array, *cuts))
    at_once = DECODER.page(array)
    pages = [*pieces, last]
    assert [item for page in pages for item in page.items] == at_once.items
    assert [broken_object for page in pages for broken_object in page.broken] == at_once.broken

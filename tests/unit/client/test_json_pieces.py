"""Long arrays and objects are decoded in pieces, and every item comes once and in order."""

from __future__ import annotations

import json
import random
from typing import Any

import msgspec
import pytest
from msgspec import Raw

from podium.client import json_pieces
from podium.client.json_pieces import PIECE_BYTES, PIECE_BYTES_MAX, list_items, map_items

HOSTILE = ['},{"a":1}', "},", '"', "\\", "]", '},"', "{[", "ü", "\n"]


def make_items(seed: int, count: int) -> list[dict[str, object]]:
    """Objects with nested ones, whose texts look like the end of an item."""
    source = random.Random(seed)

    def text() -> str:
        return "".join(source.choices(HOSTILE, k=source.randrange(6)))

    def item(depth: int) -> dict[str, object]:
        nested_items = [item(depth - 1) for _ in range(source.randrange(4))] if depth else []
        return {text(): text(), "x": nested_items, "pad": "y" * source.randrange(200), "n": {text(): {}}, "z": [1, 2]}

    return [item(2) for _ in range(count)]


@pytest.mark.long
@pytest.mark.parametrize("separators", [(",", ":"), (" ,\n ", ": ")])
@pytest.mark.parametrize("seed", range(4))
def test_every_item_comes_once_and_in_order_and_no_piece_is_long(
    monkeypatch: pytest.MonkeyPatch, seed: int, separators: tuple[str, str]
) -> None:
    sizes: list[int] = []
    for name in ("_decode_list", "_decode_map"):
        decode = getattr(json_pieces, name)

        def measure(piece: bytes, decode: Any = decode) -> Any:
            sizes.append(len(piece))
            return decode(piece)

        monkeypatch.setattr(json_pieces, name, measure)
    items = make_items(seed, 800)
    array = json.dumps(items, separators=separators).encode()
    assert len(array) > 4 * PIECE_BYTES
    assert [json.loads(bytes(raw)) for raw in list_items(Raw(array))] == items
    members = {f'n{number}}},"': item for number, item in enumerate(items)}
    text = json.dumps(members, separators=separators).encode()
    assert {name: json.loads(bytes(raw)) for name, raw in map_items(Raw(text))} == members
    assert max(sizes) <= PIECE_BYTES_MAX + 2


def test_empty_or_null_array_or_object_has_no_pieces() -> None:
    assert list(list_items(Raw(b"[]"))) == list(list_items(Raw(b"null"))) == []
    assert list(map_items(Raw(b"{}"))) == list(map_items(Raw(b"null"))) == []


@pytest.mark.parametrize(
    "text",
    [
        b"5",
        b"{}",
        b"[" + b"[]," * PIECE_BYTES_MAX + b"[]]",
        b'[{"a":"' + b"x" * PIECE_BYTES_MAX + b'"},{}]',
        b"[" + b"{}," * 2 * PIECE_BYTES + b"{]",
    ],
    ids=["number", "object", "small arrays", "long item", "broken end"],
)
def test_what_cannot_be_cut_is_refused(text: bytes) -> None:
    with pytest.raises(msgspec.DecodeError):
        list(list_items(Raw(text)))


@pytest.mark.parametrize("padding", range(0, 240, 8))
def test_wherever_a_piece_ends_the_objects_within_an_item_are_no_end(padding: int) -> None:
    member = {"metrics": [{"value": 1}, {"value": 2}], "tags": {}, "metadata": {"dataCenter": ""}}
    members = {"x" * padding: member, **{f"node-{number}": member for number in range(2000)}}
    assert dict(map_items(Raw(json.dumps(members).encode()))).keys() == members.keys()

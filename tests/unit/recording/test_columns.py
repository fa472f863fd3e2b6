"""Entries as they were buffer, and entries from bytes that anybody may have written."""

from __future__ import annotations

import tracemalloc
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from podium.objects.core import Pod, PodStatus
from podium.objects.meta import ObjectMeta
from podium.objects.resource_types import NODES, PODS
from podium.recording import columns, entries
from podium.recording.columns import ColumnWriter, EntryBuffer, LeftOut, entries_of
from podium.recording.entries import Decision
from tests.builders import node, pod
from tests.unit.recording.contents import content_of

POD, SPECS = len(entries.KIND_NAMES), len(entries.KIND_NAMES) + 1
DECIDED = Decision("u", "default/web", "Suggested", "n1", 1, 1, 0, None, ("default/low",))
REFUSED = ("Conflict", "changed", 409, "Conflict", None, False)
ALL: list[tuple[int, Any]] = [
    (entries.NOW, 5.0),
    (entries.MONOTONIC, 0.1),
    (entries.READ, None),
    (entries.PUT, (NODES.path, node("n1"))),
    (entries.REMOVE, (PODS.path, "default/web")),
    (entries.SIGNAL, 0),
    (entries.RESUME, 1),
    (entries.COMPOSE, 1),
    (entries.ANSWER, (1, entries.VALUE, True)),
    (entries.ANSWER, (2, entries.OBJECT, pod("web"))),
    (entries.ANSWER, (3, entries.REFUSED, REFUSED)),
    (entries.ANSWER, (4, entries.CANCELLED, None)),
    (entries.ANSWER, (5, entries.RAISED, "OSError: no")),
    (entries.DECIDED, DECIDED),
    (entries.FAILED, ("u", "unschedulable", "full")),
    (entries.TIME, 7.0),
    (entries.END, None),
]


def block_of(kinds: Any, **values: Any) -> bytes:
    """A block with these columns, by the names of their kinds."""
    block_columns = [[] for _ in range(SPECS + 1)]
    for name, column in values.items():
        block_columns[{"POD": POD, "SPECS": SPECS}.get(name) or getattr(entries, name)] = column
    return msgspec.msgpack.encode([kinds, *block_columns])


def test_every_kind_of_entry_is_read_as_it_was_noted() -> None:
    block = entries_of(content_of(*ALL))
    assert [entry[0] for entry in block] == [kind for kind, _ in ALL]
    assert block[:3] == [(entries.NOW, 5_000_000_000), (entries.MONOTONIC, 100_000_000), (entries.READ, None)]
    assert block[3:5] == [(entries.PUT, NODES.path, node("n1")), (entries.REMOVE, PODS.path, "default/web")]
    assert block[8:10] == [(entries.ANSWER, 1, entries.VALUE, True), (entries.ANSWER, 2, entries.OBJECT, pod("web"))]
    assert block[10][:3] == (entries.ANSWER, 3, entries.REFUSED)
    assert block[10][3][2:] == list(REFUSED[2:])
    assert block[13] == (entries.DECIDED, *DECIDED)
    assert block[14][:-1] == (entries.FAILED, "u", "unschedulable", "full")
    assert block[-1] == (entries.END,)


def test_pods_are_read_as_they_were_and_share_their_specs() -> None:
    pods = [
        pod("web-1", uid="a", labels={"app": "web"}, cpu="1"),
        pod("web-2", uid="b", labels={"app": "web"}, cpu="1"),
        pod("web-1", uid="a", labels={"app": "web"}, cpu="1", node="n1"),
        replace(pod("low", uid="c", cpu="2", node="n1"), status=PodStatus(phase="Running")),
        pod("web-3", uid="d", labels={"app": "web"}, cpu="1"),
        pod("web-2", uid="b", labels={"app": "web"}, cpu="1", node="n2"),
    ]
    buffer = EntryBuffer()
    for item in pods:
        buffer.note_put(PODS.path, item)
    contents = ColumnWriter().contents(*buffer.take(4)) + ColumnWriter().contents(*buffer.take(4))
    items = [entries.item_of(entry) for content in contents for entry in entries_of(content)]
    assert items == pods
    assert all(item.spec is block_columns.spec for item, block_columns in zip(items, pods, strict=True))


def test_what_replicas_share_is_written_once() -> None:
    alike = [(POD, pod(f"web-{at}", uid=str(at), labels={"app": "storefront"}, cpu="750m")) for at in range(3)]
    content = content_of(*alike)
    assert content.count(b"750m") == content.count(b"storefront") == 1


def test_entries_are_taken_in_order_and_by_number() -> None:
    buffer = EntryBuffer()
    for number in range(5):
        buffer.note(entries.SIGNAL, number)
        buffer.note(entries.READ, -number)
    parts = [buffer.take(4), buffer.take(100)]
    assert [values[entries.SIGNAL] for _, values in parts] == [[0, 1], [2, 3, 4]]
    assert [values[entries.READ] for _, values in parts] == [[0, -1], [-2, -3, -4]]
    assert len(buffer) == 0


def test_entries_that_a_reader_would_refuse_for_their_size_are_several_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(columns, "BLOCK_BYTES_MAX", 1000)
    buffer = EntryBuffer()
    for number in range(50):
        buffer.note(entries.FAILED, (str(number), "unschedulable", "x" * 100))
        buffer.note_put(PODS.path, pod(f"web-{number}"))
    contents = ColumnWriter().contents(*buffer.take(100))
    assert all(len(content) <= 1000 for content in contents)
    block = [entry for number in contents for entry in entries_of(number)]
    assert [entry[1] for entry in block[::2]] == [str(number) for number in range(50)]
    assert [entries.item_of(entry).key for entry in block[1::2]] == [f"default/web-{item}" for item in range(50)]


# ---------------------------------------------------------------- what podium did not write

OWN = [0, "", "web", "default", "u", "1"]
OTHERS = list(msgspec.structs.astuple(ObjectMeta()))[4:]
STATUS = list(msgspec.structs.astuple(PodStatus()))
SPEC = pod("web").spec
BYTES = msgspec.msgpack.encode(pod("web"))


def test_a_pod_is_read_from_its_row() -> None:
    (entry,) = entries_of(block_of(bytes([POD]), POD=[[*OWN, OTHERS, STATUS]], SPECS=[SPEC]))
    assert (entry[:2], entries.item_of(entry).key) == ((entries.PUT, PODS.path), "default/web")


@pytest.mark.parametrize("value", ["x", [[]], {"a": 1}, float("nan"), float("inf"), 1e300])
@pytest.mark.parametrize("name", ["NOW", "MONOTONIC", "READ", "SIGNAL", "RESUME", "COMPOSE", "TIME", "FAILED", "END"])
def test_value_of_another_type_is_refused(name: str, value: Any) -> None:
    with pytest.raises(ValueError, match="in it is not as podium writes it"):
        entries_of(block_of(bytes([getattr(entries, name)]), **{name: [value]}))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("PUT", [NODES.path, "Pod", "text"]),
        ("PUT", [NODES.path, "Pod"]),
        ("REMOVE", [PODS.path]),
        ("ANSWER", [1, entries.REFUSED, ["Nothing", "", 0, "", None, False], b""]),
        ("ANSWER", [1, entries.REFUSED, ["Conflict"], b""]),
        ("ANSWER", [1, entries.OBJECT, "Secret", BYTES]),
        ("ANSWER", [1, entries.OBJECT, None, BYTES]),
        ("ANSWER", [1, entries.VALUE, ["Conflict"], b""]),
        ("ANSWER", [1, 99, None, b""]),
        ("DECIDED", ["u", "default/web", "Suggested", "n1", 1, 1, 0, None, [7]]),
        ("DECIDED", ["u", "default/web", "Suggested", "n1", 1, 1, 0, None]),
        ("FAILED", ["u", "unschedulable"]),
        ("POD", [*OWN, None, STATUS]),
        ("POD", [*OWN, OTHERS, None]),
        ("POD", [1, *OWN[1:], OTHERS, STATUS]),
        ("POD", [-1, *OWN[1:], OTHERS, STATUS]),
        ("POD", [*OWN, OTHERS[1:], STATUS]),
    ],
)
def test_entry_without_sense_is_refused(name: str, value: Any) -> None:
    kind = POD if name == "POD" else getattr(entries, name)
    with pytest.raises(ValueError, match="in it is not as podium writes it"):
        entries_of(block_of(bytes([kind]), SPECS=[SPEC], **{name: [value]}))


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\xc1",
        b"\x91" * 100_000 + b"\x90",
        b"\xdd\xff\xff\xff\xff",
        msgspec.msgpack.encode([b""] * 3),
        block_of(b"", READ=[1]),
        block_of(bytes([entries.READ])),
        block_of(bytes([SPECS]), SPECS=[SPEC]),
        block_of(bytes([99])),
    ],
)
def test_bytes_that_are_no_block_are_refused(content: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        entries_of(content)


@pytest.mark.parametrize(
    "value",
    [
        [NODES.path, "Secret", b"\x80"],
        [NODES.path, "Pod", b"\xc1"],
        [NODES.path, "Pod", b"\x81\xa4spec\x01"],
        [NODES.path, "LeftOut", b"\x80"],
    ],
)
def test_object_that_cannot_be_read_is_named_and_the_others_are_read(value: Any) -> None:
    content = block_of(bytes([entries.READ, entries.PUT, entries.READ]), READ=[1, 2], PUT=[value])
    left_out: list[LeftOut] = []
    assert entries_of(content, left_out.append) == [(entries.READ, 1), (entries.READ, 2)]
    assert [str(item).startswith(f"{value[1]} of a name that is not read: an object") for item in left_out] == [True]


MANY = b"\xdd\x00\x40\x00\x00"


@pytest.mark.parametrize(
    "content",
    [
        MANY + b"\x90" * (1 << 22),
        block_of(bytes(1 << 22)),
        *(
            b"\xdc\x00\x10\xc4\x00" + b"\x90" * at + MANY + b"\x90" * (1 << 22) + b"\x90" * (SPECS - at)
            for at in range(SPECS + 1)
        ),
        block_of(bytes([entries.PUT]), PUT=[[PODS.path, "Pod", b"\x80" * ((1 << 22) + 1)]]),
        block_of(bytes([POD]), POD=[[*OWN, OTHERS, ["", [{}] * (1 << 22), *STATUS[2:]]]]),
        block_of(bytes([entries.DECIDED]), DECIDED=[[*DECIDED[:-1], ["n"] * (1 << 20)]]),
        block_of(bytes([entries.ANSWER]), ANSWER=[[1, entries.REFUSED, ["n"] * 1000, b""]]),
    ],
)
def test_bytes_that_claim_to_be_very_much_take_no_memory(content: bytes) -> None:
    tracemalloc.start()
    try:
        assert _is_refused(content)
        assert tracemalloc.get_traced_memory()[1] < 1 << 23
    finally:
        tracemalloc.stop()


def _is_refused(content: bytes) -> bool:
    """Return True if nothing of it is read."""
    try:
        return not entries_of(content)
    except ValueError:
        return True


# ---------------------------------------------------------------- what is left out when it is written

_TOO_MANY = {f"label-{number}": "x" * 60 for number in range(60_000)}


@pytest.mark.parametrize(
    "item",
    [
        replace(pod("evil"), metadata=ObjectMeta(name="evil", namespace="default", labels=_TOO_MANY)),
        replace(pod("evil"), spec=replace(pod("evil").spec, node_selector=_TOO_MANY)),
        replace(pod("evil"), metadata=ObjectMeta(name="evil", namespace="default", generation=10**30)),
        replace(pod("evil"), metadata=ObjectMeta(name="evil", namespace="default", labels={"a": "\ud800"})),
        node("evil", labels=_TOO_MANY),
    ],
)
def test_object_that_no_reader_would_take_is_left_out_and_named(item: Any) -> None:
    left_out: list[LeftOut] = []
    buffer = EntryBuffer()
    buffer.note_put(PODS.path, pod("web-1"))
    buffer.note_put(PODS.path if isinstance(item, Pod) else NODES.path, item)
    buffer.note_put(PODS.path, pod("web-2"))
    contents = ColumnWriter(leave_out=left_out.append).contents(*buffer.take(10))
    assert [(item.kind, item.key) for item in left_out] == [(type(item).__name__, item.key)]
    read_without: list[LeftOut] = []
    block = [entry for content in contents for entry in entries_of(content, read_without.append)]
    assert [entries.item_of(entry).key for entry in block] == ["default/web-1", "default/web-2"]
    assert read_without == left_out


def test_answer_with_an_object_that_no_reader_would_take_says_so() -> None:
    content = content_of((entries.ANSWER, (1, entries.OBJECT, node("evil", labels=_TOO_MANY))))
    (entry,) = entries_of(content)
    assert entry[:3] == (entries.ANSWER, 1, entries.RAISED)
    (entry,) = entries_of(
        content_of((entries.ANSWER, (1, entries.OBJECT, node("large", labels=dict([*_TOO_MANY.items()][:30_000])))))
    )
    assert entry[:3] == (entries.ANSWER, 1, entries.OBJECT)


def test_block_of_an_earlier_podium_with_one_pod_that_is_too_large_is_left_out() -> None:
    """An earlier podium wrote such a pod, and its reader refused all that came after it."""
    left_out: list[LeftOut] = []
    content = block_of(bytes([POD]), POD=[[*OWN, OTHERS, STATUS]], SPECS=[{"schedulerName": "x" * (1 << 22)}])
    assert entries_of(content, left_out.append) == []
    assert left_out[0].kind == "Pod"
    assert "at most 4,194,304 are read" in left_out[0].why

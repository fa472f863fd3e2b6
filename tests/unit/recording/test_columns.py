"""Entries as they were noted, and entries from bytes that anybody may have written."""

from __future__ import annotations

import tracemalloc
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from podium.objects.core import Pod, PodStatus
from podium.objects.meta import ObjectMeta
from podium.objects.resource_types import NODES, PODS
from podium.recording import columns, tape
from podium.recording.columns import ColumnWriter, LeftOut, Noted, entries_of
from podium.recording.tape import Decided
from tests.builders import node, pod
from tests.unit.recording.contents import content_of

POD, SPECS = len(tape.NAMES), len(tape.NAMES) + 1
DECIDED = Decided("u", "default/web", "Suggested", "n1", 1, 1, 0, None, ("default/low",))
REFUSED = ("Conflict", "changed", 409, "Conflict", None, False)
ALL: list[tuple[int, Any]] = [
    (tape.NOW, 5.0),
    (tape.MONOTONIC, 0.1),
    (tape.READ, None),
    (tape.PUT, (NODES.path, node("n1"))),
    (tape.REMOVE, (PODS.path, "default/web")),
    (tape.SIGNAL, 0),
    (tape.RESUME, 1),
    (tape.COMPOSE, 1),
    (tape.ANSWER, (1, tape.VALUE, True)),
    (tape.ANSWER, (2, tape.OBJECT, pod("web"))),
    (tape.ANSWER, (3, tape.REFUSED, REFUSED)),
    (tape.ANSWER, (4, tape.CANCELLED, None)),
    (tape.ANSWER, (5, tape.RAISED, "OSError: no")),
    (tape.DECIDED, DECIDED),
    (tape.FAILED, ("u", "unschedulable", "full")),
    (tape.TIME, 7.0),
    (tape.END, None),
]


def written(kinds: Any, **values: Any) -> bytes:
    """A block with these columns, by the names of their kinds."""
    made = [[] for _ in range(SPECS + 1)]
    for name, column in values.items():
        made[{"POD": POD, "SPECS": SPECS}.get(name) or getattr(tape, name)] = column
    return msgspec.msgpack.encode([kinds, *made])


def test_every_kind_of_entry_is_read_as_it_was_noted() -> None:
    entries = entries_of(content_of(*ALL))
    assert [entry[0] for entry in entries] == [kind for kind, _ in ALL]
    assert entries[:3] == [(tape.NOW, 5_000_000_000), (tape.MONOTONIC, 100_000_000), (tape.READ, None)]
    assert entries[3:5] == [(tape.PUT, NODES.path, node("n1")), (tape.REMOVE, PODS.path, "default/web")]
    assert entries[8:10] == [(tape.ANSWER, 1, tape.VALUE, True), (tape.ANSWER, 2, tape.OBJECT, pod("web"))]
    assert entries[10][:3] == (tape.ANSWER, 3, tape.REFUSED)
    assert entries[10][3][2:] == list(REFUSED[2:])
    assert entries[13] == (tape.DECIDED, *DECIDED)
    assert entries[14][:-1] == (tape.FAILED, "u", "unschedulable", "full")
    assert entries[-1] == (tape.END,)


def test_pods_are_read_as_they_were_and_share_their_specs() -> None:
    pods = [
        pod("web-1", uid="a", labels={"app": "web"}, cpu="1"),
        pod("web-2", uid="b", labels={"app": "web"}, cpu="1"),
        pod("web-1", uid="a", labels={"app": "web"}, cpu="1", node="n1"),
        replace(pod("low", uid="c", cpu="2", node="n1"), status=PodStatus(phase="Running")),
        pod("web-3", uid="d", labels={"app": "web"}, cpu="1"),
        pod("web-2", uid="b", labels={"app": "web"}, cpu="1", node="n2"),
    ]
    noted = Noted()
    for each in pods:
        noted.put(PODS.path, each)
    contents = ColumnWriter().contents(*noted.take(4)) + ColumnWriter().contents(*noted.take(4))
    found = [tape.item_of(entry) for content in contents for entry in entries_of(content)]
    assert found == pods
    assert all(each.spec is made.spec for each, made in zip(found, pods, strict=True))


def test_what_replicas_share_is_written_once() -> None:
    alike = [(POD, pod(f"web-{at}", uid=str(at), labels={"app": "storefront"}, cpu="750m")) for at in range(3)]
    content = content_of(*alike)
    assert content.count(b"750m") == content.count(b"storefront") == 1


def test_entries_are_taken_in_order_and_by_number() -> None:
    noted = Noted()
    for number in range(5):
        noted.note(tape.SIGNAL, number)
        noted.note(tape.READ, -number)
    taken = [noted.take(4), noted.take(100)]
    assert [values[tape.SIGNAL] for _, values in taken] == [[0, 1], [2, 3, 4]]
    assert [values[tape.READ] for _, values in taken] == [[0, -1], [-2, -3, -4]]
    assert len(noted) == 0


def test_entries_that_a_reader_would_refuse_for_their_size_are_several_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(columns, "BLOCK_BYTES_MAX", 1000)
    noted = Noted()
    for number in range(50):
        noted.note(tape.FAILED, (str(number), "unschedulable", "x" * 100))
        noted.put(PODS.path, pod(f"web-{number}"))
    contents = ColumnWriter().contents(*noted.take(100))
    assert all(len(each) <= 1000 for each in contents)
    entries = [entry for each in contents for entry in entries_of(each)]
    assert [entry[1] for entry in entries[::2]] == [str(each) for each in range(50)]
    assert [tape.item_of(entry).key for entry in entries[1::2]] == [f"default/web-{each}" for each in range(50)]


# ---------------------------------------------------------------- what podium did not write

OWN = [0, "", "web", "default", "u", "1"]
OTHERS = list(msgspec.structs.astuple(ObjectMeta()))[4:]
STATUS = list(msgspec.structs.astuple(PodStatus()))
SPEC = pod("web").spec
BYTES = msgspec.msgpack.encode(pod("web"))


def test_a_pod_is_read_from_its_row() -> None:
    (entry,) = entries_of(written(bytes([POD]), POD=[[*OWN, OTHERS, STATUS]], SPECS=[SPEC]))
    assert (entry[:2], tape.item_of(entry).key) == ((tape.PUT, PODS.path), "default/web")


@pytest.mark.parametrize("value", ["x", [[]], {"a": 1}, float("nan"), float("inf"), 1e300])
@pytest.mark.parametrize("name", ["NOW", "MONOTONIC", "READ", "SIGNAL", "RESUME", "COMPOSE", "TIME", "FAILED", "END"])
def test_value_of_another_type_is_refused(name: str, value: Any) -> None:
    with pytest.raises(ValueError, match="in it is not as podium writes it"):
        entries_of(written(bytes([getattr(tape, name)]), **{name: [value]}))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("PUT", [NODES.path, "Pod", "text"]),
        ("PUT", [NODES.path, "Pod"]),
        ("REMOVE", [PODS.path]),
        ("ANSWER", [1, tape.REFUSED, ["Nothing", "", 0, "", None, False], b""]),
        ("ANSWER", [1, tape.REFUSED, ["Conflict"], b""]),
        ("ANSWER", [1, tape.OBJECT, "Secret", BYTES]),
        ("ANSWER", [1, tape.OBJECT, None, BYTES]),
        ("ANSWER", [1, tape.VALUE, ["Conflict"], b""]),
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
    kind = POD if name == "POD" else getattr(tape, name)
    with pytest.raises(ValueError, match="in it is not as podium writes it"):
        entries_of(written(bytes([kind]), SPECS=[SPEC], **{name: [value]}))


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\xc1",
        b"\x91" * 100_000 + b"\x90",
        b"\xdd\xff\xff\xff\xff",
        msgspec.msgpack.encode([b""] * 3),
        written(b"", READ=[1]),
        written(bytes([tape.READ])),
        written(bytes([SPECS]), SPECS=[SPEC]),
        written(bytes([99])),
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
    content = written(bytes([tape.READ, tape.PUT, tape.READ]), READ=[1, 2], PUT=[value])
    left_out: list[LeftOut] = []
    assert entries_of(content, left_out.append) == [(tape.READ, 1), (tape.READ, 2)]
    assert [str(each).startswith(f"{value[1]} of a name that is not read: an object") for each in left_out] == [True]


MANY = b"\xdd\x00\x40\x00\x00"


@pytest.mark.parametrize(
    "content",
    [
        MANY + b"\x90" * (1 << 22),
        written(bytes(1 << 22)),
        *(
            b"\xdc\x00\x10\xc4\x00" + b"\x90" * at + MANY + b"\x90" * (1 << 22) + b"\x90" * (SPECS - at)
            for at in range(SPECS + 1)
        ),
        written(bytes([tape.PUT]), PUT=[[PODS.path, "Pod", b"\x80" * ((1 << 22) + 1)]]),
        written(bytes([POD]), POD=[[*OWN, OTHERS, ["", [{}] * (1 << 22), *STATUS[2:]]]]),
        written(bytes([tape.DECIDED]), DECIDED=[[*DECIDED[:-1], ["n"] * (1 << 20)]]),
        written(bytes([tape.ANSWER]), ANSWER=[[1, tape.REFUSED, ["n"] * 1000, b""]]),
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
    """Whether nothing of it is read."""
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
    noted = Noted()
    noted.put(PODS.path, pod("web-1"))
    noted.put(PODS.path if isinstance(item, Pod) else NODES.path, item)
    noted.put(PODS.path, pod("web-2"))
    contents = ColumnWriter(leave_out=left_out.append).contents(*noted.take(10))
    assert [(each.kind, each.key) for each in left_out] == [(type(item).__name__, item.key)]
    read_without: list[LeftOut] = []
    entries = [entry for content in contents for entry in entries_of(content, read_without.append)]
    assert [tape.item_of(entry).key for entry in entries] == ["default/web-1", "default/web-2"]
    assert read_without == left_out


def test_answer_with_an_object_that_no_reader_would_take_says_so() -> None:
    content = content_of((tape.ANSWER, (1, tape.OBJECT, node("evil", labels=_TOO_MANY))))
    (entry,) = entries_of(content)
    assert entry[:3] == (tape.ANSWER, 1, tape.RAISED)
    (entry,) = entries_of(
        content_of((tape.ANSWER, (1, tape.OBJECT, node("large", labels=dict([*_TOO_MANY.items()][:30_000])))))
    )
    assert entry[:3] == (tape.ANSWER, 1, tape.OBJECT)


def test_block_of_an_earlier_podium_with_one_pod_that_is_too_large_is_left_out() -> None:
    """An earlier podium wrote such a pod, and its reader refused all that came after it."""
    left_out: list[LeftOut] = []
    content = written(bytes([POD]), POD=[[*OWN, OTHERS, STATUS]], SPECS=[{"schedulerName": "x" * (1 << 22)}])
    assert entries_of(content, left_out.append) == []
    assert left_out[0].kind == "Pod"
    assert "at most 4,194,304 are read" in left_out[0].why

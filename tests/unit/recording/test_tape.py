"""Entries from bytes that anybody may have written."""

from __future__ import annotations

import tracemalloc
from typing import Any

import msgspec
import pytest

from podium.objects.api_errors import Conflict, OutcomeUnknown, Unreachable, may_have_happened
from podium.objects.resource_types import PODS
from podium.recording import tape
from tests.builders import pod

SOUND: list[list[Any]] = [
    [tape.NOW, 5],
    [tape.MONOTONIC, 0.1],
    [tape.READ, None],
    [tape.PUT, PODS.path, "Pod", msgspec.msgpack.encode(pod("web"))],
    [tape.REMOVE, PODS.path, "default/web"],
    [tape.SIGNAL, 0],
    [tape.RESUME, 1],
    [tape.COMPOSE, 1],
    [tape.ANSWER, 1, tape.VALUE, True],
    [tape.ANSWER, 2, tape.OBJECT, "Pod", msgspec.msgpack.encode(pod("web"))],
    [tape.ANSWER, 3, tape.REFUSED, ["Conflict", "changed", 409, "Conflict", None, False]],
    [tape.ANSWER, 4, tape.CANCELLED, None],
    [tape.ANSWER, 5, tape.RAISED, "OSError: no"],
    [tape.DECIDED, "u", "default/web", "Suggested", "n1", 1, 1, 0, None, ["default/low"]],
    [tape.FAILED, "u", "unschedulable", "full"],
    [tape.TIME, 7],
    [tape.END],
]
JUNK = (None, "x", [[]], {"a": 1}, float("nan"), float("inf"), 1e300)


def decoded(*entries: Any) -> list[tape.Entry]:
    return tape.decode(msgspec.msgpack.encode(entries))


def test_every_kind_of_entry_is_read() -> None:
    assert [entry[0] for entry in decoded(*SOUND)] == [entry[0] for entry in SOUND]
    assert tape.item_of(decoded(SOUND[3])[0]).key == "default/web"


@pytest.mark.parametrize("is_in_doubt", [False, True])
def test_an_error_says_whether_a_request_before_it_may_have_taken_effect(is_in_doubt: bool) -> None:
    error = Conflict("changed", code=409)
    error.__context__ = OutcomeUnknown("broke") if is_in_doubt else Unreachable("no")
    _, _, kind, fields = decoded(tape.outcome_of(3, error))[0]
    again = tape.error_of(fields)
    assert (kind, str(again), may_have_happened(again)) == (tape.REFUSED, "409: changed", is_in_doubt)


@pytest.mark.parametrize("place", range(len(SOUND)))
def test_entry_that_podium_did_not_write_is_refused(place: int) -> None:
    sound = SOUND[place]
    longer, shorter = [*sound, "more"], sound[:-1]
    foreign = [*sound[:-1], {"a": 1}]
    for entry in (longer, shorter, foreign):
        if entry != [tape.END]:
            with pytest.raises(ValueError, match="entry 1 is not as podium writes it"):
                decoded([tape.END], entry)


@pytest.mark.parametrize(
    "entry",
    [
        [],
        [99],
        [-1],
        ["END"],
        [[1]],
        *([tape.TIME, each] for each in JUNK),
        [tape.PUT, PODS.path, "Secret", b"\x80"],
        [tape.PUT, PODS.path, "Pod", b"\xc1"],
        [tape.ANSWER, 1, tape.REFUSED, ["Nothing", "", 0, "", None, False]],
        [tape.ANSWER, 1, tape.REFUSED, ["Conflict"]],
        [tape.ANSWER, 1, 99, None],
        [tape.DECIDED, "u", "default/web", "Suggested", "n1", 1, 1, 0, None, [7]],
    ],
)
def test_entry_without_sense_is_refused(entry: list[Any]) -> None:
    with pytest.raises(ValueError, match="entry 0 is not as podium writes it"):
        decoded(entry)


@pytest.mark.parametrize("content", [b"", b"\xc1", b"\x91" * 100_000 + b"\x90", b"\xdd\xff\xff\xff\xff"])
def test_bytes_that_are_no_entries_are_refused(content: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        tape.decode(content)


@pytest.mark.parametrize(
    "content",
    [
        b"\xdd\x00\x40\x00\x00" + b"\x90" * (1 << 22),
        b"\x91\xdd\x00\x40\x00\x00" + b"\x90" * (1 << 22),
        b"\x91\x92\x02\xdd\x00\x40\x00\x00" + b"\xc0" * (1 << 22),
        b"\x91\x94\x03\xa1p\xa3Pod\xc6\x00\x40\x00\x01" + b"\x80" * ((1 << 22) + 1),
    ],
)
def test_bytes_that_claim_to_be_very_much_take_no_memory(content: bytes) -> None:
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match=r"."):
            tape.decode(content)
        assert tracemalloc.get_traced_memory()[1] < 1 << 23
    finally:
        tracemalloc.stop()

"""Everything that a plugin may do wrong, as tables: what it answers, and what it raises."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from podium.cluster import CacheError
from podium.framework.contract.filter import PreFilterResult
from podium.framework.contract.post_filter import PostFilterResult
from podium.framework.contract.status import SKIP, Code, ScheduleError, Status, unschedulable
from podium.lib.error_text import type_name
from podium.lib.state_table import InvalidTransition
from podium.server.election import LeadershipLostError

Misbehaves = Callable[[], Any]


class MuteError(Exception):
    def __str__(self) -> str:
        raise SystemExit(4)

    __repr__ = __str__


class MuteKeyError(KeyError):
    def __repr__(self) -> str:
        raise RuntimeError("no repr")

    __str__ = __repr__


class EvilText(str):
    """A text that fails whatever is done with it."""

    def __len__(self) -> int:
        raise SystemExit(7)

    __str__ = __repr__ = __format__ = __getitem__ = __hash__ = __len__  # type: ignore[assignment]


class EvilTextError(Exception):
    def __str__(self) -> str:
        return EvilText("evil")


class Nameless(type):
    @property
    def __name__(cls) -> str:
        raise SystemExit(8)


class NamelessError(Exception, metaclass=Nameless):
    pass


class MuteValue:
    def __repr__(self) -> str:
        raise KeyboardInterrupt

    __str__ = __repr__


class LyingStatus(Status):
    """Is a Status, but not one that can be read."""

    @property
    def code(self) -> Any:
        raise SystemExit(5)

    def __init__(self) -> None:
        pass


def raising(error: BaseException) -> Misbehaves:
    def fail() -> Any:
        raise error

    return fail


def answering(answer: Any) -> Misbehaves:
    return lambda: answer


def _a_coroutine() -> Any:
    async def wait() -> None:
        pass

    coroutine = wait()
    coroutine.close()  # or Python warns, whenever it comes to collect it
    return coroutine


EXCEPTIONS: Mapping[str, Misbehaves] = {
    f"raises {number} {type_name(error)}": raising(error)
    for number, error in enumerate(
        (
            KeyError("team"),
            ValueError("\ud800 \x1b[31m"),
            ValueError("x" * 1_000_000),
            MemoryError(),
            RecursionError(),
            StopIteration(7),
            StopAsyncIteration(),
            TimeoutError(),
            MuteError(),
            MuteKeyError(),
            EvilTextError(),
            NamelessError(),
            ExceptionGroup("two", [ValueError("a"), OSError("b")]),
            BaseExceptionGroup("two", [SystemExit(6), asyncio.CancelledError()]),
            SystemExit(0),
            SystemExit("bye"),
            KeyboardInterrupt(),
            asyncio.CancelledError(),
            asyncio.CancelledError("Cancelled by cancel scope"),
            GeneratorExit(),
            BaseException("bare"),
            ScheduleError("as the framework would"),
            CacheError("as the cache would"),
            LeadershipLostError("as the elector would"),
            InvalidTransition("queue", Code.ERROR, Code.SKIP),
        )
    )
}

ODD_VALUES: Mapping[str, Misbehaves] = {
    "answers True": answering(True),
    "answers False": answering(False),
    "answers 0": answering(0),
    "answers a text": answering("no"),
    "answers a fraction": answering(3.5),
    "answers NaN": answering(float("nan")),
    "answers bytes": answering(b"no"),
    "answers an empty list": answering([]),
    "answers a long list": answering([1] * 1000),
    "answers a class": answering(Status),
    "answers a mute value": answering(MuteValue()),
    "answers a coroutine": _a_coroutine,
    "answers an array of objects": answering(np.array([None, "a"], object)),
}

ODD_STATUSES: Mapping[str, Misbehaves] = {
    "a number as a reason": lambda: unschedulable(42),  # type: ignore[arg-type]
    "a list as a reason": lambda: unschedulable(["no"]),  # type: ignore[arg-type]
    "a list of reasons": lambda: Status(Code.UNSCHEDULABLE, ["no"]),  # type: ignore[arg-type]
    "a text as reasons": lambda: Status(Code.UNSCHEDULABLE, "no"),  # type: ignore[arg-type]
    "no reasons": lambda: Status(Code.UNSCHEDULABLE, None),  # type: ignore[arg-type]
    "a code of 99": lambda: Status(99),  # type: ignore[arg-type]
    "a code of 2": lambda: Status(2),  # type: ignore[arg-type]
    "a code of True": lambda: Status(True),  # type: ignore[arg-type]
    "a code of text": lambda: Status("Error"),  # type: ignore[arg-type]
    "a text as the error": lambda: Status(Code.ERROR, error="no"),  # type: ignore[arg-type]
    "a number as the plugin": lambda: Status(Code.UNSCHEDULABLE, (), 42),  # type: ignore[arg-type]
    "a status that lies": LyingStatus,
}
MISPLACED: Mapping[str, Misbehaves] = {
    "Wait": answering(Status(Code.WAIT)),
    "Skip": answering(SKIP),
}

STATUSES = {**EXCEPTIONS, **ODD_VALUES, **ODD_STATUSES}


def in_pairs(table: Mapping[str, Misbehaves], front: bool, neighbour: Any) -> dict[str, Misbehaves]:
    """The same answers in a pair, in front or behind."""

    def pair(misbehave: Misbehaves) -> Misbehaves:
        return lambda: (misbehave(), neighbour) if front else (neighbour, misbehave())

    return {f"{name} in a pair": pair(misbehave) for name, misbehave in table.items()}


PRE_FILTER_RESULTS: Mapping[str, Misbehaves] = {
    "a text as names": lambda: (PreFilterResult("n1"), None),  # type: ignore[arg-type]
    "a list as names": lambda: (PreFilterResult(["n1"]), None),  # type: ignore[arg-type]
    "no names": lambda: (PreFilterResult(None), None),  # type: ignore[arg-type]
    "numbers as names": lambda: (PreFilterResult(frozenset({1, 2})), None),  # type: ignore[arg-type]
    "three": answering((None, None, None)),
    "None": answering(None),
    "a status alone": lambda: unschedulable("no"),
}
POST_FILTER_RESULTS: Mapping[str, Misbehaves] = {
    "a number as the node": lambda: (PostFilterResult(42), None),  # type: ignore[arg-type]
    "numbers as victims": lambda: (PostFilterResult("n1", (1, 2)), None),  # type: ignore[arg-type]
    "a text as victims": lambda: (PostFilterResult("n1", "web"), None),  # type: ignore[arg-type]
    "no victims": lambda: (PostFilterResult("n1", None), None),  # type: ignore[arg-type]
    "None": answering(None),
    "a result alone": lambda: PostFilterResult("n1"),
}
SECONDS: Mapping[str, Misbehaves] = {
    f"waits {seconds!r}": answering((Status(Code.WAIT), seconds))
    for seconds in (float("nan"), float("inf"), -1, float("-inf"), None, "5", True, [1], np.array([1.0, 2.0]), 1j)
}
VERDICTS: Mapping[str, Misbehaves] = {
    "verdicts of one too many": answering(np.ones(99, np.int64)),
    "no verdicts": answering(np.ones(0, np.int64)),
    "verdicts in a table": answering(np.ones((1, 1), np.int64)),
    "one verdict": answering(np.int64(1)),
    "fractions": answering(np.array([0.5])),
    "truth values": answering(np.array([True])),
    "texts": answering(np.array(["a"])),
    "objects": answering(np.array([None])),
    "a list": answering([1]),
}
SCORES: Mapping[str, Misbehaves] = {
    "a score of NaN": answering(float("nan")),
    "a score of None": answering(None),
    "a score of True": answering(True),
    "a score of 10**30": answering(10**30),
    "a score of -1": answering(-1),
    "a score of 101": answering(101),
    "a score of text": answering("5"),
    "a fraction": answering(5.0),
    "a list": answering([5]),
    "an array": answering(np.array([5, 5])),
    "a table": answering(np.ones((1, 1), np.int64)),
    "NumPy's True": answering(np.bool_(True)),
    "a status": answering(unschedulable("no")),
}
SCORES_OF_ROWS: Mapping[str, Misbehaves] = {
    "one too many": answering(np.ones(99, np.int64)),
    "none": answering(np.ones(0, np.int64)),
    "a table of scores": answering(np.ones((2, 1), np.int64)),
    "fractions": answering(np.array([0.5, 0.5])),
    "NaN": answering(np.array([np.nan, np.nan])),
    "truth values": answering(np.array([True, False])),
    "objects": answering(np.array([None, 1], object)),
    "texts": answering(["1", "2"]),
    "below 0": answering(np.array([-1, 5])),
    "above 100": answering(np.array([101, 5])),
    "None": answering(None),
}

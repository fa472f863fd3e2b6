"""What kube-scheduler answered, by minor, beside podium's answers.

Each set of questions has a file for each minor whose answers were recorded. Where none is named, the newest is meant.
`Absent and empty mean the same` in a recorded answer, so both sides are compared without what is empty.
"""

from __future__ import annotations

import functools
import gzip
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from podium.config import RELEASES, default_configuration, default_gates
from podium.insight.evaluate import Evaluator

DATA = Path(__file__).parent / "data"
SCENARIOS, SEQUENCES, HINTS, SELECTORS = "kube-scheduler", "sequences", "hints", "cel"
DEVICES, DEVICE_HINTS = "devices", "devices-hints"
POD_GROUPS = "podgroups"

_CEL_ERRORS = ("CEL compile error", "CEL runtime error")
_EMPTY: tuple[Any, ...] = ({}, [], "", None)


class _Identified(msgspec.Struct):
    id: str


_ID = msgspec.json.Decoder(_Identified)


@dataclass(frozen=True)
class Case:
    """One recorded question: its id, upstream's answer, and podium's."""

    id: str
    recorded_answer: Any
    answer: Any

    @functools.cached_property
    def differences(self) -> list[str]:
        """Where the answers differ, each by its path."""
        return [f"{self.id}: {difference}" for difference in differences(self.recorded_answer, self.answer)]


def minors(name: str) -> list[str]:
    """The minors of which a set has answers, the oldest first."""
    return sorted(path.name[len(name) + 1 :].rpartition(".jsonl")[0].rpartition(".")[0] for path in _files(name))


def by_minor(*names: str) -> list[tuple[str, str, str]]:
    """Each kind of questions in these sets, with the minor that answers were recorded of."""
    return [(name, minor, category) for name in names for minor in minors(name) for category in categories(name, minor)]


@functools.cache
def categories(name: str, minor: str = "") -> list[str]:
    """The kinds of questions in a set, in the order of the file."""
    # Every worker asks for them, and few answer the questions: read the ids alone.
    with gzip.open(_file(name, minor)) as lines:
        return list(dict.fromkeys(category_of(_ID.decode(line).id) for line in lines))


@functools.cache
def evaluator_of(minor: str) -> Evaluator:
    """Return what answers by the rules of a minor."""
    return Evaluator(config=default_configuration(default_gates(RELEASES[minor])))


def cases(name: str, category: str, minor: str = "", decided_as: str = "") -> tuple[Case, ...]:
    """The questions of one kind, answered; by the rules of the same minor, unless another is given."""
    recorded_minor = minor or minors(name)[-1]
    return _answer_cases(name, category, recorded_minor, decided_as or recorded_minor)


@functools.cache
def _answer_cases(name: str, category: str, minor: str, decided_as: str) -> tuple[Case, ...]:
    # However a caller leaves the newest minor out, its questions are answered once.
    evaluator = evaluator_of(decided_as)
    case_list = []
    for scenario, line in scenarios(name, minor):
        if category_of(scenario["id"]) == category:
            answer = evaluator.answer_line(line, scenario["id"])
            assert answer.pop("id") == scenario["id"]
            expected_answer = scenario["expect"]
            answer = without_unrecorded(answer, expected_answer)
            case_list.append(Case(scenario["id"], comparable(expected_answer), comparable(as_json(answer))))
    return tuple(case_list)


def all_cases(name: str, minor: str = "", decided_as: str = "") -> Iterator[Case]:
    """Every question of a set, answered."""
    for category in categories(name, minor):
        yield from cases(name, category, minor, decided_as)


def without_unrecorded(answer: Any, expected_answer: Any) -> Any:
    """The answer without the messages of a queue's pods, where upstream's were not recorded."""
    unrecorded = {"messages"} - expected_answer.keys()
    return {name: value for name, value in answer.items() if name not in unrecorded}


def comparable(answer: Any) -> Any:
    """The answer without what is as good as absent, without the words in which an expression is found wrong, and
    without what no two runs have in common: the ids of shares and the times of allocations."""
    error = answer.get("error", "")
    for words in _CEL_ERRORS:
        if words in error:
            return {**answer, "error": error.partition(words)[0] + "CEL error"}
    return without_empty(answer)


def without_empty(value: Any) -> Any:
    """The value without the members that are as good as absent, or differ in each run."""
    if isinstance(value, dict):
        members = {key: "*" if key == "shareID" else without_empty(member) for key, member in value.items()}
        return {key: member for key, member in members.items() if member not in _EMPTY and key != "allocationTimestamp"}
    if isinstance(value, list):
        return [without_empty(member) for member in value]
    return value


def differences(expected_value: Any, answer: Any, path: str = "") -> Iterator[str]:
    """Each member that is not the same on both sides."""
    if isinstance(expected_value, dict) and isinstance(answer, dict):
        for key in sorted(expected_value.keys() | answer.keys()):
            yield from differences(expected_value.get(key), answer.get(key), f"{path}.{key}" if path else key)
    elif expected_value != answer:
        yield f"{path}: expected {expected_value!r:.300}, got {answer!r:.300}"


def scenarios(name: str, minor: str = "") -> tuple[tuple[dict[str, Any], bytes], ...]:
    """The questions of a set with their answers, each parsed and as its line."""
    return _read(_file(name, minor))


@functools.cache
def _read(path: Path) -> tuple[tuple[dict[str, Any], bytes], ...]:
    with gzip.open(path) as lines:
        return tuple((json.loads(line), line) for line in lines)


def _file(name: str, minor: str) -> Path:
    (path,) = (path for path in _files(name) if path.name.startswith(f"{name}-{minor or minors(name)[-1]}."))
    return path


def _files(name: str) -> list[Path]:
    return list(DATA.glob(f"{name}-1.*.jsonl.gz"))


def category_of(scenario_id: str) -> str:
    return scenario_id.rpartition("-")[0]


def as_json(answer: Any) -> Any:
    return json.loads(json.dumps(answer))

"""What kube-scheduler 1.36.2 answered, beside podium's answers.

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

from podium.insight.evaluate import Evaluator

DATA = Path(__file__).parent / "data"
SCENARIOS, SEQUENCES, HINTS, SELECTORS = "kube-scheduler", "sequences", "hints", "cel"
DEVICES, DEVICE_HINTS = "devices", "devices-hints"
POD_GROUPS = "podgroups"

_CEL_ERRORS = ("CEL compile error", "CEL runtime error")
_EMPTY: tuple[Any, ...] = ({}, [], "", None)


@dataclass(frozen=True)
class Case:
    """One recorded question: its id, upstream's answer, and podium's."""

    id: str
    recorded_answer: Any
    answer: Any

    @property
    def differences(self) -> list[str]:
        """Where the answers differ, each by its path."""
        return [f"{self.id}: {difference}" for difference in differences(self.recorded_answer, self.answer)]


def categories(name: str) -> list[str]:
    """The kinds of questions in a set, in the order of the file."""
    return list(dict.fromkeys(category_of(scenario["id"]) for scenario, _ in scenarios(name)))


@functools.cache
def cases(name: str, category: str) -> tuple[Case, ...]:
    """The questions of one kind, answered."""
    evaluator = Evaluator()
    case_list = []
    for scenario, line in scenarios(name):
        if category_of(scenario["id"]) == category:
            answer = evaluator.answer_line(line, scenario["id"])
            assert answer.pop("id") == scenario["id"]
            expected_answer = scenario["expect"]
            answer = without_unrecorded(answer, expected_answer)
            case_list.append(Case(scenario["id"], comparable(expected_answer), comparable(as_json(answer))))
    return tuple(case_list)


def all_cases(name: str) -> Iterator[Case]:
    """Every question of a set, answered."""
    for category in categories(name):
        yield from cases(name, category)


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


@functools.cache
def scenarios(name: str) -> tuple[tuple[dict[str, Any], bytes], ...]:
    with gzip.open(DATA / f"{name}-1.36.2.jsonl.gz") as lines:
        return tuple((json.loads(line), line) for line in lines)


def category_of(scenario_id: str) -> str:
    return scenario_id.rpartition("-")[0]


def as_json(answer: Any) -> Any:
    return json.loads(json.dumps(answer))

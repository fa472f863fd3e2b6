"""Every combination is computed once, whatever becomes of workers."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from concurrent.futures import BrokenExecutor, Executor, Future
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest

from podium.recording.outcomes import Outcomes
from podium.recording.sweep import Combination, Result, SweepError, grid_documents, result_of, sweep, table
from tests.unit.recording.test_outcomes import GOOD

COMBINATIONS = [Combination("/monday", f"weight={weight}", "{}") for weight in range(4)]
DOCUMENT = {"profiles": [{"plugins": {"multiPoint": {"enabled": [{"name": "A", "weight": 1}, {"name": "B"}]}}}]}


def result(combination: Combination, outcomes: Outcomes | None = GOOD, error: str = "") -> Result:
    return Result(combination.key, combination.directory, combination.name, outcomes, error)


class AtOnce(Executor):
    """Computes at once, and loses the worker of the combinations that `dies` names."""

    def __init__(self, dies: Callable[[str], bool]) -> None:
        self.dies = dies
        self.asked: list[str] = []

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        (combination,) = args
        self.asked.append(combination.name)
        if self.dies(combination.name):
            future.set_exception(BrokenExecutor("killed"))
        else:
            future.set_result(fn(combination))
        return future


def run_with(executor: AtOnce, earlier: dict[str, Result] | None = None) -> list[Result]:
    @contextmanager
    def make() -> Iterator[Executor]:
        yield executor

    return list(sweep(COMBINATIONS, make, earlier or {}, run=result))


def test_lost_worker_costs_only_its_combination() -> None:
    lives = iter([True])
    executor = AtOnce(lambda name: name == "weight=2" and next(lives, False))
    results = run_with(executor)
    assert sorted(row.configuration for row in results) == [row.name for row in COMBINATIONS]
    assert not any(row.error for row in results)
    assert len(executor.asked) == 5


def test_combination_that_ends_every_worker_is_given_up() -> None:
    results = run_with(AtOnce(lambda name: name == "weight=2"))
    assert [row.configuration for row in results if row.error] == ["weight=2"]
    assert len(results) == 4


def test_known_results_are_not_computed_again() -> None:
    executor = AtOnce(lambda _: False)
    earlier = {COMBINATIONS[1].key: result(COMBINATIONS[1])}
    assert len(run_with(executor, earlier)) == 4
    assert "weight=1" not in executor.asked


def test_result_survives_a_file() -> None:
    for expected_result in (result(COMBINATIONS[0]), result(COMBINATIONS[0], None, "no recording")):
        assert result_of(json.loads(json.dumps(expected_result.as_value()))) == expected_result


def test_key_changes_with_the_recording_and_the_configuration() -> None:
    combination = COMBINATIONS[0]
    assert combination.key == replace(combination).key
    assert (
        len({combination.key, replace(combination, fingerprint="grown").key, replace(combination, document="[]").key})
        == 3
    )


def test_grid_has_every_combination_of_weights() -> None:
    documents = dict(grid_documents(DOCUMENT, {"A": (1, 5), "B": (2, 3)}))
    assert list(documents) == ["A=1 B=2", "A=1 B=3", "A=5 B=2", "A=5 B=3"]
    plugins = json.loads(documents["A=5 B=2"])["profiles"][0]["plugins"]["multiPoint"]["enabled"]
    assert [plugin["weight"] for plugin in plugins] == [5, 2]
    assert DOCUMENT["profiles"][0]["plugins"]["multiPoint"]["enabled"][0]["weight"] == 1


def test_weight_of_a_plugin_that_is_not_enabled_is_refused() -> None:
    with pytest.raises(SweepError, match="no profile enables the plugin Missing"):
        list(grid_documents(DOCUMENT, {"Missing": (1,)}))


def test_table_does_not_depend_on_the_order_and_marks_the_front() -> None:
    worse = replace(GOOD, pending=9)
    results = [result(COMBINATIONS[1], worse), result(COMBINATIONS[0]), result(COMBINATIONS[2], None, "lost")]
    rows = table(results)
    assert rows == table(reversed(results))
    assert [(row["configuration"], row["on_front"]) for row in rows] == [
        ("weight=0", True),
        ("weight=1", False),
        ("weight=2", False),
    ]

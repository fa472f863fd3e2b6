"""Replays recordings counterfactually with many configurations, on several processes or machines.

Owns what a combination is, its key, and what happens when a worker is lost: only what it was working on is done again.
The executor is a value from outside, so that a pool of processes and a Dask cluster are used alike.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, Future, wait
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path
from typing import Any, Final

import podium
from podium.config import ConfigError, load, parse_feature_gates
from podium.framework.profile.runtime import registry_of
from podium.lib import log
from podium.lib.error_text import UserFacingError, error_text
from podium.plugins.loading.discovery import DiscoveryError, discover
from podium.recording.counterfactual import replay_counterfactually
from podium.recording.outcomes import Outcomes, pareto_front
from podium.recording.segments import segment_paths

_TRIES_MAX: Final = 4
"""A combination that was under way each time when so many workers were lost is given up: it may be what ends them."""

MakeExecutor = Callable[[], AbstractContextManager[Executor]]


class SweepError(UserFacingError):
    """A sweep cannot be made as asked for."""


@dataclass(frozen=True, slots=True)
class Combination:
    """A recording and a configuration.

    Attributes:
        name: of the configuration, as it is shown.
        document: the configuration as JSON.
        plugins: references of custom plugins, as the command line names them; a recording's are never loaded.
        fingerprint: changes with the content of the recording.
    """

    directory: str
    name: str
    document: str
    plugins: tuple[str, ...] = ()
    feature_gates: tuple[str, ...] = ()
    fingerprint: str = ""

    @property
    def key(self) -> str:
        """The same for the same question to the same version of podium."""
        content = json.dumps([podium.__version__, *asdict(self).values()])
        return hashlib.sha256(content.encode()).hexdigest()[:32]


@dataclass(frozen=True, slots=True)
class Result:
    """The outcomes of one combination, or why there are none; `left_out` says what the recording lacks."""

    key: str
    recording: str
    configuration: str
    outcomes: Outcomes | None = None
    error: str = ""
    left_out: str = ""

    def as_value(self) -> dict[str, Any]:
        """As JSON values."""
        return asdict(self)


def result_of(value: Mapping[str, Any]) -> Result:
    """The result from its JSON values. Raises: KeyError, TypeError."""
    numbers = value["outcomes"]
    outcomes = None if numbers is None else Outcomes(**numbers)
    question = value["key"], value["recording"], value["configuration"]
    return Result(*question, outcomes, value["error"], value.get("left_out", ""))


def fingerprint_of(directory: Path) -> str:
    """A recording's segments with their sizes. Raises: OSError."""
    return ",".join(f"{path.name}:{path.stat().st_size}" for path in segment_paths(directory))


def grid_documents(document: Mapping[str, Any], grid: Mapping[str, Sequence[int]]) -> Iterator[tuple[str, str]]:
    """The configuration with each combination of score weights, in all its profiles: names and documents.

    Args:
        document: an effective configuration, as JSON values.
        grid: weights by plugin.

    Raises:
        SweepError: no profile enables a plugin of the grid.
    """
    for weights in product(*grid.values()):
        chosen = dict(zip(grid, weights, strict=True))
        changed = json.loads(json.dumps(document))
        for name, weight in chosen.items():
            _set_weight(changed, name, weight)
        yield " ".join(f"{name}={weight}" for name, weight in chosen.items()), json.dumps(changed)


def _set_weight(document: dict[str, Any], name: str, weight: int) -> None:
    is_found = False
    for profile in document["profiles"]:
        for point in ("multiPoint", "score"):
            for plugin in profile["plugins"].get(point, {}).get("enabled", ()):
                if plugin["name"] == name:
                    plugin["weight"] = weight
                    is_found = True
    if not is_found:
        raise SweepError(f"no profile enables the plugin {name}, whose weight is to be varied")


def run_on_dask(combination: Combination) -> Result:
    """As `run_combination`, on a worker of a Dask cluster, as long as the sweep that asks for it is there.

    Dask drops what a client has asked for when its connection ends. It cannot stop what runs.
    """
    from distributed import get_worker

    worker = get_worker()
    task = worker.state.tasks[worker.get_current_task()]
    return run_combination(combination, lambda: task.state != "cancelled")


def run_combination(combination: Combination, is_wanted: Callable[[], bool] | None = None) -> Result:
    """Replay one combination, without a log. What cannot be used is told in the result.

    Args:
        is_wanted: as that of `replay_counterfactually`.
    """
    done = (combination.key, combination.directory, combination.name)
    try:
        plugins = discover(combination.plugins)
        gates = parse_feature_gates(combination.feature_gates)
        config = load(combination.document, combination.name, registry_of(plugins), gates).config
        with log.hidden():
            found = replay_counterfactually(Path(combination.directory), config, plugins, is_wanted=is_wanted)
    except (UserFacingError, ConfigError, DiscoveryError, OSError) as error:
        return Result(*done, error=error_text(error))
    return Result(*done, found.outcomes, found.damage, str(found.left_out))


def sweep(
    combinations: Sequence[Combination],
    make_executor: MakeExecutor,
    known: Mapping[str, Result],
    *,
    lost: tuple[type[Exception], ...] = (BrokenExecutor,),
    run: Callable[[Combination], Result] = run_combination,
) -> Iterator[Result]:
    """The results of all combinations, as they become ready; those that are `known` come first.

    Args:
        known: results of an earlier sweep, by key.
        lost: what a future of the executor raises if its worker has died.
    """
    waiting = {each.key: each for each in combinations}
    for key in [key for key in waiting if key in known]:
        del waiting[key]
        yield known[key]
    tries = dict.fromkeys(waiting, 0)
    while waiting:
        with make_executor() as executor:
            futures = {executor.submit(run, each): key for key, each in waiting.items()}
            for future, key in _completed(futures):
                result = _result(future, waiting[key], tries, lost)
                if result is not None:
                    del waiting[key]
                    yield result


def _completed(futures: Mapping[Future[Result], str]) -> Iterator[tuple[Future[Result], str]]:
    waiting = set(futures)
    while waiting:
        done, waiting = wait(waiting, return_when=FIRST_COMPLETED)
        for future in sorted(done, key=lambda each: futures[each]):
            yield future, futures[future]


def _result(
    future: Future[Result], combination: Combination, tries: dict[str, int], lost: tuple[type[Exception], ...]
) -> Result | None:
    """The result; None if the worker was lost and the combination is to be tried again."""
    try:
        return future.result()
    except lost as error:
        tries[combination.key] += 1
        if tries[combination.key] < _TRIES_MAX:
            return None
        why = f"its worker was lost {_TRIES_MAX} times: {error_text(error)}"
    return Result(combination.key, combination.directory, combination.name, error=why)


def table(results: Iterable[Result]) -> list[dict[str, Any]]:
    """The results as rows with equal names, in an order that does not depend on which was ready first.

    Each has `on_front`: whether no other result of the same recording beats it.
    """
    ordered = sorted(results, key=lambda each: (each.recording, each.configuration, each.key))
    good = {each.key: each.outcomes for each in ordered if each.outcomes is not None}
    front: set[str] = set()
    for recording in {each.recording for each in ordered}:
        keys = [each.key for each in ordered if each.recording == recording and each.key in good]
        marks = pareto_front([good[key] for key in keys])
        front.update(key for key, is_on_front in zip(keys, marks, strict=True) if is_on_front)
    rows = []
    for each in ordered:
        numbers = {} if each.outcomes is None else each.outcomes.as_value()
        shown = {"recording": each.recording, "configuration": each.configuration, "on_front": each.key in front}
        lacks = {"left_out": each.left_out} if each.left_out else {}
        rows.append({**shown, **numbers, **lacks, "error": each.error})
    return rows

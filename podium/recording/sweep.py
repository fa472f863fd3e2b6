"""Replays recordings counterfactually with many configurations, on several processes or machines.

Owns the combinations, their keys, and the recovery from a lost worker, which repeats only its combinations. The
caller supplies the executor, so that a pool of processes and a Dask cluster work alike.
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
from podium.config import NEWEST, RELEASES, ConfigError, load, parse_feature_gates
from podium.framework.profile.runtime import registry_of
from podium.lib import log
from podium.lib.error_text import UserFacingError, error_text
from podium.plugins.loading.discovery import DiscoveryError, discover
from podium.recording.counterfactual import replay_counterfactually
from podium.recording.outcomes import Outcomes, pareto_front
from podium.recording.segments import segment_paths

_TRIES_MAX: Final = 4
"""A combination that ran during this many losses of workers is given up: it may be their cause."""

MakeExecutor = Callable[[], AbstractContextManager[Executor]]


class SweepError(UserFacingError):
    """A sweep was requested that cannot run."""


@dataclass(frozen=True, slots=True)
class Combination:
    """A recording and a configuration.

    Attributes:
        name: the display name of the configuration.
        document: the configuration as JSON.
        plugins: the custom plugins of the command line; those that a recording names are never loaded.
        fingerprint: changes with the content of the recording.
        decides_as: the minor of Kubernetes whose rules decide.
    """

    directory: str
    name: str
    document: str
    plugins: tuple[str, ...] = ()
    feature_gates: tuple[str, ...] = ()
    fingerprint: str = ""
    decides_as: str = NEWEST.minor

    @property
    def key(self) -> str:
        """A hash of the combination and the version of podium."""
        # With the version: results of another podium are computed anew.
        content = json.dumps([podium.__version__, *asdict(self).values()])
        return hashlib.sha256(content.encode()).hexdigest()[:32]


@dataclass(frozen=True, slots=True)
class Result:
    """The outcomes of one combination, or the error. `left_out` says what the recording lacks."""

    key: str
    recording: str
    configuration: str
    outcomes: Outcomes | None = None
    error: str = ""
    left_out: str = ""

    def as_value(self) -> dict[str, Any]:
        """Return the result as JSON values."""
        return asdict(self)


def result_of(value: Mapping[str, Any]) -> Result:
    """Read a result from its JSON values. Raises: KeyError, TypeError."""
    numbers = value["outcomes"]
    outcomes = None if numbers is None else Outcomes(**numbers)
    question = value["key"], value["recording"], value["configuration"]
    return Result(*question, outcomes, value["error"], value.get("left_out", ""))


def fingerprint_of(directory: Path) -> str:
    """Return the names and sizes of a recording's segments. Raises: OSError."""
    return ",".join(f"{path.name}:{path.stat().st_size}" for path in segment_paths(directory))


def grid_documents(document: Mapping[str, Any], grid: Mapping[str, Sequence[int]]) -> Iterator[tuple[str, str]]:
    """Yield a name and a document per combination of score weights, which apply to all profiles.

    Args:
        document: an effective configuration, as JSON values.
        grid: weights by plugin.

    Raises:
        SweepError: no profile enables a plugin of the grid.
    """
    for weights in product(*grid.values()):
        point = dict(zip(grid, weights, strict=True))
        # A deep copy, by way of JSON, since the document is JSON.
        variant = json.loads(json.dumps(document))
        for name, weight in point.items():
            _set_weight(variant, name, weight)
        yield " ".join(f"{name}={weight}" for name, weight in point.items()), json.dumps(variant)


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
    """Run a combination on a worker of a Dask cluster while the client of the sweep is connected.

    Dask cancels the tasks of a client whose connection ends, but cannot stop a running one, so the replay asks.
    """
    from distributed import get_worker

    worker = get_worker()
    task = worker.state.tasks[worker.get_current_task()]
    return run_combination(combination, lambda: task.state != "cancelled")


def run_combination(combination: Combination, is_wanted: Callable[[], bool] | None = None) -> Result:
    """Replay one combination, without a log. Errors of its inputs are part of the result.

    Args:
        is_wanted: see `replay_counterfactually`.
    """
    identity = (combination.key, combination.directory, combination.name)
    try:
        plugins = discover(combination.plugins)
        gates = parse_feature_gates(combination.feature_gates, RELEASES[combination.decides_as])
        config = load(combination.document, combination.name, registry_of(plugins), gates).config
        with log.hidden():
            counterfactual = replay_counterfactually(Path(combination.directory), config, plugins, is_wanted=is_wanted)
    except (UserFacingError, ConfigError, DiscoveryError, OSError) as error:
        return Result(*identity, error=error_text(error))
    return Result(*identity, counterfactual.outcomes, counterfactual.damage, str(counterfactual.left_out))


def sweep(
    combinations: Sequence[Combination],
    make_executor: MakeExecutor,
    results: Mapping[str, Result],
    *,
    loss_errors: tuple[type[Exception], ...] = (BrokenExecutor,),
    run: Callable[[Combination], Result] = run_combination,
) -> Iterator[Result]:
    """Yield the results of all combinations as they become ready, those of an earlier sweep first.

    Args:
        results: the results of an earlier sweep, by key.
        loss_errors: the exceptions of a future whose worker died.
    """
    waiting = {combination.key: combination for combination in combinations}
    for key in [key for key in waiting if key in results]:
        del waiting[key]
        yield results[key]
    tries = dict.fromkeys(waiting, 0)
    # A lost worker breaks the whole executor of concurrent.futures, so what is left starts over with a new one.
    while waiting:
        with make_executor() as executor:
            futures = {executor.submit(run, combination): key for key, combination in waiting.items()}
            for future, key in _as_completed(futures):
                result = _result(future, waiting[key], tries, loss_errors)
                if result is not None:
                    del waiting[key]
                    yield result


def _as_completed(futures: Mapping[Future[Result], str]) -> Iterator[tuple[Future[Result], str]]:
    waiting = set(futures)
    while waiting:
        finished, waiting = wait(waiting, return_when=FIRST_COMPLETED)
        # In the order of keys: which one was ready first must not show in a report.
        for future in sorted(finished, key=futures.__getitem__):
            yield future, futures[future]


def _result(
    future: Future[Result], combination: Combination, tries: dict[str, int], loss_errors: tuple[type[Exception], ...]
) -> Result | None:
    """Return the result; None if the worker was lost and the combination is to be retried."""
    try:
        return future.result()
    except loss_errors as error:
        tries[combination.key] += 1
        if tries[combination.key] < _TRIES_MAX:
            return None
        reason = f"its worker was lost {_TRIES_MAX} times: {error_text(error)}"
    return Result(combination.key, combination.directory, combination.name, error=reason)


def table(results: Iterable[Result]) -> list[dict[str, Any]]:
    """Return one row per result, in an order that does not depend on which was ready first.

    `on_front` is True in the rows that no other result of the same recording dominates.
    """
    rows = sorted(results, key=lambda result: (result.recording, result.configuration, result.key))
    outcomes = {result.key: result.outcomes for result in rows if result.outcomes is not None}
    front: set[str] = set()
    for recording in {result.recording for result in rows}:
        keys = [result.key for result in rows if result.recording == recording and result.key in outcomes]
        marks = pareto_front([outcomes[key] for key in keys])
        front.update(key for key, is_on_front in zip(keys, marks, strict=True) if is_on_front)
    return [
        {
            "recording": result.recording,
            "configuration": result.configuration,
            "on_front": result.key in front,
            **({} if result.outcomes is None else result.outcomes.as_value()),
            **({"left_out": result.left_out} if result.left_out else {}),
            "error": result.error,
        }
        for result in rows
    ]

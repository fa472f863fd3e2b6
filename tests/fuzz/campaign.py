"""Inputs in batches, each from a seed of its own, until the time is over."""

from __future__ import annotations

import logging
import time
import traceback
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import structlog
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from hypothesis.errors import HypothesisWarning

from tests.fuzz import configuration, objects, watch_bytes

BATCH: Final = 50


class Surface(NamedTuple):
    """Where bytes come in from outside. `check` returns the seconds of the longest stall."""

    name: str
    inputs: Callable[[], st.SearchStrategy[Any]]
    check: Callable[[Any], float]


SURFACES: Final = (
    Surface("configuration", configuration.inputs, configuration.check),
    Surface("objects", objects.inputs, objects.check),
    Surface("watch", watch_bytes.inputs, watch_bytes.check),
)


@dataclass
class Tally:
    """What has come of a surface."""

    surface: str
    inputs: int = 0
    batches: int = 0
    longest_s: float = 0.0
    findings: dict[str, str] = field(default_factory=dict)
    """By what tells one from the other: how to see it again."""


def run_batch(surface: Surface, number: int, examples: int, tally: Tally, *, shrink: bool = False) -> None:
    """The inputs of one seed, up to the first that does harm.

    Args:
        shrink: look for a smaller one then, which takes long.

    Raises: what that input raises; its notes show the input.
    """
    phases = (Phase.generate, Phase.shrink) if shrink else (Phase.generate,)

    @seed(number)
    @settings(
        max_examples=examples,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
        phases=phases,
    )
    @given(surface.inputs())
    def run(given_input: Any) -> None:
        tally.inputs += 1
        tally.longest_s = max(tally.longest_s, surface.check(given_input))

    run()
    tally.batches += 1


def run_for(surface: Surface, seconds: float, first_seed: int) -> Tally:
    """Batch after batch; a finding does not end it."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    tally = Tally(surface.name)
    ends_s, number = time.monotonic() + seconds, first_seed
    while time.monotonic() < ends_s:
        try:
            run_batch(surface, number, BATCH, tally)
        except Exception as error:  # noqa: BLE001 - each is a finding
            for leaf in _leaves(error):
                tally.findings.setdefault(
                    _signature(leaf), f"seed {number}:\n{''.join(traceback.format_exception(leaf))}"
                )
        number += 1
    return tally


def run_named(job: tuple[str, float, int]) -> Tally:
    """`run_for` the surface of that name, quietly, in a process of its own."""
    name, seconds, first_seed = job
    warnings.simplefilter("ignore", HypothesisWarning)
    return run_for(next(surface for surface in SURFACES if surface.name == name), seconds, first_seed)


def _leaves(error: BaseException) -> Sequence[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        return [leaf for inner in error.exceptions for leaf in _leaves(inner)]
    return [error]


def _signature(error: BaseException) -> str:
    """The kind of error, and where it comes from."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if "/podium/" in frame.filename]
    place = f"{frames[-1].filename.rpartition('/podium/')[2]}:{frames[-1].lineno}" if frames else "tests"
    return f"{type(error).__name__} at {place}: {str(error).partition(':')[0]:.80}"

"""The option `--time-limit` of every question about a cluster.

The limit counts from the question on, once the cluster has been read (`start_time_limit`). Reading has as much time,
and at least five minutes. Searches check the limit themselves and end with their results so far (`lib.time_limit`).
Work that checks no limit, such as reading a hostile dump or one filter over a million taints, is interrupted a little
later.
"""

from __future__ import annotations

import functools
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import Any, Final

import click

from podium.cli.exit_codes import EXIT_FAILED
from podium.cli.options.durations import duration
from podium.cli.output import TEXT, print_value, say
from podium.lib.system_clock import SystemClock
from podium.lib.time_limit import UNLIMITED, TimeIsUpError, TimeLimit

_META: Final = __name__
_DEFAULT: Final = "1m"
_READING_S_MIN: Final = 300.0
_GRACE_S: Final = 0.5
_SAY_AFTER_S: Final = 10.0
_AGAIN_S: Final = 0.25
_RECORDED: Final = ("cases", "scenarios")
_ENDING_S_MAX: Final = 20.0
"""The time in which a partial answer must be put together."""


def time_limit_option(command: Callable[..., Any], default: str = _DEFAULT) -> Callable[..., Any]:
    """Add `--time-limit` to a command, and enforce it. A file of recorded cases may take any time."""

    @functools.wraps(command)
    def run_with_limit(*args: Any, time_limit: float, **options: Any) -> Any:
        is_limited = time_limit and not any(map(options.get, _RECORDED))
        limit = _CommandLimit(time_limit) if is_limited else UNLIMITED
        click.get_current_context().meta[_META] = limit
        with _interrupting(limit, str(options.get("output", ""))):
            answer = command(*args, **options)
        if limit.is_noticed:
            raise SystemExit(EXIT_FAILED)
        return answer

    return click.option(
        "--time-limit",
        "--time",
        "time_limit",
        default=default,
        show_default=True,
        metavar="DURATION",
        callback=duration,
        help="The time limit of the question, such as 30s or 5m; 0 for none. What was found by then is shown. "
        "Reading the cluster does not count.",
    )(run_with_limit)


class _CommandLimit(TimeLimit):
    """First the time in which the cluster must be read, then that of the question.

    Attributes:
        is_reading: whether the question has not begun.
    """

    def __init__(self, seconds: float) -> None:
        super().__init__(SystemClock(), max(seconds, _READING_S_MIN))
        self._question_s = seconds
        self.is_reading = True

    def start(self) -> None:
        """Let the time of the question count from now on, unless it does already."""
        if self.is_reading:
            self.is_reading = False
            self.restart(self._question_s)

    @property
    def text(self) -> str:
        """The limit for people."""
        return f"the time limit of {self.seconds:g} s" + (" for reading the cluster" if self.is_reading else "")


def start_time_limit() -> TimeLimit:
    """Return the limit of the running command, which counts from the first call on: the cluster has been read."""
    limit = current_time_limit()
    if isinstance(limit, _CommandLimit):
        limit.start()
    return limit


def current_time_limit() -> TimeLimit:
    """Return the limit of the running command."""
    limit: TimeLimit = click.get_current_context().meta.get(_META, UNLIMITED)
    return limit


def lift_time_limit() -> None:
    """Let the running command take any time from here on: what it does now must not be interrupted halfway."""
    signal.setitimer(signal.ITIMER_REAL, 0.0)


def note_size(nodes: int, pods: int) -> None:
    """Note how large the cluster is, for the case that there will be no answer."""
    current_time_limit().note(lambda: f"the cluster has {nodes:,} nodes and {pods:,} pods")


def warn_of_time_limit(output: str) -> None:
    """Warn that an answer is partial: on standard error, and in text output also before the answer."""
    if not current_time_limit().is_noticed:
        return
    say("warning: the time limit is over, and the answer is what was found by then (--time-limit)", err=True)
    if output == TEXT:
        say("partial answer, the time limit is over:")


@contextmanager
def _interrupting(limit: TimeLimit, output: str) -> Iterator[None]:
    """Interrupt work that does not check the limit; only in the main thread, which alone handles signals."""
    if not isinstance(limit, _CommandLimit) or threading.current_thread() is not threading.main_thread():
        yield
        return
    told_phases: set[bool] = set()
    is_interrupted = False

    def tick(_: int, __: FrameType | None) -> None:
        nonlocal is_interrupted
        late_s = limit.spent_s - limit.seconds
        if limit.is_reading not in told_phases and limit.spent_s >= _SAY_AFTER_S and late_s < 0:
            told_phases.add(limit.is_reading)
            doing = "reading the cluster" if limit.is_reading else "looking for the answer"
            say(f"still {doing}, for at most {limit.seconds:g} s (--time-limit)", err=True)
        # Raised at every tick: a plugin's error handling may swallow the exception.
        if late_s >= (_ENDING_S_MAX if limit.is_noticed else _GRACE_S):
            is_interrupted = True
            raise TimeIsUpError

    old_handler = signal.signal(signal.SIGALRM, tick)
    signal.setitimer(signal.ITIMER_REAL, _AGAIN_S, _AGAIN_S)
    try:
        yield
    except (TimeIsUpError, click.ClickException) as error:
        if isinstance(error, click.ClickException) and not is_interrupted:
            raise
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        raise _no_answer(limit.text, limit.facts, output) from error
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, old_handler)


def _no_answer(limit_text: str, facts: Sequence[str], output: str) -> click.ClickException:
    """Build the error; for programs, print it as the answer, too."""
    words = f"{limit_text} is over, and no part of the answer was found by then (--time-limit)"
    if output and output != TEXT:
        print_value({"error": words, "partial": True, "facts": list(facts)}, output)
    return click.ClickException(f"{words}. What was found: {'; '.join(facts) or 'nothing, not even the cluster'}")

"""The PostFilter extension point: what can be done for a pod that fits on no node.

Source: kubernetes v1.36.2, pkg/scheduler/framework/runtime/framework.go (RunPostFilterPlugins) and
pkg/scheduler/schedule_one.go (schedulingCycle).
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Final, TypeAlias, get_args

from podium.config import Extender
from podium.framework.contract.post_filter import (
    AskingPostFilterPlugin,
    FilteredNodes,
    PostFilterPlugin,
    PostFilterResult,
)
from podium.framework.contract.questions import Answer, Question
from podium.framework.contract.status import Code, PluginError, Status, demand_status, error_status, short_repr
from podium.framework.contract.steps import Pause, Steps
from podium.framework.cycle.cycle import Cycle

_STEPS: Final = (Pause, *get_args(Question))
_Outcome: TypeAlias = tuple[PostFilterResult | None, Status | None]


def message_of(result: PostFilterResult | None, status: Status | None) -> str:
    """Return what the plugins say for the pod's condition and Event."""
    if status is not None:
        return status.message
    return result.message if result is not None else ""


def run_post_filter(cycle: Cycle, nodes: FilteredNodes, extenders: Sequence[Extender] = ()) -> Steps[_Outcome]:
    """Run the PostFilter plugins in order until one succeeds, fails, or returns UnschedulableAndUnresolvable.

    Returns:
        The result (None: keep the current nomination), and a status that names the first plugin that could not help.
        Without PostFilter plugins an earlier nomination is cleared.
    """
    framework = cycle.framework
    if not framework.post_filter or not cycle.makes_room:
        return PostFilterResult(""), None
    started_s = framework.clock.monotonic()
    result, status = yield from _in_order(cycle, nodes, extenders)
    framework.observe("PostFilter", status, started_s)
    return result, status


def _in_order(cycle: Cycle, nodes: FilteredNodes, extenders: Sequence[Extender]) -> Steps[_Outcome]:
    first_result: PostFilterResult | None = None
    reasons: list[str] = []
    for plugin in cycle.framework.post_filter:
        if isinstance(plugin, AskingPostFilterPlugin):
            result, status = yield from _in_steps(cycle, plugin, nodes, extenders)
        else:
            result, status = _at_once(cycle, plugin, nodes)
        if status is None:
            return result, None
        if status.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE:
            return result, status.by(plugin.name)
        if not status.is_rejected:
            return None, status.by(plugin.name)
        first_result = result if result is not None else first_result
        reasons += status.all_reasons
    return first_result, Status(Code.UNSCHEDULABLE, tuple(reasons), cycle.framework.post_filter[0].name)


def _at_once(cycle: Cycle, plugin: PostFilterPlugin, nodes: FilteredNodes) -> _Outcome:
    framework, pod = cycle.framework, cycle.pod
    started_s = framework.clock.monotonic()
    try:
        outcome = _demand_outcome(plugin.post_filter(cycle.state, pod, cycle.snapshot, nodes))
    except BaseException as error:  # noqa: BLE001 - a plugin may raise anything
        outcome = _failure(cycle, plugin, error)
    framework.lap(plugin.name, "PostFilter", pod, started_s, outcome[1])
    return outcome


def _in_steps(
    cycle: Cycle, plugin: AskingPostFilterPlugin, nodes: FilteredNodes, extenders: Sequence[Extender]
) -> Steps[_Outcome]:
    """Run the plugin like `_at_once`, in steps. Time in extenders and pauses is not counted as the plugin's."""
    clock, seconds = cycle.framework.clock, 0.0
    steps: Steps[_Outcome] | None = None
    answer: Answer | None = None
    outcome: _Outcome
    try:
        while True:
            started_s = clock.monotonic()
            # An exception raised here is the plugin's; one raised at the `yield` means that the caller abandons the
            # attempt.
            try:
                if steps is None:
                    steps = plugin.post_filter_asking(cycle.state, cycle.pod, cycle.snapshot, nodes, extenders)
                step = next(steps) if answer is None else steps.send(answer)
                if not isinstance(step, _STEPS):
                    raise PluginError(f"yielded {short_repr(step)}, which is neither a question nor a pause")
            except StopIteration as end:
                steps = None
                outcome = _at_the_end(cycle, plugin, end.value)
                break
            except BaseException as error:  # noqa: BLE001 - a plugin may raise anything
                outcome = _failure(cycle, plugin, error)
                break
            finally:
                seconds += clock.monotonic() - started_s
            answer = yield step
    finally:
        if steps is not None:
            # The plugin supplied this generator; `close` may raise anything.
            with suppress(BaseException):
                steps.close()
    if cycle.framework.measures_plugins:
        cycle.framework.observe_call(plugin.name, "PostFilter", outcome[1], seconds)
    return outcome


def _at_the_end(cycle: Cycle, plugin: PostFilterPlugin, answer: object) -> _Outcome:
    try:
        return _demand_outcome(answer)
    except BaseException as error:  # noqa: BLE001 - as if the plugin had raised it
        return _failure(cycle, plugin, error)


def _demand_outcome(answer: Any) -> _Outcome:
    result, status = answer
    if result is not None and not isinstance(result, PostFilterResult):
        raise PluginError(f"answered {short_repr(result)}, which is not a PostFilterResult")
    return result, demand_status(status)


def _failure(cycle: Cycle, plugin: PostFilterPlugin, error: BaseException) -> _Outcome:
    action = f'running PostFilter plugin "{plugin.name}"'
    failure = cycle.framework.plugin_failure(plugin.name, "PostFilter", cycle.pod, action, error)
    return None, error_status(failure)

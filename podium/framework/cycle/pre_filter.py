"""The PreFilter extension point, which runs once per attempt before any node is filtered.

Source: kubernetes v1.36.2, pkg/scheduler/framework/runtime/framework.go (RunPreFilterPlugins) and
pkg/scheduler/schedule_one.go (findNodesThatFitPod).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from podium.framework.contract.filter import PreFilterResult
from podium.framework.contract.plugin import Plugin
from podium.framework.contract.status import FAILED, Code, PluginError, ScheduleError, Status, demand_status, short_repr
from podium.framework.cycle.cycle import Cycle
from podium.framework.cycle.diagnosis import Diagnosis
from podium.objects.pod_limits import excess_of

_MAY_ANSWER: Final = (Code.SKIP, Code.UNSCHEDULABLE, Code.UNSCHEDULABLE_AND_UNRESOLVABLE)


def run_pre_filter(cycle: Cycle) -> frozenset[str] | Status | None:
    """Return the names of the only nodes to filter (None: all), or the status that rejects the pod outright.

    The statuses of the excluded nodes go into the diagnosis. Answers cached for the pod's signature are used.

    Raises:
        ScheduleError: a plugin failed.
    """
    framework, state, pod, snapshot = cycle.framework, cycle.state, cycle.pod, cycle.snapshot
    cycle.signature = signature = framework.signatures.of(pod, snapshot)
    at_s = started_s = framework.clock.monotonic()
    names: frozenset[str] | None = None
    narrowed_by: list[str] = []
    skipped_names: set[str] = set()
    rejection: Status | None = None
    plugins = framework.pre_filter if signature is None else signature.pre_filters.carry_out(state, skipped_names)
    if too_much := excess_of(pod):
        return _turned_down(Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, (too_much,)), cycle.diagnosis)
    try:
        for plugin in plugins:
            framework.observer.count_evaluations(plugin.name, "PreFilter", framework.name)
            try:
                answer, status = plugin.pre_filter(state, pod, snapshot)
                status, plugin_names = (
                    demand_status(status, _MAY_ANSWER),
                    names_of(answer) if answer is not None else None,
                )
            except BaseException as error:
                raise framework.plugin_failure(plugin.name, "PreFilter", pod, _running(plugin), error, at_s) from error
            at_s = framework.lap(plugin.name, "PreFilter", pod, at_s, status)
            if status is not None and status.code is Code.SKIP:
                skipped_names.add(plugin.name)
            elif status is not None and status.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE:
                rejection = status.by(plugin.name)
                narrowed_by = []  # upstream forgets them here, and only here
                break
            elif status is not None and status.code is Code.UNSCHEDULABLE:
                rejection = status.by(plugin.name)
            elif status is not None:
                raise ScheduleError(f"{_running(plugin)}: {status.message}")
            elif plugin_names is not None:
                names = plugin_names if names is None else names & plugin_names
                narrowed_by.append(plugin.name)
                if not names:
                    rejection = _narrowed_to_nothing(narrowed_by)
                    break
    except ScheduleError:
        framework.observe("PreFilter", FAILED, started_s)
        raise
    state.skipped_filters = frozenset(skipped_names)
    cycle.filtered_at_s = framework.observe("PreFilter", rejection, started_s)
    if rejection is not None:
        return _turned_down(rejection, cycle.diagnosis, narrowed_by)
    return names if names is None else _note_narrowing(names, narrowed_by, cycle.diagnosis)


def _running(plugin: Plugin) -> str:
    return f'running PreFilter plugin "{plugin.name}"'


def names_of(answer: object) -> frozenset[str]:
    """Return the only nodes to filter, from what a PreFilter plugin returned.

    Raises:
        PluginError: the value is not a PreFilterResult.
    """
    if isinstance(answer, PreFilterResult):
        return answer.node_names
    raise PluginError(f"answered {short_repr(answer)}, which is not a PreFilterResult")


def _turned_down(rejection: Status, diagnosis: Diagnosis, narrowed_by: Sequence[str] = ()) -> Status:
    diagnosis.unschedulable_plugins.update(narrowed_by)
    diagnosis.absent = rejection
    diagnosis.pre_filter_message = rejection.message
    diagnosis.blame(rejection)
    return rejection


def _note_narrowing(names: frozenset[str], plugins: Sequence[str], diagnosis: Diagnosis) -> frozenset[str]:
    diagnosis.unschedulable_plugins.update(plugins)
    reason = f"node(s) didn't satisfy plugin(s) [{' '.join(sorted(plugins))}]"
    diagnosis.absent = Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, (reason,))
    return names


def _narrowed_to_nothing(plugins: Sequence[str]) -> Status:
    if len(plugins) == 1:
        reason = f"node(s) didn't satisfy plugin {plugins[0]}"
    else:
        reason = f"node(s) didn't satisfy plugin(s) [{' '.join(sorted(plugins))}] simultaneously"
    return Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, (reason,))

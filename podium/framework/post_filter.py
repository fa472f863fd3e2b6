"""The PostFilter extension point: what can be done for a pod that fits nowhere.

Source: kubernetes pkg/scheduler/framework/runtime/framework.go (RunPostFilterPlugins) and pkg/scheduler/schedule_one.go
(schedulingCycle), v1.36.2.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from podium.cluster import Snapshot
from podium.config import Extender
from podium.framework.cycle_state import CycleState
from podium.framework.diagnosis import Diagnosis
from podium.framework.extenders import AskingPostFilterPlugin, Steps
from podium.framework.interface import FilteredNodes, PostFilterPlugin, PostFilterResult
from podium.framework.promises import NominatedPods
from podium.framework.runtime import Framework
from podium.framework.status import Code, Status, demand_status, error_status
from podium.framework.trials import AfterFiltering
from podium.kube.objects import Pod

_Outcome: TypeAlias = tuple[PostFilterResult | None, Status | None]


def run_post_filter(
    framework: Framework,
    state: CycleState,
    pod: Pod,
    snapshot: Snapshot,
    nominated: NominatedPods,
    diagnosis: Diagnosis,
    extenders: Sequence[Extender] = (),
) -> Steps[_Outcome]:
    """Let the PostFilter plugins help, in order: the first that succeeds, fails, or says nothing will help, ends it.

    Returns:
        What is to be done (None: leave any nomination as it is), and a status that names the first plugin that could
        not help. Without PostFilter plugins an earlier nomination is taken back.
    """
    if not framework.post_filter:
        return PostFilterResult(""), None
    started_s = framework.clock.monotonic()
    filtered = AfterFiltering(framework, state, pod, snapshot, nominated, diagnosis)
    result, status = yield from _in_order(framework, state, pod, snapshot, filtered, extenders)
    framework.observe("PostFilter", status, started_s)
    return result, status


def _in_order(
    framework: Framework,
    state: CycleState,
    pod: Pod,
    snapshot: Snapshot,
    filtered: FilteredNodes,
    extenders: Sequence[Extender],
) -> Steps[_Outcome]:
    kept: PostFilterResult | None = None
    reasons: list[str] = []
    for plugin in framework.post_filter:
        if isinstance(plugin, AskingPostFilterPlugin):
            result, status = yield from _in_steps(framework, plugin, state, pod, snapshot, filtered, extenders)
        else:
            result, status = _at_once(framework, plugin, state, pod, snapshot, filtered)
        if status is None or status.code is Code.SUCCESS:
            return result, None
        if status.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE:
            return result, status.by(plugin.name)
        if not status.is_rejected:
            return None, status.by(plugin.name)
        kept = result if result is not None else kept
        reasons += status.all_reasons
    return kept, Status(Code.UNSCHEDULABLE, tuple(reasons), framework.post_filter[0].name)


def _at_once(
    framework: Framework,
    plugin: PostFilterPlugin,
    state: CycleState,
    pod: Pod,
    snapshot: Snapshot,
    filtered: FilteredNodes,
) -> _Outcome:
    started_s = framework.clock.monotonic()
    try:
        result, status = plugin.post_filter(state, pod, snapshot, filtered)
        return result, demand_status(status)
    except Exception as error:  # noqa: BLE001 - a plugin may raise anything
        return _failed(framework, plugin, pod, error)
    finally:
        framework.lap(plugin.name, "PostFilter", pod, started_s)


def _in_steps(
    framework: Framework,
    plugin: AskingPostFilterPlugin,
    state: CycleState,
    pod: Pod,
    snapshot: Snapshot,
    filtered: FilteredNodes,
    extenders: Sequence[Extender],
) -> Steps[_Outcome]:
    """As `_at_once`. Time that others take, to answer or in pauses, does not make the plugin slow."""
    try:
        result, status = yield from plugin.post_filter_asking(state, pod, snapshot, filtered, extenders)
        return result, demand_status(status)
    except Exception as error:  # noqa: BLE001 - a plugin may raise anything
        return _failed(framework, plugin, pod, error)


def _failed(framework: Framework, plugin: PostFilterPlugin, pod: Pod, error: Exception) -> _Outcome:
    framework.observer.plugin_failed(plugin.name, "PostFilter", pod, error)
    return None, error_status(f'running PostFilter plugin "{plugin.name}": {error}')

"""The PodGroupPostFilter extension point: the plugins in order, until one helps the group or says that nothing does.

Source: kubernetes pkg/scheduler/framework/runtime/framework.go (RunPodGroupPostFilterPlugins), v1.37.2.
"""

from __future__ import annotations

from podium.framework.contract.group_post_filter import GroupHelp, UnscheduledGroup
from podium.framework.contract.status import Code, Status, error_status
from podium.framework.contract.steps import Steps
from podium.framework.profile.runtime import Framework
from podium.lib.error_text import error_text


def run_pod_group_post_filter(framework: Framework, unscheduled: UnscheduledGroup) -> Steps[GroupHelp | Status]:
    """Return what helps the group, or why nothing does: Unschedulable with all reasons, or what ended the search."""
    started_s = framework.clock.monotonic()
    answer = yield from _in_order(framework, unscheduled)
    framework.observe("PodGroupPostFilter", None if isinstance(answer, GroupHelp) else answer, started_s)
    return answer


def _in_order(framework: Framework, unscheduled: UnscheduledGroup) -> Steps[GroupHelp | Status]:
    reasons: list[str] = []
    rejector = ""
    for plugin in framework.pod_group_post_filter:
        answer: GroupHelp | Status
        started_s = framework.clock.monotonic()
        try:
            answer = yield from plugin.pod_group_post_filter(unscheduled)
        except Exception as error:  # noqa: BLE001 - a plugin may raise anything
            framework.observer.plugin_failed(plugin.name, "PodGroupPostFilter", unscheduled.pods[0], error)
            answer = error_status(error_text(error))
        status = answer if isinstance(answer, Status) else None
        framework.lap(plugin.name, "PodGroupPostFilter", unscheduled.pods[0], started_s, status)
        if isinstance(answer, GroupHelp):
            return answer
        if answer.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE:
            return answer.by(plugin.name)
        if answer.code is not Code.UNSCHEDULABLE:
            problem = f'error in "{plugin.name}" PodGroupPostFilter plugins: {answer.message}'
            return error_status(problem).by(plugin.name)
        reasons += answer.all_reasons
        rejector = rejector or plugin.name
    return Status(Code.UNSCHEDULABLE, tuple(reasons), rejector)

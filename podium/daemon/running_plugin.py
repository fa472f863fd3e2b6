"""Identifies from a thread's stack the plugin that runs, its extension point and its pod.

Only reads frames, which may be those of another thread. Plugin calls have no overhead, because nothing records their
start: the stack is inspected only if a call does not return.
"""

from __future__ import annotations

import traceback
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import FrameType
from typing import Any, Final

from podium.framework.contract.plugin import Plugin
from podium.framework.contract.queued_pod import QueuedPodInfo
from podium.objects.core import Pod

_EXTENSION_POINTS: Final[Mapping[str, str]] = {
    "__init__": "Constructor",
    "pre_enqueue": "PreEnqueue",
    "less": "QueueSort",
    "sort_key": "QueueSort",
    "events_to_register": "EventsToRegister",
    "filter_scope": "Scope",
    "score_scope": "Scope",
    "score_basis": "ScoreBasis",
    "outside_changes": "OutsideChanges",
    "pre_filter": "PreFilter",
    "pre_filter_extensions": "PreFilterExtensions",
    "filter": "Filter",
    "filter_rows": "Filter",
    "explain": "Filter",
    "post_filter": "PostFilter",
    "post_filter_asking": "PostFilter",
    "pre_score": "PreScore",
    "score": "Score",
    "score_rows": "Score",
    "normalize_scores": "ScoreExtensionNormalize",
    "reserve": "Reserve",
    "unreserve": "Unreserve",
    "permit": "Permit",
    "pre_bind_pre_flight": "PreBindPreFlight",
    "pre_bind": "PreBind",
    "bind": "Bind",
    "post_bind": "PostBind",
}
_CALLER_MODULES: Final = ("podium.framework.", "podium.queues.", "podium.binder.")
_STACK_LINES_MAX: Final = 40


@dataclass(frozen=True, slots=True)
class RunningPlugin:
    """The plugin call that a thread is running; the names are empty if it runs no plugin.

    `stack` has one line for each call, the innermost last.
    """

    plugin: str
    extension_point: str
    pod: str
    stack: tuple[str, ...]


def running_plugin(frame: FrameType) -> RunningPlugin:
    """Identify the plugin call in that frame or its callers."""
    frames = list(_with_callers(frame))
    calls = (_direct_plugin_call(stack_frame) or _indirect_plugin_call(stack_frame) for stack_frame in frames)
    plugin, point, pod = next(filter(None, calls), ("", "", ""))
    lines = traceback.format_list(
        traceback.StackSummary.extract((stack_frame, stack_frame.f_lineno) for stack_frame in reversed(frames))
    )
    return RunningPlugin(plugin, point, pod, tuple(" ".join(line.split()) for line in lines[-_STACK_LINES_MAX:]))


def _with_callers(frame: FrameType | None) -> Iterator[FrameType]:
    """Yield the frame and its callers, the innermost first."""
    while frame is not None:
        yield frame
        frame = frame.f_back


def _direct_plugin_call(frame: FrameType) -> tuple[str, str, str] | None:
    """Identify the plugin method of this frame; None unless podium, not another plugin, called it."""
    code, caller = frame.f_code, frame.f_back
    point = _EXTENSION_POINTS.get(code.co_name)
    if point is None or not code.co_argcount or caller is None:
        return None
    if not str(caller.f_globals.get("__name__")).startswith(_CALLER_MODULES):
        return None
    variables = frame.f_locals
    plugin = variables.get(code.co_varnames[0])
    return (plugin.name, point, _pod_key_in(variables)) if isinstance(plugin, Plugin) else None


def _indirect_plugin_call(frame: FrameType) -> tuple[str, str, str] | None:
    """Identify the plugin for which this podium function calls a hint, a PreFilter extension or a constructor."""
    qualified_name = (frame.f_globals.get("__name__"), frame.f_code.co_name)
    variables = frame.f_locals
    if qualified_name == ("podium.queues.hints", "_ask"):
        return str(variables.get("plugin")), "QueueingHint", _pod_key_in(variables)
    if qualified_name == ("podium.framework.profile.runtime", "construct"):
        return variables["plugin"].name, "Constructor", ""
    if qualified_name == ("podium.framework.profile.runtime", "run_reserve") and "plugin" in variables:
        return variables["plugin"].name, "Reserve", _pod_key_in(variables)
    if qualified_name == ("podium.framework.profile.runtime", "_answer"):
        return str(variables.get("plugin")), str(variables.get("point")), _pod_key_in(variables)
    return None


def _pod_key_in(variables: Mapping[str, Any]) -> str:
    """Return the key of the first pod among the frame's variables; "" if there is none."""
    for value in variables.values():
        if isinstance(value, QueuedPodInfo):
            return value.key
        if isinstance(value, Pod):
            return value.key
    return ""

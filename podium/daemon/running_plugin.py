"""Tells from a thread's stack which plugin runs, at which extension point, for which pod.

Only reads frames, if need be from another thread. The start of a plugin call is not recorded anywhere, so calls have no
overhead: the stack is inspected only if a call does not end.
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

_POINTS: Final[Mapping[str, str]] = {
    "__init__": "Constructor",
    "pre_enqueue": "PreEnqueue",
    "less": "QueueSort",
    "sort_key": "QueueSort",
    "events_to_register": "EventsToRegister",
    "filter_scope": "Scope",
    "score_scope": "Scope",
    "score_basis": "ScoreBasis",
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
_CALLERS: Final = ("podium.framework.", "podium.queues.", "podium.binder.")
_STACK_MAX: Final = 40


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
    frames = list(_outward(frame))
    calls = (_plugin_method(frame_above) or _called_for_a_plugin(frame_above) for frame_above in frames)
    plugin, point, pod = next(filter(None, calls), ("", "", ""))
    lines = traceback.format_list(
        traceback.StackSummary.extract((frame_above, frame_above.f_lineno) for frame_above in reversed(frames))
    )
    return RunningPlugin(plugin, point, pod, tuple(" ".join(line.split()) for line in lines[-_STACK_MAX:]))


def _outward(frame: FrameType | None) -> Iterator[FrameType]:
    while frame is not None:
        yield frame
        frame = frame.f_back


def _plugin_method(frame: FrameType) -> tuple[str, str, str] | None:
    """A plugin's method that podium, not another plugin, has called at an extension point."""
    code, caller = frame.f_code, frame.f_back
    point = _POINTS.get(code.co_name)
    if point is None or not code.co_argcount or caller is None:
        return None
    if not str(caller.f_globals.get("__name__")).startswith(_CALLERS):
        return None
    variables = frame.f_locals
    plugin = variables.get(code.co_varnames[0])
    return (plugin.name, point, _pod_in(variables)) if isinstance(plugin, Plugin) else None


def _called_for_a_plugin(frame: FrameType) -> tuple[str, str, str] | None:
    """A podium function that calls what a plugin supplies: a hint, a PreFilter extension, its class or args."""
    place = (frame.f_globals.get("__name__"), frame.f_code.co_name)
    variables = frame.f_locals
    if place == ("podium.queues.hints", "_ask"):
        return str(variables.get("plugin")), "QueueingHint", _pod_in(variables)
    if place == ("podium.framework.profile.runtime", "construct"):
        return variables["plugin"].name, "Constructor", ""
    if place == ("podium.framework.profile.runtime", "_answer"):
        return str(variables.get("plugin")), str(variables.get("point")), _pod_in(variables)
    return None


def _pod_in(variables: Mapping[str, Any]) -> str:
    """The key of the first pod among the arguments."""
    for value in variables.values():
        if isinstance(value, QueuedPodInfo):
            return value.key
        if isinstance(value, Pod):
            return value.key
    return ""

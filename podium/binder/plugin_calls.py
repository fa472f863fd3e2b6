"""Calls of the plugins that carry decisions out.

Owns what becomes of a failure in such a plugin: an error status that names the plugin and the extension point.
Never swallows cancellation.

Source: kubernetes pkg/scheduler/framework/runtime/framework.go, v1.36.2 (RunPreBindPreFlights, RunPreBindPlugins,
RunBindPlugins).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from podium.framework.cycle_state import CycleState
from podium.framework.interface import Plugin, PreBindPlugin
from podium.framework.status import Code, PluginError, Status, error_status
from podium.kube.api_errors import ApiError
from podium.kube.objects import Pod


class PluginRaised(PluginError):  # noqa: N818 - it says what has happened
    """A plugin raised what is the cause of this."""


AsyncMethod = Callable[[CycleState, Pod, str], Awaitable[Status | None]]


async def outcome_of(
    method: AsyncMethod, plugin: Plugin, point: str, state: CycleState, pod: Pod, node_name: str
) -> Status | None:
    """What the plugin answers: None for success, a rejection or Skip with its name on it, or an error."""
    try:
        status = await method(state, pod, node_name)
    except Exception as error:  # noqa: BLE001 - a plugin may raise anything
        return _raised(f"running {point} plugin", plugin, error)
    if status is None or status.code is Code.SUCCESS:
        return None
    if status.is_rejected or status.code is Code.SKIP:
        return status.by(plugin.name)
    return failure(status, plugin, point)


def failure(status: Status, plugin: Plugin, point: str) -> Status:
    """A status that the extension point does not allow, or an error, as an error in the framework's words."""
    words = status.message if status.error is None else ", ".join((_words(status.error), *status.reasons))
    return _error(f"running {point} plugin", plugin, status.error, words)


def pre_flight(plugin: PreBindPlugin, state: CycleState, pod: Pod, node_name: str) -> tuple[bool, Status | None]:
    """Whether the plugin's PreBind may run beside its neighbours; and None, Skip or an error."""
    try:
        result, status = plugin.pre_bind_pre_flight(state, pod, node_name)
    except Exception as error:  # noqa: BLE001 - a plugin may raise anything
        return False, _raised("running PreBindPreFlight", plugin, error)
    parallel = result is not None and result.allow_parallel
    if status is None or status.code is Code.SUCCESS:
        return parallel, None
    if status.code is Code.SKIP:
        return parallel, status
    if status.code is Code.ERROR:
        words = status.message
        return parallel, _error("running PreBindPreFlight", plugin, status.error, words)
    text = (
        f'PreBindPreFlight {plugin.name} returned "{status.code.label}", which is unsupported. '
        "It is supposed to return Success, Skip, or Error status"
    )
    return parallel, error_status(PluginError(text)).by(plugin.name)


def _raised(doing: str, plugin: Plugin, cause: Exception) -> Status:
    wrapped = PluginRaised(f'{doing} "{plugin.name}": {_words(cause)}')
    wrapped.__cause__ = cause
    return error_status(wrapped).by(plugin.name)


def raised_in(status: Status | None) -> Exception | None:
    """What the plugin raised that answered so, unless it is only what the API server has told it."""
    if status is None or not isinstance(status.error, PluginRaised):
        return None
    cause = status.error.__cause__
    return cause if isinstance(cause, Exception) and not isinstance(cause, ApiError) else None


def _error(doing: str, plugin: Plugin, cause: Exception | None, words: str) -> Status:
    wrapped = PluginError(f'{doing} "{plugin.name}": {words}')
    wrapped.__cause__ = cause
    return error_status(wrapped).by(plugin.name)


def _words(error: Exception) -> str:
    """The error's words; of an API server's answer only the message, without its code, as upstream has it."""
    return error.message if isinstance(error, ApiError) else str(error) or type(error).__name__

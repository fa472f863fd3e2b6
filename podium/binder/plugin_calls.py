"""Calls the plugins of the binding cycle.

Owns the error status of a failed plugin, which names the plugin and the extension point. Anything that a plugin raises
is its failure, also SystemExit, GeneratorExit and CancelledError; only a cancellation of the binding cycle itself
propagates, and the plugin is given time to clean up.

Source: kubernetes pkg/scheduler/framework/runtime/framework.go, v1.36.2 (RunPreBindPreFlights, RunPreBindPlugins,
RunBindPlugins).
Differs: an out-of-tree plugin runs in a task of its own, so that it cannot cancel the binding cycle.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

import anyio

from podium.config import IN_TREE_PLUGINS
from podium.framework.contract.bind import PreBindPlugin, PreBindPreFlightResult
from podium.framework.contract.cycle_state import CycleState
from podium.framework.contract.plugin import Plugin
from podium.framework.contract.status import (
    MAY_REJECT,
    Code,
    PluginError,
    Status,
    demand_nothing,
    demand_status,
    error_status,
    short_repr,
)
from podium.lib.error_text import error_text
from podium.objects.api_errors import ApiError
from podium.objects.core import Pod

_MAY_ANSWER: Final = (Code.SKIP, *MAY_REJECT)
_CLEAN_UP_S_MAX: Final = 5.0


class PluginRaised(PluginError):  # noqa: N818 - named after what happened
    """A plugin raised an exception, which is the cause of this one."""


AsyncMethod = Callable[[CycleState, Pod, str], Awaitable[Status | None]]


async def outcome_of(
    method: AsyncMethod, plugin: Plugin, point: str, state: CycleState, pod: Pod, node_name: str
) -> Status | None:
    """Run the plugin: return None for success, a rejection or Skip with the plugin's name, or an error."""
    try:
        # A task costs 20 us, and podium's own plugins neither cancel themselves nor exit.
        if plugin.name in IN_TREE_PLUGINS:
            answer: object = await method(state, pod, node_name)
        else:
            answer = await _run_in_task(method, state, pod, node_name)
        status = demand_status(answer, _MAY_ANSWER)
    except GeneratorExit:
        raise
    except BaseException as error:
        # Our own cancellation goes on; a plugin that raises the exception by itself has failed.
        if isinstance(error, asyncio.CancelledError) and _is_cancelled():
            raise
        return _exception_status(f"running {point} plugin", plugin, error)
    if status is None:
        return None
    if status.code is not Code.ERROR:
        return status.by(plugin.name)
    return failure(status, plugin, point)


def answering_nothing(method: Callable[[CycleState, Pod, str], Awaitable[object]]) -> AsyncMethod:
    """Wrap the method so that returning anything at all is an error."""

    async def call(state: CycleState, pod: Pod, node_name: str) -> None:
        demand_nothing(await method(state, pod, node_name))

    return call


async def _run_in_task(method: AsyncMethod, state: CycleState, pod: Pod, node_name: str) -> object:
    """Run the method in a task of its own, which is cancelled with this one; return or raise as the method does."""

    async def call() -> tuple[object, BaseException | None]:
        try:
            return await method(state, pod, node_name), None
        except asyncio.CancelledError:
            raise
        except BaseException as error:  # noqa: BLE001 - SystemExit in a task would end the event loop
            return None, error

    task = asyncio.create_task(call())
    try:
        await asyncio.wait((task,))
    except BaseException:
        task.cancel()
        # A plugin may clean up after a cancellation, but must not keep the process from ending.
        with anyio.move_on_after(_CLEAN_UP_S_MAX, shield=True):
            await asyncio.wait((task,))
        raise
    if task.cancelled():
        raise PluginError("CancelledError, though the plugin was not cancelled")
    answer, error = task.result()
    if isinstance(error, GeneratorExit):
        raise PluginError(error_text(error)) from error
    if error is not None:
        raise error
    return answer


def _is_cancelled() -> bool:
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def failure(status: Status, plugin: Plugin, point: str) -> Status:
    """Turn an error, or a status that the extension point does not allow, into the framework's error."""
    words = status.message if status.error is None else ", ".join((_words(status.error), *status.reasons))
    return _error(f"running {point} plugin", plugin, status.error, words)


def pre_flight(plugin: PreBindPlugin, state: CycleState, pod: Pod, node_name: str) -> tuple[bool, Status | None]:
    """Return whether the plugin's PreBind may run concurrently with its neighbours; and None, Skip or an error."""
    try:
        result, answer = plugin.pre_bind_pre_flight(state, pod, node_name)
        status, parallel = demand_status(answer, _MAY_ANSWER), _is_parallel(result)
    except BaseException as error:  # noqa: BLE001 - a plugin may raise anything
        return False, _exception_status("running PreBindPreFlight", plugin, error)
    if status is None:
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


def _is_parallel(result: object) -> bool:
    if result is None:
        return False
    if isinstance(result, PreBindPreFlightResult):
        return result.allow_parallel is True
    raise PluginError(f"answered {short_repr(result)}, which is not a PreBindPreFlightResult")


def _exception_status(action: str, plugin: Plugin, cause: BaseException) -> Status:
    plugin_error = PluginRaised(f'{action} "{plugin.name}": {_words(cause)}')
    plugin_error.__cause__ = cause
    return error_status(plugin_error).by(plugin.name)


def raised_in(status: Status | None) -> BaseException | None:
    """Return the exception that the plugin raised, unless it is just an error of the API server."""
    if status is None or not isinstance(status.error, PluginRaised):
        return None
    cause = status.error.__cause__
    return None if isinstance(cause, ApiError) else cause


def _error(action: str, plugin: Plugin, cause: BaseException | None, words: str) -> Status:
    plugin_error = PluginError(f'{action} "{plugin.name}": {words}')
    plugin_error.__cause__ = cause
    return error_status(plugin_error).by(plugin.name)


def _words(error: BaseException) -> str:
    """Return the error's message; for an API server's error only the message, without its code, as upstream does."""
    return error.message if isinstance(error, ApiError) else error_text(error)

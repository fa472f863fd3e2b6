"""Runs the writes that plugins make after an attempt or a binding that failed."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any

from podium.daemon.failures import Attempt
from podium.daemon.held_tasks import Starter
from podium.framework.contract.writing import WritingPlugin


def clean_ups_after(attempt: Attempt) -> list[tuple[WritingPlugin, Coroutine[Any, Any, None]]]:
    """Return the writes of the plugins that have something to clean up; usually there are none."""
    cycle = attempt.cycle
    clean_ups = []
    for plugin in cycle.framework.writing:
        try:
            work = plugin.clean_up(cycle.state, cycle.pod)
        except BaseException as error:  # noqa: BLE001 - a plugin may raise anything
            cycle.framework.observer.plugin_failed(plugin.name, "CleanUp", cycle.pod, error)
            continue
        if work is not None:
            clean_ups.append((plugin, work))
    return clean_ups


def start_clean_ups(attempt: Attempt, tasks: Starter) -> None:
    """Start what the plugins have to write."""
    for plugin, work in clean_ups_after(attempt):
        tasks.create_task(_run_guarded(attempt, plugin, work), name="clean-up of a plugin")


async def clean_up(attempt: Attempt) -> None:
    """Do what the plugins have to write."""
    for plugin, work in clean_ups_after(attempt):
        await _run_guarded(attempt, plugin, work)


async def _run_guarded(attempt: Attempt, plugin: WritingPlugin, work: Coroutine[Any, Any, None]) -> None:
    try:
        await work
    except Exception as error:  # noqa: BLE001 - a plugin may raise anything
        attempt.cycle.framework.observer.plugin_failed(plugin.name, "CleanUp", attempt.pod, error)

"""Applies plugins' writes before bindings and after failures to the objects of a cluster in memory."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from podium.engine.store import ObjectStore
from podium.framework.contract.cycle_state import CycleState
from podium.framework.contract.status import PluginError
from podium.framework.contract.writing import ObjectWrite
from podium.framework.profile.runtime import Framework
from podium.objects.core import Pod


def writes_before_binding(
    framework: Framework, state: CycleState, pod: Pod, node_name: str
) -> Sequence[ObjectWrite] | str:
    """Return the writes of all plugins at PreBind, or the message of the first that fails."""
    writes: list[ObjectWrite] = []
    for plugin in framework.binding_writers:
        try:
            writes += plugin.writes_before_binding(state, pod, node_name)
        except PluginError as error:
            return f'running PreBind plugin "{plugin.name}": {error}'
    return writes


def writes_after_failure(framework: Framework, state: CycleState, pod: Pod) -> Sequence[ObjectWrite]:
    """Return the plugins' writes after an attempt in which no node fits."""
    return [write for plugin in framework.writing for write in plugin.writes_after_failure(state, pod)]


def carry_out(store: ObjectStore, writes: Iterable[ObjectWrite]) -> None:
    """Apply the writes, in order."""
    for write in writes:
        if write.after is None:
            store.drop(write.resource, write.before)
        else:
            store.put(write.resource, write.after)


def undo(store: ObjectStore, writes: Sequence[ObjectWrite]) -> None:
    """Undo the writes, the latest one first."""
    carry_out(store, (ObjectWrite(write.resource, write.after, write.before) for write in reversed(writes)))

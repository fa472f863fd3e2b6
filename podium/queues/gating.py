"""Runs the PreEnqueue plugins, which gate pods that must not be attempted yet.

Source: kubernetes pkg/scheduler/backend/queue/scheduling_queue.go (runPreEnqueuePlugins), v1.36.2.
Differs: a PreEnqueue plugin that fails does not gate the pod, since no event might ever ungate it: the plugin runs
again after a backoff.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from podium.framework.contract.plugin import PreEnqueuePlugin
from podium.framework.contract.queued_pod import QueuedPodGroupInfo, QueuedPodInfo
from podium.framework.contract.status import PluginError, Status, demand_status, error_status
from podium.queues.observer import QueueObserver


class PreEnqueueCheck:
    """Runs the PreEnqueue plugins of each profile; a reload replaces them."""

    def __init__(self, plugins: Mapping[str, Sequence[PreEnqueuePlugin]], observer: QueueObserver) -> None:
        self.plugins = plugins
        self._observer = observer

    def admits(self, info: QueuedPodInfo) -> bool:
        """Return whether the pod or group may enter the queue; if not, record the gating plugin, or a failure.

        All pods of a group are checked, and the last one that is gated gates the group.
        """
        if not isinstance(info, QueuedPodGroupInfo):
            return self.admits_pod(info)
        kept_back = [member for member in info.members if not self.admits_pod(member)]
        gated = [member for member in kept_back if member.is_gated]
        info.gating_plugin = gated[-1].gating_plugin if gated else ""
        info.gate_reason = kept_back[-1].gate_reason if kept_back else ""
        info.has_failed_at_gate = bool(kept_back) and not gated
        # The events that its gating plugin waits for may requeue the group; its pods have further rejectors.
        info.unschedulable_plugins = {info.gating_plugin} if gated else set()
        return not kept_back

    def admits_pod(self, info: QueuedPodInfo) -> bool:
        """As `admits`, for one pod, of a group or not.

        The plugin that gated the pod last time runs first, since it most likely still does.
        """
        plugins = self.plugins[info.pod.spec.scheduler_name]
        info.has_failed_at_gate = False
        for plugin in _beginning_with(info.gating_plugin, plugins) if info.gating_plugin else plugins:
            status = self._answer(plugin, info)
            if status is None:
                continue
            info.gate_reason = status.message
            if not status.is_rejected:
                info.gating_plugin, info.has_failed_at_gate = "", True
            elif plugin.name != info.gating_plugin:
                self._gate(info, plugin.name)
            return False
        info.gating_plugin = ""
        return True

    def _answer(self, plugin: PreEnqueuePlugin, info: QueuedPodInfo) -> Status | None:
        """Run the plugin; None lets the pod pass, else it is a rejection, or an error that is already reported."""
        try:
            status = demand_status(plugin.pre_enqueue(info.pod))
        except BaseException as error:  # noqa: BLE001 - a plugin may raise anything
            status = error_status(error)
        if status is not None and not status.is_rejected:
            reason = status.error or PluginError(status.message)
            self._observer.plugin_failed(plugin.name, "PreEnqueue", info.pod, reason)
        return status

    def _gate(self, info: QueuedPodInfo, plugin: str) -> None:
        if plugin not in info.unschedulable_plugins and plugin not in info.pending_plugins:
            self._observer.unschedulable_delta(plugin, info.pod.spec.scheduler_name, 1)
        info.unschedulable_plugins.add(plugin)
        info.gating_plugin = plugin


def _beginning_with(name: str, plugins: Sequence[PreEnqueuePlugin]) -> Iterator[PreEnqueuePlugin]:
    """Yield the plugin of that name, then the others: they are rarely asked for."""
    yield from (plugin for plugin in plugins if plugin.name == name)
    yield from (plugin for plugin in plugins if plugin.name != name)

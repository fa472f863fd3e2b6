"""Holding pods back that must not be tried yet.

Source: kubernetes pkg/scheduler/backend/queue/scheduling_queue.go (runPreEnqueuePlugins), v1.36.2.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from podium.framework.interface import PreEnqueuePlugin
from podium.framework.queued_pod import QueuedPodInfo
from podium.framework.status import Code, PluginError, error_status
from podium.queues.observer import QueueObserver


class Gatekeeper:
    """Runs the PreEnqueue plugins of each profile."""

    def __init__(self, plugins: Mapping[str, Sequence[PreEnqueuePlugin]], observer: QueueObserver) -> None:
        self._plugins = plugins
        self._observer = observer

    def admits(self, info: QueuedPodInfo) -> bool:
        """Whether the pod may go on; if not, the plugin that holds it back is noted on the pod.

        The plugin that held it back the last time is asked first: most likely it still does.
        """
        plugins = self._plugins[info.pod.spec.scheduler_name]
        if info.gating_plugin:
            plugins = sorted(plugins, key=lambda plugin: plugin.name != info.gating_plugin)
        for plugin in plugins:
            if not self._passes(plugin, info):
                self._gate(info, plugin.name)
                return False
        info.gating_plugin = ""
        return True

    def _passes(self, plugin: PreEnqueuePlugin, info: QueuedPodInfo) -> bool:
        try:
            status = plugin.pre_enqueue(info.pod)
        except Exception as error:  # noqa: BLE001 - a plugin's failure gates the pod, as its error status would
            status = error_status(error)
        if status is None:
            return True
        if status.code is Code.ERROR:
            reason = status.error or PluginError(status.message)
            self._observer.plugin_failed(plugin.name, "PreEnqueue", info.pod, reason)
        return False

    def _gate(self, info: QueuedPodInfo, plugin: str) -> None:
        if plugin not in info.unschedulable_plugins and plugin not in info.pending_plugins:
            self._observer.unschedulable_delta(plugin, info.pod.spec.scheduler_name, 1)
        info.unschedulable_plugins.add(plugin)
        info.gating_plugin = plugin

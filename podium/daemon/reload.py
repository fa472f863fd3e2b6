"""Takes a changed configuration or kubeconfig over while pods are scheduled; a bad one changes nothing.

The files are read again when they change, however they are written: in place, by a rename, or by the swap of the
symbolic link through which the kubelet updates a ConfigMap.

A plugin's module may do anything when it is imported, and its class when it is constructed. So files are read, and
plugins of users constructed, in threads that nothing waits for longer than `LOAD_S_MAX`, and that hold up no stop.

Differs: kube-scheduler has to be restarted.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from types import FrameType
from typing import Final, TypeVar

import anyio

from podium.binder.events.event import ObjectReference
from podium.binder.events.event import configuration_reload as reload_event
from podium.daemon.configuration_source import ConfigurationSource
from podium.daemon.face import Face
from podium.daemon.running_plugin import running_plugin
from podium.daemon.scheduler import Scheduler
from podium.lib.error_text import UserFacingError, error_text
from podium.lib.log import get_logger
from podium.lib.thread_call import ThreadCall
from podium.objects.resource_types import NODES
from podium.plugins.loading.discovery import LOAD_S_MAX, SAY_AFTER_S, reference_being_loaded

T = TypeVar("T")

log = get_logger("config")

_LOOK_EVERY_S: Final = 2.0
LOOKS_UNTIL_NEXT_TRIAL: Final = 15
"""A refused kubeconfig is tried again once per this many looks: a trial may run an exec plugin and makes a request."""
_APPLIED, _REFUSED = "applied", "refused"


class TookTooLongError(UserFacingError):
    """The changed files could not be read before the deadline."""


@dataclass(frozen=True, slots=True)
class _Step:
    """A step that runs in a thread, with the words of the messages if it does not end.

    Attributes:
        plugin_in: names the plugin whose code a frame runs; "" if no plugin's code runs.
        of_plugin, of_none: the subject of the sentence that it did not end, with that name and without.
    """

    thread: str
    warning: str
    plugin_in: Callable[[FrameType], str]
    of_plugin: str
    of_none: str


_READING: Final = _Step(
    "changed configuration",
    "Reading the changed configuration takes long",
    reference_being_loaded,
    "--plugin {}: its import",
    "reading the files",
)
_CONSTRUCTING: Final = _Step(
    "changed plugins",
    "Constructing the changed plugins takes long",
    lambda frame: running_plugin(frame).plugin,
    "plugin {}: its constructor",
    "constructing the plugins",
)


@dataclass(slots=True)
class Reload:
    """Follows the files of a configuration, and the kubeconfig."""

    scheduler: Scheduler
    source: ConfigurationSource
    own_pod: ObjectReference | None = None
    _refused: dict[str, str] = field(default_factory=dict)
    _seen: tuple[bytes, bytes] = field(init=False)
    _kubeconfig_seen: bytes = field(init=False)
    _looks_since_trial: int = 0
    _looking: anyio.Lock = field(default_factory=anyio.Lock)

    def __post_init__(self) -> None:
        self._seen = self.source.content()
        kubeconfig = self.scheduler.kubeconfig
        self._kubeconfig_seen = b"" if kubeconfig is None else kubeconfig.content()

    @property
    def refusals(self) -> str:
        """The reasons why the configuration or kubeconfig that was read last is not in use; "" if both are."""
        return "; ".join(self._refused.values())

    async def run(self) -> None:
        """Look for changes every few seconds, and at once on SIGHUP."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._on_signal)
            while True:
                await anyio.sleep(_LOOK_EVERY_S)
                await self.look()

    async def _on_signal(self) -> None:
        with anyio.open_signal_receiver(signal.SIGHUP) as signals:
            async for _ in signals:
                await self.look()

    async def look(self) -> None:
        """Take over what has changed. What cannot be used is reported once."""
        # A signal may arrive amid a look, and what was read later must not be replaced by what was read before.
        async with self._looking:
            await self._look_at_kubeconfig()
            await self._look_at_configuration()

    async def _look_at_kubeconfig(self) -> None:
        kubeconfig = self.scheduler.kubeconfig
        if kubeconfig is None:
            return
        content = await ThreadCall(kubeconfig.content, "kubeconfig").result()
        self._looks_since_trial += 1
        former_reason = None
        if content == self._kubeconfig_seen:
            # The reason may pass without a change of the file: the API server was away, a named file was not there yet.
            former_reason = self._refused.get("kubeconfig")
            if former_reason is None or self._looks_since_trial < LOOKS_UNTIL_NEXT_TRIAL:
                return
        self._kubeconfig_seen = content
        self._looks_since_trial = 0
        try:
            await kubeconfig.take(self.scheduler.informers.informer(NODES))
        except Exception as error:  # noqa: BLE001 - an exec plugin or an API server may cause anything
            if _reason(error) != former_reason:
                message = "The changed kubeconfig is refused, the previous credentials stay in use"
                self._refuse("kubeconfig", error, message)
            return
        log.info("The changed kubeconfig is in use", server=kubeconfig.credentials.base_url)
        self._accept("kubeconfig", "The changed kubeconfig is in use")

    async def _look_at_configuration(self) -> None:
        content = await ThreadCall(self.source.content, "configuration").result()
        if content == self._seen:
            return
        plugins_changed, self._seen = content[1] != self._seen[1], content
        try:
            configured = await _within_limit(self.source.read, _READING)
            config = configured.config
            # Files that have not changed have the same classes: their plugins stay, with all that they know.
            classes = configured.plugins if plugins_changed else self.scheduler.classes
            new = await _within_limit(partial(self.scheduler.new_plugins, config, classes), _CONSTRUCTING)
            profile_names = self.scheduler.reload(config, classes, new)
        except Exception as error:  # noqa: BLE001 - a plugin's module or constructor may raise anything
            self._refuse("configuration", error, "The changed configuration is refused, the previous one stays in use")
            return
        log.info("The changed configuration is in use", profiles=list(profile_names))
        self._accept("configuration", f"Profiles that have changed: {', '.join(profile_names) or 'none'}")

    def _refuse(self, part: str, error: Exception, message: str) -> None:
        reason = self._refused[part] = _reason(error)
        log.error(message, error=reason)
        self._tell(f"The previous {part} stays in use: {reason}", is_refused=True)

    def _accept(self, part: str, note: str) -> None:
        self._refused.pop(part, None)
        self._tell(note, is_refused=False)

    def _tell(self, note: str, *, is_refused: bool) -> None:
        self.scheduler.metrics.count_reload(_REFUSED if is_refused else _APPLIED)
        if self.own_pod is not None:
            name = self.scheduler.config.profiles[0].scheduler_name
            event = reload_event(name, self.own_pod, note, is_refused=is_refused)
            self.scheduler.writes.recorder.record(event)


async def _within_limit(call: Callable[[], T], step: _Step) -> T:
    """Call the function in a thread. Raises: `TookTooLongError`, or what it raises."""
    thread = ThreadCall(call, step.thread)
    seconds, plugin = 0.0, ""
    try:
        while seconds < LOAD_S_MAX:
            with anyio.move_on_after(SAY_AFTER_S):
                return await thread.result()
            seconds += SAY_AFTER_S
            frame = thread.frame()
            plugin = plugin or ("" if frame is None else step.plugin_in(frame))
            log.warning(step.warning, plugin=plugin, seconds=seconds)
    finally:
        thread.interrupt()
    step_name = step.of_plugin.format(plugin) if plugin else step.of_none
    raise TookTooLongError(f"{step_name} did not end within {LOAD_S_MAX:.0f} s")


def _reason(error: Exception) -> str:
    return getattr(error, "message", "") or error_text(error)


def own_pod() -> ObjectReference | None:
    """Return the pod that podium runs in, as the downward API tells; None outside of a cluster."""
    name, namespace = os.environ.get("POD_NAME"), os.environ.get("POD_NAMESPACE")
    if not name or not namespace:
        return None
    return ObjectReference("v1", "Pod", name, namespace, os.environ.get("POD_UID", ""))


def configuration_reload(scheduler: Scheduler) -> Face:
    """Return the face that follows the configuration's files, if the options say so."""
    source = scheduler.options.source
    if source is None:
        return Face()
    reload = Reload(scheduler, source, own_pod())
    scheduler.metrics.read_last_reload(lambda: float(not reload.refusals))
    scheduler.refused_configuration = lambda: reload.refusals
    return Face(tasks={"configuration reload": reload.run})

"""The scheduler under test: the whole daemon as it is, watched at its seams."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

from podium.config import IN_TREE_PLUGINS, KubeSchedulerConfiguration, load
from podium.daemon.app import App
from podium.daemon.face import Face
from podium.daemon.faces import FACES, stall_watch
from podium.daemon.options import Options
from podium.daemon.scheduler import Scheduler
from podium.framework import Code, PermitPlugin, PostBindPlugin, ReservePlugin, Status
from podium.framework.contract.plugin import Plugin
from podium.framework.profile.runtime import points_of
from podium.objects.core import Pod
from podium.objects.resource_types import NODES, PODS
from podium.plugins import IN_TREE
from podium.plugins.contrib.coscheduling.plugin import Coscheduling
from podium.recording.recorder import Recorder
from podium.recording.replay import describe_scheduler
from tests.simulation.random_objects import HESITANT, OURS
from tests.virtual_time import LoopClock

_CONFIGURATION = f"""
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection: {{leaderElect: false}}
profiles:
- schedulerName: {OURS}
  plugins:
    multiPoint:
      enabled: [{{name: Ledger}}, {{name: Hesitation}}]
"""
_GANGS = "  pluginConfig: [{name: Coscheduling, args: {permitWaitingTimeSeconds: 10}}]"
HESITATION_S = 4.0


class Ledger(ReservePlugin, PostBindPlugin):
    """Keeps the account of what was reserved and has not ended yet, by pod."""

    def __init__(self, args: Any, handle: Any) -> None:
        super().__init__(args, handle)
        self.open: dict[str, str] = {}
        self.mistakes: list[str] = []

    def reserve(self, state: Any, pod: Pod, node_name: str) -> None:
        if pod.uid in self.open:
            self.mistakes.append(f"{pod.key} was reserved again before its first reservation had ended")
        self.open[pod.uid] = pod.key

    def unreserve(self, state: Any, pod: Pod, node_name: str) -> None:
        self.open.pop(pod.uid, None)

    async def post_bind(self, state: Any, pod: Pod, node_name: str) -> None:
        if self.open.pop(pod.uid, None) is None:
            self.mistakes.append(f"{pod.key} was bound without a reservation")


class Hesitation(PermitPlugin):
    """Lets some pods wait for the next of their kind, many of them in vain; in a calm, none."""

    def __init__(self, args: Any, handle: Any) -> None:
        super().__init__(args, handle)
        self.is_calm: Callable[[], bool] = lambda: False

    def permit(self, state: Any, pod: Pod, node_name: str) -> tuple[Status | None, float]:
        if self.is_calm() or HESITANT not in pod.metadata.labels:
            return None, 0.0
        for waiting_pod in self.handle.waiting_pods:
            waiting_pod.allow(self.name)
        return Status(Code.WAIT), HESITATION_S


PLUGINS = {**IN_TREE, "Coscheduling": Coscheduling, "Ledger": Ledger, "Hesitation": Hesitation}


def configuration(plugins: str = "", *, gangs: bool = False) -> KubeSchedulerConfiguration:
    """The configuration.

    Args:
        plugins: more YAML for the profile's `plugins`.
        gangs: whether Coscheduling is enabled.
    """
    own: dict[str, type[Plugin]] = {"Ledger": Ledger, "Hesitation": Hesitation, "Coscheduling": Coscheduling}
    registry = {**IN_TREE_PLUGINS, **{name: points_of(plugin_class) for name, plugin_class in own.items()}}
    text = _CONFIGURATION + f"    {plugins}\n"
    if gangs:
        text = (
            text.replace("enabled: [", "disabled: [{name: PrioritySort}]\n      enabled: [{name: Coscheduling}, ")
            + _GANGS
        )
    return load(text, "simulation", registry).config


def have_calm_read(scheduler: Scheduler, is_calm: Callable[[], bool] = lambda: False) -> None:
    """Let `Hesitation` know whether there is a calm; a recording has to know it too."""
    plugin = scheduler.frameworks[OURS].plugins["Hesitation"]
    assert isinstance(plugin, Hesitation)
    plugin.is_calm = scheduler.boundary.reading(is_calm)


class ObservedApp(App):
    """A daemon whose parts can be looked at, and that says when it assumes a pod."""

    def __init__(
        self,
        url: str,
        random: Random,
        on_assumed: Callable[[Pod, str], None],
        *,
        avoids_conflicts: bool = False,
        recorded_to: Path | None = None,
        gangs: bool = False,
    ) -> None:
        config = configuration(gangs=gangs)
        options = Options(master=url, secure_port=0, plugins=PLUGINS, avoids_conflicts=avoids_conflicts)
        self.recorder = None if recorded_to is None else Recorder(recorded_to, describe_scheduler(config, options))
        super().__init__(
            config,
            options,
            clock=LoopClock(),
            random=random,
            # Virtual time stands still while anybody works: the stall watch would see nothing, at half of the cost.
            faces=(*(face for face in FACES if face is not stall_watch), self._look_on),
            boundary=self.recorder,
        )
        self.surprises: list[str] = []
        self.started = self.is_calm = False
        self.parts: Scheduler | None = None
        self._on_assumed = on_assumed
        self.metrics.count_unexpected_error = self._note_surprise  # type: ignore[method-assign]

    @property
    def ledger(self) -> Ledger:
        assert self.parts is not None
        plugin = self.parts.frameworks[OURS].plugins["Ledger"]
        assert isinstance(plugin, Ledger)
        return plugin

    def _note_surprise(self, where: str, name: str) -> None:
        self.surprises.append(f"unexpected error in {where} {name}")

    def _look_on(self, scheduler: Scheduler) -> Face:
        self.parts = scheduler
        have_calm_read(scheduler, lambda: self.is_calm)
        self.pods, self.nodes = scheduler.informers.informer(PODS), scheduler.informers.informer(NODES)
        cache = scheduler.cache
        assume = cache.assume_pod

        def assume_pod(pod: Pod, node_name: str) -> None:
            assume(pod, node_name)
            self._on_assumed(pod, node_name)

        cache.assume_pod = assume_pod  # type: ignore[method-assign]
        return Face() if self.recorder is None else Face(observers=(self.recorder,))

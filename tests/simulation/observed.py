"""The scheduler under test: the whole daemon as it is, watched at its seams."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

from podium.config import IN_TREE_PLUGINS, KubeSchedulerConfiguration, load
from podium.daemon.app import App
from podium.daemon.face import Face
from podium.daemon.faces import FACES, stall_watch
from podium.daemon.options import Options
from podium.daemon.scheduler import Scheduler
from podium.framework import Code, PermitPlugin, PostBindPlugin, ReservePlugin, Status
from podium.framework.contract.interface import Plugin
from podium.framework.profile.runtime import points_of
from podium.objects.core import Pod
from podium.objects.resource_types import NODES, PODS
from podium.plugins import IN_TREE
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
        self.is_calm = False

    def permit(self, state: Any, pod: Pod, node_name: str) -> tuple[Status | None, float]:
        if self.is_calm or HESITANT not in pod.metadata.labels:
            return None, 0.0
        for other in self.handle.waiting_pods:
            other.allow(self.name)
        return Status(Code.WAIT), HESITATION_S


def configuration() -> KubeSchedulerConfiguration:
    own: dict[str, type[Plugin]] = {"Ledger": Ledger, "Hesitation": Hesitation}
    registry = {**IN_TREE_PLUGINS, **{name: points_of(each) for name, each in own.items()}}
    return load(_CONFIGURATION, "simulation", registry).config


class ObservedApp(App):
    """A daemon whose parts can be looked at, and that says when it assumes a pod."""

    def __init__(
        self, url: str, random: Random, on_assumed: Callable[[Pod, str], None], *, avoids_conflicts: bool = False
    ) -> None:
        plugins = {**IN_TREE, "Ledger": Ledger, "Hesitation": Hesitation}
        super().__init__(
            configuration(),
            Options(master=url, secure_port=0, plugins=plugins, avoids_conflicts=avoids_conflicts),
            clock=LoopClock(),
            random=random,
            # Virtual time stands still while anybody works: the stall watch would see nothing, at half of the cost.
            faces=(*(face for face in FACES if face is not stall_watch), self._look_on),
        )
        self.surprises: list[str] = []
        self.started = False
        self.parts: Scheduler | None = None
        self._on_assumed = on_assumed
        self.metrics.count_unexpected_error = self._surprised  # type: ignore[method-assign]

    @property
    def ledger(self) -> Ledger:
        assert self.parts is not None
        plugin = self.parts.frameworks[OURS].plugins["Ledger"]
        assert isinstance(plugin, Ledger)
        return plugin

    @property
    def hesitation(self) -> Hesitation:
        assert self.parts is not None
        plugin = self.parts.frameworks[OURS].plugins["Hesitation"]
        assert isinstance(plugin, Hesitation)
        return plugin

    def _surprised(self, where: str, name: str) -> None:
        self.surprises.append(f"unexpected error in {where} {name}")

    def _look_on(self, scheduler: Scheduler) -> Face:
        self.parts = scheduler
        self.pods, self.nodes = scheduler.informers.informer(PODS), scheduler.informers.informer(NODES)
        cache = scheduler.cache
        assume = cache.assume_pod

        def assume_pod(pod: Pod, node_name: str) -> None:
            assume(pod, node_name)
            self._on_assumed(pod, node_name)

        cache.assume_pod = assume_pod  # type: ignore[method-assign]
        return Face()

"""Finds pods that are never scheduled because their scheduler name is misspelt.

Owns the warnings about pods that wait under a name that is similar to one of podium's. Never touches the pods: a
scheduler of that name may exist.

Differs: kube-scheduler does not report such pods.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Final

import anyio

from podium.config.scheduler_names import NAME_SHOWN_MAX, similar_name
from podium.lib.clock import Clock
from podium.lib.log import get_logger
from podium.objects.core import Pod
from podium.objects.wire import BrokenObject
from podium.telemetry import Metrics

log = get_logger("stray pods")

WAITING_S_MIN: Final = 30.0
"""A working scheduler has usually bound its pods by then."""
_LOOK_EVERY_S: Final = 30.0
_SAY_AGAIN_S: Final = 3600.0
_NAMES_MAX: Final = 256
_PODS_MAX: Final = 10_000


@dataclass(frozen=True, slots=True)
class _Stray:
    pod: str
    name: str
    meant: str
    since_s: float


class StrayPods:
    """Pods that wait for a scheduler whose name is similar to that of a profile. A handler of the pods' informer.

    Cost: a look-up for each pod that is created.
    """

    def __init__(self, scheduler_names: Collection[str], clock: Clock, metrics: Metrics) -> None:
        self._ours = scheduler_names
        self._clock = clock
        self._meant: dict[str, str | None] = {}
        self._waiting: dict[str, _Stray] = {}
        self._say_again_s: dict[str, float] = {}
        metrics.read_stray_pods(self.counts)

    def on_add(self, new: Pod) -> None:
        """Handle an added pod."""
        name = new.spec.scheduler_name
        if new.node_name or name in self._ours:
            return
        if name not in self._meant:
            if len(self._meant) >= _NAMES_MAX:
                self._meant.clear()
            self._meant[name] = similar_name(name, self._ours)
        profile_name = self._meant[name]
        if profile_name is not None and len(self._waiting) < _PODS_MAX:
            self._waiting[new.uid] = _Stray(new.key, name, profile_name, self._clock.monotonic())

    def on_update(self, old: Pod, new: Pod) -> None:
        """Handle an updated pod: it no longer waits once it is bound."""
        if old.node_name != new.node_name:
            self.on_delete(old)
            self.on_add(new)

    def on_delete(self, old: Pod) -> None:
        """Handle a deleted pod."""
        self._waiting.pop(old.uid, None)

    def on_broken(self, broken: BrokenObject) -> None:
        """Ignore a pod that cannot be decoded; another handler reports it."""

    def counts(self) -> Mapping[str, float]:
        """Return the number of pods that have waited long, by the scheduler name that was probably meant."""
        return {name: float(count) for name, count in Counter(stray.meant for stray in self._late()).items()}

    async def run(self) -> None:
        """Report such pods, once an hour for each name, until cancelled."""
        while True:
            await anyio.sleep(_LOOK_EVERY_S)
            self.report()

    def report(self) -> None:
        """Log, for each name not reported lately, how many pods wait under it."""
        now_s = self._clock.monotonic()
        late: dict[str, list[_Stray]] = {}
        for stray in self._late():
            late.setdefault(stray.name, []).append(stray)
        self._say_again_s = {name: at_s for name, at_s in self._say_again_s.items() if at_s > now_s}
        for name, strays in late.items():
            if name in self._say_again_s or len(self._say_again_s) >= _NAMES_MAX:
                continue
            self._say_again_s[name] = now_s + _SAY_AGAIN_S
            log.warning(
                "Pods wait for a scheduler of a similar name: is it misspelt?",
                scheduler_name=name[:NAME_SHOWN_MAX],
                profile=strays[0].meant,
                pods=len(strays),
                one_of_them=strays[0].pod,
            )

    def _late(self) -> list[_Stray]:
        before_s = self._clock.monotonic() - WAITING_S_MIN
        return [stray for stray in self._waiting.values() if stray.since_s <= before_s]

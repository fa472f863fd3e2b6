"""The informers of one API server, each with its reflector, and what they have in common.

Owns when scheduling waits for new lists (`client.consistency`), and the new list of everything after the API server's
history has gone back (`client.history`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from random import Random
from typing import TYPE_CHECKING, Any, cast

import anyio

from podium.client.consistency import Consistency
from podium.client.history import History
from podium.client.history_check import HistoryCheck
from podium.client.informer import Informer
from podium.client.list_failures import ListFailures
from podium.client.reflector import Reflector, ReflectorSettings, ReflectorStatistics
from podium.client.sink import Aside
from podium.lib.clock import Clock
from podium.objects.core import Pod
from podium.objects.objects_with_json import Keep
from podium.objects.resource_types import NODES, PODS, ObjectT, ResourceType

if TYPE_CHECKING:
    from podium.client.session import ApiSession

_LOOK_AGAIN_S = 0.02
_SCHEDULED = (PODS.path, NODES.path)
"""Resources by their paths, since a reader may decode more of a kind's fields than another."""


class InformerSet:
    """The informers of one API server, one for each resource, run together.

    Args:
        on_handler_error: called with the resource and the exception of each failed handler call, to count it.
        keep: by the path of a resource, how to keep more of its objects than podium reads.
        paths: by the path of a resource, the one at which the API server serves it in an older version.
        on_made: called with each new informer, before it has handlers.
        on_delivered: returns, for a resource, what is called with the seconds that a part of its watch took to handle.
    """

    def __init__(
        self,
        session: ApiSession,
        *,
        clock: Clock,
        random: Random,
        on_handler_error: Callable[[str, Exception], None] = lambda _resource, _error: None,
        settings: ReflectorSettings | None = None,
        keep: Mapping[str, Keep[Any]] | None = None,
        paths: Mapping[str, str] | None = None,
        on_made: Callable[[Informer[Any]], None] = lambda _: None,
        on_delivered: Callable[[ResourceType[Any]], Callable[[float], None]] = lambda _: lambda _: None,
    ) -> None:
        self.consistency = Consistency(clock)
        self._session = session
        self._clock = clock
        self._random = random
        self._on_handler_error = on_handler_error
        self._settings = settings or ReflectorSettings()
        self._keep = keep or {}
        self._paths = paths or {}
        self._on_made = on_made
        self._on_delivered = on_delivered
        self._informers: dict[str, Informer[Any]] = {}
        self._reflectors: dict[str, Reflector[Any]] = {}
        """By the path of their resource, even if they ask at another one."""
        self._history: History | None = None
        self._failures = ListFailures(clock)

    def informer(self, resource: ResourceType[ObjectT]) -> Informer[ObjectT]:
        """Return the informer of that resource, a plain store for a local one. The first call must be before `run`."""
        existing = self._informers.get(resource.path)
        if existing is not None:
            return cast(Informer[ObjectT], existing)
        informer = Informer(resource, self._on_handler_error, self._clock, self.consistency)
        self._informers[resource.path] = informer
        self._on_made(informer)
        if resource.is_local:
            informer.set_synced()
            return informer
        resource_at_path = replace(resource, path=self._paths.get(resource.path, resource.path))
        self._reflectors[resource.path] = Reflector(
            resource_at_path,
            self._session,
            informer,
            clock=self._clock,
            random=self._random,
            on_listed=lambda: self._on_listed(informer),
            # Older servers may lack a group; core resources must exist.
            on_absent=informer.set_synced if resource.group else lambda: None,
            on_outdated=lambda: self._on_outdated(resource),
            on_delivered=self._on_delivered(resource_at_path),
            history_observer=self,
            settings=self._settings,
            keep=self._keep.get(resource.path),
            failures=self._failures,
        )
        return informer

    def take_aside(self, resource: ResourceType[Any], aside: Aside) -> None:
        """Have lines of this resource's watch taken aside before they are decoded."""
        self._reflector(resource).aside = aside

    def _on_listed(self, informer: Informer[Any]) -> None:
        informer.set_synced()
        self.consistency.current(informer.resource.plural)

    # ------------------------------------------------------------ the API server's history

    def older_version_seen(self) -> None:
        """Report it to the history; see `History.older_version_seen`."""
        if self._history is not None:
            self._history.older_version_seen()

    def version_went_back(self, reason: str) -> None:
        """Report it to the history, as `History.version_went_back`. Until the new lists have arrived, scheduling
        waits as for any new list.
        """
        if self._history is not None:
            for path in _SCHEDULED:
                if path in self._informers:
                    self.consistency.note_outdated(self._informers[path].resource.plural)
            self._history.version_went_back(reason)

    def watch_resumed(self) -> None:
        """Report it to the history; see `History.watch_resumed`."""
        if self._history is not None:
            self._history.watch_resumed()

    def history_lost(self, reason: str) -> None:
        """Report it to the history; see `History.history_lost`."""
        if self._history is not None:
            self._history.history_lost(reason)

    def saw_unbound(self, pod: Pod) -> None:
        """Report to the history that a bound pod is pending again, which no API server allows.

        During a list the reflector has reported it already.
        """
        if self._reflector(PODS).version:
            self.history_lost(f"pod {pod.key} was bound and is pending again")

    def _start_over(self) -> None:
        """List everything again; scheduling waits for it."""
        for reflector in self._reflectors.values():
            if reflector.resource.path in _SCHEDULED or not reflector.statistics.is_failing:
                self.consistency.note_outdated(reflector.resource.plural)
            reflector.list_again(from_scratch=True)

    def _history_check(self, resource: ResourceType[ObjectT]) -> HistoryCheck[ObjectT]:
        return HistoryCheck(self._session, resource, self._reflector(resource), self.informer(resource))

    def _reflector(self, resource: ResourceType[ObjectT]) -> Reflector[ObjectT]:
        return self._reflectors[resource.path]

    def _on_outdated(self, resource: ResourceType[Any]) -> None:
        """Make scheduling wait for new lists of pods and nodes."""
        if resource.path == NODES.path:
            # New nodes would look empty until the pods on them are known.
            for reflector in self._reflectors.values():
                if reflector.resource.path == PODS.path:
                    self.consistency.note_outdated(PODS.plural)
                    reflector.list_again()
        if resource.path in _SCHEDULED:
            self.consistency.note_outdated(resource.plural)

    @property
    def resources(self) -> Sequence[ResourceType[Any]]:
        """The resources of all informers so far, local ones included."""
        return [informer.resource for informer in self._informers.values()]

    async def run(self) -> None:
        """Keep all informers current until cancelled."""
        async with anyio.create_task_group() as group:
            scheduled = [self._informers[path].resource for path in _SCHEDULED if path in self._informers]
            kinds = [self._history_check(resource) for resource in scheduled]
            self._history = History(self._clock, kinds, self._start_over)
            group.start_soon(self._history.run, name="history")
            for reflector in self._reflectors.values():
                group.start_soon(reflector.run, name=f"reflector of {reflector.resource.plural}")

    @property
    def is_synced(self) -> bool:
        """Return whether every informer is synced."""
        return all(informer.is_synced for informer in self._informers.values())

    async def wait_synced(self) -> None:
        """Wait until every informer is synced."""
        for informer in self._informers.values():
            await informer.wait_synced()

    @property
    def unconnected(self) -> Sequence[str]:
        """The resources whose watch is not connected."""
        return [
            reflector.resource.plural
            for reflector in self._reflectors.values()
            if not reflector.is_connected and not reflector.is_absent
        ]

    def is_absent(self, resource: ResourceType[Any]) -> bool:
        """Return whether the API server does not serve the resource."""
        # Of a local resource the API server knows nothing, so that nothing can be missing there.
        return not resource.is_local and self._reflector(resource).is_absent

    async def wait_connected(self) -> None:
        """Wait until the watches of all resources are connected."""
        while self.unconnected:  # noqa: ASYNC110 - rare and short, and simpler than signals
            await anyio.sleep(_LOOK_AGAIN_S)

    def statistics(self) -> dict[str, ReflectorStatistics]:
        """Return the counters and the last error by resource, such as `pods`."""
        return {reflector.resource.plural: reflector.statistics for reflector in self._reflectors.values()}

    def versions(self) -> dict[ResourceType[Any], str]:
        """Return the version that each store has reached; empty during a list from scratch."""
        return {reflector.resource: reflector.version for reflector in self._reflectors.values()}

    @property
    def events_total(self) -> int:
        """Return how many changes the watches have shown."""
        return sum(reflector.statistics.events_total for reflector in self._reflectors.values())

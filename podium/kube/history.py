"""Whether the API server's history still is the one that was seen, or has gone back, as when etcd is restored.

Then versions begin again below those seen, objects are as they were, and a watch from a version that is yet to come is
silent until it has come, for minutes or hours. An API server that was not restarted with its etcd even goes on listing
what etcd has lost; only single objects it reads from etcd. So when a watch has been broken, when a version has gone
back, and now and then, the pods that changed last are read: they must be as they are known, or the watch must soon say
how they have changed. If not, history has gone back, and everything is listed again.

An old version alone proves nothing: events may be delayed or sent twice. Owns the doubts and the questions, which get
rare when they come to nothing, and how often everything is listed again. Never changes what is known.

Differs: client-go does not notice; kube-scheduler ends its process if it sees a pod on another node than before.
"""

from __future__ import annotations

import heapq
import math
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Final, Generic, Protocol, TypeVar

import anyio
import msgspec
import structlog
from msgspec import Struct

from podium.kube.answers import check_object
from podium.kube.api_errors import ApiError, Forbidden, NotFound
from podium.kube.objects import ObjectMeta
from podium.kube.resource_types import KubeObject, ObjectT, ResourceType
from podium.kube.resource_versions import is_older
from podium.kube.session import Method
from podium.kube.wire import ObjectDecoder
from podium.lib.clock import Clock

log = structlog.get_logger(__name__)

ObjectT_co = TypeVar("ObjectT_co", bound=KubeObject, covariant=True)

WITNESSES: Final = 4
LOOK_EVERY_S: Final = 10.0
START_OVER_EVERY_S: Final = 30.0
_START_OVER_S_MAX: Final = 120.0
_DOUBT_S_MIN, _DOUBT_S_MAX = 1.0, 60.0
_RESUMED_S_MIN: Final = 10.0
_SILENCE_S_MAX: Final = 3.0
_LAG_S_MAX: Final = 30.0
_LOOK_AGAIN_S: Final = 0.1
_REQUEST_S_MAX: Final = 10.0
_ASK_AGAIN_S: Final = 2.0
_FORGIVEN_AFTER_S: Final = 300.0
_RESUMPTIONS_MAX: Final = 8


class Requester(Protocol):
    """An `ApiSession`, as far as it is used here."""

    async def request(self, method: Method, path: str, *, deadline_s: float) -> bytes:
        """Make one request and return the body of a 2xx answer. Raises: an `ApiError`."""
        ...


class Followed(Protocol[ObjectT]):
    """A reflector, as far as it is used here."""

    @property
    def recent(self) -> deque[ObjectT]:
        """The last states that the watch has brought, of objects that went, too; others may be put in their place."""
        ...

    @property
    def version(self) -> str:
        """Up to where the history is known; empty while it is listed anew."""
        ...


class Known(Protocol[ObjectT_co]):
    """An informer, as far as it is used here."""

    def get(self, key: str) -> ObjectT_co | None:
        """The object with that key."""
        ...

    def list(self) -> Iterable[ObjectT_co]:
        """All objects."""
        ...


class _Object(Struct):
    metadata: ObjectMeta


class Pause:
    """Pauses that grow while one follows soon after the other."""

    def __init__(self, clock: Clock, first_s: float, longest_s: float) -> None:
        self._clock = clock
        self._first_s, self._longest_s = first_s, longest_s
        self._next_s, self._last_s = first_s, -math.inf

    def left_s(self) -> float:
        """How long to wait yet."""
        return max(0.0, self._last_s + self._next_s - self._clock.monotonic())

    def begin(self) -> None:
        """It has been done just now."""
        now_s = self._clock.monotonic()
        is_soon = now_s - self._last_s < self._next_s + _FORGIVEN_AFTER_S
        self._next_s = min(2.0 * self._next_s, self._longest_s) if is_soon else self._first_s
        self._last_s = now_s

    def shorten(self, seconds: float) -> None:
        """Let the pause that is under way be no longer than that."""
        self._next_s = min(self._next_s, seconds)


class History(Generic[ObjectT]):
    """The doubts about one API server, and what follows from them.

    Args:
        resource: whose objects are read: pods, since they change most and podium may read them.
        start_over: lists everything again.
    """

    def __init__(
        self,
        session: Requester,
        clock: Clock,
        resource: ResourceType[ObjectT],
        followed: Followed[ObjectT],
        known: Known[ObjectT],
        start_over: Callable[[], None],
    ) -> None:
        self._session = session
        self._resource = resource
        self._decode = msgspec.json.Decoder(_Object).decode
        self._page = ObjectDecoder(resource).page
        self._followed = followed
        self._known = known
        self._start_over = start_over
        self._doubts = Pause(clock, _DOUBT_S_MIN, _DOUBT_S_MAX)
        self._starts = Pause(clock, START_OVER_EVERY_S, _START_OVER_S_MAX)
        self._awake = anyio.Event()
        self._suspects: deque[Sequence[ObjectT]] = deque()
        self._is_refuted = False
        self._starts_unproven = 0

    def doubt(self) -> None:
        """A version has gone back, which may only be an old event: find out."""
        self._awake.set()

    def resumed(self) -> None:
        """A watch that was broken goes on: perhaps on another history."""
        # Asked about is what was known before: what comes now is as the API server has it, whatever happened. History
        # may have gone back at each of several resumptions, and what came in between proves nothing about the first.
        self._suspects.append(self._witnesses())
        if len(self._suspects) > _RESUMPTIONS_MAX:
            self._suspects.popleft()
        self._starts.shorten(_RESUMED_S_MIN)
        self._doubts.shorten(_DOUBT_S_MIN)
        self._awake.set()

    def refute(self, why: str) -> None:
        """Something was seen that can only be if history has gone back."""
        if self._is_refuted:
            return
        self._is_refuted = True
        self._awake.set()
        if self._starts_unproven:
            log.error("The API server goes on showing what etcd has lost: it has to be restarted", why=why)
        else:
            log.warning("The API server's history has gone back, as when etcd is restored", why=why)

    async def run(self) -> None:
        """Follow up doubts, and look now and then, until cancelled."""
        while True:
            with anyio.move_on_after(LOOK_EVERY_S):
                await self._awake.wait()
            if not self._awake.is_set():
                await self._find_out()
            elif left_s := (self._starts if self._is_refuted else self._doubts).left_s():
                self._awake = anyio.Event()
                with anyio.move_on_after(left_s):
                    await self._awake.wait()
                self._awake.set()
            elif self._is_refuted:
                self._list_all()
            else:
                self._awake = anyio.Event()
                self._doubts.begin()
                await self._find_out()

    def _list_all(self) -> None:
        self._is_refuted = False
        self._suspects.clear()
        self._starts.begin()
        self._starts_unproven += 1
        self._start_over()
        # Whether that has helped is found out as soon as the lists are there.
        self._doubts.shorten(_DOUBT_S_MIN)

    async def _find_out(self) -> None:
        again_s = _ASK_AGAIN_S
        try:
            # A list that is under way comes first.
            if self._followed.version:
                suspects = tuple(self._suspects)
                if await self._goes_on(suspects or (self._witnesses(),)):
                    self._starts_unproven = 0
                self._suspects = deque(each for each in self._suspects if all(each is not one for one in suspects))
                return
        except ApiError as error:
            log.debug("cannot find out whether history has gone back", error=str(error))
            again_s = max(again_s, error.retry_after_s or 0.0)
        await anyio.sleep(again_s)
        self._doubts.shorten(_ASK_AGAIN_S)
        self._awake.set()

    async def _goes_on(self, suspects: Iterable[Sequence[ObjectT]]) -> bool:
        """Whether it is certain that nothing was lost.

        Args:
            suspects: what was known at each resumption, the last change first.

        Raises: an `ApiError` where the API server cannot answer now.
        """
        seen, changed = self._followed.version, list[tuple[ObjectT, str]]()
        for witnesses in suspects:
            for item in witnesses:
                try:
                    now = await self._version_of(item)
                except Forbidden:
                    break
                was = item.metadata.resource_version
                if now == was:
                    break
                if now and is_older(now, was):
                    self.refute(f"{self._resource.kind} {item.key} was at version {was} and is at {now}")
                    return False
                changed.append((item, now))
        return await self._is_not_below(seen) and await self._is_told(changed)

    def _witnesses(self) -> Sequence[ObjectT]:
        """The objects that have changed or gone last, the last one first.

        Cost: a look at every object where none of the last changes is of one that is there.
        """
        recent = self._followed.recent
        current = [item for item in recent if self._is_last_state(item)]
        if not any(self._known.get(item.key) is item for item in current):
            there = heapq.nlargest(WITNESSES, self._known.list(), key=_age)[::-1]
            current = there + current[-WITNESSES:]
            recent.clear()
            recent.extend(current)
        return current[::-1]

    def _is_last_state(self, item: ObjectT) -> bool:
        """Whether this is how the object is, or how it was when it went."""
        known = self._known.get(item.key)
        return known is item or known is None or known.metadata.uid != item.metadata.uid

    async def _version_of(self, item: ObjectT) -> str:
        """The version of the very object by now; empty where it is gone.

        Raises: an `ApiError`, also for an answer that is not about the object.
        """
        resource, meta = self._resource, item.metadata
        try:
            answer = await self._get(resource.object_path(item))
        except NotFound as error:
            if error.reason != "NotFound":
                raise
            return ""
        check_object(answer, resource.api_version, resource.kind, ObjectMeta(name=meta.name, namespace=meta.namespace))
        now = self._decode(answer).metadata
        return now.resource_version if now.uid == meta.uid else ""

    async def _is_told(self, changed: list[tuple[ObjectT, str]]) -> bool:
        """Whether the watch tells of these changes. One that is behind, and goes on, is waited for longer."""
        version, since_s, waited_s = self._followed.version, 0.0, 0.0
        while untold := [item for item, now in changed if not self._knows(item, now)]:
            if version != self._followed.version:
                version, since_s = self._followed.version, waited_s
            if waited_s - since_s >= _SILENCE_S_MAX or waited_s >= _LAG_S_MAX:
                break
            await anyio.sleep(_LOOK_AGAIN_S)
            waited_s += _LOOK_AGAIN_S
        if untold and self._followed.version:
            self.refute(f"the watch does not say that {self._resource.kind} {untold[0].key} has changed or gone")
        return not untold

    def _knows(self, item: ObjectT, now: str) -> bool:
        known = self._known.get(item.key)
        if known is None or known.metadata.uid != item.metadata.uid:
            return True
        return bool(now) and not is_older(known.metadata.resource_version, now)

    async def _is_not_below(self, seen: str) -> bool:
        """Whether the API server's version is not below what was seen."""
        current = self._page(await self._get(f"{self._resource.path}?limit=1")).resource_version
        if is_older(current, seen):
            self.refute(f"{self._resource.plural} were at version {seen} and are at {current}")
            return False
        return True

    async def _get(self, path: str) -> bytes:
        return await self._session.request("GET", path, deadline_s=_REQUEST_S_MAX)


def _age(item: ObjectT) -> tuple[int, str]:
    version = item.metadata.resource_version
    return len(version), version

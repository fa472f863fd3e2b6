"""Bytes of watches and lists as no API server sends them, through a reflector into an informer.

Whatever has come: the reflector goes on, how the bytes were split makes no difference, handlers are told of each object
in order, and once the server is itself again, the informer has what the server has.
"""

from __future__ import annotations

import asyncio
import urllib.parse
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, Final

from hypothesis import strategies as st

from podium.kube.api_errors import BadRequest, Gone
from podium.kube.informer import Informer
from podium.kube.objects import Pod
from podium.kube.reflector import Reflector, ReflectorSettings
from podium.kube.resource_types import PODS
from podium.kube.session import Stream
from podium.kube.wire import BrokenObject
from tests.fuzz.examples import example
from tests.fuzz.limits import MeasuringLoop, WorkingClock, stall_s
from tests.fuzz.mutations import Json, Mutation, apply, encoded, mutations, one_of

_RECOVERED_S: Final = 900.0
_TRUE_VERSION: Final = "90000000000000000001"
_TYPES: Final = ("ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR", "added", "", "SYNC")
_STATUSES: Final[tuple[Json, ...]] = (
    {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old resource version"},
    {"kind": "Status", "code": 429, "reason": "TooManyRequests", "details": {"retryAfterSeconds": 2}},
    {"kind": "Status", "code": 500, "details": {"retryAfterSeconds": "soon"}},
    {"kind": "Status", "code": "410", "message": ["no"]},
    {"kind": "Status", "code": -(2**70), "reason": None},
    {},
    None,
    "gone",
)
RUBBISH: Final = (
    *(b"", b"\r", b" ", b"\x00", b"\xff\xfe", b"{", b"}", b"null", b"[]", b"0", b'"', b"\xef\xbb\xbf{}", b"{}{}"),
    *(b'{"type":"ADDED"}', b'{"type":1,"object":{}}', b'{"object":{},"type":"ADDED"}', b'{"type":"ADDED","object":'),
    *(b'{"type":"BOOKMARK","object":{"metadata":{}}}', b'{"type":"ERROR","object":{"code":1e400}}'),
    b'{"type":"ADDED","object":{"metadata":{"name":"\xff"}}}',
    b'{"type":"ADDED","object":' + b'{"a":' * 100_000 + b"1" + b"}" * 100_000 + b"}",
    b"[" * 300_000,
    b"x" * 3_000_000,
    b'{"type":"ADDED","object":{"metadata":{"name":"' + b"n" * 1_000_000 + b'"}}}',
    b'{"type":"ADDED","object":{"spec":{"priority":' + b"9" * 100_000 + b"}}}",
    b'{"type":"ADDED","object":{"metadata":{"name":"a","resourceVersion":"x"}}}',
    b'{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"\\u0000&watch=0"}}}',
)


@dataclass(frozen=True)
class Line:
    """One line of a watch about one of a few pods."""

    type: str
    pod: int
    version: int
    changes: tuple[Mutation, ...]

    def content(self) -> bytes:
        """As it is sent."""
        if self.type == "ERROR":
            return encoded({"type": self.type, "object": _STATUSES[self.version % len(_STATUSES)]})
        made = _pod(f"pod-{self.pod}", f"uid-{self.pod % 2}", str(self.version))
        if self.type == "BOOKMARK":
            del made["spec"]
        return encoded(apply({"type": self.type, "object": made}, self.changes))


@dataclass(frozen=True)
class Given:
    """What is sent: the list part of a watch, whether it ends as it should, changes after it, and where it is torn."""

    listed: tuple[Line | bytes, ...]
    is_list_ended: bool
    changes: tuple[Line | bytes, ...]
    torn: bytes
    cuts: tuple[int, ...]
    ends: tuple[str, ...]

    def stream(self) -> bytes:
        """The bytes of the watch."""
        end = [_list_end("20")] if self.is_list_ended else []
        lines = [*map(_content, self.listed), *end, *map(_content, self.changes)]
        made = b"".join(line + self.ends[number % len(self.ends)].encode() for number, line in enumerate(lines))
        return made + self.torn


def _content(line: Line | bytes) -> bytes:
    return line if isinstance(line, bytes) else line.content()


def inputs() -> st.SearchStrategy[Given]:
    """Lines, good and bad ones, in pieces."""
    changes = st.lists(mutations(), max_size=3).map(tuple)
    line = st.builds(Line, st.sampled_from(_TYPES), st.integers(0, 5), st.integers(1, 30), changes)
    good = st.builds(Line, st.sampled_from(_TYPES[:3]), st.integers(0, 5), st.integers(1, 30), st.just(()))
    lines = st.lists(st.one_of(good, good, line, one_of(RUBBISH), st.binary(max_size=40)), max_size=12).map(tuple)
    return st.builds(
        Given,
        st.lists(good, max_size=3).map(tuple) | lines,
        st.sampled_from((True, True, True, False)),
        lines,
        one_of(RUBBISH) | st.binary(max_size=20),
        st.lists(st.integers(0, 4_000_000), max_size=30).map(tuple),
        st.lists(st.sampled_from(("\n", "\n", "\n", "\r\n", "\n\n", "")), min_size=1, max_size=3).map(tuple),
    )


def check(given: Given) -> float:
    """See that the informer gets over it. Returns: the longest stretch of CPU time without a break."""
    body = given.stream()
    cuts = sorted(cut % (len(body) + 1) for cut in given.cuts)
    pieces = [body[start:end] for start, end in zip([0, *cuts], [*cuts, len(body)], strict=True) if start < end]
    told: list[list[str]] = []

    def run() -> float:
        seconds, log = _run(pieces)
        told.append(log)
        return seconds

    longest_s = stall_s(run)
    assert _run([body] if body else [])[1] == told[0], "how the bytes were split makes a difference"
    return longest_s


def _run(pieces: Sequence[bytes]) -> tuple[float, list[str]]:
    """Returns: the longest stall, and what the handler was told."""
    with asyncio.Runner(loop_factory=MeasuringLoop) as runner:
        loop = runner.get_loop()
        assert isinstance(loop, MeasuringLoop)
        told = runner.run(_reflect(pieces))
        return loop.longest_s, told


async def _reflect(pieces: Sequence[bytes]) -> list[str]:
    failures: list[Exception] = []
    informer = Informer(PODS, lambda _, error: failures.append(error), WorkingClock())
    handler = _Ledger()
    informer.add_handler(handler)
    server: Any = _Server(pieces)
    reflector = Reflector(PODS, server, informer, clock=WorkingClock(), random=Random(1), settings=ReflectorSettings())
    running = asyncio.create_task(reflector.run())
    await asyncio.sleep(_RECOVERED_S)
    assert not running.done(), running.exception()
    running.cancel()
    assert not failures, failures
    truth = {f"shop/{name}" for name in server.names}
    assert {item.key for item in informer.list()} == truth, "the informer has not what the server has"
    assert handler.known.keys() == truth, "handlers were not told of everything"
    return handler.told


class _Ledger:
    """A handler that knows what has to come before what."""

    def __init__(self) -> None:
        self.known: dict[str, Pod] = {}
        self.told: list[str] = []

    def on_add(self, new: Pod) -> None:
        assert new.key not in self.known
        self._note("add", new)

    def on_update(self, old: Pod, new: Pod) -> None:
        assert self.known[old.key] is old
        assert (old.key, old.uid) == (new.key, new.uid)
        self._note("update", new)

    def on_delete(self, old: Pod) -> None:
        assert self.known.pop(old.key) is old
        self.told.append(f"delete {old.key:.40}")

    def on_broken(self, broken: BrokenObject) -> None:
        self.told.append(f"broken {broken.key:.40}")

    def _note(self, what: str, pod: Pod) -> None:
        self.known[pod.key] = pod
        self.told.append(f"{what} {pod.key:.40} {pod.metadata.resource_version:.40}")


class _Server:
    """Sends what it was given to the first watch; from then on it is as a server should be."""

    names = ("pod-0", "pod-9")

    def __init__(self, pieces: Sequence[bytes]) -> None:
        self._pieces: Sequence[bytes] | None = pieces

    async def stream(self, path: str, **_: Any) -> Stream:
        if self._pieces is not None:
            pieces, self._pieces = self._pieces, None
            return _stream(pieces, lasts=False)
        query = urllib.parse.parse_qs(urllib.parse.urlsplit(path).query)
        version = query.get("resourceVersion", [""])[0]
        assert query["watch"] == ["1"], path
        if "sendInitialEvents" in path:
            return _stream([*self._listed(), _list_end(_TRUE_VERSION) + b"\n"], lasts=True)
        if not version.isascii() or not version.isdigit():
            raise BadRequest(f"Invalid value: {version!r:.100}")
        if version != _TRUE_VERSION:
            raise Gone("too old resource version")
        return _stream([], lasts=True)

    async def request(self, *_: Any, **__: Any) -> bytes:
        items = b",".join(encoded(pod) for pod in self._pods())
        return b'{"metadata":{"resourceVersion":"%b"},"items":[%b]}' % (_TRUE_VERSION.encode(), items)

    def _listed(self) -> list[bytes]:
        return [encoded({"type": "ADDED", "object": pod}) + b"\n" for pod in self._pods()]

    def _pods(self) -> list[Json]:
        return [_pod(name, f"true-{name}", _TRUE_VERSION) for name in self.names]


class _Response:
    """As much of aiohttp's as a stream uses."""

    connection = None

    def __init__(self, pieces: Sequence[bytes], lasts: bool) -> None:
        self.content = self
        self._pieces, self._lasts = list(pieces), lasts

    async def readany(self) -> bytes:
        if self._pieces:
            await asyncio.sleep(0)
            return self._pieces.pop(0)
        if self._lasts:
            await asyncio.sleep(_RECOVERED_S)
        return b""

    def close(self) -> None: ...


def _stream(pieces: Sequence[bytes], *, lasts: bool) -> Stream:
    response: Any = _Response(pieces, lasts)
    return Stream(response)


def _pod(name: str, uid: str, version: str) -> Json:
    made = example(PODS.type)
    made["metadata"] |= {"name": name, "namespace": "shop", "uid": uid, "resourceVersion": version}
    return made


def _list_end(version: str) -> bytes:
    metadata = {"resourceVersion": version, "annotations": {"k8s.io/initial-events-end": "true"}}
    return encoded({"type": "BOOKMARK", "object": {"metadata": metadata}})

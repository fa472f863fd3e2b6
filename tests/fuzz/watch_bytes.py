"""Bytes of lists and watches as no API server sends them, through a reflector into an informer.

Whatever has come: the reflector goes on, how the bytes were split makes no difference, handlers are told of each object
in order, and once the server is itself again, the informer has what the server has.
"""

from __future__ import annotations

import asyncio
import itertools
import urllib.parse
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from types import SimpleNamespace
from typing import Any, Final
from unittest.mock import Mock, patch

from hypothesis import strategies as st
from multidict import CIMultiDict

from podium.client import list_body
from podium.client.informer import Informer
from podium.client.reflector import Reflector, ReflectorSettings
from podium.client.session import Stream
from podium.objects.api_errors import BadRequest, Gone
from podium.objects.core import Pod
from podium.objects.resource_types import PODS
from podium.objects.wire import BrokenObject
from tests.fuzz.examples import example
from tests.fuzz.limits import MeasuringLoop, WorkingClock, stall_s
from tests.fuzz.mutations import Json, Mutation, apply, encode, mutations, one_of

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


_OF_PODS: Final = b'"kind":"PodList","apiVersion":"v1"'
SHAPES: Final = (
    (b'{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"20"},"items":[', b"]}\n"),
    (b'{"apiVersion":"v1","items":[', b'],"kind":"PodList","metadata":{"resourceVersion":"20"}}\n'),
    (b'{%b, "metadata": {"resourceVersion": "20"}, "items": [' % _OF_PODS, b"]}"),
    (b'{%b,"metadata":{"resourceVersion":"20"},"x":[{"items":[' % _OF_PODS, b']}],"items":[]}'),
    (b'{%b,"metadata":{"resourceVersion":"20","continue":"x"},"items":[' % _OF_PODS, b"]}"),
    (b'{"kind":"NodeList","apiVersion":"v1","metadata":{"resourceVersion":"20"},"items":[', b"]}"),
    (b"", b""),
)
"""What may stand before and after the items of a list; the first is as API servers write it."""


@dataclass(frozen=True)
class Line:
    """One line of a watch, or one item of a list, about one of a few pods."""

    type: str
    pod: int
    version: int
    changes: tuple[Mutation, ...]

    def content(self) -> bytes:
        """As it is sent."""
        if self.type == "ERROR":
            return encode({"type": self.type, "object": _STATUSES[self.version % len(_STATUSES)]})
        manifest = self._example()
        if self.type == "BOOKMARK":
            del manifest["spec"]
        return encode(apply({"type": self.type, "object": manifest}, self.changes))

    def item(self) -> bytes:
        """As it is listed."""
        return encode(apply(self._example(), self.changes))

    def _example(self) -> Json:
        return _example_pod(f"pod-{self.pod}", f"uid-{self.pod % 2}", str(self.version))


@dataclass(frozen=True)
class Sending:
    """What is sent: a list, whether it ends as it should, changes after it, and where both are torn.

    `shape` is one of `SHAPES`; `piece_bytes` is how much of a list is decoded at once.
    """

    items: tuple[Line | bytes, ...]
    is_list_ended: bool
    changes: tuple[Line | bytes, ...]
    torn: bytes
    cuts: tuple[int, ...]
    ends: tuple[str, ...]
    shape: int = 0
    piece_bytes: int = 64 * 1024

    def list_body(self) -> bytes:
        """The bytes of the list."""
        head, tail = SHAPES[self.shape]
        items = b",".join(line if isinstance(line, bytes) else line.item() for line in self.items)
        return head + items + (tail if self.is_list_ended else self.torn)

    def watch_body(self) -> bytes:
        """The bytes of the watch."""
        lines = [line if isinstance(line, bytes) else line.content() for line in self.changes]
        lines_sent = b"".join(line + self.ends[number % len(self.ends)].encode() for number, line in enumerate(lines))
        return lines_sent + self.torn

    def pieces(self, body: bytes) -> list[bytes]:
        """The bytes as they arrive."""
        edges = sorted({0, len(body), *(cut % (len(body) + 1) for cut in self.cuts)})
        return [body[start:end] for start, end in itertools.pairwise(edges)]


def inputs() -> st.SearchStrategy[Sending]:
    """Lines, good and bad ones, in pieces."""
    changes = st.lists(mutations(), max_size=3).map(tuple)
    line = st.builds(Line, st.sampled_from(_TYPES), st.integers(0, 5), st.integers(1, 30), changes)
    good = st.builds(Line, st.sampled_from(_TYPES[:3]), st.integers(0, 5), st.integers(1, 30), st.just(()))
    lines = st.lists(st.one_of(good, good, line, one_of(RUBBISH), st.binary(max_size=40)), max_size=12).map(tuple)
    return st.builds(
        Sending,
        st.lists(good, max_size=6).map(tuple) | lines,
        st.sampled_from((True, True, True, False)),
        lines,
        one_of(RUBBISH) | st.binary(max_size=20),
        st.lists(st.integers(0, 4_000_000), max_size=30).map(tuple),
        st.lists(st.sampled_from(("\n", "\n", "\n", "\r\n", "\n\n", "")), min_size=1, max_size=3).map(tuple),
        st.sampled_from((0, 0, *range(len(SHAPES)))),
        st.sampled_from((1, 3_000, 64 * 1024)),
    )


def check(sending: Sending) -> float:
    """See that the informer gets over it. Returns: the longest stretch of CPU time without a break."""
    body, changes = sending.list_body(), sending.watch_body()
    stories: list[list[str]] = []

    def run() -> float:
        seconds, log = _run(sending.pieces(body), sending.pieces(changes))
        stories.append(log)
        return seconds

    with patch.object(list_body, "_PIECE_BYTES", sending.piece_bytes):
        longest_s = stall_s(run)
        at_once = _run([body], [changes])[1]
    assert at_once == stories[0], "how the bytes were split makes a difference"
    return longest_s


def _run(list_pieces: Sequence[bytes], changes: Sequence[bytes]) -> tuple[float, list[str]]:
    """Returns: the longest stall, and what the handler was told."""
    with asyncio.Runner(loop_factory=MeasuringLoop) as runner:
        loop = runner.get_loop()
        assert isinstance(loop, MeasuringLoop)
        story = runner.run(_reflect(_Server(list_pieces, changes)))
        return loop.longest_s, story


async def _reflect(server: Any) -> list[str]:
    failures: list[Exception] = []
    informer = Informer(PODS, lambda _, error: failures.append(error), WorkingClock())
    handler = _Ledger()
    informer.add_handler(handler)
    doubts: Any = Mock()
    reflector = Reflector(
        PODS,
        server,
        informer,
        clock=WorkingClock(),
        random=Random(1),
        history_observer=doubts,
        settings=ReflectorSettings(),
    )
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

    def on_broken(self, broken_object: BrokenObject) -> None:
        self.told.append(f"broken {broken_object.key:.40}")

    def _note(self, verb: str, pod: Pod) -> None:
        self.known[pod.key] = pod
        self.told.append(f"{verb} {pod.key:.40} {pod.metadata.resource_version:.40}")


class _Server:
    """Gives what it was given to the first list and the watch from there; from then on it is as a server should be."""

    names = ("pod-0", "pod-9")

    def __init__(self, list_pieces: Sequence[bytes], changes: Sequence[bytes]) -> None:
        self._listed: Sequence[bytes] | None = list_pieces
        self._changes: Sequence[bytes] | None = changes

    async def stream(self, path: str, **_: Any) -> Stream:
        query = urllib.parse.parse_qs(urllib.parse.urlsplit(path).query)
        if "watch" not in query:
            list_pieces, self._listed = self._listed, None
            return _stream([self._true_list()] if list_pieces is None else list_pieces, lasts=False)
        version = query.get("resourceVersion", [""])[0]
        if version == "20" and self._changes is not None:
            changes, self._changes = self._changes, None
            return _stream(changes, lasts=False)
        if not version.isascii() or not version.isdigit():
            raise BadRequest(f"Invalid value: {version!r:.100}")
        if version != _TRUE_VERSION:
            raise Gone("too old resource version")
        return _stream([], lasts=True)

    async def request(self, *_: Any, **__: Any) -> bytes:
        return self._true_list()

    def _true_list(self) -> bytes:
        items = b",".join(encode(_example_pod(name, f"true-{name}", _TRUE_VERSION)) for name in self.names)
        head = b'"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"%b"}' % _TRUE_VERSION.encode()
        return b'{%b,"items":[%b]}' % (head, items)


class _Response:
    """As much of aiohttp's as a stream uses."""

    connection = None
    headers = CIMultiDict[str]()

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
    pool: Any = SimpleNamespace(users=0)
    return Stream(response, pool, lambda: None)


def _example_pod(name: str, uid: str, version: str) -> Json:
    example_pod = example(PODS.type)
    example_pod["metadata"] |= {"name": name, "namespace": "shop", "uid": uid, "resourceVersion": version}
    return example_pod

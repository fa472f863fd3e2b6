"""/debug/queue: the pods that wait or are in flight.

A replica that stands by attempts no pod and knows no reasons: it names the leader.

Pods are sorted by key. A page is assembled in turns of some milliseconds, between which the scheduler runs: it is not a
consistent snapshot. What one pod takes depends on its texts, so that no number of pods would do.

Source: none; upstream writes its queue to the log on SIGUSR2.
"""

from __future__ import annotations

import textwrap
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from operator import itemgetter
from typing import Any, Final, TypeAlias

import orjson
from aiohttp import web
from aiohttp.typedefs import Handler

from podium.framework.contract.queued_pod import QueuedPodInfo
from podium.lib.clock import Clock
from podium.lib.printable import printable
from podium.lib.transitions import Transition
from podium.lib.turns import Turns
from podium.objects.core import Pod
from podium.objects.times import format_micro_time, format_time
from podium.queues import ListedPod, NextTry, QueueListing, QueueState

_LIMIT: Final = 500
_LIMIT_MAX: Final = 5000
_LOOKED_AT_MAX: Final = 100
"""The number of pods that are examined between two looks at the clock: a tenth of a millisecond."""
_BEHIND_ALL: Final = chr(0x10FFFF)
_PLACES: Final = {place.value: place for place in QueueState if place is not QueueState.GONE}
_COLUMNS: Final = ("NAMESPACE", "NAME", "QUEUE", "PRIORITY", "ATTEMPTS", "NOMINATED", "NEXT TRY")
_WIDTH: Final = 100
_STANDBY: Final = "standby"
_REASON_MAX: Final = 4000
"""Longer reasons are cut: a plugin's message has no length limit."""

_Json: TypeAlias = dict[str, Any]
_Found: TypeAlias = tuple[str, QueuedPodInfo]


@dataclass(frozen=True, slots=True)
class _Question:
    """The parsed query. Raises web.HTTPBadRequest if it is invalid."""

    namespace: str
    name: str
    place: QueueState | None
    limit: int
    after: str
    wants_table: bool

    @classmethod
    def of(cls, request: web.Request) -> _Question:
        query = request.query
        place = query.get("queue", "")
        if place and place not in _PLACES:
            raise web.HTTPBadRequest(text=f"queue: one of {', '.join(_PLACES)}, not {place!r}\n")
        return cls(
            query.get("namespace", ""),
            query.get("pod", ""),
            _PLACES.get(place),
            limit_of(query, _LIMIT, _LIMIT_MAX),
            query.get("continue", ""),
            wants_table(request),
        )

    def chooses(self, pod: Pod, place: QueueState) -> bool:
        meta = pod.metadata
        return (
            place is not QueueState.GONE
            and (not self.namespace or meta.namespace == self.namespace)
            and (not self.name or meta.name == self.name)
            and (self.place is None or place is self.place)
        )


def limit_of(query: Mapping[str, str], default: int, limit_max: int) -> int:
    """Return the parameter `limit`. Raises: web.HTTPBadRequest."""
    limit = query.get("limit", str(default))
    # isdecimal accepts digits of every script, and int() would parse them.
    if not (limit.isascii() and limit.isdecimal() and 0 < int(limit) <= limit_max):
        raise web.HTTPBadRequest(text=f"limit: a number from 1 to {limit_max}, not {limit!r}\n")
    return int(limit)


def wants_table(request: web.Request) -> bool:
    """Return True if `output` or `Accept` asks for a table. Raises: web.HTTPBadRequest."""
    output = request.query.get("output", "")
    if output not in ("", "json", "table", "text"):
        raise web.HTTPBadRequest(text=f"output: json or table, not {output!r}\n")
    return output in ("table", "text") or (not output and "text/plain" in request.headers.get("Accept", ""))


Leader: TypeAlias = Callable[[], str | None]
"""The replica that schedules in place of this one; "" if unknown; None if this process schedules."""


def queue_page(listing: QueueListing, clock: Clock, leader: Leader = lambda: None) -> Handler:
    """Return the handler of GET /debug/queue."""

    async def handle(request: web.Request) -> web.Response:
        """Return every pod that waits or is in flight, why it waits and until when, as JSON or as a table.

        `?namespace=`, `?pod=` (its name) and `?queue=` (a state, such as `backoff`) choose; `?limit=` (500 by default)
        and `?continue=`, whose value is in a response that has more pods, page; `?output=table` or `Accept: text/plain`
        returns a table. The table for one pod name includes the pods' histories.
        """
        question, turns = _Question.of(request), Turns(clock)
        matches = await _first_chosen(listing, question, turns)
        page_matches = matches[: question.limit]
        proceed = page_matches[-1][0] if len(matches) > len(page_matches) else ""
        answer = _table if question.wants_table else _json
        leader_name = leader()
        return await answer(
            _list_pods(listing, page_matches, turns),
            proceed,
            bool(question.name),
            leader_name and leader_name[:_REASON_MAX],
            turns,
        )

    return handle


async def _first_chosen(listing: QueueListing, question: _Question, turns: Turns) -> list[_Found]:
    """Return the selected pods of the page, plus one if there are more."""
    first: list[_Found] = []
    infos, end = listing.infos(), _BEHIND_ALL
    for start in range(0, len(infos), _LOOKED_AT_MAX):
        first += [
            (identity, info)
            for info in infos[start : start + _LOOKED_AT_MAX]
            if question.after < (identity := f"{info.pod.key}/{info.pod.uid}") < end
            and question.chooses(info.pod, listing.state_of(info))
        ]
        # A page of the first few is kept, not the whole sorted queue, which may have a hundred thousand pods.
        if len(first) > question.limit:
            first.sort(key=itemgetter(0))
            del first[question.limit + 1 :]
            end = first[-1][0]
        if turns.is_over():
            await turns.next()
    return sorted(first, key=itemgetter(0))


async def _list_pods(listing: QueueListing, matches: Sequence[_Found], turns: Turns) -> AsyncIterator[ListedPod]:
    """Yield the pods that still wait or are in flight. Between two of them, other tasks run once a turn is over."""
    # The list was made at the beginning; a pod may have been placed during the pauses.
    for _, info in matches:
        entry = listing.describe(info)
        if entry.state is not QueueState.GONE:
            yield entry
        if turns.is_over():
            await turns.next()


# ---------------------------------------------------------------- JSON


async def _json(
    entries: AsyncIterator[ListedPod], proceed: str, with_story: bool, leader: str | None, turns: Turns
) -> web.Response:
    del with_story, turns  # JSON always includes it, and is made pod by pod
    pods = [orjson.dumps(queued_pod_as_json(entry, leader), default=str) async for entry in entries]
    leader_field = b"" if leader is None else b'"leader":' + orjson.dumps(leader) + b","
    body = b"{" + leader_field + b'"pods":[' + b",".join(pods) + b'],"continue":' + orjson.dumps(proceed) + b"}"
    return web.Response(body=body, content_type="application/json")


def queued_pod_as_json(entry: ListedPod, leader: str | None) -> _Json:
    """Return the pod as JSON values."""
    meta, spec = entry.pod.metadata, entry.pod.spec
    answer: _Json = {
        "namespace": meta.namespace,
        "name": meta.name,
        "uid": meta.uid,
        "schedulerName": spec.scheduler_name,
        "priority": entry.pod.priority,
        "queue": entry.state.value,
        "nominatedNodeName": entry.nominated_node_name,
        "attempts": entry.attempts,
        "queuedAt": format_micro_time(entry.queued_s),
        "firstTriedAt": None if entry.first_tried_s is None else format_micro_time(entry.first_tried_s),
        "unschedulablePlugins": entry.unschedulable_plugins,
        "pendingPlugins": entry.pending_plugins,
        "gatingPlugin": entry.gating_plugin,
        "reason": sendable(entry.reason),
        "details": sendable(entry.details),
        "nextTry": None if entry.next_try is None else _next_try_as_json(entry.next_try),
        "story": [transition_as_json(line) for line in entry.transitions],
    }
    if leader is not None:
        next_try: _Json = {"at": None, "mayBeSooner": False, "onEvents": {}, "text": _by(leader)}
        answer |= {"queue": _STANDBY, "attempts": None, "nextTry": next_try}
    return answer


def sendable(text: str) -> str:
    """Return the text, limited in length and free of characters that cannot be encoded."""
    # A plugin may write anything, also half of a surrogate pair, which JSON cannot hold.
    return text[:_REASON_MAX].encode(errors="backslashreplace").decode()


def _by(leader: str) -> str:
    return f"by the leader, {leader}" if leader else "by the next leader"


def _next_try_as_json(next_try: NextTry) -> _Json:
    return {
        "at": None if next_try.at_s is None else format_micro_time(next_try.at_s),
        "mayBeSooner": next_try.may_be_sooner,
        "onEvents": next_try.events,
        "text": _in_words(next_try),
    }


def transition_as_json(line: Transition) -> _Json:
    """Return a transition as JSON values."""
    return {
        "at": format_micro_time(line.at_s),
        "event": line.event,
        "from": line.old_state,
        "to": line.new_state,
        "plugin": line.by,
    }


def _in_words(next_try: NextTry) -> str:
    time_text = None if next_try.at_s is None else format_time(next_try.at_s)
    if next_try.may_be_sooner:
        return f"{time_text}, or when no other pod waits"
    if not next_try.events:
        return str(time_text)
    events = "; ".join(f"{plugin}: {' or '.join(events) or 'none'}" for plugin, events in next_try.events.items())
    return f"when an event of {events}" + (f"; at {time_text} at the latest" if time_text else "")


# ---------------------------------------------------------------- table


async def _table(
    entries: AsyncIterator[ListedPod], proceed: str, with_story: bool, leader: str | None, turns: Turns
) -> web.Response:
    rows: list[tuple[str, ...]] = [_COLUMNS]
    below: list[list[str]] = [[]]
    histories: list[str] = []
    async for entry in entries:
        rows.append(_row(entry, leader))
        below.append([] if leader is not None else list(_why(entry)))
        if with_story:
            histories += ["", *_history(entry)]
    first = [] if leader is None else [_standing_by(leader), ""]
    widths = await _widths(rows, turns)
    hint = ["", f"There are more: continue={proceed}"] if proceed else []
    lines = (line for row, details in zip(rows, below, strict=True) for line in (_line(row, widths), *details))
    return await page_of(chain(first, lines, histories, hint), turns)


async def page_of(lines: Iterable[str], turns: Turns) -> web.Response:
    """Return a page of text that is safe to print on a terminal."""
    text_lines: list[str] = []
    for line in lines:
        text_lines.append(f"{printable(line)}\n")
        if turns.is_over():
            await turns.next()
    return web.Response(text="".join(text_lines))


async def _widths(rows: Sequence[tuple[str, ...]], turns: Turns) -> list[int]:
    widths = [0] * len(_COLUMNS)
    for row in rows:
        widths = [max(width, len(cell)) for width, cell in zip(widths, row, strict=True)]
        if turns.is_over():
            await turns.next()
    return widths


def _standing_by(leader: str) -> str:
    if not leader:
        return "This replica stands by; the leader is not known."
    return f"This replica stands by; {leader} leads: ask it why a pod waits."


def _row(entry: ListedPod, leader: str | None) -> tuple[str, ...]:
    meta = entry.pod.metadata
    first = (meta.namespace, meta.name)
    if leader is not None:
        return (*first, _STANDBY, str(entry.pod.priority), "", entry.nominated_node_name, _by(leader))
    return (
        *first,
        entry.state.value,
        str(entry.pod.priority),
        str(entry.attempts),
        entry.nominated_node_name,
        _briefly(entry.next_try),
    )


def _briefly(next_try: NextTry | None) -> str:
    """Describe when the pod is attempted, without the events that may requeue it sooner."""
    if next_try is None:
        return "being tried"
    if next_try.at_s is None:
        return "after an event"
    return ("by " if next_try.events else "") + format_time(next_try.at_s)


def _why(entry: ListedPod) -> Iterator[str]:
    """Yield the lines below a pod's row: which plugins reject it and why, and which events requeue it."""
    if entry.gating_plugin:
        yield from wrap(f"gated by {entry.gating_plugin}: {entry.reason}")
    elif entry.reason:
        plugin_names = ", ".join(dict.fromkeys((*entry.unschedulable_plugins, *entry.pending_plugins)))
        yield from wrap(f"rejected by {plugin_names}: {entry.reason}" if plugin_names else f"failed: {entry.reason}")
    if entry.details:
        yield from wrap(f"in detail: {entry.details}")
    if entry.next_try is not None:
        for plugin, events in entry.next_try.events.items():
            yield from wrap(f"woken by an event of {plugin}: {' or '.join(events) or 'none'}")


def wrap(text: str) -> list[str]:
    """Return the text wrapped to a readable width."""
    return textwrap.wrap(printable(text[:_REASON_MAX]), _WIDTH, initial_indent="    ", subsequent_indent="      ")


def _history(entry: ListedPod) -> Iterator[str]:
    yield f"{entry.pod.key}, {entry.pod.uid}:"
    for line in entry.transitions:
        cause_text = f" ({line.by})" if line.by else ""
        yield f"  {format_micro_time(line.at_s)} {line.event}: {line.old_state} -> {line.new_state}{cause_text}"


def align(rows: Sequence[tuple[str, ...]]) -> Iterator[str]:
    """Return the rows as lines with columns of equal width."""
    widths = [max(len(cell) for cell in column) for column in zip(*rows, strict=True)]
    return (_line(row, widths) for row in rows)


def _line(row: tuple[str, ...], widths: Sequence[int]) -> str:
    return "  ".join((cell or "-").ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()

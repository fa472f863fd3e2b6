"""/debug/decisions and /debug/pods/{namespace}/{name}: what the flight recorder knows.

Source: none; upstream keeps no attempts.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import replace
from http import HTTPStatus
from itertools import islice
from typing import Any, Final, Protocol, TypeAlias, TypeVar

import orjson
from aiohttp import web

from podium.daemon.queue_page import (
    Leader,
    align,
    limit_of,
    page_of,
    queued_pod_as_json,
    sendable,
    transition_as_json,
    wants_table,
    wrap,
)
from podium.engine.conditions import condition_report
from podium.engine.device_refusals import DeviceGroup
from podium.engine.explanation import Explanation, Group
from podium.engine.flight_recorder import FlightRecorder, RecordedAttempt, Result
from podium.engine.flight_recorder.explaining import explain_attempt
from podium.engine.gang_story import GangStory
from podium.lib.clock import Clock
from podium.lib.nearest import nearest
from podium.lib.turns import Turns
from podium.objects.core import Node, Pod
from podium.objects.times import format_micro_time
from podium.queues import QueueListing
from podium.server.serving import failure
from podium.server.serving.server import Pages

_LIMIT: Final = 100
_LIMIT_MAX: Final = 1000
_ATTEMPTS_MAX: Final = 10
_NO_ATTEMPT: Final = "no attempt at it is kept"
_DEVICES: Final = "DynamicResources"
_NODES_MAX: Final = 4
"""On how many nodes it is looked up what devices are missing."""
_SIMILAR_MAX: Final = 200
"""With how many names an unknown one is compared: the comparison is slow."""
_COLUMNS: Final = (
    "TIME",
    "NAMESPACE",
    "NAME",
    "ATTEMPT",
    "RESULT",
    "NODE",
    "FIT",
    "EXAMINED",
    "DECISION",
    "TOTAL",
)
_OFF: Final = (
    "the flight recorder is off: start podium run with --recorder-memory=32Mi instead of 0, "
    "or ask the cluster itself (podium why --kubeconfig)"
)

_Json: TypeAlias = dict[str, Any]
DevicesOf: TypeAlias = Callable[[Pod, Sequence[str]], Awaitable[Sequence[DeviceGroup]]]
StoryOfGang: TypeAlias = Callable[[Pod, Callable[[Pod], str]], GangStory | None]
ObjectT_co = TypeVar("ObjectT_co", covariant=True)


class ObjectLookup(Protocol[ObjectT_co]):
    """The objects of a kind as the API server has sent them."""

    def get(self, key: str) -> ObjectT_co | None:
        """Return the object with that key."""

    def list(self) -> Iterable[ObjectT_co]:
        """Return all of them."""


class RecorderPages:
    """Answers the requests for both pages.

    Args:
        recorder: None if it is off.
        story_of_gang: the story of the pod's gang, given what the last attempt at a pod has said.
        devices_of: what the pod's claims lack on these nodes now.
        profiles: the scheduler names that podium serves now.
        detail_of: what keeps a pending pod off a group of nodes now, in amounts and names.
    """

    def __init__(
        self,
        recorder: FlightRecorder | None,
        listing: QueueListing,
        pods: ObjectLookup[Pod],
        nodes: ObjectLookup[Node],
        clock: Clock,
        leader: Leader,
        story_of_gang: StoryOfGang = lambda *_: None,
        devices_of: DevicesOf | None = None,
        profiles: Callable[[], Iterable[str]] = tuple,
        detail_of: Callable[[Pod, Group], str] = lambda *_: "",
    ) -> None:
        self._detail_of = detail_of
        self._profiles = profiles
        self._recorder = recorder
        self._listing = listing
        self._pods = pods
        self._nodes = nodes
        self._clock = clock
        self._leader = leader
        self._story_of_gang = story_of_gang
        self._devices_of = devices_of

    @property
    def pages(self) -> Pages:
        """The handlers by path."""
        return {"/debug/decisions": self.decisions, "/debug/pods/{namespace}/{name}": self.pod}

    async def decisions(self, request: web.Request) -> web.Response:
        """Return the last attempts, the newest first, as JSON or as a table.

        `?namespace=`, `?name=` and `?result=` (scheduled, unschedulable, error, binding) choose; `?limit=` (100 by
        default); `?output=table` or `Accept: text/plain` returns a table.
        """
        recorder, query, is_table = self._demand_recorder(), request.query, wants_table(request)
        result, limit = query.get("result", ""), limit_of(query, _LIMIT, _LIMIT_MAX)
        if result and result not in tuple(Result):
            raise web.HTTPBadRequest(text=f"result: one of {', '.join(Result)}, not {result!r}\n")
        attempts = recorder.newest_first(query.get("namespace", ""), query.get("name", ""), result)
        turns = Turns(self._clock)
        if is_table:
            return await page_of(await self._table(islice(attempts, limit), turns), turns)
        # Encoded one by one with pauses in between: a thousand attempts at once would delay the next decisions.
        attempts_json: list[bytes] = []
        for attempt in islice(attempts, limit):
            attempts_json.append(orjson.dumps(self._attempt(attempt)))
            if turns.is_over():
                await turns.next()
        return web.Response(body=b'{"attempts":[' + b",".join(attempts_json) + b"]}", content_type="application/json")

    async def pod(self, request: web.Request) -> web.Response:
        """Return one pod's story as JSON, which `podium why --url` shows.

        It says where the pod is in the queue and when it is tried next, and has its last attempts; of the last one
        whose details are kept the nodes by what rejected them, the scores of the best nodes by plugin, and why the
        winner won. `?node=` adds what is known about that node.
        """
        recorder = self._demand_recorder()
        namespace, name, node_name = (
            request.match_info["namespace"],
            request.match_info["name"],
            request.query.get("node"),
        )
        key, pod = f"{namespace}/{name}", self._pods.get(f"{namespace}/{name}")
        turns = Turns(self._clock)
        attempts = list(islice(recorder.newest_first(namespace, name), _ATTEMPTS_MAX))
        if pod is None and not attempts:
            raise _not_found(f"there is no pod {key}{nearest(key, await self._similar(namespace, name, turns))}")
        await turns.next()
        why = await self._why(recorder, attempts, node_name or "", pod, turns)
        if node_name and self._nodes.get(node_name) is None and not _is_told(node_name, why):
            # Comparing names is slow, so only those with the same initial are compared.
            begins = [attempt.name for attempt in self._nodes.list() if attempt.name.startswith(node_name[:1])]
            raise _not_found(f"there is no node {node_name}{nearest(node_name, begins[:_SIMILAR_MAX])}")
        leader = self._leader()
        answer: _Json = {
            "pod": key,
            "bound_to": "" if pod is None else pod.node_name,
            "exists": pod is not None,
            # A standby's recorder is empty or old; the leader's name tells where to ask.
            "leader": leader,
            "queue": self._queue_json(key, leader),
            "gang": None if pod is None else await self._gang(recorder, pod, turns),
            "attempts": [self._attempt(attempt) for attempt in attempts],
            "why": why,
            "devices": [] if pod is None else await self._devices(pod, why, node_name or ""),
            "scheduler_name": "" if pod is None else pod.spec.scheduler_name,
            "profiles": sorted(self._profiles()),
            "condition": None if pod is None else _condition(pod, attempts),
        }
        return _json_response(answer)

    def _demand_recorder(self) -> FlightRecorder:
        if self._recorder is None:
            raise _not_found(_OFF)
        return self._recorder

    async def _gang(self, recorder: FlightRecorder, pod: Pod, turns: Turns) -> _Json | None:
        """Return the progress of the pod's gang, in sentences as well; None if the pod is not in a gang."""
        messages: dict[str, str] = {}

        def last_message(member: Pod) -> str:
            return messages.get(member.metadata.name, _NO_ATTEMPT)

        # Most pods are in no gang, and then no message is needed.
        if self._story_of_gang(pod, last_message) is None:
            return None
        # Members are not indexed by group, so the namespace's last attempts are searched, as far as that is bearable.
        attempts = islice(recorder.newest_first(pod.metadata.namespace, ""), _LIMIT_MAX)
        for attempt in attempts:
            messages.setdefault(attempt.name, sendable(attempt.message))
            if turns.is_over():
                await turns.next()
        story = self._story_of_gang(pod, last_message)
        return None if story is None else story.as_dict() | {"text": [story.headline, *story.lines]}

    async def _devices(self, pod: Pod, why: _Json | None, node_name: str) -> list[_Json]:
        """Return what the pod's claims lack now on some of the nodes that had no devices in the last attempt."""
        groups = [] if why is None else [group for group in why["groups"] if group["plugin"] == _DEVICES]
        if not groups or self._devices_of is None or pod.node_name:
            return []
        names = [name for group in groups for name in group["examples"]]
        if node_name and any(group["plugin"] == _DEVICES for group in (why or {})["blockers"].get(node_name, ())):
            names.insert(0, node_name)
        node_devices = await self._devices_of(pod, list(dict.fromkeys(names))[:_NODES_MAX])
        return [group.as_dict() for group in node_devices]

    def _queue_json(self, key: str, leader: str | None) -> _Json | None:
        """Return the pod as /debug/queue shows it, or None if it does not wait."""
        info = self._listing.info_of(key)
        return None if info is None else queued_pod_as_json(self._listing.describe(info), leader)

    async def _why(
        self,
        recorder: FlightRecorder,
        attempts: Sequence[RecordedAttempt],
        node_name: str,
        pod: Pod | None,
        turns: Turns,
    ) -> _Json | None:
        """Return the explanation of the newest attempt whose details are kept, with amounts as they are now."""
        for attempt in attempts:
            details = recorder.details(attempt)
            if details is None or not (details.totals or details.rejections or details.rejected_all):
                continue
            await turns.next()
            explanation = explain_attempt(attempt, details, node_name)
            if pod is not None and not pod.node_name:
                explanation = self._with_details(explanation, pod)
            answer = explanation.as_dict()
            # All blockers of a large cluster would be megabytes; the groups tell of every node.
            blockers = {node: reasons for node, reasons in answer["blockers"].items() if node == node_name}
            return answer | {"blockers": blockers, "at": self._at(attempt), "examined": attempt.examined}
        return None

    def _with_details(self, explanation: Explanation, pod: Pod) -> Explanation:
        """Return the explanation with what keeps the pod off the nodes now, by group and for the requested node."""
        node, blockers = explanation.asked, dict(explanation.blockers)
        if node in blockers:
            blockers[node] = tuple(
                replace(blocker, detail=self._detail_of(pod, Group(blocker.plugin, blocker.text, (node,))))
                for blocker in blockers[node]
            )
        groups = tuple(replace(group, detail=self._detail_of(pod, group)) for group in explanation.groups)
        return replace(explanation, groups=groups, blockers=blockers)

    async def _similar(self, namespace: str, name: str, turns: Turns) -> list[str]:
        """Return keys that may be meant: pods of that name elsewhere, and those that begin alike."""
        namesakes: list[str] = []
        closer: list[str] = []
        remainder: list[str] = []
        for pod in list(self._pods.list()):
            meta = pod.metadata
            if meta.name == name:
                namesakes.append(pod.key)
            elif meta.namespace == namespace and meta.name.startswith(name[:1]):
                (closer if meta.name.startswith(name[:3]) else remainder).append(pod.key)
            if turns.is_over():
                await turns.next()
        return [*namesakes, *closer, *remainder][:_SIMILAR_MAX]

    def _at(self, attempt: RecordedAttempt) -> str:
        # Attempts are recorded in monotonic time, which no change of the clock affects.
        return format_micro_time(self._clock.now() - self._clock.monotonic() + attempt.started_s)

    def _attempt(self, attempt: RecordedAttempt) -> _Json:
        return {
            "at": self._at(attempt),
            "namespace": attempt.namespace,
            "name": attempt.name,
            "uid": attempt.uid,
            "schedulerName": attempt.profile,
            "attempt": attempt.attempt,
            "result": attempt.result.value,
            "node": attempt.node,
            "message": sendable(attempt.message),
            "nodes": attempt.node_count,
            "examined": attempt.examined,
            "feasible": attempt.feasible,
            "decisionSeconds": round(attempt.decision_s, 6),
            "seconds": None if attempt.total_s is None else round(attempt.total_s, 6),
            "story": [transition_as_json(line) for line in attempt.story],
        }

    async def _table(self, attempts: Iterable[RecordedAttempt], turns: Turns) -> Iterable[str]:
        rows: list[tuple[str, ...]] = [_COLUMNS]
        below: list[list[str]] = [[]]
        for attempt in attempts:
            rows.append(self._row(attempt))
            below.append(wrap(attempt.message))
            if turns.is_over():
                await turns.next()
        return (line for row, why in zip(align(rows), below, strict=True) for line in (row, *why))

    def _row(self, attempt: RecordedAttempt) -> tuple[str, ...]:
        return (
            self._at(attempt),
            attempt.namespace,
            attempt.name,
            str(attempt.attempt),
            attempt.result.value,
            attempt.node,
            str(attempt.feasible),
            f"{attempt.examined} of {attempt.node_count}",
            f"{attempt.decision_s * 1000:.2f} ms",
            "" if attempt.total_s is None else f"{attempt.total_s * 1000:.2f} ms",
        )


def _condition(pod: Pod, attempts: Sequence[RecordedAttempt]) -> _Json | None:
    """Return the pod's condition beside the last attempt at it."""
    if attempts:
        last = attempts[0]
        report = condition_report(pod, "" if last.node else last.message, last.node_count)
    else:
        report = condition_report(pod, "", 0, ("no attempt at it is kept here",))
    if report is None:
        return None
    condition = report.as_dict()
    return condition | {name: sendable(condition[name]) for name in ("reason", "message")}


def _is_told(node: str, why: _Json | None) -> bool:
    """Return True if the attempt has a result for the node, which may have been deleted since."""
    return why is not None and (node in why["blockers"] or any(score["node"] == node for score in why["scores"]))


def _json_response(answer: _Json) -> web.Response:
    return web.Response(body=orjson.dumps(answer), content_type="application/json")


def _not_found(text: str) -> web.HTTPNotFound:
    text = failure(HTTPStatus.NOT_FOUND, sendable(text)).decode()
    return web.HTTPNotFound(text=text, content_type="application/json")

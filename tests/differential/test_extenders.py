"""kube-scheduler and podium send an extender the same requests, and reach the same verdicts from its answers."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import anyio.to_thread
import pytest
from aiohttp import web

from tests.control_plane.client import Client
from tests.control_plane.servers import ControlPlane
from tests.differential.two_schedulers import Verdict, ask, take_away
from tests.e2e.daemon import Daemon, configuration
from tests.e2e.priorities import create_priority_class
from tests.extender_server import ExtenderServer, names
from tests.manifests import nodes, pod

pytestmark = [pytest.mark.anyio, pytest.mark.control_plane]

Json = dict[str, Any]

UPSTREAM, PODIUM = "upstream", "podium"
LICENCE = "example.com/licence"
ANSWERS = "answers"
PODS = "/api/v1/namespaces/default/pods"
NODES = [f"node-{number}" for number in range(4)]
NODE_VERBS = ["hard/filter", "hard/prioritize", "soft/filter", "soft/prioritize"]
PREEMPT_VERBS = ["meta/preempt", "whole/preempt"]


def extenders(url: str) -> list[Json]:
    """Two for filter and scores (an ignorable one first), one for a managed resource, two for preemption."""
    scoring = {"filterVerb": "filter", "prioritizeVerb": "prioritize"}
    licence = [{"name": LICENCE, "ignoredByScheduler": True}]
    return [
        {"urlPrefix": f"{url}soft", **scoring, "weight": 1, "ignorable": True, "nodeCacheCapable": True},
        {"urlPrefix": f"{url}hard", **scoring, "weight": 3},
        {
            "urlPrefix": f"{url}licence",
            "filterVerb": "filter",
            "nodeCacheCapable": True,
            "managedResources": licence,
        },
        {"urlPrefix": f"{url}whole", "preemptVerb": "preempt"},
        {"urlPrefix": f"{url}meta", "preemptVerb": "preempt", "nodeCacheCapable": True},
    ]


def reply_to(verb: str, body: Json) -> Any:
    """Return the answer in the pod's annotation for this verb; otherwise accept all nodes or victims."""
    answers = json.loads(body["Pod"]["metadata"]["annotations"][ANSWERS])
    if verb in answers:
        answer = answers[verb]
        return web.Response(text=answer) if isinstance(answer, str) else answer
    if verb.endswith("filter"):
        return {"Nodes": body["Nodes"], "NodeNames": body["NodeNames"]}
    if verb.endswith("prioritize"):
        # The scores differ, so that no tie is broken at random.
        return [{"Host": name, "Score": int(name[-1])} for name in names(body)]
    if body["NodeNameToMetaVictims"] is not None:
        return {"NodeNameToMetaVictims": body["NodeNameToMetaVictims"]}
    victims = {
        name: {"Pods": [{"UID": victim["metadata"]["uid"]} for victim in victims["Pods"]]}
        for name, victims in body["NodeNameToVictims"].items()
    }
    return {"NodeNameToMetaVictims": victims}


@dataclass
class SchedulerPair:
    """Both schedulers, running, and the server of their extenders."""

    admin: Client
    server: ExtenderServer

    async def compare(self, item: Json) -> tuple[Verdict, Verdict, list[str]]:
        """Check that both send the same requests about the pod; return both verdicts and the verbs called."""
        verdicts, request_bodies = [], []
        for scheduler in (UPSTREAM, PODIUM):
            self.server.asked.clear()
            verdicts.append(await ask(self.admin, scheduler, item))
            # Only the request of each verb that comes first counts: the pod may be retried once its status is written.
            # The other scheduler may still send requests about its own pod, which was deleted a moment ago.
            body_by_verb: dict[str, str] = {}
            for verb, body in self.server.asked:
                if body["Pod"]["spec"]["schedulerName"] == scheduler:
                    body_by_verb.setdefault(verb, comparable_json(body))
            request_bodies.append(sorted(body_by_verb.items()))
            await take_away(self.admin, item)
        assert request_bodies[0] == request_bodies[1]
        return verdicts[0], verdicts[1], [verb for verb, _ in request_bodies[0]]


def comparable_json(body: Json) -> str:
    """Return the request body sorted, and without the fields that differ between two pods of one name."""
    objects = [body["Pod"]]
    if body.get("Nodes"):
        body["Nodes"]["items"].sort(key=lambda node: str(node["metadata"]["name"]))
        objects += body["Nodes"]["items"]
    for victims in (body.get("NodeNameToVictims") or {}).values():
        objects += victims["Pods"]
    for item in objects:
        # Whether an object carries its kind depends on how the scheduler read it.
        item.pop("kind", None)
        item.pop("apiVersion", None)
    for field in ("uid", "resourceVersion", "creationTimestamp"):
        del body["Pod"]["metadata"][field]
    del body["Pod"]["spec"]["schedulerName"]
    if body.get("NodeNames"):
        body["NodeNames"].sort()
    return json.dumps(body, sort_keys=True)


@pytest.fixture
async def scheduler_pair(
    empty_control_plane: ControlPlane, admin: Client, tmp_path: Path
) -> AsyncIterator[SchedulerPair]:
    """Both schedulers, in a cluster of four nodes."""
    for item in nodes(len(NODES), cpu="4"):
        await admin.create("/api/v1/nodes", item)
    replies = {verb: partial(reply_to, verb) for verb in (*NODE_VERBS, *PREEMPT_VERBS, "licence/filter")}
    async with ExtenderServer(**replies) as server:
        config = {"extenders": extenders(server.url)}
        upstream = configuration(profiles=[{"schedulerName": UPSTREAM}], **config)
        scheduler = await anyio.to_thread.run_sync(lambda: empty_control_plane.start_scheduler(upstream))
        daemon = Daemon(tmp_path / "podium", empty_control_plane.kubeconfig(), configuration(**config), warm=True)
        try:
            await daemon.wait_ready()
            yield SchedulerPair(admin, server)
            assert await daemon.stop() == 0, daemon.output()
            assert "Traceback" not in daemon.output()
        finally:
            daemon.kill()
            await anyio.to_thread.run_sync(scheduler.process.stop)


def pod_with_answers(answers: Json | None = None, *, licence: bool = False, **spec: Any) -> Json:
    """Return a pod whose annotation holds the answers of the extenders by verb."""
    item = pod("web", **spec)
    item["metadata"]["annotations"] = {ANSWERS: json.dumps(answers or {})}
    if licence:
        item["spec"]["containers"][0]["resources"] = {"requests": {LICENCE: "1"}, "limits": {LICENCE: "1"}}
    return item


def scores(**by_name: int) -> list[Json]:
    return [{"Host": name.replace("_", "-"), "Score": score} for name, score in by_name.items()]


NO_NODES: Json = {"Nodes": {"items": []}}
REJECTION = NO_NODES | {
    "FailedNodes": {"node-0": "busy", "node-1": "busy", "node-2": "busy"},
    "FailedAndUnresolvableNodes": {"node-2": "too old"},
}

VERDICTS: list[tuple[str, Json, list[str], str]] = [
    ("all nodes accepted", pod_with_answers(), NODE_VERBS, "node-3"),
    ("a managed resource", pod_with_answers(licence=True), [*NODE_VERBS, "licence/filter"], "node-3"),
    (
        "one node is left",
        pod_with_answers({"licence/filter": {"NodeNames": ["node-1"]}}, licence=True),
        ["hard/filter", "licence/filter", "soft/filter"],
        "node-1",
    ),
    (
        "names in lower case",
        pod_with_answers(
            {"licence/filter": {"nodenames": ["node-0", "node-2"], "failednodes": {"node-1": "x"}}}, licence=True
        ),
        [*NODE_VERBS, "licence/filter"],
        "node-2",
    ),
    ("malformed, but ignorable", pod_with_answers({"soft/filter": "oops"}), NODE_VERBS, "node-3"),
    ("an error, but ignorable", pod_with_answers({"soft/filter": {"Error": "no licence"}}), NODE_VERBS, "node-3"),
    ("an unknown node, but ignorable", pod_with_answers({"soft/filter": {"NodeNames": ["x"]}}), NODE_VERBS, "node-3"),
    (
        "scores out of range",
        pod_with_answers({"soft/prioritize": scores(node_0=50), "hard/prioritize": scores(node_1=-9, node_2=9, x=99)}),
        NODE_VERBS,
        "node-0",
    ),
    (
        "malformed scores of one extender",
        pod_with_answers(
            {"soft/prioritize": scores(node_2=1), "hard/prioritize": '[{"Host": "node-0", "Score": "9"}]'}
        ),
        NODE_VERBS,
        "node-2",
    ),
    ("rejected with reasons", pod_with_answers({"hard/filter": REJECTION}), ["hard/filter"], "Unschedulable: "),
    ("rejected without reasons", pod_with_answers({"hard/filter": NO_NODES}), ["hard/filter"], "Unschedulable: "),
    ("an empty answer", pod_with_answers({"hard/filter": {}}), ["hard/filter"], "Unschedulable: "),
    (
        "rejected by the ignorable extender",
        pod_with_answers({"soft/filter": {"NodeNames": [], "FailedNodes": {"node-1": "busy"}}}),
        ["hard/filter", "soft/filter"],
        "Unschedulable: ",
    ),
]
ERRORS: list[tuple[str, Json]] = [
    ("malformed", pod_with_answers({"hard/filter": "oops"})),
    ("an error", pod_with_answers({"hard/filter": {"Error": "no licence"}})),
    ("an unknown node", pod_with_answers({"licence/filter": {"NodeNames": ["x"]}}, licence=True)),
]


async def test_requests_and_verdicts_are_the_same(scheduler_pair: SchedulerPair) -> None:
    for case, item, verbs, verdict in VERDICTS:
        upstream, podium, verbs_called = await scheduler_pair.compare(item)
        assert podium == upstream, case
        assert verbs_called == sorted(verbs), case
        assert f"{upstream.node}{upstream.message}".startswith(verdict), case


async def test_errors_are_the_same_and_podium_names_the_extender(scheduler_pair: SchedulerPair) -> None:
    for case, item in ERRORS:
        upstream, podium, _ = await scheduler_pair.compare(item)
        assert upstream.message.startswith("SchedulerError: "), case
        assert podium.message.startswith(f'SchedulerError: extender "{scheduler_pair.server.url}'), case


async def test_preemption_requests_are_the_same(scheduler_pair: SchedulerPair) -> None:
    await create_priority_class(scheduler_pair.admin, "high", 100)
    for name in NODES:
        await scheduler_pair.admin.create(PODS, pod(f"on-{name}", cpu="3", nodeName=name))
    no_candidates = pod_with_answers({"meta/preempt": {}}, cpu="3", priorityClassName="high")
    upstream, podium, verbs_called = await scheduler_pair.compare(no_candidates)
    assert verbs_called == PREEMPT_VERBS
    assert podium == upstream
    assert upstream.message.endswith("preemption: no candidate node for preemption")

    unknown_victim = {"NodeNameToMetaVictims": {"node-0": {"Pods": [{"UID": "x"}]}}}
    upstream, podium, _ = await scheduler_pair.compare(
        pod_with_answers({"whole/preempt": unknown_victim}, cpu="3", priorityClassName="high")
    )
    prefix, text = upstream.message.split("preemption: ")
    assert podium.message.startswith(
        f'{prefix}preemption: extender "{scheduler_pair.server.url}whole": claims to preempt pod'
    )
    assert text.startswith("extender: ")

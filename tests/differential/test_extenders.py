"""kube-scheduler and podium ask the same extenders the same, and make the same of what they say."""

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
EVERYWHERE = ["hard/filter", "hard/prioritize", "soft/filter", "soft/prioritize"]
PREEMPTING = ["meta/preempt", "whole/preempt"]


def extenders(url: str) -> list[Json]:
    """One that may be ignored and comes first in the file, one that may not, one about licences, two about victims."""
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
    """What the pod's annotation says for this verb; otherwise everything is fine as it is."""
    answers = json.loads(body["Pod"]["metadata"]["annotations"][ANSWERS])
    if verb in answers:
        answer = answers[verb]
        return web.Response(text=answer) if isinstance(answer, str) else answer
    if verb.endswith("filter"):
        return {"Nodes": body["Nodes"], "NodeNames": body["NodeNames"]}
    if verb.endswith("prioritize"):
        # Different from node to node, so that nothing is left to chance.
        return [{"Host": name, "Score": int(name[-1])} for name in names(body)]
    if body["NodeNameToMetaVictims"] is not None:
        return {"NodeNameToMetaVictims": body["NodeNameToMetaVictims"]}
    victims = {
        name: {"Pods": [{"UID": victim["metadata"]["uid"]} for victim in victims["Pods"]]}
        for name, victims in body["NodeNameToVictims"].items()
    }
    return {"NodeNameToMetaVictims": victims}


@dataclass
class Sides:
    """Both schedulers, running, and the extenders they ask."""

    admin: Client
    server: ExtenderServer

    async def compare(self, item: Json) -> tuple[Verdict, Verdict, list[str]]:
        """The verdicts on the pod, and the verbs that were asked; what was asked is the same."""
        verdicts, questions = [], []
        for scheduler in (UPSTREAM, PODIUM):
            self.server.asked.clear()
            verdicts.append(await ask(self.admin, scheduler, item))
            # The first of each kind: once its status is written a pod is tried again, if it is still there by then.
            # The other scheduler may still ask about its own pod, which was deleted just now.
            first: dict[str, str] = {}
            for verb, body in self.server.asked:
                if body["Pod"]["spec"]["schedulerName"] == scheduler:
                    first.setdefault(verb, comparable(body))
            questions.append(sorted(first.items()))
            await take_away(self.admin, item)
        assert questions[0] == questions[1]
        return verdicts[0], verdicts[1], [verb for verb, _ in questions[0]]


def comparable(body: Json) -> str:
    """The body of a question without order, and without what two pods of one name cannot have in common."""
    objects = [body["Pod"]]
    if body.get("Nodes"):
        body["Nodes"]["items"].sort(key=lambda node: str(node["metadata"]["name"]))
        objects += body["Nodes"]["items"]
    for victims in (body.get("NodeNameToVictims") or {}).values():
        objects += victims["Pods"]
    for item in objects:
        # Whether it has its kind with it depends on how it was read.
        item.pop("kind", None)
        item.pop("apiVersion", None)
    for field in ("uid", "resourceVersion", "creationTimestamp"):
        del body["Pod"]["metadata"][field]
    del body["Pod"]["spec"]["schedulerName"]
    if body.get("NodeNames"):
        body["NodeNames"].sort()
    return json.dumps(body, sort_keys=True)


@pytest.fixture
async def sides(empty_control_plane: ControlPlane, admin: Client, tmp_path: Path) -> AsyncIterator[Sides]:
    """Both schedulers, in a cluster of four nodes."""
    for item in nodes(len(NODES), cpu="4"):
        await admin.create("/api/v1/nodes", item)
    replies = {verb: partial(reply_to, verb) for verb in (*EVERYWHERE, *PREEMPTING, "licence/filter")}
    async with ExtenderServer(**replies) as server:
        config = {"extenders": extenders(server.url)}
        upstream = configuration(profiles=[{"schedulerName": UPSTREAM}], **config)
        scheduler = await anyio.to_thread.run_sync(lambda: empty_control_plane.start_scheduler(upstream))
        daemon = Daemon(tmp_path / "podium", empty_control_plane.kubeconfig(), configuration(**config))
        try:
            await daemon.wait_ready()
            yield Sides(admin, server)
            assert await daemon.stop() == 0, daemon.output()
            assert "Traceback" not in daemon.output()
        finally:
            daemon.kill()
            await anyio.to_thread.run_sync(scheduler.process.stop)


def asking(answers: Json | None = None, *, licence: bool = False, **spec: Any) -> Json:
    """A pod about which the extenders say these things."""
    item = pod("web", **spec)
    item["metadata"]["annotations"] = {ANSWERS: json.dumps(answers or {})}
    if licence:
        item["spec"]["containers"][0]["resources"] = {"requests": {LICENCE: "1"}, "limits": {LICENCE: "1"}}
    return item


def scores(**by_name: int) -> list[Json]:
    return [{"Host": name.replace("_", "-"), "Score": score} for name, score in by_name.items()]


NO_NODES: Json = {"Nodes": {"items": []}}
TURNED_DOWN = NO_NODES | {
    "FailedNodes": {"node-0": "busy", "node-1": "busy", "node-2": "busy"},
    "FailedAndUnresolvableNodes": {"node-2": "too old"},
}

VERDICTS: list[tuple[str, Json, list[str], str]] = [
    ("all is fine", asking(), EVERYWHERE, "node-3"),
    ("a licence", asking(licence=True), [*EVERYWHERE, "licence/filter"], "node-3"),
    (
        "one node is left",
        asking({"licence/filter": {"NodeNames": ["node-1"]}}, licence=True),
        ["hard/filter", "licence/filter", "soft/filter"],
        "node-1",
    ),
    (
        "names in lower case",
        asking({"licence/filter": {"nodenames": ["node-0", "node-2"], "failednodes": {"node-1": "x"}}}, licence=True),
        [*EVERYWHERE, "licence/filter"],
        "node-2",
    ),
    ("malformed, but ignorable", asking({"soft/filter": "oops"}), EVERYWHERE, "node-3"),
    ("an error, but ignorable", asking({"soft/filter": {"Error": "no licence"}}), EVERYWHERE, "node-3"),
    ("an unknown node, but ignorable", asking({"soft/filter": {"NodeNames": ["x"]}}), EVERYWHERE, "node-3"),
    (
        "scores out of range",
        asking({"soft/prioritize": scores(node_0=50), "hard/prioritize": scores(node_1=-9, node_2=9, x=99)}),
        EVERYWHERE,
        "node-0",
    ),
    (
        "no scores from one",
        asking({"soft/prioritize": scores(node_2=1), "hard/prioritize": '[{"Host": "node-0", "Score": "9"}]'}),
        EVERYWHERE,
        "node-2",
    ),
    ("turned down", asking({"hard/filter": TURNED_DOWN}), ["hard/filter"], "Unschedulable: "),
    ("turned down without a word", asking({"hard/filter": NO_NODES}), ["hard/filter"], "Unschedulable: "),
    ("nothing said", asking({"hard/filter": {}}), ["hard/filter"], "Unschedulable: "),
    (
        "turned down by the ignorable one",
        asking({"soft/filter": {"NodeNames": [], "FailedNodes": {"node-1": "busy"}}}),
        ["hard/filter", "soft/filter"],
        "Unschedulable: ",
    ),
]
ERRORS: list[tuple[str, Json]] = [
    ("malformed", asking({"hard/filter": "oops"})),
    ("an error", asking({"hard/filter": {"Error": "no licence"}})),
    ("an unknown node", asking({"licence/filter": {"NodeNames": ["x"]}}, licence=True)),
]


async def test_same_questions_and_same_verdicts(sides: Sides) -> None:
    for about, item, verbs, verdict in VERDICTS:
        upstream, podium, verbs_asked = await sides.compare(item)
        assert podium == upstream, about
        assert verbs_asked == sorted(verbs), about
        assert f"{upstream.node}{upstream.message}".startswith(verdict), about


async def test_same_errors_in_words_that_name_the_extender(sides: Sides) -> None:
    for about, item in ERRORS:
        upstream, podium, _ = await sides.compare(item)
        assert upstream.message.startswith("SchedulerError: "), about
        assert podium.message.startswith(f'SchedulerError: extender "{sides.server.url}'), about


async def test_same_questions_about_victims(sides: Sides) -> None:
    await create_priority_class(sides.admin, "high", 100)
    for name in NODES:
        await sides.admin.create(PODS, pod(f"on-{name}", cpu="3", nodeName=name))
    none_left = asking({"meta/preempt": {}}, cpu="3", priorityClassName="high")
    upstream, podium, verbs_asked = await sides.compare(none_left)
    assert verbs_asked == PREEMPTING
    assert podium == upstream
    assert upstream.message.endswith("preemption: no candidate node for preemption")

    stranger = {"NodeNameToMetaVictims": {"node-0": {"Pods": [{"UID": "x"}]}}}
    upstream, podium, _ = await sides.compare(asking({"whole/preempt": stranger}, cpu="3", priorityClassName="high"))
    beginning, text = upstream.message.split("preemption: ")
    assert podium.message.startswith(
        f'{beginning}preemption: extender "{sides.server.url}whole": claims to preempt pod'
    )
    assert text.startswith("extender: ")

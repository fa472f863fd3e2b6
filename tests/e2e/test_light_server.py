"""The light API server of the benchmarks: what it keeps of a real one, and podium on it."""

from __future__ import annotations

import http.client
import json
import ssl
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from benchmarks import burst
from benchmarks.light_server import LightServer, LightServerError
from benchmarks.nodes import Json, node
from benchmarks.pods import pod
from benchmarks.workloads import WORKLOADS

pytestmark = pytest.mark.control_plane

PODS = "/api/v1/namespaces/default/pods"


class Answers:
    """Requests to the server, over one connection for each."""

    def __init__(self, server: LightServer) -> None:
        self._address = server.url.removeprefix("https://")

    def ask(self, method: str, path: str, body: Json | None = None) -> tuple[int, Json]:
        """Return the status and the body."""
        connection = self.connection()
        connection.request(method, path, None if body is None else json.dumps(body))
        answer = connection.getresponse()
        content: Json = json.loads(answer.read())
        connection.close()
        return answer.status, content

    def connection(self) -> http.client.HTTPSConnection:
        return http.client.HTTPSConnection(self._address, timeout=60, context=ssl._create_unverified_context())

    def watch(self, version: str, count: int) -> list[Json]:
        """Return that many changes of pods since that version."""
        connection = self.connection()
        connection.request("GET", f"/api/v1/pods?watch=1&resourceVersion={version}")
        answer = connection.getresponse()
        lines = [json.loads(answer.readline()) for _ in range(count)]
        connection.close()
        return lines


@pytest.fixture
def server(light_server_binary: Path) -> Iterator[LightServer]:
    with LightServer(light_server_binary) as server:
        yield server


@pytest.fixture
def answers(server: LightServer) -> Answers:
    return Answers(server)


def binding(node_name: str, uid: str = "") -> Json:
    metadata = {"name": "web", "namespace": "default", **({"uid": uid} if uid else {})}
    return {"apiVersion": "v1", "kind": "Binding", "metadata": metadata, "target": {"kind": "Node", "name": node_name}}


def test_a_pod_is_bound_once_and_the_wait_is_counted(server: LightServer, answers: Answers) -> None:
    server.create([node(0), pod("web", "web")])
    uid = answers.ask("GET", f"{PODS}/web")[1]["metadata"]["uid"]
    assert answers.ask("POST", f"{PODS}/web/binding", binding("node-00000", "another"))[0] == 409
    assert answers.ask("POST", f"{PODS}/web/binding", binding("node-00000", uid))[0] == 201
    assert answers.ask("POST", f"{PODS}/web/binding", binding("node-00000", uid))[0] == 409
    assert answers.ask("POST", f"{PODS}/none/binding", binding("node-00000"))[0] == 404
    bound_pod = server.objects("/api/v1/pods")[0]
    assert bound_pod["spec"]["nodeName"] == "node-00000"
    assert bound_pod["spec"]["containers"] == pod("web", "web")["spec"]["containers"]
    assert [condition["type"] for condition in bound_pod["status"]["conditions"]] == ["PodScheduled"]
    statistics = server.statistics()
    assert (statistics.counts["bindings"], statistics.counts["conflicts"]) == (4, 2)
    assert len(statistics.waits_s or []) == 1


def test_a_watch_resumes_where_a_list_ended_and_hears_of_each_change(server: LightServer, answers: Answers) -> None:
    version = answers.ask("GET", "/api/v1/pods")[1]["metadata"]["resourceVersion"]
    changes: list[Json] = []
    watching = threading.Thread(target=lambda: changes.extend(answers.watch(version, 3)))
    watching.start()
    server.create([pod("web", "web")])
    answers.ask("POST", f"{PODS}/web/binding", binding("node-00000"))
    answers.ask("DELETE", f"{PODS}/web", {"preconditions": {"uid": ""}})
    watching.join(timeout=60)
    assert [change["type"] for change in changes] == ["ADDED", "MODIFIED", "DELETED"]
    assert answers.watch(version, 3) == changes
    versions = [int(change["object"]["metadata"]["resourceVersion"]) for change in changes]
    assert versions == sorted(set(versions))


def test_a_status_patch_merges_conditions_by_type(server: LightServer, answers: Answers) -> None:
    server.create([pod("web", "web")])
    for status in ("False", "True"):
        patch: Json = {"status": {"conditions": [{"type": "PodScheduled", "status": status}], "reason": status}}
        assert answers.ask("PATCH", f"{PODS}/web/status", patch)[0] == 200
    answer = answers.ask("PATCH", f"{PODS}/web/status", {"status": {"reason": None, "nominatedNodeName": "node-1"}})[1]
    assert answer["status"]["conditions"] == [{"type": "PodScheduled", "status": "True"}]
    assert answer["status"]["nominatedNodeName"] == "node-1"
    assert "reason" not in answer["status"]
    assert answer["metadata"]["creationTimestamp"]


def test_an_update_from_an_older_version_is_refused(answers: Answers) -> None:
    leases = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"
    lease: Json = {"metadata": {"name": "podium"}, "spec": {"holderIdentity": "a"}}
    first = answers.ask("POST", leases, lease)[1]
    assert answers.ask("POST", leases, lease)[0] == 409
    second: Json = {**first, "spec": {"holderIdentity": "b"}}
    assert answers.ask("PUT", f"{leases}/podium", second)[0] == 200
    assert answers.ask("PUT", f"{leases}/podium", second)[0] == 409
    assert answers.ask("GET", f"{leases}/podium")[1]["spec"] == {"holderIdentity": "b"}


def test_events_are_counted_and_other_kinds_are_empty(server: LightServer, answers: Answers) -> None:
    events = "/apis/events.k8s.io/v1/namespaces/default/events"
    answer = answers.ask("POST", events, {"metadata": {"name": "web.1"}, "reason": "Scheduled"})[1]
    assert (answer["kind"], answer["metadata"]["name"], answer["reason"]) == ("Event", "web.1", "Scheduled")
    assert server.statistics().counts == {"events": 1}
    assert answers.ask("GET", "/apis/apps/v1/replicasets")[1]["items"] == []
    assert answers.ask("GET", "/apis/example.com/v1/things")[0] == 404


def test_writes_can_be_refused_for_a_time(server: LightServer, answers: Answers) -> None:
    server.create([pod("web", "web")])
    server.refuse_writes(503)
    assert answers.ask("POST", f"{PODS}/web/binding", binding("node-00000"))[0] == 503
    server.refuse_writes(0)
    assert answers.ask("POST", f"{PODS}/web/binding", binding("node-00000"))[0] == 201


def test_what_cannot_be_created_is_refused(server: LightServer) -> None:
    nameless: dict[str, Any] = {"apiVersion": "v1", "kind": "Pod", "metadata": {}}
    with pytest.raises(LightServerError, match=r"metadata\.name is missing"):
        server.create([nameless])
    with pytest.raises(LightServerError, match="not found"):
        server.create([{**nameless, "kind": "Thing", "metadata": {"name": "x"}}])


def test_podium_binds_a_burst(light_server_binary: Path) -> None:
    bursts = burst.measure([20], WORKLOADS["plain"], 50, 1, light_server_binary, lambda _: None)
    (figures,) = burst.medians(bursts)
    assert (figures.pods, figures.conflicts, figures.events_per_pod) == (50, 0, 1.0)
    assert figures.p99_s >= figures.p50_s > 0


def test_a_list_with_a_limit_comes_in_pages(server: LightServer, answers: Answers) -> None:
    server.create([pod(f"web-{number}", "web") for number in range(3)])
    first = answers.ask("GET", f"{PODS}?limit=2")[1]
    last = answers.ask("GET", f"{PODS}?limit=2&continue={quote(first['metadata']['continue'])}")[1]
    names = [[item["metadata"]["name"] for item in page["items"]] for page in (first, last)]
    assert names == [["web-0", "web-1"], ["web-2"]]
    assert not last["metadata"]["continue"]

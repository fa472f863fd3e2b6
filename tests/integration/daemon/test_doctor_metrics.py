"""`podium doctor` reads each metrics source once."""

from __future__ import annotations

import msgspec
import pytest

from podium.daemon.doctor import Report, Verdict
from podium.daemon.doctor.metrics import check_metrics
from podium.lib.clock import ManualClock
from podium.objects.api_errors import Forbidden
from podium.objects.node_metrics import WATCHER, MetricsSource
from tests.manifests import node
from tests.metrics_sources import metrics_stub, watcher_answer

pytestmark = pytest.mark.anyio

ALL = {"n1": {"CPU": 1.0}, "n2": {"CPU": 2.0}}


class Api:
    """Serves two nodes."""

    def __init__(self, *, refuses: bool = False) -> None:
        self._refuses = refuses

    async def request(self, method: str, path: str, body: bytes | None = None, **limits: object) -> bytes:
        if self._refuses:
            raise Forbidden("no")
        assert path.startswith("/api/v1/nodes?")
        return msgspec.json.encode({"apiVersion": "v1", "kind": "NodeList", "items": [node("n1"), node("n2")]})


async def findings(watched, *, refuses: bool = False, address: str = ""):
    report = Report()
    async with metrics_stub(watched=watched) as stub:
        source = MetricsSource(WATCHER, address or stub.url)
        await check_metrics(report, Api(refuses=refuses), {source: ("NodeLoad",)}, ManualClock())
    return [(finding.verdict, finding.message.replace(stub.url, "URL")) for finding in report.findings]


async def test_a_source_that_answers():
    assert await findings(watcher_answer(ALL)) == [(Verdict.OK, "LoadWatcher URL has metrics of all 2 nodes")]


async def test_a_source_without_some_nodes():
    answer = watcher_answer({"n1": {"CPU": 1.0}, "old": {"CPU": 1.0}})
    message = "LoadWatcher URL has metrics of 1 of 2 nodes: no such node: old"
    assert await findings(answer) == [(Verdict.WARNING, message)]


async def test_a_source_that_does_not_answer():
    message = "LoadWatcher URL cannot be read: received status code 500 from watcher"
    assert await findings(None) == [(Verdict.ERROR, message)]


async def test_without_the_right_to_list_nodes_nothing_is_said():
    assert await findings(watcher_answer(ALL), refuses=True) == []


async def test_without_sources_nothing_is_asked():
    report = Report()
    await check_metrics(report, Api(refuses=True), {}, ManualClock())
    assert report.findings == []

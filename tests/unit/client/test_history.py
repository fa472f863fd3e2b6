"""When the API server is asked, and what follows; over HTTP it is in the integration tests."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from itertools import pairwise
from typing import Any

import anyio
import pytest

from podium.client.history import CHECK_EVERY_S, History
from podium.client.history_check import HistoryCheck
from podium.objects.api_errors import ApiError, Forbidden, NotFound, Unreachable
from podium.objects.core import Pod
from podium.objects.resource_types import PODS
from tests.unit.client.builders import pod_at
from tests.virtual_time import VIRTUAL_TIME, LoopClock

pytestmark = pytest.mark.anyio

HOUR_S = 3600.0
GONE = NotFound("gone", code=404, reason="NotFound")


@pytest.fixture(scope="module")
def anyio_backend() -> object:
    return VIRTUAL_TIME


class HistoryBench:
    """An API server, what is known of it, and the reflector; stands for all that `History` uses."""

    def __init__(self, *pods: Pod) -> None:
        self.items = {item.key: item for item in pods}
        self.served: dict[str, Pod | ApiError | bytes] = {item.metadata.name: item for item in pods}
        self.version = self.current = "100"
        self.recent: deque[Pod] = deque(maxlen=4)
        self.asked: list[str] = []
        self.started_over_s: list[float] = []
        self.clock = LoopClock()
        self.history = History(self.clock, [HistoryCheck(self, PODS, self, self)], self._start_over)

    def get(self, key: str) -> Pod | None:
        return self.items.get(key)

    def list(self) -> Iterable[Pod]:
        return self.items.values()

    async def request(self, method: str, path: str, *, deadline_s: float) -> bytes:
        self.asked.append(path)
        if path.endswith("?limit=1"):
            content: Any = {"kind": "PodList", "apiVersion": "v1", "items": []}
            return json.dumps({**content, "metadata": {"resourceVersion": self.current}}).encode()
        answer = self.served.get(path.rpartition("/")[2], GONE)
        if isinstance(answer, ApiError):
            raise answer
        if isinstance(answer, bytes):
            return answer
        meta = answer.metadata
        metadata = {"name": meta.name, "namespace": "ns", "uid": meta.uid, "resourceVersion": meta.resource_version}
        return json.dumps({"kind": "Pod", "apiVersion": "v1", "metadata": metadata}).encode()

    def _start_over(self) -> None:
        self.started_over_s.append(self.clock.monotonic())

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        async with anyio.create_task_group() as group:
            group.start_soon(self.history.run)
            await anyio.sleep(0.01)
            yield
            group.cancel_scope.cancel()


async def test_the_pods_that_changed_last_are_looked_at_now_and_then() -> None:
    bench = HistoryBench(pod_at("old", 7), pod_at("new", 90), pod_at("older", 6))
    async with bench.running():
        assert not bench.asked
        await anyio.sleep(HOUR_S)
    pods = {f"/api/v1/namespaces/ns/pods/{name}" for name in ("new", "old")}
    assert set(bench.asked) == {*pods, "/api/v1/pods?limit=1"}
    assert len(bench.asked) / 3 == pytest.approx(HOUR_S / CHECK_EVERY_S, abs=2)
    assert not bench.started_over_s


@pytest.mark.parametrize("event", ["older_version_seen", "watch_resumed"])
async def test_a_reason_to_doubt_is_followed_up_at_once(event: str) -> None:
    bench = HistoryBench(pod_at("a", 50))
    bench.served["a"] = pod_at("a", 40)
    async with bench.running():
        getattr(bench.history, event)()
        await anyio.sleep(0.01)
        assert len(bench.started_over_s) == 1


async def test_doubts_that_come_to_nothing_are_followed_up_ever_more_rarely() -> None:
    bench = HistoryBench(pod_at("a", 50))
    async with bench.running():
        for _ in range(int(HOUR_S)):
            bench.history.older_version_seen()
            await anyio.sleep(1.0)
    assert len(bench.asked) < 160
    assert not bench.started_over_s


async def test_what_only_can_be_if_history_went_back_is_not_listed_for_all_the_time() -> None:
    bench = HistoryBench(pod_at("a", 50))
    async with bench.running():
        for _ in range(int(HOUR_S)):
            bench.history.history_lost("says so")
            await anyio.sleep(1.0)
    assert bench.started_over_s[0] < 0.1
    assert len(bench.started_over_s) < HOUR_S / 60.0 + 4


async def test_a_watch_that_goes_back_is_listed_for_at_once_and_ever_more_rarely_if_it_does_so_all_the_time() -> None:
    """A proxy that repeats old events must not cause a list each time."""
    bench = HistoryBench(pod_at("a", 50))
    async with bench.running():
        for _ in range(int(HOUR_S)):
            bench.history.version_went_back("says so")
            await anyio.sleep(1.0)
    pauses_s = [later_s - earlier_s for earlier_s, later_s in pairwise(bench.started_over_s)]
    assert bench.started_over_s[0] < 0.1
    assert pauses_s[:4] == pytest.approx([10.0, 20.0, 40.0, 80.0], abs=2.0)
    assert min(pauses_s[4:]) >= 119.0
    assert len(bench.asked) < 160


async def test_a_watch_that_goes_back_is_listed_for_at_once_though_a_check_waits_for_it() -> None:
    bench = HistoryBench(pod_at("a", 50))
    bench.served["a"] = pod_at("a", 60)
    async with bench.running():
        bench.history.watch_resumed()
        await anyio.sleep(1.0)
        assert not bench.started_over_s
        bench.history.version_went_back("says so")
        await anyio.sleep(0.01)
        assert len(bench.started_over_s) == 1


async def test_the_states_before_a_watch_was_resumed_are_what_is_asked_about() -> None:
    bench = HistoryBench(pod_at("a", 50))
    bench.served["a"] = pod_at("a", 40)
    async with bench.running():
        bench.history.watch_resumed()
        bench.items["ns/a"] = pod_at("a", 90)
        await anyio.sleep(0.01)
        assert len(bench.started_over_s) == 1


async def test_what_was_known_at_each_of_several_resumptions_is_asked_about() -> None:
    bench = HistoryBench(pod_at("a", 50))
    bench.served["a"] = Unreachable("no")
    async with bench.running():
        bench.history.watch_resumed()
        await anyio.sleep(0.1)
        bench.items["ns/lost"] = pod_at("lost", 60)
        bench.recent.append(pod_at("a", 50))
        bench.recent.append(bench.items["ns/lost"])
        bench.history.watch_resumed()
        bench.items["ns/new"] = bench.served["new"] = pod_at("new", 61)
        bench.recent.append(bench.items["ns/new"])
        bench.history.watch_resumed()
        bench.served["a"] = pod_at("a", 50)
        await anyio.sleep(20.0)
        assert len(bench.started_over_s) == 1


async def test_watches_that_break_often_do_not_let_forget_what_was_known_at_first() -> None:
    bench = HistoryBench(pod_at("a", 50))
    bench.served["a"] = Unreachable("no")
    async with bench.running():
        bench.history.watch_resumed()
        await anyio.sleep(0.1)
        bench.items["ns/new"] = bench.served["new"] = pod_at("new", 61)
        bench.recent.append(bench.items["ns/new"])
        for _ in range(100):
            bench.history.watch_resumed()
        bench.served["a"] = pod_at("a", 40)
        await anyio.sleep(20.0)
        assert len(bench.started_over_s) == 1


async def test_what_is_lost_of_one_kind_is_found_though_another_is_as_it_was() -> None:
    pods, nodes = HistoryBench(pod_at("a", 50)), HistoryBench(pod_at("node", 60))
    del nodes.served["node"]
    pods.history = History(
        pods.clock, [HistoryCheck(informer, PODS, informer, informer) for informer in (pods, nodes)], pods._start_over
    )
    async with pods.running():
        pods.history.older_version_seen()
        await anyio.sleep(5.0)
        assert len(pods.started_over_s) == 1


async def test_a_pod_that_had_gone_and_is_there_again_refutes() -> None:
    bench = HistoryBench(pod_at("a", 50))
    bench.recent.extend([pod_at("a", 50), pod_at("back", 60)])
    bench.served["back"] = pod_at("back", 40)
    async with bench.running():
        bench.history.older_version_seen()
        await anyio.sleep(1.0)
        assert len(bench.started_over_s) == 1


async def test_pods_that_have_gone_prove_nothing() -> None:
    bench = HistoryBench(pod_at("a", 50), pod_at("lost", 51))
    bench.recent.extend(pod_at(f"gone-{index}", 60 + index) for index in range(4))
    del bench.served["lost"]
    async with bench.running():
        bench.history.older_version_seen()
        await anyio.sleep(5.0)
        assert len(bench.started_over_s) == 1


async def test_a_pod_that_got_its_version_again_does_not_hide_that_another_is_lost() -> None:
    bench = HistoryBench(pod_at("again", 60), pod_at("lost", 59))
    del bench.served["lost"]
    async with bench.running():
        bench.history.watch_resumed()
        await anyio.sleep(20.0)
        assert len(bench.started_over_s) == 1


async def test_a_pod_that_is_gone_unseen_refutes_though_an_older_one_is_as_it_was() -> None:
    bench = HistoryBench(pod_at("a", 50), pod_at("lost", 60))
    del bench.served["lost"]
    async with bench.running():
        bench.history.older_version_seen()
        await anyio.sleep(5.0)
        assert len(bench.started_over_s) == 1


@pytest.mark.parametrize(
    "pod", [pod_at("a", 60), None, pod_at("a", 60, "another")], ids=["changed", "gone", "made anew"]
)
async def test_a_change_that_the_watch_does_not_tell_of_refutes(pod: Pod | None) -> None:
    bench = HistoryBench(pod_at("a", 50))
    bench.served["a"] = GONE if pod is None else pod
    async with bench.running():
        bench.history.older_version_seen()
        await anyio.sleep(2.0)
        assert not bench.started_over_s
        await anyio.sleep(2.0)
        assert len(bench.started_over_s) == 1


@pytest.mark.parametrize(
    "pod", [pod_at("a", 60), None, pod_at("a", 60, "another")], ids=["changed", "gone", "made anew"]
)
async def test_a_change_that_the_watch_tells_of_a_little_later_is_none_to_worry_about(pod: Pod | None) -> None:
    bench = HistoryBench(pod_at("a", 50))
    bench.served["a"] = GONE if pod is None else pod
    async with bench.running():
        bench.history.older_version_seen()
        await anyio.sleep(2.0)
        bench.items = {} if pod is None else {"ns/a": pod}
        await anyio.sleep(5.0)
        assert not bench.started_over_s


async def test_a_watch_that_is_behind_but_goes_on_is_waited_for_longer() -> None:
    bench = HistoryBench(pod_at("a", 50))
    bench.served["a"] = GONE
    bench.current = "200"
    async with bench.running():
        bench.history.older_version_seen()
        for version in range(101, 121):
            bench.version = str(version)
            await anyio.sleep(1.0)
        assert not bench.started_over_s
        bench.items = {}
        await anyio.sleep(20.0)
        assert not bench.started_over_s


@pytest.mark.parametrize("pods", [[], [pod_at("a", 50)]], ids=["no pods", "pods that may not be read"])
async def test_the_version_of_a_list_is_asked_for_where_no_pod_can_be(pods: list[Pod]) -> None:
    bench = HistoryBench(*pods)
    bench.served = {item.metadata.name: Forbidden("no") for item in pods}
    async with bench.running():
        bench.history.older_version_seen()
        await anyio.sleep(1.0)
        assert not bench.started_over_s
        bench.current = "99"
        bench.history.older_version_seen()
        await anyio.sleep(5.0)
        assert len(bench.started_over_s) == 1


@pytest.mark.parametrize(
    "answer",
    [
        b"<html>Please log in</html>",
        b"{}",
        b'{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Success"}',
        b'{"kind":"Pod","apiVersion":"v1","metadata":{"name":"b","namespace":"ns","uid":"u","resourceVersion":"1"}}',
        NotFound("no such route", code=404),
    ],
)
async def test_an_answer_that_is_not_about_the_pod_says_nothing(answer: bytes | ApiError) -> None:
    bench = HistoryBench(pod_at("a", 50))
    bench.served["a"] = answer
    async with bench.running():
        bench.history.older_version_seen()
        await anyio.sleep(600.0)
        assert not bench.started_over_s
        bench.served["a"] = pod_at("a", 40)
        await anyio.sleep(5.0)
        assert len(bench.started_over_s) == 1


async def test_a_version_that_no_list_has_is_no_place_to_stay() -> None:
    bench = HistoryBench(pod_at("a", 50))
    bench.current = "60"
    async with bench.running():
        bench.history.older_version_seen()
        await anyio.sleep(5.0)
        assert len(bench.started_over_s) == 1


async def test_an_api_server_that_does_not_answer_is_asked_until_it_does() -> None:
    bench = HistoryBench(pod_at("a", 50))
    bench.served["a"] = Unreachable("away")
    async with bench.running():
        bench.history.watch_resumed()
        await anyio.sleep(60.0)
        assert len(bench.asked) > 10
        bench.served["a"] = pod_at("a", 40)
        await anyio.sleep(3.0)
        assert len(bench.started_over_s) == 1


async def test_nothing_is_asked_while_a_list_is_under_way() -> None:
    bench = HistoryBench(pod_at("a", 50))
    bench.version = ""
    async with bench.running():
        bench.history.older_version_seen()
        await anyio.sleep(60.0)
        assert not bench.asked
        bench.version = "100"
        await anyio.sleep(3.0)
        assert bench.asked

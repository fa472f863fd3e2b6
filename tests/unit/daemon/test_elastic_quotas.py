"""The status of ElasticQuotas: its amounts, and when it is written."""

from __future__ import annotations

from random import Random
from types import SimpleNamespace
from typing import Any

import pytest

from podium.client.informer_set import InformerSet
from podium.daemon.elastic_quotas import QuotaKeeper, usage_of
from podium.engine.manifests import read_manifest
from podium.lib.clock import ManualClock
from podium.objects.api_errors import Forbidden, NotFound
from podium.objects.resource_types import PODS
from podium.plugins.contrib.capacity_scheduling.objects import ELASTIC_QUOTAS
from podium.plugins.contrib.capacity_scheduling.quotas import Quotas
from podium.plugins.contrib.capacity_scheduling.trees import TreeQuotas
from podium.testing.handle import RecordingClient
from tests.unit.plugins.contrib.capacity_scheduling.quota_bench import pod, quota

pytestmark = pytest.mark.anyio


def read_quota(manifest: dict[str, Any]) -> Any:
    return read_manifest(manifest, ELASTIC_QUOTAS if manifest["kind"] == "ElasticQuota" else PODS)


def running(key: str, requests: dict[str, str], **spec: Any) -> Any:
    return read_quota(pod(key, node="n1", requests=requests, spec=spec))


def test_the_amounts_are_those_of_upstreams_controller() -> None:
    """Running pods without overhead; also of resources that the quota does not name."""
    init = [{"name": "i", "resources": {"requests": {"cpu": "3", "example.com/gpu": "1"}}}]
    pods = [
        running("a/x", {"cpu": "1500m", "memory": "1Gi"}),
        running("a/y", {"cpu": "1"}, initContainers=init, overhead={"cpu": "5"}),
        read_quota(pod("a/bound", node="n1", status={"phase": "Pending"})),
    ]
    usage = usage_of(read_quota(quota("a", min={"cpu": "1", "pods": "5"}, max={"memory": "9Gi"})), pods)
    assert usage == {"cpu": "4500m", "example.com/gpu": "1", "memory": "1Gi", "pods": "0"}
    assert usage_of(read_quota(quota("a", min={"cpu": "one"})), pods) is None
    assert usage_of(read_quota(quota("a")), [running("a/x", {"cpu": "one"})]) == {}


class Bench:
    def __init__(self, client: Any = None, *, trees: bool = False) -> None:
        session: Any = None
        self.informers = InformerSet(session, clock=ManualClock(), random=Random(1))
        self.client = client or RecordingClient()
        handle: Any = SimpleNamespace(lister=self.informers.informer)
        self.keeper = QuotaKeeper((TreeQuotas if trees else Quotas)(handle), self.client, self.informers)
        for resource in (PODS, ELASTIC_QUOTAS):
            handler: Any = self.keeper
            self.informers.informer(resource).add_handler(handler)

    def put(self, *manifests: dict[str, Any]) -> None:
        for number, manifest in enumerate(manifests):
            manifest["metadata"].setdefault("resourceVersion", str(1000 + number))
            resource: Any = ELASTIC_QUOTAS if manifest["kind"] == "ElasticQuota" else PODS
            self.informers.informer(resource).put(read_quota(manifest))


async def test_a_status_is_written_once_for_each_change() -> None:
    bench = Bench()
    bench.put(quota("a", min={"cpu": "1"}), pod("a/x", "2", "n1"), pod("elsewhere/y", "2", "n1"))
    await bench.keeper.write()
    await bench.keeper.write()
    assert bench.client.patches == [("a/quota", {"status": {"used": {"cpu": "2"}}})]


async def test_a_status_that_is_right_already_is_left_and_stale_amounts_are_removed() -> None:
    bench = Bench()
    bench.put({**quota("a", min={"cpu": "1"}), "status": {"used": {"cpu": "2000m"}}}, pod("a/x", "2", "n1"))
    await bench.keeper.write()
    assert bench.client.patches == []
    bench.put({**quota("b"), "status": {"used": {"memory": "1Gi"}}})
    await bench.keeper.write()
    assert bench.client.patches == [("b/quota", {"status": {"used": {"memory": None}}})]


async def test_of_several_quotas_the_one_that_counts_has_the_status(caplog: Any) -> None:
    bench = Bench()
    bench.put(
        quota("a", "young", "2026-01-02T00:00:00Z"), quota("a", "old", "2026-01-01T00:00:00Z"), pod("a/x", "1", "n1")
    )
    await bench.keeper.write()
    assert [key for key, _ in bench.client.patches] == ["a/old"]


async def test_a_quota_of_several_namespaces_has_the_sum_of_their_pods() -> None:
    bench = Bench(trees=True)
    selector = {"matchExpressions": [{"key": "team", "operator": "DoesNotExist"}]}
    bench.put(quota("teams", namespaceSelector=selector), pod("a/x", "1", "n1"), pod("b/y", "2", "n1"))
    await bench.keeper.write()
    assert bench.client.patches[-1] == ("teams/quota", {"status": {"used": {"cpu": "3"}}})


async def test_a_status_that_could_not_be_written_is_written_later() -> None:
    failures: list[Exception] = [NotFound("gone"), Forbidden("no")]
    calls: list[str] = []

    class Client:
        async def patch(self, resource: Any, item: Any, change: Any, subresource: str) -> None:
            calls.append(f"{resource.plural}/{subresource} {item.key}")
            if failures:
                raise failures.pop()

    bench = Bench(Client())
    bench.put(quota("a", min={"cpu": "1"}))
    for _ in range(4):
        await bench.keeper.write()
    assert calls == ["elasticquotas/status a/quota"] * 2


async def test_a_suspicious_quota_is_logged_once_it_is_known_what_stands_beside_it(capsys: Any) -> None:
    bench = Bench(trees=True)
    bench.put(quota("a", "below", min={"cpu": "-1"}, parent="above"), quota("a", "above", min={"cpu": "1"}))
    await bench.keeper.write()
    await bench.keeper.write()
    [line] = [line for line in capsys.readouterr().out.splitlines() if "Suspicious quota" in line]
    assert "ElasticQuota a/below: spec.min[cpu]: is negative" in line

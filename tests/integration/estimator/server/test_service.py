"""Questions over gRPC: recorded ones in every era of the wire, and hostile ones."""

from __future__ import annotations

import gzip
import json
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import grpc
import pytest
from structlog.testing import capture_logs

from podium.engine.derivation.admission import Admission
from podium.engine.placing import Engine
from podium.engine.store import ObjectStore
from podium.estimator.accurate import Rules, accurate_replicas, replica_of
from podium.estimator.cases import read_case
from podium.estimator.manifests import cluster_for, member_of
from podium.estimator.member import Gates, MemberCluster
from podium.estimator.server.app import EstimatorApp
from podium.estimator.server.messages import CLASSES
from podium.framework.profile.runtime import Framework
from podium.lib.clock import ManualClock
from podium.objects.core import Pod
from tests.integration.estimator.server.conftest import QUIET, Asker, refusal, serving
from tests.unit.estimator.server.wire import ERAS, replicas_request, sets_request

pytestmark = pytest.mark.anyio

CASES = Path(__file__).parents[3] / "parity" / "data" / "karmada-estimates.jsonl.gz"
LINES = gzip.decompress(CASES.read_bytes()).splitlines()
ROWS: list[dict[str, Any]] = [json.loads(line) for line in LINES]


@pytest.fixture
async def asker(anyio_backend: object) -> AsyncIterator[Asker]:
    cases = [read_case(line) for line in LINES]
    still = {case.id: member_of(case.objects, Gates(), case.id) for case in cases}
    async with serving(EstimatorApp(QUIET, still=still)) as estimator_asker:
        yield estimator_asker


async def _answer(asker: Asker, row: dict[str, Any], era: str) -> dict[str, Any]:
    try:
        if "workload" in row:
            return {"unschedulable": await asker.unschedulable(row["id"], row["workload"], row["threshold_s"])}
        if "components" in row:
            return {"sets": await asker.sets(row["id"], row["components"], era)}
        return {"replicas": await asker.replicas(row["id"], row.get("requirements"), era)}
    except grpc.aio.AioRpcError as error:
        return {"error": error.details()} if error.code() is grpc.StatusCode.UNKNOWN else {"code": error.code()}


@pytest.mark.parametrize("era", ERAS)
async def test_recorded_questions_have_the_recorded_answers_in_every_era(asker: Asker, era: str) -> None:
    for row in ROWS:
        expected_answer = {name: value for name, value in row["expect"].items() if not name.startswith("general_")}
        assert await _answer(asker, row, era) == expected_answer, row["id"]


async def test_hostile_requests_have_a_clear_status_and_others_are_served(asker: Asker) -> None:
    row = next(row for row in ROWS if "requirements" in row)
    good = replicas_request(row["id"], row["requirements"])

    async def replicas(content: bytes) -> Any:
        return await asker.ask("MaxAvailableReplicas", content)

    code, text = await refusal(lambda: replicas(b"\xff\xff\xff"))
    assert code is grpc.StatusCode.INTERNAL
    assert text.startswith("grpc: error unmarshalling request")
    assert await refusal(lambda: replicas(replicas_request("nobody", None))) == (
        grpc.StatusCode.UNKNOWN,
        "cluster name does not match, got: nobody, desire: member-0000, member-0001, member-0002 or another of 300",
    )
    code, _ = await refusal(lambda: replicas(b"\x0a" + bytes([0x80, 0xAD, 0xE2, 0x04]) + b"a" * 10_000_000))
    assert code is grpc.StatusCode.RESOURCE_EXHAUSTED
    parts = [
        {"name": "c", "replicas": 1, "replicaRequirements": {"resourceRequest": {"cpu": f"{number}m"}}}
        for number in range(1, 10_001)
    ]
    assert await refusal(lambda: asker.ask("MaxAvailableComponentSets", sets_request(row["id"], parts))) == (
        grpc.StatusCode.UNKNOWN,
        "failed to estimate component sets: 10000 components are more than 1000",
    )
    request = CLASSES["MaxAvailableReplicasRequest"](
        cluster=row["id"], replicaRequirements={"resourceRequestBytes": {"cpu": b"\xff"}}
    )
    code, text = await refusal(lambda: replicas(request.SerializeToString()))
    assert (code, text.partition(":")[0]) == (grpc.StatusCode.UNKNOWN, "failed to unmarshal resource request cpu")
    assert (await replicas(good)).maxReplicas == row["expect"]["replicas"]


async def test_set_that_takes_nothing_and_many_components_are_answered_at_once(asker: Asker) -> None:
    row = max(ROWS, key=lambda row: len(row["objects"]))
    started_s = time.process_time()
    assert await asker.sets(row["id"], [{"name": "c", "replicas": 0}]) == 2**31 - 1
    assert await asker.sets(row["id"], [{"name": "c", "replicas": -3}]) == 0
    components = [
        {"name": "c", "replicas": 1, "replicaRequirements": {"resourceRequest": {"cpu": f"{number}m"}}}
        for number in range(1, 1001)
    ]
    assert await asker.sets(row["id"], components) >= 0
    assert time.process_time() - started_s < 10.0


async def test_method_that_is_not_there_is_unimplemented(asker: Asker) -> None:
    code, _ = await refusal(lambda: asker.ask("MinAvailableReplicas", b""))
    assert code is grpc.StatusCode.UNIMPLEMENTED


async def test_recorded_members_tried_out_have_the_numbers_that_podium_estimate_gives(anyio_backend: object) -> None:
    cases = [case for case in map(read_case, LINES) if case.components is None and case.workload is None][:40]
    still = {case.id: member_of(case.objects, Gates(), case.id, Rules()) for case in cases}
    expected_counts = {}
    for case in cases:
        replica = replica_of(case.requirements)
        expected_counts[case.id] = accurate_replicas(*_engine_and(case.objects, replica))
    async with serving(EstimatorApp(QUIET, still=still)) as asker:
        rows = {row["id"]: row for row in ROWS}
        counts = {name: await asker.replicas(name, rows[name].get("requirements")) for name in expected_counts}
        assert await asker.sets(cases[0].id, [{"name": "c", "replicas": 0}]) == 2**31 - 1
    assert counts == expected_counts
    assert counts != {name: rows[name]["expect"]["replicas"] for name in counts}


def _engine_and(objects: list[Any], replica: Pod) -> tuple[Engine, Framework, Pod, list[Pod]]:
    cluster, waiting = cluster_for(ObjectStore.of(objects), Admission(objects), replica, Rules())
    return cluster.engine, cluster.framework_for(replica), replica, waiting


@pytest.mark.parametrize(("seconds", "is_logged"), [(0.2, True), (0.05, False)])
async def test_an_estimate_that_takes_long_is_logged_with_its_steps(
    anyio_backend: object, monkeypatch: pytest.MonkeyPatch, seconds: float, is_logged: bool
) -> None:
    row = next(row for row in ROWS if "requirements" in row)
    case, clock = read_case(json.dumps(row).encode()), ManualClock()
    estimate = MemberCluster.max_available_replicas

    def slowly(*args: Any) -> int:
        clock.advance(seconds)
        return estimate(*args)

    monkeypatch.setattr(MemberCluster, "max_available_replicas", slowly)
    app = EstimatorApp(QUIET, still={case.id: member_of(case.objects, Gates(), case.id)}, clock=clock)
    with capture_logs() as logs:
        async with serving(app) as asker:
            await asker.replicas(row["id"], row["requirements"])
    traces = [entry for entry in logs if entry["event"] == "Trace"]
    assert len(traces) == is_logged
    for trace in traces:
        assert (trace["trace"], trace["namespacedName"]) == ("Estimating", "kind=Deployment, name=a/b")
        assert trace["total_ms"] == 200
        assert trace["steps_ms"] == {
            "Snapshotting estimator cache and node infos done": 0,
            "Computing estimation done": 200,
        }

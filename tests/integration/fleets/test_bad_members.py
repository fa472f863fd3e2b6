"""Members that hang, lie or never end: the others answer in time, and every answer says which members it is without."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import anyio
import orjson
import pytest

from podium.estimator.server.app import Source
from podium.fleets.server.app import FleetApp
from podium.sandbox import Sandbox
from tests.integration.fleets.conftest import QUIET, FleetAsker, serving
from tests.manifests import node, pod
from tests.patience import PATIENCE_S
from tests.workload_manifests import workload

pytestmark = pytest.mark.anyio

JOB = workload("Job", "train", parallelism=2, completions=2, cpu="2")
HANGS_S = 3_600.0
NOT_LISTED = "it has not been listed yet"


@pytest.fixture
async def good(anyio_backend: object) -> AsyncIterator[Sandbox]:
    async with Sandbox(kubelets=False) as sandbox:
        sandbox.store.create(node("g1", "4"))
        yield sandbox


@pytest.fixture
async def bad(anyio_backend: object) -> AsyncIterator[Sandbox]:
    async with Sandbox(kubelets=False) as sandbox:
        sandbox.store.create(node("b1", "64"))
        yield sandbox
        sandbox.faults.clear()


@pytest.fixture
def app(good: Sandbox, bad: Sandbox, tmp_path: Path) -> FleetApp:
    members = {"good": good, "bad": bad}
    return FleetApp(
        QUIET, [Source(name, str(sandbox.write_kubeconfig(tmp_path / name))) for name, sandbox in members.items()]
    )


def _list(kind: str, *items: dict[str, Any], token: str = "") -> str:
    metadata = {"resourceVersion": "1", **({"continue": token} if token else {})}
    return orjson.dumps({"kind": f"{kind}List", "apiVersion": "v1", "metadata": metadata, "items": items}).decode()


def _with_amounts(**amounts: Any) -> dict[str, Any]:
    item = node("b1")
    metadata = {**item["metadata"], "uid": "b1", "resourceVersion": "1"}
    return {**item, "metadata": metadata, "status": {"allocatable": amounts, "capacity": amounts}}


async def _answer_in_time(asker: FleetAsker) -> dict[str, Any]:
    """Ask with a short deadline: both interfaces have to answer long before anything that hangs would."""
    with anyio.fail_after(PATIENCE_S):
        response = await asker.fit_by_grpc(JOB, timeout_s=PATIENCE_S / 2)
        answer = await asker.fit(JOB, timeout="1s")
    assert dict(response.without).keys() == answer["without"].keys()
    return answer


@pytest.mark.parametrize("target", [{"verb": "list"}, {"verb": "list", "resource": "pods"}, {}], ids=str)
async def test_a_member_that_hangs_is_named_and_holds_nothing_up(
    app: FleetApp, bad: Sandbox, target: dict[str, str]
) -> None:
    bad.faults.latency(HANGS_S, **target)
    async with serving(app) as asker:
        await asker.wait_for(JOB, best="good", without={"bad"})
        answer = await _answer_in_time(asker)
        assert (answer["best"], list(answer["without"])) == ("good", ["bad"])
        assert answer["without"]["bad"].startswith(NOT_LISTED)
        bad.faults.clear()
        await asker.wait_for(JOB, best="bad")


async def test_a_member_that_hangs_after_its_list_is_asked_as_it_was(app: FleetApp, bad: Sandbox) -> None:
    async with serving(app) as asker:
        await asker.wait_for(JOB, best="bad")
        bad.faults.latency(HANGS_S)
        bad.faults.drop_watches()
        answer = await _answer_in_time(asker)
        assert {cluster["cluster"] for cluster in answer["fits"]} | answer["without"].keys() == {"good", "bad"}
        bad.faults.clear()
        bad.store.delete("nodes", "b1")
        await asker.wait_for(JOB, best="good")


@pytest.mark.parametrize("kind", ["Node", "Pod"])
async def test_a_list_whose_pages_never_end_is_named(app: FleetApp, bad: Sandbox, kind: str) -> None:
    body = _list(kind, token="more")
    bad.faults.invalid_answer(None, body=body, verb="list", resource=f"{kind.lower()}s")
    async with serving(app) as asker:
        await asker.wait_for(JOB, best="good", without={"bad"})
        answer = await _answer_in_time(asker)
        assert answer["without"]["bad"].startswith(NOT_LISTED)
        bad.faults.clear()
        await asker.wait_for(JOB, best="bad")


@pytest.mark.parametrize("body", ["", "null", "[]", '{"kind": "Status"}', "<html>", _list("Secret")], ids=repr)
async def test_an_answer_that_is_no_list_is_named(app: FleetApp, bad: Sandbox, body: str) -> None:
    bad.faults.invalid_answer(None, body=body, verb="list", resource="nodes")
    async with serving(app) as asker:
        answer = await asker.wait_for(JOB, best="good", without={"bad"})
        assert answer["without"]["bad"].startswith(NOT_LISTED)


@pytest.mark.parametrize(
    "amounts",
    [
        {"cpu": "-64", "memory": "64Gi", "pods": "110"},
        {"cpu": "64", "memory": "64Gi", "pods": "-1"},
        {"cpu": "64", "memory": "64Gi", "pods": str(-(2**31) - 1)},
        {"cpu": f"-{2**63}", "memory": f"-{2**63}", "pods": "110"},
        {"cpu": "many", "memory": "64Gi", "pods": "110"},
        {"cpu": {"amount": 64}, "memory": "64Gi", "pods": "110"},
    ],
    ids=str,
)
async def test_a_member_with_amounts_that_cannot_be_takes_nothing(
    app: FleetApp, bad: Sandbox, amounts: dict[str, Any]
) -> None:
    bad.faults.invalid_answer(None, body=_list("Node", _with_amounts(**amounts)), verb="list", resource="nodes")
    async with serving(app) as asker:
        answer = await asker.wait_for(JOB, best="good")
        (rejection,) = answer["rejected"]
        assert (rejection["cluster"], rejection["reason"] != "") == ("bad", True)


@pytest.mark.parametrize("amount", [2**31, 2**53, 2**63 - 1, 2**63, 10**30])
async def test_a_member_with_amounts_beyond_all_bounds_spoils_no_answer(
    app: FleetApp, bad: Sandbox, amount: int
) -> None:
    amounts = {"cpu": str(amount), "memory": str(amount), "pods": str(amount)}
    nodes = [
        {**item, "metadata": {**item["metadata"], "name": name, "uid": name}}
        for item in [_with_amounts(**amounts)]
        for name in ("b1", "b2", "b3")
    ]
    greedy = pod("runs", str(amount), node="b1", scheduler="default-scheduler")
    greedy["metadata"] |= {"uid": "runs", "resourceVersion": "1"}
    bad.faults.invalid_answer(None, body=_list("Node", *nodes), verb="list", resource="nodes")
    bad.faults.invalid_answer(None, body=_list("Pod", greedy), verb="list", resource="pods")
    async with serving(app) as asker:
        answer = await asker.until(lambda answer: not answer["without"], lambda: asker.fit(JOB))
        loads = {cluster["cluster"]: cluster["load"] for cluster in answer["fits"]}
        assert loads["good"] == 100.0
        assert loads.keys() | {rejection["cluster"] for rejection in answer["rejected"]} == {"bad", "good"}
        assert 0.0 <= loads.get("bad", 0.0) <= 100.0

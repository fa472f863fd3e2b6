"""A fleet whose members are watched through their API servers."""

from __future__ import annotations

import asyncio
import io
import weakref
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import grpc
import pytest

from podium.client.session import ApiSession
from podium.config import FIRST, NEWEST, Release, default_configuration, default_gates
from podium.estimator.accurate import Rules
from podium.estimator.server import member_rules
from podium.estimator.server.app import Source
from podium.fleets.ordering import Prices
from podium.fleets.server.app import FleetApp
from podium.fleets.server.fleet import Staleness
from podium.fleets.server.watched import WatchedCluster
from podium.sandbox import Sandbox
from tests.integration.fleets.conftest import QUIET, serving
from tests.manifests import node, pod
from tests.workload_manifests import claim_template, limit_range, priority_class, storage, workload

pytestmark = pytest.mark.anyio

SCHEDULER = "default-scheduler"
JOB = workload("Job", "train", parallelism=2, completions=2, cpu="2")


@pytest.fixture
async def east(anyio_backend: object) -> AsyncIterator[Sandbox]:
    async with Sandbox(kubelets=False) as sandbox:
        yield sandbox


@pytest.fixture
async def west(anyio_backend: object) -> AsyncIterator[Sandbox]:
    async with Sandbox(kubelets=False) as sandbox:
        yield sandbox


def _sources(directory: Path, **sandboxes: Sandbox) -> list[Source]:
    return [Source(name, str(sandbox.write_kubeconfig(directory / name))) for name, sandbox in sandboxes.items()]


async def test_answers_follow_the_members(east: Sandbox, west: Sandbox, tmp_path: Path) -> None:
    east.store.create(node("e1", "2"))
    west.store.create(node("w1", "4"))
    async with serving(FleetApp(QUIET, _sources(tmp_path, east=east, west=west))) as asker:
        answer = await asker.wait_for(JOB, best="west")
        assert set(answer["fits"][0]["nodes"].values()) == {"w1"}
        assert [rejection["cluster"] for rejection in answer["rejected"]] == ["east"]
        east.store.create(node("e2", "64"))
        await asker.wait_for(JOB, best="east")
        east.store.create(pod("waits", "63", scheduler=SCHEDULER))
        east.store.create(pod("runs", "1", node="e1", scheduler=SCHEDULER))
        await asker.wait_for(JOB, best="west")
        east.store.delete("pods", "waits", "default", grace_period_s=0)
        await asker.wait_for(JOB, best="east")
        east.store.delete("nodes", "e2")
        await asker.wait_for(JOB, best="west")
        clusters = await asker.clusters()
        assert clusters["east"] == {"cluster": "east", "asked": True, "nodes": 1, "pods": 1, "decidesAs": "1.37"}


async def test_both_interfaces_give_the_same_answer(east: Sandbox, west: Sandbox, tmp_path: Path) -> None:
    for sandbox, kind in ((east, "big"), (west, "small")):
        sandbox.store.create(node("n1", "4", labels={"node.kubernetes.io/instance-type": kind}))
    options = replace(QUIET, prices=Prices({"big": 2, "small": 1}))
    async with serving(FleetApp(options, _sources(tmp_path, east=east, west=west))) as asker:
        await asker.wait_for(JOB, best="east")
        answer = await asker.fit(JOB, order="cheapest", most=1)
        response = await asker.fit_by_grpc(JOB, order="cheapest", most=1)
        assert (answer["best"], answer["untried"]) == ("west", ["east"])
        assert (response.best, list(response.untried), response.pods) == ("west", ["east"], 2)
        (cluster,) = response.fits
        assert (dict(cluster.nodes), cluster.price.value) == (answer["fits"][0]["nodes"], answer["fits"][0]["price"])
        response = await asker.fit_by_grpc(JOB, clusters=["north"])
        assert (response.best, dict(response.without)) == ("", {"north": "there is no such member"})


async def test_claims_and_admission_of_the_members_count(east: Sandbox, west: Sandbox, tmp_path: Path) -> None:
    database = workload("StatefulSet", "db", 2, volumeClaimTemplates=[claim_template(size="5Gi")])
    for sandbox, size in ((east, "1Gi"), (west, "100Gi")):
        for item in (node("n1", "4"), *storage(size)):
            sandbox.store.create(item)
    async with serving(FleetApp(QUIET, _sources(tmp_path, east=east, west=west))) as asker:
        await asker.wait_for(database, best="west")
        await asker.wait_for(JOB, best="east")
        east.store.create(limit_range({"type": "Container", "max": {"cpu": "1"}}))
        await asker.wait_for(JOB, best="west")
        west.store.create(priority_class("train", 100))
        classed = workload("Job", "train", pod_spec={"priorityClassName": "train"})
        answer = await asker.wait_for(classed, best="west")
        assert "no PriorityClass with name train was found" in answer["rejected"][0]["reason"]
        # Nothing of the questions is left behind.
        assert not west.store.list("persistentvolumeclaims")


async def test_member_that_cannot_be_reached_is_stale_after_a_time_and_the_others_answer(
    east: Sandbox, west: Sandbox, tmp_path: Path
) -> None:
    east.store.create(node("e1", "64"))
    west.store.create(node("w1", "4"))
    options = replace(QUIET, staleness=Staleness(after_s=0.5))
    async with serving(FleetApp(options, _sources(tmp_path, east=east, west=west))) as asker:
        await asker.wait_for(JOB, best="east")
        east.faults.refuse_connections(3600)
        answer = await asker.wait_for(JOB, best="west", without={"east"})
        assert answer["without"]["east"].startswith("it is stale: unreachable for ")
        clusters = await asker.clusters()
        assert (clusters["east"]["asked"], clusters["west"]["asked"]) == (False, True)
        assert clusters["east"]["failingSeconds"] >= 0.5


async def test_stale_members_may_be_asked_and_say_how_old_their_state_is(east: Sandbox, tmp_path: Path) -> None:
    east.store.create(node("e1", "64"))
    options = replace(QUIET, staleness=Staleness(after_s=0.0, is_asked=True))
    async with serving(FleetApp(options, _sources(tmp_path, east=east))) as asker:
        await asker.wait_for(JOB, best="east")
        east.faults.refuse_connections(3600)
        answer = await asker.until(lambda answer: "staleSeconds" in answer["fits"][0], lambda: asker.fit(JOB))
        assert answer["best"] == "east"


async def test_member_that_was_never_listed_is_named(east: Sandbox, west: Sandbox, tmp_path: Path) -> None:
    east.store.create(node("e1", "4"))
    west.faults.refuse_connections(3600)
    async with serving(FleetApp(QUIET, _sources(tmp_path, east=east, west=west))) as asker:
        answer = await asker.wait_for(JOB, best="east", without={"west"})
        assert answer["without"]["west"].startswith("it has not been listed yet")


async def test_broken_kubeconfig_and_the_same_cluster_twice_leave_the_others(
    east: Sandbox, west: Sandbox, tmp_path: Path
) -> None:
    for sandbox, uid in ((east, "u-east"), (west, "u-west")):
        sandbox.store.create(node("n1", "4"))
        if "kube-system" not in {item["metadata"]["name"] for item in sandbox.store.list("namespaces")}:
            sandbox.store.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kube-system"}})
        del uid
    (tmp_path / "odd").write_text("no kubeconfig")
    sources = [*_sources(tmp_path, east=east, west=west, again=east), Source("odd", str(tmp_path / "odd"))]
    async with serving(FleetApp(QUIET, sources)) as asker:
        answer = await asker.wait_for(JOB, best="again", without={"odd", "east"})
        assert answer["without"]["east"] == "it is the same cluster as again"
        assert [cluster["cluster"] for cluster in answer["fits"]] == ["again", "west"]


async def test_members_come_and_go_with_the_files_of_a_folder(east: Sandbox, west: Sandbox, tmp_path: Path) -> None:
    for sandbox in (east, west):
        sandbox.store.create(node("n1", "4"))
    folder = tmp_path / "members"
    folder.mkdir()
    east.write_kubeconfig(folder / "east")
    (folder / "odd").write_text("no kubeconfig")
    async with serving(FleetApp(replace(QUIET, look_s=0.05), folder=folder)) as asker:
        await asker.wait_for(JOB, best="east", without={"odd"})
        west.write_kubeconfig(folder / "west")
        (folder / "odd").unlink()
        (folder / "east").unlink()
        await asker.wait_for(JOB, best="west")
        # Another cluster under the same name answers once it is listed.
        east.store.create(node("n2", "1"))
        east.write_kubeconfig(folder / "west")
        await asker.until(lambda clusters: clusters["west"]["nodes"] == 2, asker.clusters)


@pytest.mark.parametrize(
    ("content", "options", "message"),
    [
        (b"{", {}, "the request: "),
        (b"", {}, "found nothing"),
        (b'{"apiVersion": "v1", "kind": "Service", "metadata": {"name": "a"}}', {}, "found Service"),
        (b"x", {"oder": "cheapest"}, "oder: there is no such option; known are order, most, clusters, timeout"),
        (b"x", {"order": "best"}, "order: expected one of emptiest, cheapest, got 'best'"),
        (b"x", {"order": "cheapest"}, "order: no prices are known here"),
        (b"x", {"most": "0"}, "most: expected a number from 1 up, got '0'"),
        (b"x", {"timeout": "5"}, "timeout: "),
        (b"x", {"timeout": "1h"}, "timeout: expected a duration up to 30s, got '1h'"),
    ],
)
async def test_what_is_misunderstood_is_refused(content: bytes, options: dict[str, str], message: str) -> None:
    async with serving(FleetApp(QUIET)) as asker:
        if content == b"x":
            import orjson

            content = orjson.dumps(JOB)
        status, answer = await asker.post(content, **options)
        assert status == 400
        assert message in answer["error"]


async def test_members_of_different_minors_decide_each_as_its_own(
    east: Sandbox, west: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def release_of(session: ApiSession) -> tuple[Release, str]:
        release = FIRST if str(session._url("")).rstrip("/") == east.url else NEWEST
        return release, f"v{release.minor}.2"

    def as_of(release: Release) -> Rules:
        return Rules(default_configuration(default_gates(release)))

    monkeypatch.setattr(member_rules, "release_of", release_of)
    # What the container may have, and does not have yet, counts from 1.37 on.
    status = {"phase": "Running", "containerStatuses": [{"name": "main", "allocatedResources": {"cpu": "3"}}]}
    for sandbox in (east, west):
        sandbox.store.create(node("n1", "5"))
        manifest = sandbox.store.create(pod("grows", "1", node="n1"))
        sandbox.store.update({**manifest, "status": status}, subresource="status")
    sources = _sources(tmp_path, east=east, west=west)
    async with serving(FleetApp(replace(QUIET, rules=Rules(as_of=as_of)), sources)) as asker:
        await asker.wait_for(JOB, best="east")
        clusters = await asker.clusters()
        assert {name: cluster["decidesAs"] for name, cluster in clusters.items()} == {"east": "1.36", "west": "1.37"}
        answer = await asker.fit(JOB)
        assert [rejection["cluster"] for rejection in answer["rejected"]] == ["west"]


async def test_large_bodies_and_malformed_messages_are_refused() -> None:
    async with serving(FleetApp(QUIET)) as asker:
        with pytest.raises(grpc.aio.AioRpcError) as error:
            await asker.fit_by_grpc({"kind": "Pod"}, order="odd")
        assert error.value.code() is grpc.StatusCode.INVALID_ARGUMENT
        async with asker._session.post(f"{asker.url}/fit", data=io.BytesIO(b" " * (2 << 20))) as response:
            assert response.status == 413
        async with asker._session.post(f"{asker.url}/fit", data=b"{}", headers={"Origin": "http://evil"}) as response:
            assert response.status == 403


async def test_questions_end_at_their_deadline(east: Sandbox, tmp_path: Path) -> None:
    for number in range(50):
        east.store.create(node(f"n{number}", "64"))
    large = workload("Deployment", replicas=3_000, cpu="1")
    async with serving(FleetApp(QUIET, _sources(tmp_path, east=east))) as asker:
        await asker.wait_for(JOB, best="east")
        answer = await asker.fit(large, timeout="50ms")
        assert answer["without"] == {"east": "it was not tried within the time limit"}
        answer = await asker.fit(JOB)
        assert answer["best"] == "east"


async def test_a_member_that_is_renamed_answers_under_its_new_name(east: Sandbox, tmp_path: Path) -> None:
    east.store.create(node("n1", "4"))
    folder = tmp_path / "members"
    folder.mkdir()
    east.write_kubeconfig(folder / "east")
    async with serving(FleetApp(replace(QUIET, look_s=0.05), folder=folder)) as asker:
        await asker.wait_for(JOB, best="east")
        (folder / "east").rename(folder / "renamed")
        await asker.wait_for(JOB, best="renamed")
        assert list(await asker.clusters()) == ["renamed"]


async def test_a_member_that_comes_and_goes_leaves_nothing_behind(east: Sandbox, tmp_path: Path) -> None:
    east.store.create(node("n1", "4"))
    folder = tmp_path / "members"
    folder.mkdir()
    app = FleetApp(replace(QUIET, look_s=0.01), folder=folder)
    members: list[weakref.ref[WatchedCluster]] = []
    async with serving(app) as asker:
        task_count = len(asyncio.all_tasks())
        for _ in range(3):
            east.write_kubeconfig(folder / "east")
            await asker.wait_for(JOB, best="east")
            members.append(weakref.ref(app.fleet._members["east"]))
            (folder / "east").unlink()
            await asker.wait_for(JOB, best=None)

        async def leftovers() -> list[object]:
            return [*filter(None, (member() for member in members)), *list(asyncio.all_tasks())[task_count:]]

        await asker.until(lambda objects: not objects, leftovers)

"""Member clusters followed through their API servers."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import anyio
import grpc
import pytest

from podium.config import Release, default_configuration, default_gates
from podium.engine.configurations import Configurations
from podium.estimator.accurate import Rules
from podium.estimator.member import Gates
from podium.estimator.server.app import EstimatorApp, Source
from podium.estimator.server.members import OnUnsynced
from podium.plugins import IN_TREE
from podium.plugins.contrib import CONTRIB
from podium.sandbox import Sandbox, discovery
from tests.integration.estimator.server.conftest import QUIET, refusal, replace, serving
from tests.manifests import node, pod
from tests.patience import PATIENCE_S

pytestmark = pytest.mark.anyio

ONE_CPU = {"resourceRequest": {"cpu": "1"}, "namespace": "default"}
# Far below the time after which anything is read again of itself; usually it is a few milliseconds.
FOLLOWS_S_MAX = 10.0
Json = dict[str, Any]
CONFIGURATION = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
GONE = {
    OnUnsynced.MAX: 2**31 - 1,
    OnUnsynced.ERROR: "cluster goes cannot be reached",
    OnUnsynced.LAST_KNOWN: 7,
}


def _quota(hard: str, usage: str) -> Json:
    status = {"hard": {"cpu": hard}, "used": {"cpu": usage}}
    metadata = {"name": "q", "namespace": "default"}
    return {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": metadata, "status": status}


@pytest.fixture
async def sandbox(anyio_backend: object) -> AsyncIterator[Sandbox]:
    async with Sandbox(kubelets=False) as sandbox:
        yield sandbox


async def becomes(target: object, ask: Callable[[], Awaitable[int]], within_s: float = PATIENCE_S) -> None:
    """Wait until the answer, or the text of the refusal, is this one."""
    value: object = None
    with anyio.move_on_after(within_s):
        while True:
            try:
                value = await ask()
            except grpc.aio.AioRpcError as error:
                value = error.details()
            if value == target:
                return
            await anyio.sleep(0.01)
    raise AssertionError(f"expected {target}, got {value}")


def _source(sandbox: Sandbox, directory: Path, name: str) -> Source:
    return Source(name, str(sandbox.write_kubeconfig(directory / name)))


async def test_estimates_follow_nodes_and_pods(sandbox: Sandbox, tmp_path: Path) -> None:
    store = sandbox.store
    store.create(node("n1", "4"))
    async with serving(EstimatorApp(QUIET, [_source(sandbox, tmp_path, "m1")])) as asker:

        async def replicas() -> int:
            return await asker.replicas("m1", ONE_CPU)

        await becomes(4, replicas)
        store.create(node("n2", "2"))
        await becomes(6, replicas, FOLLOWS_S_MAX)
        store.create(pod("web", "3", node="n1"))
        await becomes(3, replicas, FOLLOWS_S_MAX)
        store.create(pod("waiting", "3"))
        store.delete("pods", "web", "default", grace_period_s=0)
        await becomes(6, replicas, FOLLOWS_S_MAX)
        store.delete("nodes", "n1")
        await becomes(2, replicas, FOLLOWS_S_MAX)


async def test_quotas_are_followed_with_their_gate(sandbox: Sandbox, tmp_path: Path) -> None:
    sandbox.store.create(node("n1", "4"))
    sandbox.store.create(_quota("3", "1"))
    options = replace(QUIET, gates=Gates(resource_quota_estimate=True))
    async with serving(EstimatorApp(options, [_source(sandbox, tmp_path, "m1")])) as asker:
        await becomes(2, lambda: asker.replicas("m1", ONE_CPU))
        sandbox.store.delete("resourcequotas", "q", "default")
        await becomes(4, lambda: asker.replicas("m1", ONE_CPU))


@pytest.mark.parametrize("on_unsynced", OnUnsynced)
async def test_member_that_is_gone_leaves_the_others_alone(
    sandbox: Sandbox, tmp_path: Path, on_unsynced: OnUnsynced
) -> None:
    sandbox.store.create(node("n1", "4"))
    async with Sandbox(kubelets=False) as second_sandbox:
        second_sandbox.store.create(node("n1", "7"))
        sources = [_source(sandbox, tmp_path, "stays"), _source(second_sandbox, tmp_path, "goes")]
        app = EstimatorApp(replace(QUIET, on_unsynced=on_unsynced), sources)
        async with serving(app) as asker:
            await becomes(4, lambda: asker.replicas("stays", ONE_CPU))
            await becomes(7, lambda: asker.replicas("goes", ONE_CPU))
            second_sandbox.faults.refuse_connections(3600)
            await becomes(GONE[on_unsynced], lambda: asker.replicas("goes", ONE_CPU))
            assert await asker.replicas("stays", ONE_CPU) == 4


def _workload(kind: str, name: str, **fields: Any) -> Json:
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}
    apart = {"labelSelector": {"matchLabels": {"app": name}}, "topologyKey": "kubernetes.io/hostname"}
    affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [apart]}}
    template = {"metadata": {"labels": {"app": name}}, "spec": {"containers": [container], "affinity": affinity}}
    spec = {"selector": {"matchLabels": {"app": name}}, "template": template}
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": metadata, "spec": {**spec, **fields}}


async def test_accurate_answers_follow_workloads_and_pods_that_wait_in_the_member(
    sandbox: Sandbox, tmp_path: Path
) -> None:
    store = sandbox.store
    for name in ("n1", "n2", "n3"):
        store.create(node(name, "4"))
    options = replace(QUIET, rules=Rules())
    async with serving(EstimatorApp(options, [_source(sandbox, tmp_path, "m1")])) as asker:

        async def replicas(of: str = "kind=StatefulSet, name=default/db") -> int:
            return await asker.replicas("m1", ONE_CPU, of=of)

        await becomes(12, replicas)
        store.create(_workload("StatefulSet", "db"))
        await becomes(3, replicas)
        store.create(pod("waiting", "4"))
        await becomes(2, replicas)
        assert await replicas("kind=Deployment, name=default/db") == 8
        store.delete("pods", "waiting", "default", grace_period_s=0)
        await becomes(3, replicas)
        store.delete("statefulsets", "db", "default")
        await becomes(12, replicas)


def _rules(**plugins: Json) -> Rules:
    """Rules with these plugins of scheduler-plugins beside the default ones, each with its args."""
    entries = [{"name": name} for name in plugins]
    args = [{"name": name, "args": value} for name, value in plugins.items() if value]
    profile = {"schedulerName": "podium", "plugins": {"multiPoint": {"enabled": entries}}, "pluginConfig": args}
    classes = {**IN_TREE, **CONTRIB}
    return Rules(Configurations(classes).of({**CONFIGURATION, "profiles": [profile]}), classes)


async def test_accurate_answers_follow_the_quotas_of_a_plugin(sandbox: Sandbox, tmp_path: Path) -> None:
    store = sandbox.store
    store.create(node("n1", "10"))
    options = replace(QUIET, rules=_rules(CapacityScheduling={}))
    async with serving(EstimatorApp(options, [_source(sandbox, tmp_path, "m1")])) as asker:

        async def replicas() -> int:
            return await asker.replicas("m1", ONE_CPU)

        await becomes(10, replicas)
        store.create(_elastic_quota("3"))
        await becomes(3, replicas, FOLLOWS_S_MAX)
        store.create(pod("web", "1", node="n1"))
        await becomes(2, replicas, FOLLOWS_S_MAX)
        store.update(_elastic_quota("5"))
        await becomes(4, replicas, FOLLOWS_S_MAX)
        store.delete("elasticquotas.scheduling.x-k8s.io", "quota", "default")
        await becomes(9, replicas, FOLLOWS_S_MAX)


async def test_accurate_answers_follow_the_numa_zones_of_nodes(sandbox: Sandbox, tmp_path: Path) -> None:
    store = sandbox.store
    store.create(node("n1", "8"))
    workload = _workload("Deployment", "aligned")
    amounts = {"cpu": "3", "memory": "1Gi"}
    workload["spec"]["template"]["spec"] = {
        "containers": [{"name": "c", "image": "i", "resources": {"requests": amounts, "limits": amounts}}]
    }
    store.create(workload)
    options = replace(QUIET, rules=_rules(NodeResourceTopologyMatch={}))
    async with serving(EstimatorApp(options, [_source(sandbox, tmp_path, "m1")])) as asker:

        async def replicas() -> int:
            requirements = {"resourceRequest": amounts, "namespace": "default"}
            return await asker.replicas("m1", requirements, of="kind=Deployment, name=default/aligned")

        await becomes(2, replicas)
        store.create(_topology("2"))
        await becomes(0, replicas, FOLLOWS_S_MAX)
        store.update(_topology("4"))
        await becomes(2, replicas, FOLLOWS_S_MAX)


def _elastic_quota(cpu: str) -> Json:
    bounds = {"cpu": cpu, "memory": "64Gi"}
    metadata = {"name": "quota", "namespace": "default"}
    spec = {"min": bounds, "max": bounds}
    return {"apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "ElasticQuota", "metadata": metadata, "spec": spec}


def _topology(cpu: str) -> Json:
    """Two zones with so much cpu each, of which a pod must take one."""
    amounts = {"cpu": cpu, "memory": "8Gi"}
    resources = [
        {"name": name, "capacity": amount, "allocatable": amount, "available": amount}
        for name, amount in amounts.items()
    ]
    return {
        "apiVersion": "topology.node.k8s.io/v1alpha2",
        "kind": "NodeResourceTopology",
        "metadata": {"name": "n1"},
        "attributes": [{"name": "topologyManagerPolicy", "value": "single-numa-node"}],
        "zones": [{"name": f"node-{number}", "type": "Node", "resources": resources} for number in range(2)],
    }


@pytest.mark.parametrize("minor", ["36", "37"])
async def test_accurate_answers_are_by_the_rules_of_the_members_own_minor(
    sandbox: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, minor: str
) -> None:
    monkeypatch.setitem(discovery.VERSION, "minor", minor)
    sandbox.store.create(node("n1", "4"))
    minors: list[str] = []

    def as_of(release: Release) -> Rules:
        minors.append(release.minor)
        return Rules(default_configuration(default_gates(release)))

    options = replace(QUIET, rules=Rules(as_of=as_of))
    async with serving(EstimatorApp(options, [_source(sandbox, tmp_path, "m1")])) as asker:
        await becomes(4, lambda: asker.replicas("m1", ONE_CPU))
    assert minors == [f"1.{minor}"]


async def test_member_that_does_not_say_its_version_is_answered_by_the_newest_rules(
    sandbox: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(discovery.VERSION, "minor")
    sandbox.store.create(node("n1", "4"))

    def refuse(release: Release) -> Rules:
        raise AssertionError(release)

    options = replace(QUIET, rules=Rules(as_of=refuse))
    async with serving(EstimatorApp(options, [_source(sandbox, tmp_path, "m1")])) as asker:
        await becomes(4, lambda: asker.replicas("m1", ONE_CPU))


async def test_members_come_change_and_go_with_the_files_of_a_folder(sandbox: Sandbox, tmp_path: Path) -> None:
    sandbox.store.create(node("n1", "4"))
    folder = tmp_path / "members"
    folder.mkdir()
    (folder / "broken.yaml").write_text("none of a kubeconfig")
    (folder / ".hidden").write_text("")
    _source(sandbox, folder, "m1")
    options = replace(QUIET, look_s=0.02)
    async with Sandbox(kubelets=False) as second_sandbox, serving(EstimatorApp(options, folder=folder)) as asker:
        second_sandbox.store.create(node("n1", "7"))
        await becomes(4, lambda: asker.replicas("m1", ONE_CPU))
        code, text = await refusal(lambda: asker.replicas("broken"))
        assert (code, text) == (
            grpc.StatusCode.UNKNOWN,
            "cluster name does not match, got: broken, desire: m1",
        )
        _source(second_sandbox, folder, "m2.yaml")
        await becomes(7, lambda: asker.replicas("m2", ONE_CPU))
        (folder / "m2.yaml").unlink()
        _source(second_sandbox, folder, "m1")
        await becomes(7, lambda: asker.replicas("m1", ONE_CPU))
        second_sandbox.store.create(node("n2", "7"))
        await becomes(14, lambda: asker.replicas("m1", ONE_CPU))
        assert await asker.replicas("m2", ONE_CPU) == 7


async def test_member_whose_file_is_gone_answers_as_one_that_cannot_be_reached(
    sandbox: Sandbox, tmp_path: Path
) -> None:
    sandbox.store.create(node("n1", "4"))
    _source(sandbox, tmp_path, "goes")
    options = replace(QUIET, look_s=0.02, on_unsynced=OnUnsynced.ERROR)
    async with serving(EstimatorApp(options, folder=tmp_path)) as asker:
        await becomes(4, lambda: asker.replicas("goes", ONE_CPU))
        (tmp_path / "goes").unlink()
        await becomes("cluster goes cannot be reached", lambda: asker.replicas("goes", ONE_CPU))
        _source(sandbox, tmp_path, "goes")
        await becomes(4, lambda: asker.replicas("goes", ONE_CPU))


async def test_member_that_never_answered_is_an_error(tmp_path: Path, anyio_backend: object) -> None:
    async with serving(EstimatorApp(QUIET, [Source("m1", master="http://127.0.0.1:1")])) as asker:
        code, text = await refusal(lambda: asker.replicas("m1"))
    assert (code, text) == (grpc.StatusCode.UNKNOWN, "cluster m1 has not been listed yet")
